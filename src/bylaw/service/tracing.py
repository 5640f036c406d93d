"""OpenTelemetry spans if its API is installed (extra `otel`): one per request, with an event per decision.

The host chooses provider and exporter: `opentelemetry-instrument bylaw serve ...`. Spans contain tenant, conversation,
tool, answer and policies, and no message text.
"""
# pyright: basic, reportMissingImports=false

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from bylaw import __version__
from bylaw.service.request import Decided


class Tracing:
    """Creates spans, with the host's provider or a given one."""

    def __init__(self, provider: Any = None) -> None:
        self._is_given = provider is not None
        self._tracer = trace.get_tracer("bylaw.service", __version__, provider)

    @property
    def is_on(self) -> bool:
        """Whether spans are recorded: the host has set a provider."""
        return self._is_given or not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)

    @contextmanager
    def request(self, path: str, headers: Iterable[tuple[bytes, bytes]]) -> Generator[Callable[[int], None]]:
        """The span of one request, a child of the caller's span if its headers name one; call the result with the
        status.
        """
        carried = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        about = {"http.request.method": "POST", "http.route": path}
        parent = propagate.extract(carried)
        with self._tracer.start_as_current_span(f"POST {path}", parent, SpanKind.SERVER, about) as span:

            def ended(status: int) -> None:
                span.set_attribute("http.response.status_code", status)
                if status >= 500:
                    span.set_status(Status(StatusCode.ERROR))

            yield ended

    def tell(self, tenant: str, decisions: Iterable[Decided]) -> None:
        """Add decisions to the span of their request."""
        span = trace.get_current_span()
        if not span.is_recording():
            return
        for decision in decisions:
            span.set_attributes({"bylaw.tenant": tenant, "gen_ai.conversation.id": decision.conversation})
            told = {
                "bylaw.decision.id": decision.id,
                "gen_ai.tool.name": decision.tool,
                "bylaw.answer": decision.answer,
                "bylaw.allowed": decision.allowed,
                "bylaw.policies": decision.policies,
                "bylaw.seconds": decision.seconds,
                "bylaw.pack": decision.pack,
            }
            span.add_event("bylaw.decision", told)
