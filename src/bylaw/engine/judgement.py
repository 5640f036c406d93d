"""The judgement of a call: the guards' results on the facts that the agent had seen before the call's turn."""

import traceback
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct

from bylaw.engine.conduct import RuleFinding
from bylaw.facts.call_record import CallRecord
from bylaw.facts.entity import Entity, Fact, FactSource, Field, Key
from bylaw.facts.seen import ArgumentOrigin
from bylaw.facts.shown import Shown
from bylaw.guard import Completion, Guard, GuardOutcome
from bylaw.policy.statement import Policy
from bylaw.rule.circuit import Assessment
from bylaw.trace.event import Call

Otherwise = Literal["", "ask", "deny", "allow"]
"""What to decide about a call whose actions are unknown. Empty if the actions are known or the tool declares none."""


class SeenSource(FactSource, Protocol):
    """The facts that the agent had seen, each with its time."""

    def asked(self) -> Iterable[Fact] | None:
        """Return the facts that guards requested, or None if guards also requested anything else."""
        ...

    def answers(self) -> Iterable[tuple[str, Any]]:
        """Yield the facts that guards and rules requested, each with its value."""
        ...

    def objections(self) -> Sequence[str]:
        """Return descriptions of how the call exceeds the user's request."""
        ...

    def origins(self) -> Sequence[ArgumentOrigin]: ...

    def shown_at(self, entity: Entity, key: Key, field: Field) -> Shown | None:
        """Return the result that showed the value returned by `read`."""
        ...


class SeenTogether:
    """The facts that the agent had seen before a call that has several actions."""

    def __init__(self, each: Sequence[SeenSource]) -> None:
        self._each = each
        first = each[0]
        self.read, self.members, self.done, self.shown_at = first.read, first.members, first.done, first.shown_at

    def asked(self) -> Iterable[Fact] | None:
        """Return the facts that guards requested, or None if guards also requested anything else."""
        found = [each.asked() for each in self._each]
        return None if None in found else [fact for each in found for fact in each or ()]

    def answers(self) -> Iterable[tuple[str, Any]]:
        """Yield the facts that guards and rules requested, each with its value."""
        return dict(answer for each in self._each for answer in each.answers()).items()

    def objections(self) -> Sequence[str]:
        """Return descriptions of how the call exceeds the user's request."""
        return [why for each in self._each for why in each.objections()]

    def origins(self) -> Sequence[ArgumentOrigin]:
        """Return the origins of the actions' arguments."""
        return [origin for each in self._each for origin in each.origins()]


class PolicyEvidence(Struct, frozen=True):
    """One guard's results on the facts seen: one result for each combination of values that only the user knows."""

    policy: Policy
    guard: Guard
    completions: tuple[Completion, ...]

    @property
    def outcome(self) -> GuardOutcome:
        """The outcome that all combinations share. If they differ, `failed` if one of them failed, otherwise
        `undetermined`.
        """
        first = self.completions[0].outcome
        if len(self.completions) == 1:
            return first
        said = {completion.outcome for completion in self.completions}
        return first if len(said) == 1 else "failed" if "failed" in said else "undetermined"


class Judgement(Struct, frozen=True):
    """The judgement of a call by guards and rules. It uses only what was seen before the call, so later events never
    change it.
    """

    made: CallRecord
    seen: SeenSource
    now: datetime | None
    evidence: tuple[PolicyEvidence, ...]
    """The guards' results on the facts that were seen. `settle` later adds the results on the ground truth."""
    fault: str = ""
    """Why no guard could run, for example because the tool is unknown or an argument is missing."""
    rules: tuple[RuleFinding, ...] = ()
    open_rules: tuple[RuleFinding, ...] = ()
    """The rules that the call may break. Whether it breaks them depends on unknown values."""
    asked: Call | None = None
    """The original call of a generic tool, if `made` is an action of that call."""
    parts: "tuple[Judgement, ...]" = ()
    """The judgements of the individual actions, if the call performs several."""
    weighed: Assessment | None = None
    """Set for one of several actions: the rules' combined assessment, which assumes that the preceding actions ran."""
    otherwise: Otherwise = ""
    look_up: str = ""
    """The tool to call first, because its result would show what this call does. Empty if there is none."""
    instead: Call | None = None
    """The call to make in place of a click on a link."""
    shown: Mapping[str, Any] = {}
    """The facts that a card for the call shows."""

    @property
    def call(self) -> Call:
        """The call as the agent makes it."""
        return self.asked or self.made.call

    def known(self) -> list[tuple[str, Any]]:
        """Return the facts on which the judgement is based: those on a card, and those that guards and rules read."""
        shown = [fact for part in self.parts or (self,) for fact in part.shown.items()]
        return [*shown, *self.seen.answers()]

    @property
    def is_permitted(self) -> bool:
        """Whether the call is permitted whatever the unknown values are."""
        if self.parts:
            return all(part.is_permitted for part in self.parts)
        if self.fault or self.rules or self.open_rules:
            return False
        return all(each.outcome == "permit" for said in self.evidence for each in said.completions)

    @property
    def outcome(self) -> GuardOutcome:
        """The most severe outcome. A broken rule denies the call, and an undecided rule leaves it undetermined."""
        if self.parts:
            return gravest_outcome(part.outcome for part in self.parts)
        said = {evidence.outcome for evidence in self.evidence}
        if self.rules or "deny" in said:
            return "deny"
        if self.fault or "failed" in said:
            return "failed"
        return "undetermined" if self.open_rules or "undetermined" in said else "permit"

    def __repr__(self) -> str:
        speaking = [each.policy.id for each in self.evidence if each.outcome != "permit"]
        speaking += [finding.rule.name for finding in (*self.rules, *self.open_rules)]
        why = self.fault or ", ".join(speaking)
        told = f" ({why})" if why else ""
        return f"<judgement of {self.made.call.tool} at step {self.made.step}: {self.outcome}{told}>"


def gravest_outcome(said: Iterable[GuardOutcome]) -> GuardOutcome:
    found, order = set(said), tuple[GuardOutcome, ...](("deny", "failed", "undetermined", "permit"))
    return next(each for each in order if each in found)


_OURS = Path(__file__).parents[1]


class Fault(Struct, frozen=True):
    """An error that occurred in Bylaw's own code while it was judging a call."""

    step: int
    error: str
    message: str
    trace: str
    """Where the error occurred, without its message, which may contain values from the conversation."""

    @property
    def because(self) -> str:
        return f"an internal error in Bylaw ({self.error}), not in the agent or the guard; see faults.jsonl"


def fault_of(error: Exception, step: int) -> Fault:
    """Return a record of the error. For an error in Bylaw's own code, only the file name is recorded."""
    frames = traceback.extract_tb(error.__traceback__)
    told = [f"{_short(frame.filename)}:{frame.lineno} in {frame.name}" for frame in frames]
    return Fault(step, type(error).__name__, str(error)[:500], "\n".join(told))


def _short(file: str) -> str:
    path = Path(file)
    return path.relative_to(_OURS.parent).as_posix() if path.is_relative_to(_OURS) else path.name
