"""Combines a guard's results on the facts seen and on the ground truth into a verdict, using a table. All functions are
pure.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Literal

from msgspec import Struct

from bylaw.facts.entity import Fact
from bylaw.facts.observation import Unread
from bylaw.facts.value import key_of

Half = Literal["permit", "deny", "undetermined", "failed"]
"""A guard's result on the facts seen or on the ground truth. `undetermined` means that facts are unknown."""

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
    """A guard's results for one combination of the facts that only the user knows."""

    evidence: Half
    world: Half
    missing: bool


class CriterionVerdict(Struct, frozen=True):
    """The verdict under one criterion, and the combinations of facts that led to it."""

    verdict: Verdict
    speaks_of: tuple[int, ...]
    """The indices of the combinations whose missing facts are reported."""
    depends_on_user: bool = False


def combine(cells: Sequence[Cell], *, hangs_on_host: bool = False) -> CriterionVerdict:
    """Return the verdict over all combinations of facts that only the user knows.

    With `hangs_on_host`, a fact that only the host knows is unknown. The call is then a near-miss only if the ground
    truth certainly permits it.
    """
    if len(cells) == 1:
        return _rule_of_one(cells[0].evidence, cells[0].world, cells[0].missing)
    return _rule(cells, hangs_on_host=hangs_on_host)


@cache
def _rule_of_one(evidence: Half, world: Half, missing: bool) -> CriterionVerdict:
    """Cached, because nearly every call has a single combination, with few possible results."""
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
    """Return the most severe verdict that several policies reach on a call."""
    found = set(verdicts)
    for verdict in WORST_FIRST:
        if verdict in found:
            return verdict
    return "compliant"


def _verdict(cell: Cell) -> Verdict:
    if cell.evidence == "undetermined" and not cell.missing and cell.world != "deny":
        # No look-up would have helped, because the outcome depends on a limit or on a fact that only the user knows.
        return "inconclusive"
    return _TABLE.get((cell.evidence, cell.world), "inconclusive")


ReasonKind = Literal[
    "none", "denied", "against_evidence", "missing", "unread", "user", "failed", "unjudged", "approved", "person"
]
"""The kind of reason for a verdict.

`denied`: the guard denies. `against_evidence`: it denied on the facts seen, but the ground truth permits. `missing`:
facts not looked up. `unread`: unreadable results. `user`: the user must answer. `failed`: the guard failed. `unjudged`:
the call was not judged. `approved`: a reviewer approved. `person`: a person settled it later.
"""


class UnreadFact(Struct, frozen=True):
    """A fact that the agent looked up without a usable result."""

    fact: Fact
    why: Unread
    tool: str = ""
    """The tool that was called. Set if its result lacks the fact."""


_UNREAD = ("not_captured", "not_readable", "not_told", "contradicted", "spelt_otherwise", "not_mapped")
"""The order in which these facts appear in `calls.jsonl`."""


class Reason(Struct, frozen=True):
    kind: ReasonKind = "none"
    words: str = ""
    """The text given by the guard, or an error message."""
    unread: tuple[UnreadFact, ...] = ()

    def record(self) -> dict[str, Any]:
        """The reason as stored in `calls.jsonl`."""
        told: dict[str, Any] = {"kind": self.kind, "words": self.words}
        for each in sorted(self.unread, key=lambda each: _UNREAD.index(each.why)):
            is_lacking = each.why == "not_mapped"
            fact = fact_record(each.fact) | ({"tool": each.tool} if is_lacking else {})
            told.setdefault("not_shown" if is_lacking else each.why, []).append(fact)
        return told


def fact_record(fact: Fact) -> dict[str, Any]:
    """The fact as stored in `calls.jsonl`."""
    key = None if fact.key is None else list(key_of(fact.key))
    return {"entity": fact.entity, "key": key, "field": fact.field}
