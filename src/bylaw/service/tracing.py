"""OpenTelemetry spans, where its API is installed (extra `otel`): one for each request, an event for each decision.

Which provider and which exporter is the host's affair, as ever: `opentelemetry-instrument bylaw serve ...`. Spans name
tenant, conversation, tool, answer and policies, and nothing that anyone said.
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
    """Makes the spans, with the host's provider or a given one."""

    def __init__(self, provider: Any = None) -> None:
        self._is_given = provider is not None
        self._tracer = trace.get_tracer("bylaw.service", __version__, provider)

    @property
    def is_on(self) -> bool:
        """Whether anybody looks at spans: the host has set a provider."""
        return self._is_given or not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)

    @contextmanager
    def request(self, path: str, headers: Iterable[tuple[bytes, bytes]]) -> Generator[Callable[[int], None]]:
        """The span of one request, a child of the caller's where its headers name one; to be told the status."""
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
        """What was decided, on the span of the request that asked."""
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
