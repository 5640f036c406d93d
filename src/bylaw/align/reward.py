"""Computes the rewards for one turn by exact arithmetic, without a model (PA3, Dipta et al., 3.2 and appendix D).

If the paper leaves a case open, a docstring states the choice made here. Terms are computed as fractions and converted
to floats at the end, so that they equal values computed by hand.
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
"""The lengths of a thought, in words, at which the penalty starts and at which it reaches its maximum."""
TOP = 3
"""The reward of a turn is between -TOP and TOP."""

_FAULT: dict[Verdict, Fraction] = {
    "compliant": Fraction(0),
    "inconclusive": Fraction(1, 2),
    "uninformed": Fraction(1),
    "near_miss": Fraction(1),
    "violation": Fraction(1),
}
"""The penalty for each verdict on a write, given the facts that the agent has seen."""


class ToolCall(Struct, frozen=True, forbid_unknown_fields=True):
    """An expected or actual tool call."""

    tool: str
    arguments: dict[str, Any]


class Judged(Struct, frozen=True, forbid_unknown_fields=True):
    """The result if a text was expected. `judge` is the rating of the actual text, from 0 to 10."""

    judge: Mark


class Text(Struct, frozen=True, forbid_unknown_fields=True):
    text: str


class Turn(Struct, frozen=True):
    """The data from which the rewards of one turn are computed."""

    required: frozenset[str]
    """The policies that the turn needs (the paper's set A)."""
    recalled: frozenset[str]
    """The policies stated in the thought (the paper's set B)."""
    hallucinated: Count
    """The number of made-up rules in the thought (the size of the paper's set C)."""
    thought_words: Count
    format_ok: bool
    expected: ToolCall | Judged
    predicted: ToolCall | Text
    verdict: Verdict | None = None
    """The guards' verdict on a write. Only the compliance term uses it."""


class Switches(Struct, frozen=True):
    """Options that depart from the paper's rewards. By default, the rewards are those of the paper."""

    mismatch: Mismatch = "paper"
    """The reward for a call instead of a text, or the reverse: 0 as in the paper, or the lowest reward.

    With 0, a model learns to write a text instead of acting, because a wrong call earns less than a text.
    """
    compliance: Annotated[float, Meta(ge=0)] = 0.0
    """The weight of the compliance term, which penalises a write that the guards do not permit, given the facts that
    the agent has seen.
    """


class Reward(Struct, frozen=True, omit_defaults=True):
    """The terms of the reward for a turn, and their sum. Penalties are positive and are subtracted."""

    format: float
    turn: float
    policy_recall: float
    hallucination: float
    length: float
    total: float
    compliance: float | None = None
    """The compliance term. None if the term is turned off."""


PAPER = Switches()
FLOOR = Switches(mismatch="floor")
"""The default for grading answers. In the paper, the value is 0."""


def score(turn: Turn, switches: Switches = PAPER) -> Reward:
    """Return the rewards for one turn. Without compliance, the total is in [-5, 5] (the paper prints [-4, 5])."""
    form = Fraction(1 if turn.format_ok else 0)
    worth = turn_reward(turn.expected, turn.predicted, switches.mismatch)
    recall = jaccard(turn.required, turn.recalled)
    made_up = hallucination(len(turn.recalled), turn.hallucinated)
    length = min(Fraction(1), max(Fraction(0), Fraction(turn.thought_words - SOFT, HARD - SOFT)))
    total = form + worth + recall - made_up - length
    compliance: Fraction | None = None
    if switches.compliance:
        compliance = Fraction(str(switches.compliance)) * (_FAULT[turn.verdict] if turn.verdict is not None else 0)
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
    """Return the Jaccard similarity of two sets, which is 1 if both are empty."""
    first, second = set(one), set(other)
    together = first | second
    return Fraction(len(first & second), len(together)) if together else Fraction(1)


def hallucination(recalled: int, hallucinated: int) -> Fraction:
    """Return the share of stated rules that match no policy, or 0 if no rule is stated."""
    stated = recalled + hallucinated
    return Fraction(hallucinated, stated) if stated else Fraction(0)


def turn_reward(expected: ToolCall | Judged, predicted: ToolCall | Text, mismatch: Mismatch = "paper") -> Fraction:
    """Return the reward for the turn itself, from -TOP to TOP."""
    match expected, predicted:
        case ToolCall(), ToolCall():
            return 2 * TOP * matched(expected, predicted) / (2 + len(expected.arguments)) - TOP
        case Judged(judge), Text():
            return 2 * TOP * Fraction(str(judge)) / 10 - TOP
        case _:
            return Fraction(0 if mismatch == "paper" else -TOP)


def matched(expected: ToolCall, predicted: ToolCall) -> Fraction:
    """Return the share of a call that is correct: its tool name, parameter names and values.

    Correct parameters count even if the tool name is wrong.
    """
    name = jaccard((expected.tool,), (predicted.tool,))
    names = jaccard(expected.arguments, predicted.arguments)
    values = sum(
        key in predicted.arguments and same(value, predicted.arguments[key])
        for key, value in expected.arguments.items()
    )
    return name + names + values


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal in JSON: 1 equals 1.0, but true does not equal 1. Key order does not matter."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        first, second = cast(Mapping[str, Any], one), cast(Mapping[str, Any], other)
        return first.keys() == second.keys() and all(same(value, second[key]) for key, value in first.items())
    if isinstance(one, list) and isinstance(other, list):
        left, right = cast(list[Any], one), cast(list[Any], other)
        return len(left) == len(right) and all(same(*pair) for pair in zip(left, right, strict=True))
    return one == other
