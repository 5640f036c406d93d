"""The marks of a text or a value: what one can be told by in the other, whatever way it is written."""

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any

from bylaw.text.day import days, times
from bylaw.text.number import numbers
from bylaw.text.sentence import lowered

_WORD = re.compile(r"[^\W_]{3,}")
_COMMON = frozenset(
    (
        *("the", "and", "for", "you", "your", "with", "this", "that", "will", "would", "have", "has", "are", "was"),
        *("not", "can", "but", "all", "any", "from", "our", "their", "there", "here", "confirmed", "active", "open"),
        *("available", "status", "type", "name", "none", "true", "false", "yes", "per", "day", "month", "year", "date"),
        *("time", "order", "booking", "reservation", "account", "customer", "user", "credit", "card", "payment"),
        *("total", "price", "amount", "number", "one", "two", "new", "standard", "regular"),
        *("please", "thanks", "thank", "sure", "okay", "correct", "right", "good", "great", "fine", "perfect", "ahead"),
        *("shall", "should", "like", "want", "proceed", "confirm", "sounds", "that's"),
    )
)
"""Words that tell no thing from another."""
_LINE = re.compile(r"\+?\d[\d ()-]{6,16}\d")
_LONG = 9
_SMALL = 10
"""Smaller whole numbers stand everywhere."""


@lru_cache(maxsize=4096)
def marks(words: str) -> frozenset[str]:
    """The marks of a text in lower case."""
    return frozenset(_marks(words))


def _marks(words: str) -> Iterator[str]:
    for word in _WORD.findall(words):
        if word not in _COMMON and not word.isdigit():
            yield word
    for day in days(words):
        yield f"d:{day.month}-{day.day}"
    for hour, minute in times(words):
        yield f"t:{hour}:{minute:02}"
    for line in _LINE.findall(words):
        # A telephone number, however it is grouped and whatever it begins with.
        digits = "".join(filter(str.isdigit, line))
        if len(digits) >= _LONG:
            yield f"p:{digits[1 - _LONG :]}"
    for number in numbers(words):
        if number.value >= _SMALL or number.value != number.value.to_integral_value():
            yield number_mark(number.value)


def number_mark(value: Decimal) -> str:
    """The mark of a number, the same however many noughts it is written with."""
    return f"n:{value.normalize():f}"


def value_marks(value: Any) -> tuple[frozenset[str], tuple[str, ...]]:
    """The marks of a value in a record, and those among them that are no words."""
    return _value_marks(str(value))


@lru_cache(maxsize=16_384)
def _value_marks(value: str) -> tuple[frozenset[str], tuple[str, ...]]:
    found = frozenset(_marks(lowered(value.replace("_", " ")[:200])))
    return found, tuple(mark for mark in found if mark[1] == ":")
