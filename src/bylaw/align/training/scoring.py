"""The reward of stage 3: which of its terms count, and each term's value for the log."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import cache
from math import inf
from typing import Any

from bylaw.align.grader import Grader, Term, gold_of
from bylaw.align.prompt import pack_named
from bylaw.align.reward import Switches
from bylaw.errors import UsageError

PARTS: dict[str, tuple[Term, ...]] = {
    "tf": ("format", "turn"),
    "pr": ("policy_recall",),
    "hp": ("hallucination",),
    "lp": ("length",),
    "vc": ("compliance",),
}
"""The paper's names in its table 5, and `vc`, the verified-compliance term; `vc=3` is the same with weight 3."""
FULL = "tf+pr+hp+lp"
_PENALTIES = frozenset(("hallucination", "length", "compliance"))


def terms_of(said: str) -> tuple[Term, ...]:
    """The terms that `tf+pr` and the like name; `full` is the paper's whole reward."""
    parts = [part.partition("=")[0] if part.startswith("vc=") else part for part in _parts(said)]
    if unknown := [part for part in parts if part not in PARTS]:
        raise UsageError(f"there is no reward `{unknown[0]}`", hint=f"full, or some of {', '.join(PARTS)} joined by +")
    return tuple(term for part in parts for term in PARTS[part])


def weight_of(said: str) -> float:
    """The weight of verified compliance; 0 where it is not among the terms."""
    weights = [part.removeprefix("vc").removeprefix("=") for part in _parts(said) if part.startswith("vc=")]
    if not weights:
        return 1.0 if "vc" in _parts(said) else 0.0
    try:
        found = float(weights[0])
    except ValueError:
        found = 0.0
    if not 0 < found < inf:
        raise UsageError(f"`{weights[0]}` is no weight", hint="a number above 0, as in vc=3")
    return found


def _parts(said: str) -> list[str]:
    return [each for part in said.split("+") for each in (FULL if part == "full" else part).split("+")]


def grades(
    outputs: Sequence[str], rows: Sequence[Mapping[str, Any]], said: str, pack: str = "clinic"
) -> list[dict[str, float]]:
    """Each output's terms, and as `total` the sum of those that count."""
    terms = terms_of(said)
    grader = _grader(pack, weight_of(said))
    found: list[dict[str, float]] = []
    for output, row in zip(outputs, rows, strict=True):
        reward = grader.grade(output, gold_of(row))
        values = {term: getattr(reward, term) or 0.0 for part in PARTS.values() for term in part}
        total = sum(-values[term] if term in _PENALTIES else values[term] for term in terms)
        found.append({**values, "total": total})
    return found


def scorer(
    said: str = "full", *, pack: str = "clinic", pool: Executor | None = None, pieces: int = 16
) -> Callable[[Sequence[str], Sequence[Mapping[str, Any]]], list[dict[str, float]]]:
    """`grades` for one choice of terms, on several cores where there is a pool."""
    terms_of(said)
    weight_of(said)

    def score(outputs: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
        if pool is None:
            return grades(outputs, rows, said, pack)
        size = max(1, -(-len(outputs) // pieces))
        jobs = [
            pool.submit(grades, outputs[start : start + size], rows[start : start + size], said, pack)
            for start in range(0, len(outputs), size)
        ]
        return [one for job in jobs for one in job.result()]

    return score


@cache
def _grader(pack: str, compliance: float) -> Grader:
    # The wrong kind of turn gets the lowest worth: 0, as the paper prints it, would teach to talk where acting is due.
    return Grader(pack_named(pack), switches=Switches(mismatch="floor", compliance=compliance))
