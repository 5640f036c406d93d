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
    return resampled(sums, lambda sums: sums[0] / sums[1], rounds, seed)


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


def resampled(sums: Sums, found: Callable[[Sequence[float]], float], rounds: int, seed: int) -> Interval:
    """What is found of the sums over all clusters, and of those over clusters drawn anew in each round."""
    whole = found(list(map(sum, sums)))
    if len(sums[0]) == 1:
        return Interval(whole, whole, whole)
    drawn = sorted(found([sum(draw(column)) for column in sums]) for draw in draws(len(sums[0]), rounds, seed))
    return Interval(whole, *middle(drawn))


def middle(drawn: Sequence[float]) -> tuple[float, float]:
    """Where 95 % of sorted values lie."""
    return drawn[int(0.025 * len(drawn))], drawn[int(0.975 * len(drawn)) - 1]


@lru_cache(maxsize=4)
def draws(count: int, rounds: int, seed: int) -> list[Callable[[Sequence[float]], Sequence[float]]]:
    """By round what takes the clusters that are drawn: the same for all that have as many."""
    rng = random.Random(seed)
    return [itemgetter(*rng.choices(range(count), k=count)) if count > 1 else tuple for _ in range(rounds)]
