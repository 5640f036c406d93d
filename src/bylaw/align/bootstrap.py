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
        raise ValueError("the two have not the same clusters")
    rows = [(*one[name], *other[name]) for name in one]

    def gap(drawn: Sequence[tuple[float, float, float, float]]) -> float:
        happened, times, others, other_times = (sum(column) for column in zip(*drawn, strict=True))
        return _rate(happened, times) - _rate(others, other_times)

    rng = random.Random(seed)
    gaps = sorted(gap(rng.choices(rows, k=len(rows))) for _ in range(rounds))
    return Interval(gap(rows), gaps[int(0.025 * rounds)], gaps[int(0.975 * rounds) - 1])


def _rate(happened: float, times: float) -> float:
    return happened / times if times else 0.0
