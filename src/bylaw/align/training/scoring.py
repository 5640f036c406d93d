"""The reward of stage 3: which terms count, and each term's value for the log."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from math import inf
from typing import Any, Literal

from bylaw.align.grader import Grader, ModelJudge, gold_of
from bylaw.align.prompt import pack_named
from bylaw.align.reward import Mismatch, Switches
from bylaw.errors import UsageError
from bylaw.llm.source import open_chat

Term = Literal["format", "turn", "policy_recall", "hallucination", "length", "compliance"]
PARTS: dict[str, tuple[Term, ...]] = {
    "tf": ("format", "turn"),
    "pr": ("policy_recall",),
    "hp": ("hallucination",),
    "lp": ("length",),
    "vc": ("compliance",),
}
"""Terms by their names in the paper's table 5, and `vc`, the compliance term. `vc=3` gives it weight 3."""
FULL = "tf+pr+hp+lp"
_PENALTIES = frozenset(("hallucination", "length", "compliance"))


def terms_of(said: str) -> tuple[tuple[Term, ...], float]:
    """Return the terms in a text such as `tf+pr+vc=3` and the weight of compliance. `full` is the paper's reward."""
    terms: list[Term] = []
    weight = 0.0
    parts = (FULL if part == "full" else part for part in said.split("+"))
    for part in "+".join(parts).split("+"):
        name, given, number = part.partition("=")
        if name not in PARTS or (given and name != "vc"):
            raise UsageError(f"unknown reward term `{part}`", hint=f"full, or some of {', '.join(PARTS)} joined by +")
        if name == "vc":
            weight = _weight(number) if given else 1.0
        terms += PARTS[name]
    return tuple(terms), weight


def _weight(number: str) -> float:
    try:
        found = float(number)
    except ValueError:
        found = 0.0
    if not 0 < found < inf:
        raise UsageError(f"`{number}` is not a weight", hint="a number above 0, as in vc=3")
    return found


def grades(
    outputs: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    said: str,
    pack: str = "clinic",
    mismatch: Mismatch = "floor",
    judge: ModelJudge | None = None,
) -> list[dict[str, float]]:
    """Return each output's terms, with the sum of those that count as `total`."""
    terms, weight = terms_of(said)
    grader = _grader(pack, weight, mismatch, judge)
    golds = [gold_of(row) for row in rows]
    grader.prepare(zip(outputs, golds, strict=True))
    found: list[dict[str, float]] = []
    for output, gold in zip(outputs, golds, strict=True):
        reward = grader.grade(output, gold)
        values = {term: getattr(reward, term) or 0.0 for part in PARTS.values() for term in part}
        total = sum(-values[term] if term in _PENALTIES else values[term] for term in terms)
        found.append({**values, "total": total})
    return found


def scorer(
    said: str = "full", *, pack: str = "clinic", mismatch: Mismatch = "floor", judge: ModelJudge | None = None
) -> Callable[[Sequence[str], Sequence[Mapping[str, Any]]], list[dict[str, float]]]:
    """Return `grades` for one choice of terms."""
    terms_of(said)
    return partial(grades, said=said, pack=pack, mismatch=mismatch, judge=judge)


def graded(
    rows: Sequence[Mapping[str, Any]], pack: str, *, has_judge: bool = False
) -> tuple[list[Mapping[str, Any]], int]:
    """Return the rows that can be graded and the number of others. Raises if the rows belong to another pack."""
    known = pack_named(pack).policies
    for number, row in enumerate(rows, start=1):
        if strange := [name for name in gold_of(row).required if name not in known]:
            raise UsageError(
                f"row {number} needs the policy `{strange[0]}`, which pack `{pack}` has not",
                hint="--pack names the pack that the rows were made with",
            )
    kept = [row for row in rows if has_judge or not gold_of(row).needs_judge]
    if not kept:
        raise UsageError("no row can be graded", hint="mark texts with --judge MODEL")
    return kept, len(rows) - len(kept)


def open_judge(said: str | None) -> ModelJudge | None:
    """Return the judge that `--judge` names; None if texts are graded by slots."""
    return None if said is None else ModelJudge(open_chat(said, concurrency=16))


@cache
def _grader(pack: str, compliance: float, mismatch: Mismatch, judge: ModelJudge | None) -> Grader:
    return Grader(pack_named(pack), judge=judge, switches=Switches(mismatch=mismatch, compliance=compliance))
