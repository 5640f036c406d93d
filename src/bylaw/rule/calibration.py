"""Whether probabilities mean what they say, and where to draw the line for a wanted rate of false alarms."""

import math
from collections.abc import Sequence

import msgspec


class Bin(msgspec.Struct, frozen=True):
    """Predictions of about the same probability, beside how often they came true."""

    low: float
    high: float
    count: int
    predicted: float
    observed: float


class Line(msgspec.Struct, frozen=True):
    """A threshold on the margin and what it does on the data it was chosen on."""

    eps: float
    false_positive_rate: float
    """Share of safe acts it holds up."""
    true_positive_rate: float
    """Share of unsafe acts it holds up."""


def calibration_curve(probabilities: Sequence[float], safe: Sequence[bool], *, bins: int = 10) -> list[Bin]:
    """The non-empty ones of equally wide bins."""
    members: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for p, came_true in zip(probabilities, safe, strict=True):
        members[min(int(p * bins), bins - 1)].append((p, came_true))
    return [
        Bin(
            number / bins,
            (number + 1) / bins,
            len(group),
            math.fsum(p for p, _ in group) / len(group),
            sum(came_true for _, came_true in group) / len(group),
        )
        for number, group in enumerate(members)
        if group
    ]


def calibration_error(curve: Sequence[Bin]) -> float:
    """The mean distance between predicted and observed, each bin by its count."""
    total = sum(each.count for each in curve)
    return math.fsum(each.count * abs(each.predicted - each.observed) for each in curve) / total if total else 0.0


def p_safe(z: float, threshold: float) -> float:
    """The probability that an act is safe, by its distance from the learned threshold."""
    return 1.0 / (1.0 + math.exp(-max(min(z - threshold, 700.0), -700.0)))


def line_for(margins: Sequence[float], safe: Sequence[bool], false_positive_rate: float) -> Line:
    """The strictest eps that holds up no more than the wanted share of safe acts."""
    passing = sorted(margin for margin, is_safe in zip(margins, safe, strict=True) if is_safe)
    failing = [margin for margin, is_safe in zip(margins, safe, strict=True) if not is_safe]
    if not passing:
        return Line(1.0, 0.0, 1.0 if failing else 0.0)
    # The small number keeps 0.05 * 20 = 1 from being rounded down to 0.
    eps = passing[min(int(false_positive_rate * len(passing) + 1e-9), len(passing) - 1)]
    return Line(
        eps,
        sum(margin < eps for margin in passing) / len(passing),
        sum(margin < eps for margin in failing) / len(failing) if failing else 0.0,
    )
