"""How sure a difference is: paired bootstrap over clusters, with no dependency."""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter

from msgspec import Struct

Sums = Sequence[Sequence[float]]
"""By what is counted, its sum in each cluster."""


class Interval(Struct, frozen=True):
    """A mean and where 95 % of resampled means lie."""

    mean: float
    low: float
    high: float


def interval(values: Mapping[str, Sequence[float]], *, rounds: int = 2000, seed: int = 0) -> Interval:
    """The mean of all values, resampled by cluster: whoever draws a cluster draws all of it."""
    clusters = [cluster for cluster in values.values() if cluster]
    if not clusters:
        return Interval(0.0, 0.0, 0.0)
    sums = [[sum(cluster) for cluster in clusters], [len(cluster) for cluster in clusters]]
    return _resampled(sums, lambda sums: sums[0] / sums[1], rounds, seed)


def difference(
    one: Mapping[str, Sequence[float]], other: Mapping[str, Sequence[float]], *, rounds: int = 2000, seed: int = 0
) -> Interval:
    """The mean of `one` less that of `other`, paired: both have the same clusters, each with as many values.

    Several seeds of one arm stand in the same cluster, one value each.
    """
    if one.keys() != other.keys():
        raise ValueError("the two do not have the same clusters")
    paired = {
        name: [first - second for first, second in zip(values, other[name], strict=True)]
        for name, values in one.items()
    }
    return interval(paired, rounds=rounds, seed=seed)


def rate_difference(
    one: Mapping[str, tuple[float, float]],
    other: Mapping[str, tuple[float, float]],
    *,
    rounds: int = 2000,
    seed: int = 0,
) -> Interval:
    """The rate of `one` less that of `other`, paired: by cluster how often something happened, of how many times.

    Both have the same clusters. Unlike a mean of clusters, a rate counts every time alike, wherever it fell.
    """
    if one.keys() != other.keys():
        raise ValueError("the two do not have the same clusters")
    sums = list(zip(*((*one[name], *other[name]) for name in one), strict=True))
    return _resampled(sums, lambda each: _rate(*each[:2]) - _rate(*each[2:]), rounds, seed)


def rate_ratio(
    one: Mapping[str, tuple[float, float]],
    other: Mapping[str, tuple[float, float]],
    *,
    rounds: int = 2000,
    seed: int = 0,
) -> Interval:
    """The rate of `one` as a share of that of `other`, paired in the same way; 0 where that never happens."""
    if one.keys() != other.keys():
        raise ValueError("the two do not have the same clusters")
    sums = list(zip(*((*one[name], *other[name]) for name in one), strict=True))
    return _resampled(sums, lambda each: _rate(_rate(*each[:2]), _rate(*each[2:])), rounds, seed)


def _rate(happened: float, times: float) -> float:
    return happened / times if times else 0.0


def _resampled(sums: Sums, found: Callable[[list[float]], float], rounds: int, seed: int) -> Interval:
    """What is found of the sums over all clusters, and of those over clusters drawn anew in each round."""
    whole = found(list(map(sum, sums)))
    if len(sums[0]) == 1:
        return Interval(whole, whole, whole)
    drawn = sorted(found([sum(draw(column)) for column in sums]) for draw in _draws(len(sums[0]), rounds, seed))
    return Interval(whole, drawn[int(0.025 * rounds)], drawn[int(0.975 * rounds) - 1])


@lru_cache(maxsize=4)
def _draws(count: int, rounds: int, seed: int) -> list[Callable[[Sequence[float]], Sequence[float]]]:
    """By round what takes the clusters that are drawn: the same for all that have as many."""
    rng = random.Random(seed)
    return [itemgetter(*rng.choices(range(count), k=count)) for _ in range(rounds)]
