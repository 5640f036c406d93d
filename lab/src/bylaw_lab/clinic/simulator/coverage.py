"""Counts how often each policy ends in each verdict in simulated conversations, and finds empty cells."""

from collections import Counter
from collections.abc import Iterable

from bylaw_lab.clinic.simulator.truth import POLICIES
from bylaw_lab.clinic.simulator.verdict import CRITERIA, MODES, WORST_FIRST, Truth

QUOTA = 20
"""The numbers of violations and near-misses that every policy needs (strict, snapshot)."""
REASON_QUOTA = 200


class Coverage:
    def __init__(self, truths: Iterable[Truth]) -> None:
        self.trajectories = 0
        self.calls: Counter[str] = Counter()
        self.executed: Counter[str] = Counter()
        self.cells: Counter[tuple[str, str, str, str]] = Counter()
        """Counts by policy, criterion, mode and verdict."""
        self.overall: Counter[tuple[str, str, str]] = Counter()
        self.reasons: Counter[str] = Counter()
        self.near_miss_reasons: Counter[str] = Counter()
        for truth in truths:
            self.add(truth)

    def add(self, truth: Truth) -> None:
        self.trajectories += 1
        for call in truth.calls:
            self.calls[call.tool] += 1
            self.executed[str(call.executed)] += 1
            for criterion in CRITERIA:
                for mode in MODES:
                    self.overall[criterion, mode, getattr(call, criterion)[mode]] += 1
            for policy in call.policies:
                for criterion in CRITERIA:
                    for mode in MODES:
                        self.cells[policy.id, criterion, mode, getattr(policy, criterion)[mode]] += 1
                for lack in policy.missing["snapshot"]:
                    self.reasons[lack.reason] += 1
                    if policy.strict["snapshot"] == "near_miss":
                        self.near_miss_reasons[lack.reason] += 1

    def short(self) -> list[str]:
        """Return the counts that are below their quotas."""
        found = [
            f"{id}: {count} of {QUOTA} {verdict}"
            for id in POLICIES
            for verdict in ("violation", "near_miss")
            if (count := self.cells[id, "strict", "snapshot", verdict]) < QUOTA
        ]
        found += [
            f"{reason}: {self.near_miss_reasons[reason]} of {REASON_QUOTA}"
            for reason in ("never_seen", "stale", "claimed")
            if self.near_miss_reasons[reason] < REASON_QUOTA
        ]
        return found

    def lines(self) -> list[str]:
        """Return the table, the empty cells of strict and snapshot, and the counts below their quotas."""
        calls, writes = sum(self.calls.values()), dict(sorted(self.calls.items()))
        lines = [f"{self.trajectories} trajectories, {calls} write calls: {writes}"]
        lines.append(f"executed: {dict(sorted(self.executed.items()))}; reasons: {dict(sorted(self.reasons.items()))}")
        lines.append("policy, strict with snapshot".ljust(34) + "".join(name.rjust(14) for name in WORST_FIRST))
        empty: list[str] = []
        for id in POLICIES:
            counts = {verdict: self.cells[id, "strict", "snapshot", verdict] for verdict in WORST_FIRST}
            lines.append(id.ljust(34) + "".join(str(count).rjust(14) for count in counts.values()))
            empty += [f"{id}/{verdict}" for verdict, count in counts.items() if not count and verdict != "uninformed"]
        for criterion in CRITERIA:
            for mode in MODES:
                counts = [self.overall[criterion, mode, verdict] for verdict in WORST_FIRST]
                lines.append(f"all, {criterion}, {mode}".ljust(34) + "".join(str(count).rjust(14) for count in counts))
        lines.append("empty cells: " + (", ".join(empty) or "none"))
        lines.append("short: " + ("; ".join(self.short()) or "nothing"))
        return lines
