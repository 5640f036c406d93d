"""How much better or worse than its peers a turn was: what practice on whole conversations learns from.

Several conversations about one task are compared with each other and with nothing else (GRPO), so a hard task does not
make its turns look bad. The whole conversation counts for all of its turns; beside it each turn counts by itself,
against the same turn of the others, so that one wrong turn does not spoil those before it.
"""

from collections.abc import Sequence
from math import sqrt

from bylaw.align.marks import Marks

TURN = 0.5
"""How much a turn by itself counts beside the whole."""


def advantages(groups: Sequence[Sequence[Marks]], *, turn: float = TURN) -> list[list[list[float]]]:
    """For every conversation of every group an advantage a turn; groups are conversations about one task."""
    wholes = [_less_mean([each.whole for each in group]) for group in groups]
    turns = [_by_turn(group) for group in groups]
    whole_spread = _spread([value for group in wholes for value in group])
    turn_spread = _spread([value for group in turns for talk in group for value in talk])
    return [
        [[whole / whole_spread + turn * each / turn_spread for each in talk] for whole, talk in zip(*pair, strict=True)]
        for pair in zip(wholes, turns, strict=True)
    ]


def is_telling(group: Sequence[Marks]) -> bool:
    """Whether anything went wrong in it."""
    return not all(each.is_clean for each in group)


def _by_turn(group: Sequence[Marks]) -> list[list[float]]:
    """What each turn is worth, less the mean of the turns at its place; a turn that nobody else came to, less that of
    all turns."""
    worth = [[mark.worth for mark in each.turns] for each in group]
    flat = [value for talk in worth for value in talk]
    overall = sum(flat) / len(flat) if flat else 0.0
    longest = max(map(len, worth), default=0)
    columns = [[talk[place] for talk in worth if len(talk) > place] for place in range(longest)]
    means = [sum(column) / len(column) if len(column) > 1 else overall for column in columns]
    return [[value - means[place] for place, value in enumerate(talk)] for talk in worth]


def _less_mean(values: Sequence[float]) -> list[float]:
    middle = sum(values) / len(values)
    return [value - middle for value in values]


def _spread(values: Sequence[float]) -> float:
    """The root of the mean square; 1 where all are alike, which leaves them 0."""
    found = sqrt(sum(value * value for value in values) / len(values)) if values else 0.0
    return found if found > 1e-9 else 1.0
