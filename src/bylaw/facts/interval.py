"""How far a share of few cases can be trusted."""

from math import sqrt
from typing import Any

_Z = 1.959963984540054


def wilson(hits: int, cases: int) -> tuple[float, float]:
    """Wilson's 95 % interval for a share of `hits` in `cases`; everything is possible where there are none."""
    if cases == 0:
        return 0.0, 1.0
    share, square = hits / cases, _Z * _Z
    centre = (share + square / (2 * cases)) / (1 + square / cases)
    spread = _Z * sqrt(share * (1 - share) / cases + square / (4 * cases * cases)) / (1 + square / cases)
    return 0.0 if hits == 0 else max(0.0, centre - spread), 1.0 if hits == cases else min(1.0, centre + spread)


def rate(count: int, of: int) -> dict[str, Any]:
    """`count` of `of` as a rate; value and interval are None where `of` is 0."""
    if of == 0:
        return {"value": None, "low": None, "high": None, "count": count, "of": 0}
    low, high = wilson(count, of)
    return {"value": count / of, "low": low, "high": high, "count": count, "of": of}
