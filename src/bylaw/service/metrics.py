"""Counters of the service, in Prometheus's text format."""

from bisect import bisect_left
from collections import Counter

from msgspec import Struct

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class Counts(Struct, frozen=True):
    """What one worker has done, to be told to others."""

    decisions: list[tuple[str, str, str, int]]
    requests: list[tuple[str, int, int]]
    events: dict[str, int]
    buckets: list[int]
    seconds: float
    commits: int
    sessions: int


class Metrics:
    """What the service has done since it began. Written by one thread."""

    def __init__(self) -> None:
        self.decisions: Counter[tuple[str, str, str]] = Counter()
        """By tenant, answer and whether the call runs."""
        self.requests: Counter[tuple[str, int]] = Counter()
        """By route and status."""
        self.events: Counter[str] = Counter()
        """By tenant."""
        self._buckets = [0] * (len(BUCKETS) + 1)
        self._seconds = 0.0
        self._commits = 0
        """Of workers before or beside this one."""

    def add(self, counts: Counts) -> None:
        """Count what another has counted."""
        for *name, count in counts.decisions:
            whose, answer, allowed = name
            self.decisions[whose, answer, allowed] += count
        for route, status, count in counts.requests:
            self.requests[route, status] += count
        self.events.update(counts.events)
        self._buckets = [mine + theirs for mine, theirs in zip(self._buckets, counts.buckets, strict=True)]
        self._seconds += counts.seconds
        self._commits += counts.commits

    def counts(self, commits: int, sessions: int) -> Counts:
        """All that was counted here."""
        decisions = [(*name, count) for name, count in self.decisions.items()]
        requests = [(*name, count) for name, count in self.requests.items()]
        shape = (decisions, requests, dict(self.events), self._buckets, self._seconds)
        return Counts(*shape, self._commits + commits, sessions)

    def took(self, seconds: float) -> None:
        """A request that decided took so long, the log included."""
        self._buckets[bisect_left(BUCKETS, seconds)] += 1
        self._seconds += seconds

    def text(self, commits: int, sessions: int, tenant: str | None, waits: float = 0.0) -> str:
        """The page that Prometheus reads: one tenant's decisions and events, or, for nobody's key, all in one.

        `waits` is how many seconds the log has taken so far for what it was last asked, where that is long.
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
        for limit, count in zip((*map(str, BUCKETS), "+Inf"), self._buckets, strict=True):
            total += count
            lines.append(f'bylaw_decide_seconds_bucket{{le="{limit}"}} {total}')
        lines += [f"bylaw_decide_seconds_sum {self._seconds}", f"bylaw_decide_seconds_count {total}"]
        lines += ["# TYPE bylaw_log_commits_total counter", f"bylaw_log_commits_total {self._commits + commits}"]
        lines += ["# TYPE bylaw_log_waits_seconds gauge", f"bylaw_log_waits_seconds {waits:.1f}"]
        lines += ["# TYPE bylaw_sessions gauge", f"bylaw_sessions {sessions}", ""]
        return "\n".join(lines)


def waiting_text(tenant: str | None, count: int, oldest: float) -> str:
    """The gauges that tell what waits for a person: how many calls, and how many seconds the first of them has."""
    own = f'{{tenant="{_quoted(tenant)}"}}' if tenant is not None else ""
    lines = ["# TYPE bylaw_approvals_waiting gauge", f"bylaw_approvals_waiting{own} {count}"]
    lines += ["# TYPE bylaw_approvals_oldest_seconds gauge", f"bylaw_approvals_oldest_seconds{own} {oldest:.0f}", ""]
    return "\n".join(lines)


def _quoted(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
