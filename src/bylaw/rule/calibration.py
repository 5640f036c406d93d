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


def p_safe(z: float, threshold: float, *, scale: float = 1.0) -> float:
    """The probability that an act is safe, by its distance from a threshold; `fitted` gives both numbers."""
    return 1.0 / (1.0 + math.exp(-max(min(scale * (z - threshold), 700.0), -700.0)))


def fitted(z: Sequence[float], safe: Sequence[bool], *, rounds: int = 100) -> tuple[float, float]:
    """Scale and threshold under which `p_safe` is most likely (Platt, 1999), found by Newton's method.

    Labels are drawn in from 0 and 1 by their count, as Platt does, so that separable data keeps a finite scale.
    """
    count = sum(safe)
    sure, unsure = (count + 1) / (count + 2), 1 / (len(safe) - count + 2)
    pairs = [(each, sure if is_safe else unsure) for each, is_safe in zip(z, safe, strict=True)]
    slope, offset = 1.0, 0.0
    for _ in range(rounds):
        g1 = g2 = 0.0
        h11 = h22 = 1e-9
        h12 = 0.0
        for each, target in pairs:
            p = 1.0 / (1.0 + math.exp(-max(min(slope * each + offset, 700.0), -700.0)))
            error, bend = p - target, p * (1.0 - p)
            g1, g2 = g1 + error * each, g2 + error
            h11, h12, h22 = h11 + bend * each * each, h12 + bend * each, h22 + bend
        area = h11 * h22 - h12 * h12
        if area <= 0.0 or (abs(g1) < 1e-9 and abs(g2) < 1e-9):
            break
        # Steps are kept short: far from the optimum the logistic curve is too flat for Newton.
        move = [(h22 * g1 - h12 * g2) / area, (h11 * g2 - h12 * g1) / area]
        slope, offset = slope - max(min(move[0], 1.0), -1.0), offset - max(min(move[1], 1.0), -1.0)
    return (slope, -offset / slope) if slope else (0.0, 0.0)


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
