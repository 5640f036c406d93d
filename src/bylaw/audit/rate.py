"""Rates with their 95 % interval."""

from typing import Any

from bylaw.facts.interval import wilson


def rate(count: int, of: int) -> dict[str, Any]:
    """`count` of `of` as a rate; value and interval are None where `of` is 0."""
    if of == 0:
        return {"value": None, "low": None, "high": None, "count": count, "of": 0}
    low, high = wilson(count, of)
    return {"value": count / of, "low": low, "high": high, "count": count, "of": of}
