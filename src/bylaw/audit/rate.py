"""Rates with their 95 % interval (Wilson score)."""

from math import sqrt
from typing import Any

_Z = 1.959963984540054


def rate(count: int, of: int) -> dict[str, Any]:
    """`count` of `of` as a rate; value and interval are None where `of` is 0."""
    if of == 0:
        return {"value": None, "low": None, "high": None, "count": count, "of": 0}
    share, square = count / of, _Z * _Z
    centre = (share + square / (2 * of)) / (1 + square / of)
    spread = _Z * sqrt(share * (1 - share) / of + square / (4 * of * of)) / (1 + square / of)
    low = 0.0 if count == 0 else max(0.0, centre - spread)
    high = 1.0 if count == of else min(1.0, centre + spread)
    return {"value": share, "low": low, "high": high, "count": count, "of": of}
