"""The rewards of one turn, as exact arithmetic with no model and no torch.

After PA3 (Dipta et al.), 3.2 and appendix D. Where the paper leaves a case open, the choice is said at the function.
Every term is worked out in fractions and becomes a float at the end, so a value worked out by hand is met exactly.
"""

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal, cast

from msgspec import Meta, Struct

from bylaw.engine.verdict import Verdict

Count = Annotated[int, Meta(ge=0)]
Mark = Annotated[float, Meta(ge=0, le=10)]
Mismatch = Literal["paper", "floor"]

SOFT, HARD = 100, 250
"""Words of a thought: up to the first cost nothing, from the second on everything."""
TOP = 3
"""A turn is worth from -TOP to TOP."""

_FAULT: dict[Verdict, Fraction] = {
    "compliant": Fraction(0),
    "inconclusive": Fraction(1, 2),
    "uninformed": Fraction(1),
    "near_miss": Fraction(1),
    "violation": Fraction(1),
}


class ToolCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A call of a tool: the one that was due, or the one that was made."""

    tool: str
    arguments: dict[str, Any]


class Judged(Struct, frozen=True, forbid_unknown_fields=True):
    """A text was due; `judge` says from 0 to 10 how good the one that came is."""

    judge: Mark


class Text(Struct, frozen=True, forbid_unknown_fields=True):
    """Report an agent message."""

    text: str


class Turn(Struct, frozen=True):
    """All that the rewards of one turn depend on."""

    required: frozenset[str]
    """The policies the turn needs (A)."""
    recalled: frozenset[str]
    """The policies its thought states (B)."""
    hallucinated: Count
    """How many policies its thought states that there are not (|C|)."""
    thought_words: Count
    format_ok: bool
    expected: ToolCall | Judged
    predicted: ToolCall | Text
    verdict: Verdict | None = None
    """What the guards say of the call made, where it is a write; only the compliance term looks at it."""


class Switches(Struct, frozen=True):
    """Where we offer another way than the paper's; the defaults are the paper's."""

    mismatch: Mismatch = "paper"
    """A call where a text was due, or the reverse: 0 as printed, or the lowest a turn can have.

    0 is better than a call with most values wrong, so it teaches a model to talk where it should act.
    """
    compliance: Annotated[float, Meta(ge=0)] = 0.0
    """Weight of the verified-compliance term: what a write costs that the guards do not permit on what was seen."""


class Reward(Struct, frozen=True, omit_defaults=True):
    """The terms of one turn's reward, and their sum; penalties are positive and taken off."""

    format: float
    turn: float
    policy_recall: float
    hallucination: float
    length: float
    total: float
    compliance: float | None = None
    """None where the term is switched off."""


PAPER = Switches()
FLOOR = Switches(mismatch="floor")
"""What answers are graded by, unless the paper's 0 is asked for."""


def score(turn: Turn, switches: Switches = PAPER) -> Reward:
    """The rewards of one turn. The total lies in [-5, 5] (the paper prints [-4, 5]); compliance comes on top."""
    form = Fraction(1 if turn.format_ok else 0)
    worth = turn_reward(turn.expected, turn.predicted, switches.mismatch)
    recall = jaccard(turn.required, turn.recalled)
    made_up = hallucination(len(turn.recalled), turn.hallucinated)
    length = length_penalty(turn.thought_words)
    total = form + worth + recall - made_up - length
    compliance: Fraction | None = None
    if switches.compliance:
        compliance = Fraction(str(switches.compliance)) * fault(turn.verdict)
        total -= compliance
    return Reward(
        float(form),
        float(worth),
        float(recall),
        float(made_up),
        float(length),
        float(total),
        None if compliance is None else float(compliance),
    )


def jaccard(one: Collection[str], other: Collection[str]) -> Fraction:
    """How much two sets share; two empty sets share all."""
    first, second = set(one), set(other)
    together = first | second
    return Fraction(len(first & second), len(together)) if together else Fraction(1)


def hallucination(recalled: int, hallucinated: int) -> Fraction:
    """The share of what was stated that no policy says; nothing stated is nothing made up."""
    stated = recalled + hallucinated
    return Fraction(hallucinated, stated) if stated else Fraction(0)


def length_penalty(words: int) -> Fraction:
    """What the length of a thought costs: nothing up to SOFT words, everything from HARD words on."""
    return min(Fraction(1), max(Fraction(0), Fraction(words - SOFT, HARD - SOFT)))


def turn_reward(expected: ToolCall | Judged, predicted: ToolCall | Text, mismatch: Mismatch = "paper") -> Fraction:
    """What the turn itself is worth, from -TOP to TOP."""
    match expected, predicted:
        case ToolCall(), ToolCall():
            return 2 * TOP * matched(expected, predicted) / (2 + len(expected.arguments)) - TOP
        case Judged(judge), Text():
            return 2 * TOP * Fraction(str(judge)) / 10 - TOP
        case _:
            return Fraction(0 if mismatch == "paper" else -TOP)


def matched(expected: ToolCall, predicted: ToolCall) -> Fraction:
    """Name, parameter names and values that are right; the latter two count even where the name is wrong."""
    name = jaccard((expected.tool,), (predicted.tool,))
    names = jaccard(expected.arguments, predicted.arguments)
    values = sum(
        key in predicted.arguments and same(value, predicted.arguments[key])
        for key, value in expected.arguments.items()
    )
    return name + names + values


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal as JSON: 1 is 1.0, true is not 1, the order of keys does not matter."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        first, second = cast(Mapping[str, Any], one), cast(Mapping[str, Any], other)
        return first.keys() == second.keys() and all(same(value, second[key]) for key, value in first.items())
    if isinstance(one, list) and isinstance(other, list):
        left, right = cast(list[Any], one), cast(list[Any], other)
        return len(left) == len(right) and all(same(*pair) for pair in zip(left, right, strict=True))
    return one == other


def fault(verdict: Verdict | None) -> Fraction:
    """How far a write is from one the guards permit on what was seen; what is no write has no fault."""
    return Fraction(0) if verdict is None else _FAULT[verdict]
