"""Learns rule weights from labelled trajectories, and measures the curve of `eps` and the calibration of probabilities.

A policy adds two numbers per trajectory: whether it denied a call or message, and whether it left one undecided. Each
has its own weight, so a rule that is often undecided without cause gets little weight.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from bylaw.rule.learning import LabelledAct, Learned, learn, z
from bylaw_lab.bench.shieldagent import Found, Said, count

GRID = (-0.99, -0.95, -0.9, -0.8, -0.7, -0.6, -0.5, -0.4, -0.3, -0.2, -0.1, -0.05, 0.0)
"""Values of `eps`, from the most lenient to the strictest. With a higher value, rules that only prohibit would allow
nothing.
"""
BINS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
ROUNDS = 50


class Point(Struct, frozen=True):
    """The result for one value of `eps`."""

    eps: float
    accuracy: float
    false_positives: float
    recall: float


class Bin(Struct, frozen=True):
    """Trajectories with similar probabilities."""

    low: float
    high: float
    cases: int
    told: float
    """The mean predicted probability that they are safe."""
    safe: float
    """The share that is safe."""


class Calibration(Struct, frozen=True):
    """How well the predicted probabilities match the observed shares."""

    bins: list[Bin]
    brier: float
    error: float
    """The mean difference between predicted probability and observed share, over bins."""


class Weighed:
    """A guardrail with learned weights."""

    def __init__(self, taught: Sequence[Found], policies: Sequence[str]) -> None:
        self._policies = policies
        names = [*policies, *(f"{name}, open" for name in policies)]
        examples = [self._act(each) for each in taught]
        self.learned: Learned = learn(examples, names)
        self._theta = [self.learned.weights[name] for name in names]
        self._line = _fit_line([(self._sum(each), each.sample.is_safe) for each in taught])

    def say(self, found: Sequence[Found], *, eps: float | None = None) -> list[Said]:
        """Return the guardrail's answers about trajectories.

        An answer names the rules with weight against the trajectory.
        """
        floor = self.learned.eps if eps is None else eps
        said: list[Said] = []
        for each in found:
            is_flagged = self.margin(each) < floor - 1e-9
            named = (
                frozenset(name for name in self._policies if self._weight(each, name))
                if is_flagged
                else frozenset[str]()
            )
            said.append(Said(each.sample, is_flagged, named, each.seconds))
        return said

    def margin(self, found: Found) -> float:
        """Return P(trajectory) - P(without it), as in Eq. 5."""
        return math.tanh(self._sum(found) / 2)

    def curve(self, found: Sequence[Found]) -> list[Point]:
        """Return the result for each value of `eps`."""
        points: list[Point] = []
        for eps in GRID:
            cell = count(self.say(found, eps=eps))
            points.append(Point(eps, cell.accuracy.share, cell.false_positives.share, cell.recall.share))
        return points

    def calibration(self, found: Sequence[Found]) -> Calibration:
        """Compare the predicted probabilities of being safe with the true labels. The probabilities are fitted on the
        same data as the weights.
        """
        told = [(self.probability(each), each.sample.is_safe) for each in found]
        bins: list[Bin] = []
        for low, high in pairwise(BINS):
            inside = [(p, safe) for p, safe in told if low <= p < high or (high == 1.0 and p == 1.0)]
            if inside:
                size = len(inside)
                mean, share = sum(p for p, _ in inside) / size, sum(safe for _, safe in inside) / size
                bins.append(Bin(low, high, size, round(mean, 4), round(share, 4)))
        brier = sum((p - safe) ** 2 for p, safe in told) / len(told)
        error = sum(each.cases * abs(each.told - each.safe) for each in bins) / len(told)
        return Calibration(bins, round(brier, 4), round(error, 4))

    def light(self) -> list[str]:
        """Return the rules whose learned weight is too low to flag a trajectory alone."""
        floor = self.learned.eps - 1e-9
        return [name for name, weight in self.learned.weights.items() if math.tanh(-weight / 2) >= floor]

    def probability(self, found: Found) -> float:
        slope, shift = self._line
        return _logistic(slope * self._sum(found) + shift)

    def _sum(self, found: Found) -> float:
        return z(self._act(found), self._theta)

    def _weight(self, found: Found, name: str) -> float:
        weights = self.learned.weights
        return weights[name] if name in found.denied else weights[f"{name}, open"] if name in found.open else 0.0

    def _act(self, found: Found) -> LabelledAct:
        denied = tuple(-float(name in found.denied) for name in self._policies)
        open = tuple(-float(name in found.open) for name in self._policies)
        return LabelledAct((*denied, *open), found.sample.is_safe)


def _fit_line(points: Sequence[tuple[float, bool]]) -> tuple[float, float]:
    """Return the slope and shift of a logistic curve. It is fitted by Newton's method with a small penalty."""
    slope, shift = 1.0, 0.0
    for _ in range(ROUNDS):
        gradient = [1e-3 * slope, 1e-3 * shift]
        a, b, c = 1e-3, 0.0, 1e-3
        for x, safe in points:
            p = _logistic(slope * x + shift)
            gradient[0] += (p - safe) * x / len(points)
            gradient[1] += (p - safe) / len(points)
            spread = max(p * (1 - p), 1e-9) / len(points)
            a, b, c = a + spread * x * x, b + spread * x, c + spread
        scale = a * c - b * b
        slope -= (c * gradient[0] - b * gradient[1]) / scale
        shift -= (a * gradient[1] - b * gradient[0]) / scale
    return slope, shift


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-max(min(x, 40.0), -40.0)))
