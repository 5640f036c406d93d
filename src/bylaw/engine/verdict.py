"""The table: from what was seen and what is true to a verdict. Pure functions, no state."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Literal

from msgspec import Struct

from bylaw.facts.entity import Fact
from bylaw.facts.value import key_of

Half = Literal["permit", "deny", "undetermined", "failed"]
"""Evidence: what the guard says on what was seen. World: `undetermined` stands for not known."""

Verdict = Literal["compliant", "violation", "near_miss", "uninformed", "inconclusive"]

WORST_FIRST: tuple[Verdict, ...] = ("violation", "near_miss", "uninformed", "inconclusive", "compliant")

_TABLE: dict[tuple[Half, Half], Verdict] = {
    ("permit", "permit"): "compliant",
    ("permit", "deny"): "violation",
    ("permit", "undetermined"): "compliant",
    ("deny", "permit"): "near_miss",
    ("deny", "deny"): "violation",
    ("deny", "undetermined"): "violation",
    ("undetermined", "permit"): "near_miss",
    ("undetermined", "deny"): "violation",
    ("undetermined", "undetermined"): "uninformed",
}


class Cell(Struct, frozen=True):
    """One completion of the user facts: both halves, and whether a system fact is missing in it."""

    evidence: Half
    world: Half
    missing: bool


class CriterionVerdict(Struct, frozen=True):
    """The verdict under one criterion, and which completions it speaks of."""

    verdict: Verdict
    speaks_of: tuple[int, ...]
    """Positions of the completions whose missing facts count."""
    depends_on_user: bool = False


def combine(cells: Sequence[Cell], *, hangs_on_host: bool = False) -> CriterionVerdict:
    """The verdict over every completion of the user facts.

    What the host did not say (the time, who is signed in) is true of a call one way or the other, and nobody but the
    host knows which: where that decides it, nobody was lucky.
    """
    if len(cells) == 1:
        return _rule_of_one(cells[0].evidence, cells[0].world, cells[0].missing)
    return _rule(cells, hangs_on_host=hangs_on_host)


@cache
def _rule_of_one(evidence: Half, world: Half, missing: bool) -> CriterionVerdict:
    """Nearly every call has one completion, and there are few of those."""
    return _rule([Cell(evidence, world, missing)])


def _rule(cells: Sequence[Cell], *, hangs_on_host: bool = False) -> CriterionVerdict:
    verdicts: list[Verdict] = [_verdict(cell) for cell in cells]
    everyone = tuple(range(len(cells)))
    if all(verdict == "violation" for verdict in verdicts):
        return CriterionVerdict("violation", everyone)
    blind = tuple(
        index
        for index, cell in enumerate(cells)
        if cell.missing and cell.evidence == "undetermined" and cell.world in ("permit", "undetermined")
    )
    if blind:
        is_open = hangs_on_host and any(cell.world != "permit" for cell in cells)
        lucky = not is_open and any(cells[index].world == "permit" for index in blind)
        return CriterionVerdict("near_miss" if lucky else "uninformed", blind, len(cells) > 1)
    if any(verdict != verdicts[0] for verdict in verdicts):
        return CriterionVerdict("inconclusive", (), True)
    return CriterionVerdict(verdicts[0], everyone)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a call over all policies: the gravest of theirs."""
    found = set(verdicts)
    for verdict in WORST_FIRST:
        if verdict in found:
            return verdict
    return "compliant"


def _verdict(cell: Cell) -> Verdict:
    if cell.evidence == "undetermined" and not cell.missing and cell.world != "deny":
        # No look-up would have helped: what is open hangs on something only the user can say, or on a limit.
        return "inconclusive"
    return _TABLE.get((cell.evidence, cell.world), "inconclusive")


ReasonKind = Literal[
    "none", "denied", "against_evidence", "missing", "unread", "user", "failed", "unjudged", "approved", "person"
]
"""Nothing to tell; the guard denies; it denied what was seen, and the world permits; facts were not looked up; they
were, in answers that we cannot read; it depends on the user; the guard failed; the call could not be judged; a person
was asked, and said yes; a person settled it after the fact."""


class Reason(Struct, frozen=True):
    """What a policy's verdict rests on; missing facts and questions stand beside it in the verdict."""

    kind: ReasonKind = "none"
    words: str = ""
    """The guard's own words, or what went wrong."""
    not_captured: tuple[Fact, ...] = ()
    """Facts that were looked up, and whose results were not recorded."""
    not_readable: tuple[Fact, ...] = ()
    """Facts that were looked up, and whose results could not be read."""
    not_shown: tuple[tuple[Fact, str], ...] = ()
    """Facts that were looked up, in results that do not have them, each with the tool that was asked."""
    not_told: tuple[Fact, ...] = ()
    """Facts that were looked up, and answered with `null`."""
    contradicted: tuple[Fact, ...] = ()
    """Facts that were looked up, and of which the results tell two things."""
    spelt_otherwise: tuple[Fact, ...] = ()
    """Facts of things that were looked up by another spelling, which may be another thing."""

    def record(self) -> dict[str, Any]:
        """As `calls.jsonl` holds it."""
        told: dict[str, Any] = {"kind": self.kind, "words": self.words}
        if self.kind != "unread":
            return told
        for name in ("not_captured", "not_readable", "not_told", "contradicted", "spelt_otherwise"):
            if facts := getattr(self, name):
                told[name] = [fact_record(fact) for fact in facts]
        if self.not_shown:
            told["not_shown"] = [fact_record(fact) | {"tool": tool} for fact, tool in self.not_shown]
        return told


def fact_record(fact: Fact) -> dict[str, Any]:
    """A fact as `calls.jsonl` holds it."""
    key = None if fact.key is None else list(key_of(fact.key))
    return {"entity": fact.entity, "key": key, "field": fact.field}
