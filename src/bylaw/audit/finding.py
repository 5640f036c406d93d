"""A finding: one flagged call or one broken rule, under an id that stays the same from run to run."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from bylaw.engine.verdict import WORST_FIRST
from bylaw.pack import Criterion

FLAGGED = frozenset({"violation", "near_miss", "uninformed"})
"""The verdicts that make a call a finding."""
SEVERITIES = ("high", "medium", "low")
"""The gravest first."""
_GRAVEST_FIRST = ("violation", "near_miss", "broken", "uninformed", "inconclusive")


def rank(word: str, order: Sequence[str] = SEVERITIES) -> int:
    """The position of a severity, or of another word in its order; unknown words come last."""
    return order.index(word) if word in order else len(order)


def gravity(verdict: str, severity: str, *, executed: bool | None) -> int:
    """The sort key of findings, in every output: executed before refused, wrong before undecided, severity, verdict."""
    is_wrong = verdict in ("violation", "near_miss", "broken")
    return 500 * (executed is False) + 100 * (not is_wrong) + 10 * rank(severity) + rank(verdict, _GRAVEST_FIRST)


class Charge(Struct, frozen=True):
    """One policy of a finding, with its verdict."""

    policy: str
    severity: str
    verdict: str
    because: str


class Finding(Struct, frozen=True):
    """One flagged call, or one broken rule."""

    id: str
    kind: Literal["call", "rule"]
    name: str
    """The tool that was called, or the rule."""
    trajectory: str
    agent: str
    step: int
    verdict: str
    """The verdict under the audit's criterion."""
    executed: bool | None
    charges: tuple[Charge, ...]
    because: str = ""
    judged: bool = True
    """Whether any policy judged the call."""

    def record(self) -> dict[str, Any]:
        """The record for files of findings."""
        return {
            "finding": self.id,
            "trajectory": self.trajectory,
            "agent": self.agent,
            "step": self.step,
            "tool" if self.kind == "call" else "rule": self.name,
            "verdict": self.verdict,
            "executed": self.executed,
            "policies": [{"id": c.policy, "severity": c.severity, "verdict": c.verdict} for c in self.charges],
        }


def is_worse(charge: Charge, known: Mapping[str, str]) -> bool:
    """Whether a policy has a worse verdict than the known one, or none was known."""
    return rank(charge.verdict, WORST_FIRST) < rank(known.get(charge.policy, ""), WORST_FIRST)


class Gate(Struct, frozen=True):
    """The findings that fail a run: those with one of the verdicts, under a policy of at least this severity."""

    verdicts: frozenset[str] = frozenset({"violation", "near_miss", "rule"})
    severity: str = "low"

    @classmethod
    def named(cls, verdicts: Iterable[str], severity: str) -> "Gate":
        """The gate that command-line options describe; `near_miss` includes `violation`."""
        every = frozenset(verdicts)
        return cls(every | {"violation"} if "near_miss" in every else every, severity)

    def stops(self, finding: Finding) -> bool:
        """Whether a finding fails the run; that of a refused call never does."""
        if finding.kind == "rule":
            return "rule" in self.verdicts and self._is_severe(finding.charges[0].severity)
        if finding.executed is False or finding.verdict not in self.verdicts:
            return False
        return any(each.verdict in self.verdicts and self._is_severe(each.severity) for each in finding.charges)

    def stops_limit(self, limit: dict[str, Any]) -> bool:
        """Whether a limit in the summary fails the run."""
        return "rule" in self.verdicts and limit["over"] > 0 and self._is_severe(limit["severity"])

    def _is_severe(self, severity: str) -> bool:
        return rank(severity) <= rank(self.severity)


def lacked(missing: list[dict[str, Any]], criterion: Criterion) -> list[dict[str, Any]]:
    """The missing facts of a verdict: all unseen ones, or under `determined` those that decide it."""
    deciding = [fact for fact in missing if fact.get("decisive") is not False]
    return deciding if criterion == "determined" and deciding else missing
