"""Times of day that a text tells, alone or from one to another: 7:30 pm, 9-11 am, between 16:00 and 18:00."""

import re
from functools import lru_cache

Time = tuple[int, int]
"""The hour, up to 24, and the minute."""

_TOLD = r"(\d{1,2})(?:[:.](\d\d))?\s?(a\.?m|p\.?m)?\b"
_TIME = re.compile(rf"(?<![\d:.]){_TOLD}")
_TO = r"(?: ?h| uhr)?(?: ?[-\u2013\u2014] ?| (?:to|till|until|and|bis|und|a|y|à|et) (?:las )?)"
_SPAN = re.compile(rf"(?<![\d:.,/$€£-]){_TOLD}\.?{_TO}{_TOLD}")
_VALUE = re.compile(r"(\d{1,2}):(\d\d)(?::00)?")
_BETWEEN = r"(?:\s?[-\u2013\u2014]\s?|\s(?:to|until)\s)"
_VALUES = re.compile(rf"(\d{{1,2}})(?::(\d\d))?(?::00)?{_BETWEEN}(\d{{1,2}})(?::(\d\d))?(?::00)?")
_DAY = 24


def time_in(value: str) -> Time | None:
    """The time of day that a value is: `19:30`."""
    found = _VALUE.fullmatch(value)
    return (int(found[1]), int(found[2])) if found else None


def span_in(value: str) -> tuple[Time, Time] | None:
    """From when to when a value is: `16-20`, `09:00-11:00`."""
    found = _VALUES.fullmatch(value)
    if found is None:
        return None
    first, last = (int(found[1]), int(found[2] or 0)), (int(found[3]), int(found[4] or 0))
    return (first, last) if first < last and last[0] <= _DAY else None


@lru_cache(maxsize=1024)
def times_told(text: str) -> frozenset[Time]:
    """The times of day that a folded text tells."""
    told = [(_at(hour, half), int(minute or 0)) for hour, minute, half in _TIME.findall(text) if minute or half]
    return frozenset(told)


@lru_cache(maxsize=1024)
def spans_told(text: str) -> frozenset[tuple[Time, Time]]:
    """From when to when, as a folded text tells it; where only the end says which half of the day, its start may be in
    either: 11-2 pm."""
    found: set[tuple[Time, Time]] = set()
    for hour, minute, half, later, after, end in _SPAN.findall(text):
        last = _at(later, end), int(after or 0)
        for first in {_at(hour, half or end), _at(hour, half)}:
            if (first, int(minute or 0)) < last:
                found.add(((first, int(minute or 0)), last))
    return frozenset(found)


def _at(hour: str, half: str) -> int:
    number = int(hour)
    if half[:1] == "p" and number < 12:
        return number + 12
    return 0 if half[:1] == "a" and number == 12 else number
