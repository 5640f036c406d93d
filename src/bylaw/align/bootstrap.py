"""How sure a difference is: paired bootstrap over clusters, with no dependency."""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter

from msgspec import Struct

Sums = Sequence[Sequence[float]]
"""By what is counted, its sum in each cluster."""
Rates = Mapping[str, tuple[float, float]]
"""By cluster how often something happened, of how many times."""


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


def rate_difference(one: Rates, other: Rates, *, rounds: int = 2000, seed: int = 0) -> Interval:
    """The rate of `one` less that of `other`, paired: both have the same clusters.

    Unlike a mean of clusters, a rate counts every time alike, wherever it fell.
    """
    return _resampled(_columns(one, other), _less, rounds, seed)


def rate_ratio(one: Rates, other: Rates, *, rounds: int = 2000, seed: int = 0) -> Interval:
    """The rate of `one` as a share of that of `other`, paired in the same way; 0 where that never happens."""
    return _resampled(_columns(one, other), _share, rounds, seed)


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

    rates = sorted(
        together(rng.choices(trainings, k=len(trainings)), draw) for draw in _draws(len(names), rounds, seed)
    )
    return Interval(together(trainings, tuple), *_middle(rates))


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


def _resampled(sums: Sums, found: Callable[[Sequence[float]], float], rounds: int, seed: int) -> Interval:
    """What is found of the sums over all clusters, and of those over clusters drawn anew in each round."""
    whole = found(list(map(sum, sums)))
    if len(sums[0]) == 1:
        return Interval(whole, whole, whole)
    drawn = sorted(found([sum(draw(column)) for column in sums]) for draw in _draws(len(sums[0]), rounds, seed))
    return Interval(whole, *_middle(drawn))


def _middle(drawn: Sequence[float]) -> tuple[float, float]:
    """Where 95 % of sorted values lie."""
    return drawn[int(0.025 * len(drawn))], drawn[int(0.975 * len(drawn)) - 1]


@lru_cache(maxsize=4)
def _draws(count: int, rounds: int, seed: int) -> list[Callable[[Sequence[float]], Sequence[float]]]:
    """By round what takes the clusters that are drawn: the same for all that have as many."""
    rng = random.Random(seed)
    return [itemgetter(*rng.choices(range(count), k=count)) if count > 1 else tuple for _ in range(rounds)]
