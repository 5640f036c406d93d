"""What an audit could see of the logs, and what not: kept so that parts add up to the whole."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

from bylaw.engine.limited import LimitedCall
from bylaw.facts.evidence import EvidenceCount, LookupEvidence, added_up
from bylaw.trace.event import Event


class LogCoverage(Struct):
    """Counts over the conversations that were read."""

    unknown_tools: Counter[str] = field(default_factory=Counter[str])
    known_calls: int = 0
    """How many calls were of tools that the pack knows and that read or change something, or that it binds."""
    unmapped: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Tool and field."""
    worlds: dict[str, str] = {}
    """Which part of a world each file was held against."""
    changed: dict[tuple[str, ...], Counter[str]] = {}
    """By the policies whose sentences the agents were given otherwise, the agents."""
    faults: list[dict[str, Any]] = []
    """What went wrong in our own code, with where."""
    evidence: dict[str, EvidenceCount] = {}
    """By pack, what became of the results of look-ups."""
    limited: list[LimitedCall] = []
    """Calls that count under limits which span conversations."""
    first: float | None = None
    last: float | None = None
    """When the earliest and the latest event happened, where the logs say."""

    def add_times(self, events: Sequence[Event]) -> None:
        """Note when a conversation took place."""
        times = [event.time for event in events if event.time is not None]
        if times:
            self._reach(min(times), max(times))

    def add_changed(self, policies: tuple[str, ...], agent: str) -> None:
        """Count a conversation whose agent was given other sentences for these policies."""
        self.changed.setdefault(policies, Counter())[agent] += 1

    def __iadd__(self, other: "LogCoverage") -> "LogCoverage":
        self.unknown_tools.update(other.unknown_tools)
        self.known_calls += other.known_calls
        self.unmapped.update(other.unmapped)
        self.worlds.update(other.worlds)
        self.faults += other.faults
        self.limited += other.limited
        for policies, agents in other.changed.items():
            self.changed.setdefault(policies, Counter()).update(agents)
        for pack, count in other.evidence.items():
            self.evidence[pack].update(count)
        if other.first is not None and other.last is not None:
            self._reach(other.first, other.last)
        return self

    def _reach(self, first: float, last: float) -> None:
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)

    def period(self) -> dict[str, str] | None:
        """From when to when the conversations took place, in UTC; None where no log says."""
        if self.first is None or self.last is None:
            return None
        try:
            first, last = (datetime.fromtimestamp(time, UTC) for time in (self.first, self.last))
        except (ValueError, OverflowError, OSError):
            return None
        return {"from": first.isoformat(timespec="seconds"), "to": last.isoformat(timespec="seconds")}

    def lookups(self) -> tuple[LookupEvidence, ...]:
        """What became of the results of look-ups, by tool, over all packs."""
        return added_up([each for count in self.evidence.values() for each in count.found()])
