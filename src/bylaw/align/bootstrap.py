"""How sure a difference is: paired bootstrap over clusters, with no dependency."""

import random
from collections.abc import Mapping, Sequence

from msgspec import Struct


class Interval(Struct, frozen=True):
    """A mean and where 95 % of resampled means lie."""

    mean: float
    low: float
    high: float


def interval(values: Mapping[str, Sequence[float]], *, rounds: int = 2000, seed: int = 0) -> Interval:
    """The mean of all values, resampled by cluster: whoever draws a cluster draws all of it."""
    clusters = [list(cluster) for cluster in values.values() if cluster]
    if not clusters:
        return Interval(0.0, 0.0, 0.0)
    sums = [(sum(cluster), len(cluster)) for cluster in clusters]
    rng = random.Random(seed)
    means: list[float] = []
    for _ in range(rounds):
        drawn = rng.choices(sums, k=len(sums))
        means.append(sum(total for total, _ in drawn) / sum(count for _, count in drawn))
    means.sort()
    mean = sum(total for total, _ in sums) / sum(count for _, count in sums)
    return Interval(mean, means[int(0.025 * rounds)], means[int(0.975 * rounds) - 1])


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
