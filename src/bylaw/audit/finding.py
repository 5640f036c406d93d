"""A finding: one flagged call or one broken rule, under an id that stays the same from run to run."""

from collections.abc import Collection, Iterable
from typing import Any, Literal

from msgspec import Struct

from bylaw.pack import Criterion

FLAGGED = frozenset({"violation", "near_miss", "uninformed"})
"""The verdicts that make a call a finding."""
SEVERITIES = ("high", "medium", "low")
"""The gravest first."""


def severity_rank(severity: str) -> int:
    """Small is grave; what has no severity comes last."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


class Charge(Struct, frozen=True):
    """One policy that a finding speaks of."""

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
    """Under the criterion that the audit goes by."""
    executed: bool | None
    charges: tuple[Charge, ...]
    because: str = ""
    judged: bool = True
    """Whether anything binds the call; one that nothing binds is compliant only for want of a verdict."""

    def counts(self, verdicts: Collection[str], severity: str = "low") -> bool:
        """Whether it was really done and, under a policy at least that severe, has one of the verdicts."""
        severe = SEVERITIES[: SEVERITIES.index(severity) + 1]
        if self.kind == "rule":
            return "rule" in verdicts and self.charges[0].severity in severe
        if self.executed is False or self.verdict not in verdicts:
            return False
        return any(charge.verdict in verdicts and charge.severity in severe for charge in self.charges)

    def record(self) -> dict[str, Any]:
        """As files of findings hold it."""
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


class Gate(Struct, frozen=True):
    """Which findings fail a run: those with one of the verdicts, under a policy at least so severe."""

    verdicts: frozenset[str] = frozenset({"violation", "near_miss", "rule"})
    severity: str = "low"

    @classmethod
    def named(cls, verdicts: Iterable[str], severity: str) -> "Gate":
        """As options name it: who fails on near-misses fails on violations too."""
        every = frozenset(verdicts)
        return cls(every | {"violation"} if "near_miss" in every else every, severity)

    def stops(self, finding: Finding) -> bool:
        """Whether a finding fails the run."""
        return finding.counts(self.verdicts, self.severity)

    def stops_limit(self, limit: dict[str, Any]) -> bool:
        """Whether a limit, as the summary tells of it, fails the run."""
        severe = SEVERITIES[: SEVERITIES.index(self.severity) + 1]
        return "rule" in self.verdicts and limit["over"] > 0 and limit["severity"] in severe


def lacked(missing: list[dict[str, Any]], criterion: Criterion) -> list[dict[str, Any]]:
    """The facts that a verdict lacks: all that were not seen, or where deciding is enough, those that decide."""
    deciding = [fact for fact in missing if fact.get("decisive") is not False]
    return deciding if criterion == "determined" and deciding else missing
