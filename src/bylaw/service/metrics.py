"""Counts requests and decisions for Prometheus (in its text format), and optionally writes OpenTelemetry spans.

Workers share their counts in memory, so that each worker can report totals. A worker that restarts continues with its
last counts. Each request has one span, with an event per decision. Spans require the `otel` extra and contain no
message text. The host chooses the provider and the exporter: `opentelemetry-instrument bylaw serve ...`.
"""
# pyright: basic, reportMissingImports=false

import mmap
import time
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from multiprocessing.sharedctypes import RawValue
from struct import Struct as Layout
from typing import Any

import msgspec
from msgspec import Struct, field
from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from bylaw import __version__
from bylaw.service.request import Decided

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class Metrics(Struct):
    """The counts of one worker, or of the whole service, since it started. Only one thread may write them."""

    decisions: dict[tuple[str, str, str], int] = field(default_factory=Counter[tuple[str, str, str]])
    """The number of decisions by tenant, answer, and whether the call is allowed."""
    requests: dict[tuple[str, int], int] = field(default_factory=Counter[tuple[str, int]])
    """The number of requests by route and status."""
    events: dict[str, int] = field(default_factory=Counter[str])
    """The number of events by tenant."""
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    seconds: float = 0.0
    commits: int = 0
    """The number of commits by other workers, including those that have ended."""
    sessions: int = 0

    def add(self, other: "Metrics") -> None:
        for name in ("decisions", "requests", "events"):
            getattr(self, name).update(getattr(other, name))
        self.buckets = [mine + theirs for mine, theirs in zip(self.buckets, other.buckets, strict=True)]
        self.seconds += other.seconds
        self.commits += other.commits
        self.sessions += other.sessions

    def took(self, seconds: float) -> None:
        """Record how long a decision request took, including the time for the log."""
        self.buckets[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds

    def text(self, tenant: str | None, waits: float = 0.0, anchors_failing: float = 0.0) -> str:
        """Return the page for Prometheus: one tenant's decisions and events, or the totals if no tenant is given.

        `waits` is how long the log has been unresponsive, and `anchors_failing` how long anchors could not be written,
        both in seconds.
        """
        own = f'tenant="{_quoted(tenant)}",' if tenant is not None else ""
        decisions: Counter[tuple[str, str]] = Counter()
        for (whose, answer, allowed), count in self.decisions.items():
            if tenant in (None, whose):
                decisions[answer, allowed] += count
        lines = ["# TYPE bylaw_decisions_total counter"]
        for (answer, allowed), count in sorted(decisions.items()):
            lines.append(f'bylaw_decisions_total{{{own}answer="{answer}",allowed="{allowed}"}} {count}')
        events = sum(count for whose, count in self.events.items() if tenant in (None, whose))
        lines += ["# TYPE bylaw_events_total counter", f"bylaw_events_total{{{own.rstrip(',')}}} {events}"]
        lines.append("# TYPE bylaw_requests_total counter")
        for (route, status), count in sorted(self.requests.items()):
            lines.append(f'bylaw_requests_total{{route="{route}",status="{status}"}} {count}')
        lines.append("# TYPE bylaw_decide_seconds histogram")
        total = 0
        for limit, count in zip((*map(str, BUCKETS), "+Inf"), self.buckets, strict=True):
            total += count
            lines.append(f'bylaw_decide_seconds_bucket{{le="{limit}"}} {total}')
        lines += [f"bylaw_decide_seconds_sum {self.seconds}", f"bylaw_decide_seconds_count {total}"]
        lines += ["# TYPE bylaw_log_commits_total counter", f"bylaw_log_commits_total {self.commits}"]
        lines += ["# TYPE bylaw_log_waits_seconds gauge", f"bylaw_log_waits_seconds {waits:.1f}"]
        anchors = "bylaw_anchors_failing_seconds"
        lines += [f"# TYPE {anchors} gauge", f"{anchors} {anchors_failing:.3f}"]
        lines += ["# TYPE bylaw_sessions gauge", f"bylaw_sessions {self.sessions}", ""]
        return "\n".join(lines)


def waiting_text(tenant: str | None, count: int, oldest: float) -> str:
    """Return the gauges for waiting calls: the number of calls, and the age of the oldest in seconds."""
    own = f'{{tenant="{_quoted(tenant)}"}}' if tenant is not None else ""
    lines = ["# TYPE bylaw_approvals_waiting gauge", f"bylaw_approvals_waiting{own} {count}"]
    lines += ["# TYPE bylaw_approvals_oldest_seconds gauge", f"bylaw_approvals_oldest_seconds{own} {oldest:.0f}", ""]
    return "\n".join(lines)


def _quoted(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Tracing:
    """Creates spans with the given provider or, by default, with the host's provider."""

    def __init__(self, provider: Any = None) -> None:
        self._tracer = trace.get_tracer("bylaw.service", __version__, provider)
        self.is_on = provider is not None or not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
        """Whether there is a provider. The host must set one before the service starts."""

    @contextmanager
    def request(self, path: str, headers: Iterable[tuple[bytes, bytes]]) -> Generator[Callable[[int], None]]:
        """Open a span for a request, and return a function that closes it. Call it with the status when the request
        ends.

        If the headers name a span of the caller, that span is the parent.
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


SIZE = 1 << 20
"""The shared memory per worker, in bytes."""
_HEAD = Layout(">II")
_decode = msgspec.msgpack.Decoder(Metrics).decode
_encode = msgspec.msgpack.Encoder().encode
TRIES = 100
"""How often to try to read counts that are being written at the same time."""


class Board:
    """The counts of all workers, in shared memory. Create it before starting the workers."""

    def __init__(self, workers: int) -> None:
        self._memory = mmap.mmap(-1, workers * SIZE)
        self._workers = workers

    def put(self, worker: int, counts: Metrics) -> None:
        body = _encode(counts)
        if len(body) + _HEAD.size > SIZE:
            return
        start = worker * SIZE
        self._memory[start + _HEAD.size : start + _HEAD.size + len(body)] = body
        self._memory[start : start + _HEAD.size] = _HEAD.pack(len(body), zlib.crc32(body))

    def read(self, worker: int) -> Metrics | None:
        """Return a worker's counts, or None if it has not shared any yet."""
        start = worker * SIZE
        for _ in range(TRIES):
            size, check = _HEAD.unpack(self._memory[start : start + _HEAD.size])
            if size == 0:
                return None
            body = self._memory[start + _HEAD.size : start + _HEAD.size + size]
            if zlib.crc32(body) == check:
                return _decode(body)
        return None

    def all(self) -> list[Metrics]:
        return [counts for worker in range(self._workers) if (counts := self.read(worker)) is not None]


class Failing:
    """Records since when an operation has been failing, for all workers. Create it before starting the workers."""

    def __init__(self) -> None:
        self._since = RawValue("d", 0.0)

    def note(self, is_failing: bool) -> None:
        if not is_failing or not self._since.value:
            self._since.value = time.time() if is_failing else 0.0

    @property
    def seconds(self) -> float:
        """How long the operation has been failing, in seconds. 0 if it is not failing."""
        return max(time.time() - self._since.value, 0.001) if self._since.value else 0.0
