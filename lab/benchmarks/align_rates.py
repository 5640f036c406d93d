"""Rates of two sets of trainings, compared as `bylaw.align.bootstrap` compares means."""

import random
from collections.abc import Callable, Mapping, Sequence

from bylaw.align.bootstrap import Interval, Sums, draws, middle, resampled

Rates = Mapping[str, tuple[float, float]]
"""By cluster how often something happened, of how many times."""


def rate_difference(one: Rates, other: Rates, *, rounds: int = 2000, seed: int = 0) -> Interval:
    """The rate of `one` less that of `other`, paired: both have the same clusters.

    Unlike a mean of clusters, a rate counts every time alike, wherever it fell.
    """
    return resampled(_columns(one, other), _less, rounds, seed)


def rate_ratio(one: Rates, other: Rates, *, rounds: int = 2000, seed: int = 0) -> Interval:
    """The rate of `one` as a share of that of `other`, paired in the same way; 0 where that never happens."""
    return resampled(_columns(one, other), _share, rounds, seed)


def over_trainings(
    ones: Sequence[Rates], others: Sequence[Rates], *, is_share: bool = False, rounds: int = 2000, seed: int = 0
) -> Interval:
    """The rate of `ones` less that of `others`, or as a share of it, over trainings as well as clusters.

    Each round draws trainings anew, each with its pair, and clusters anew. Where there are only a few trainings, the
    interval is narrower than it should be.
    """
    found = _share if is_share else _less
    if len({frozenset(one) for one in ones}) != 1:
        raise ValueError("the trainings do not have the same clusters")
    names = list(ones[0])
    trainings = [_columns({name: one[name] for name in names}, other) for one, other in zip(ones, others, strict=True)]
    rng = random.Random(seed)

    def together(drawn: Sequence[Sums], draw: Callable[[Sequence[float]], Sequence[float]]) -> float:
        return found([sum(sum(draw(training[column])) for training in drawn) for column in range(4)])

    rates = sorted(together(rng.choices(trainings, k=len(trainings)), draw) for draw in draws(len(names), rounds, seed))
    return Interval(together(trainings, tuple), *middle(rates))


def _columns(one: Rates, other: Rates) -> Sums:
    """What happened and how many times, of both, by cluster."""
    if one.keys() != other.keys():
        raise ValueError("the two do not have the same clusters")
    return list(zip(*((*one[name], *other[name]) for name in one), strict=True))


def _less(sums: Sequence[float]) -> float:
    return _rate(*sums[:2]) - _rate(*sums[2:])


def _share(sums: Sequence[float]) -> float:
    return _rate(_rate(*sums[:2]), _rate(*sums[2:]))


def _rate(happened: float, times: float) -> float:
    return happened / times if times else 0.0
