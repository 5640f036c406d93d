"""Counters of the service, in Prometheus's text format."""

from bisect import bisect_left
from collections import Counter

from msgspec import Struct, field

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class Metrics(Struct):
    """Counters of the service or of one worker since it started. Written by one thread."""

    decisions: dict[tuple[str, str, str], int] = field(default_factory=Counter[tuple[str, str, str]])
    """By tenant, answer, and whether the call runs."""
    requests: dict[tuple[str, int], int] = field(default_factory=Counter[tuple[str, int]])
    """By route and status."""
    events: dict[str, int] = field(default_factory=Counter[str])
    """By tenant."""
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    seconds: float = 0.0
    commits: int = 0
    """Commits of previous and other workers."""
    sessions: int = 0

    def add(self, other: "Metrics") -> None:
        """Add another worker's counts."""
        for name in ("decisions", "requests", "events"):
            getattr(self, name).update(getattr(other, name))
        self.buckets = [mine + theirs for mine, theirs in zip(self.buckets, other.buckets, strict=True)]
        self.seconds += other.seconds
        self.commits += other.commits
        self.sessions += other.sessions

    def took(self, seconds: float) -> None:
        """Record the duration of a deciding request, including the log."""
        self.buckets[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds

    def text(self, tenant: str | None, waits: float = 0.0, anchors_failing: float = 0.0) -> str:
        """The Prometheus page: one tenant's decisions and events, or totals without a key.

        `waits` is how long the log has not responded, in seconds, if that is long; `anchors_failing` is how long no
        anchor could be written.
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
        lines += [f"# TYPE {anchors} gauge", f"{anchors} {anchors_failing:.1f}"]
        lines += ["# TYPE bylaw_sessions gauge", f"bylaw_sessions {self.sessions}", ""]
        return "\n".join(lines)


def waiting_text(tenant: str | None, count: int, oldest: float) -> str:
    """The gauges for calls that wait for a person: their number, and the age of the oldest in seconds."""
    own = f'{{tenant="{_quoted(tenant)}"}}' if tenant is not None else ""
    lines = ["# TYPE bylaw_approvals_waiting gauge", f"bylaw_approvals_waiting{own} {count}"]
    lines += ["# TYPE bylaw_approvals_oldest_seconds gauge", f"bylaw_approvals_oldest_seconds{own} {oldest:.0f}", ""]
    return "\n".join(lines)


def _quoted(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
