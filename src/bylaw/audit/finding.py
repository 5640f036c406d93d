"""The findings of an audit, read back from its folder: flagged calls and broken rules, each under a stable id."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from bylaw.audit.line import FINDING_IDS, FLAGGED, finding_id
from bylaw.errors import UsageError
from bylaw.pack import Criterion

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


class PolicyWord(Struct):
    """One policy's word in a line of `calls.jsonl`."""

    id: str
    strict: str
    determined: str
    severity: str = "medium"
    because: str = ""


class CallLine(Struct):
    """What is needed of a line of `calls.jsonl`."""

    trajectory: str
    agent: str
    step: int
    tool: str
    executed: bool | None
    strict: str
    determined: str
    policies: list[PolicyWord]
    finding: str = ""
    because: str = ""

    def as_finding(self, criterion: Criterion, verdicts: Collection[str] = FLAGGED) -> Finding:
        """The finding it is, with what the policies of these verdicts say."""
        charges = tuple(
            Charge(p.id, p.severity, getattr(p, criterion), p.because)
            for p in self.policies
            if getattr(p, criterion) in verdicts
        )
        verdict: str = getattr(self, criterion)
        head = (self.finding, "call", self.tool, self.trajectory, self.agent, self.step)
        judged = bool(self.policies or self.because)
        return Finding(*head, verdict, self.executed, charges, self.because, judged)


class _RuleLine(Struct):
    trajectory: str
    agent: str
    step: int
    rule: str
    policy: str
    because: str
    finding: str = ""


def lacked(missing: list[dict[str, Any]], criterion: Criterion) -> list[dict[str, Any]]:
    """The facts that a verdict lacks: all that were not seen, or where deciding is enough, those that decide."""
    deciding = [fact for fact in missing if fact.get("decisive") is not False]
    return deciding if criterion == "determined" and deciding else missing


_calls = msgspec.json.Decoder(CallLine)
_rules = msgspec.json.Decoder(_RuleLine)


def read_call(line: bytes) -> CallLine:
    """One line of `calls.jsonl`."""
    return _calls.decode(line)


def read_criterion(out: Path) -> Criterion:
    """What the audit in a folder goes by."""
    path = out / "summary.json"
    if not path.is_file():
        raise UsageError("no summary.json here", place=str(out), hint="give the folder an audit wrote")
    # Folders that older versions wrote do not say.
    return "strict" if msgspec.json.decode(path.read_bytes()).get("criterion") == "strict" else "determined"


def no_lines(out: Path) -> UsageError:
    """What to say of a folder without files of lines."""
    if (out / "tables").is_dir():
        return UsageError("tables only, no calls.jsonl here", place=str(out), hint="audit with --format both")
    return UsageError("no calls.jsonl here", place=str(out), hint="give the folder an audit wrote")


def read_findings(out: Path, criterion: Criterion | None = None) -> Iterator[Finding]:
    """Every finding of an audit, flagged calls first, in the order of the files; by its own criterion or another."""
    if not (out / "calls.jsonl").is_file():
        raise no_lines(out)
    criterion = criterion or read_criterion(out)
    try:
        with (out / "calls.jsonl").open("rb") as lines:
            for line in lines:
                # Most calls are not flagged, and only flagged ones have an id, whichever criterion flags them.
                if b'"finding":"' in line and (call := _calls.decode(line)).finding:
                    finding = call.as_finding(criterion)
                    if finding.verdict in FLAGGED:
                        yield finding
        yield from read_broken_rules(out)
    except msgspec.DecodeError as error:
        raise UsageError(f"a line of its files cannot be read: {error}", place=str(out), hint="audit again") from None


def former_ids(out: Path) -> dict[str, str]:
    """What findings of an audit were called by earlier versions, which named no arguments, by what they are called."""
    made: Counter[tuple[str, str]] = Counter()
    former: dict[str, str] = {}
    for name, decoder in (("calls.jsonl", _calls), ("findings.jsonl", _rules)):
        path = out / name
        with path.open("rb") if path.is_file() else BytesIO() as lines:
            for each in map(decoder.decode, lines):
                told = each.tool if isinstance(each, CallLine) else f"rule {each.rule}"
                made[each.trajectory, told] += 1
                if each.finding:
                    former[each.finding] = finding_id(each.trajectory, told, made[each.trajectory, told])
    return former


def names_calls(out: Path) -> bool:
    """Whether the findings of the audit in a folder are named by their calls' arguments, too."""
    return msgspec.json.decode((out / "summary.json").read_bytes()).get("finding_ids", 1) >= FINDING_IDS


def read_inconclusive(out: Path) -> Iterator[Finding]:
    """The calls of an audit on which there is no verdict, with what each policy lacks; they are no findings."""
    criterion = read_criterion(out)
    needle = f'"{criterion}":"inconclusive"'.encode()
    with (out / "calls.jsonl").open("rb") as lines:
        for line in lines:
            if needle in line and getattr(call := _calls.decode(line), criterion) == "inconclusive":
                yield call.as_finding(criterion, {"inconclusive"})


def read_broken_rules(out: Path) -> Iterator[Finding]:
    """The findings of an audit that are broken rules."""
    path = out / "findings.jsonl"
    if not path.is_file():
        return
    policies = read_policies(out)
    with path.open("rb") as lines:
        for line in lines:
            rule = _rules.decode(line)
            if rule.finding:
                severity = policies.get(rule.policy, {}).get("severity", "medium")
                charge = Charge(rule.policy, severity, "violation", rule.because)
                head = (rule.finding, "rule", rule.rule, rule.trajectory, rule.agent, rule.step)
                yield Finding(*head, "violation", None, (charge,), rule.because)


def read_policies(out: Path) -> dict[str, Any]:
    """`policies.json`."""
    path = out / "policies.json"
    return msgspec.json.decode(path.read_bytes()) if path.is_file() else {}
