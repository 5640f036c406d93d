"""How one value may stand in a message: as it is spelled, as one of several days, a time of day, a long number."""

import re
from datetime import date
from functools import lru_cache

from bylaw.engine.consent.said.day import tells_day
from bylaw.facts.spelling import spell

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"(\d{1,2}):(\d\d)(?::00)?")
_TOLD_TIME = re.compile(r"(?<![\d:.])(\d{1,2})(?:[:.](\d\d))?\s?(a\.?m|p\.?m)?\b")
_GROUPING = re.compile(r"[\s().+-]+")
_GROUPED = re.compile(r"\+?\(?\d[\d\s().-]{5,24}\d")
_LONG = 7
"""Figures of a number that people group as they like: a telephone's."""


class Wording:
    """What may be looked for in a message, found once for a value."""

    __slots__ = ("_day", "_figures", "_mark", "_said_in", "_time")

    def __init__(self, value: str | float) -> None:
        spelling = spell(value)
        self._said_in = None if spelling is None else spelling.said_in
        self._mark = "" if spelling is None else spelling.mark
        self._day: date | None = None
        self._time: tuple[int, int] | None = None
        self._figures = ""
        if not isinstance(value, str) or not value[-1:].isdigit():
            return
        if _DATE.fullmatch(value):
            self._day = _day(value)
        elif found := _TIME.fullmatch(value):
            self._time = int(found[1]), int(found[2])
        else:
            figures = _GROUPING.sub("", value)
            self._figures = figures if len(figures) >= _LONG and figures.isdigit() else ""

    def may_stand_in(self, text: str) -> bool:
        """Whether a message, as it was written, may state the value; where not, it need not be folded."""
        return self._mark in text or self._day is not None or self._time is not None or bool(self._figures)

    def stands_in(self, text: str, folded: str) -> bool:
        """Whether a message states the value in any usual form: 7:30 pm, 17-21 April, 555-0142."""
        if self._said_in is not None and self._mark in text and self._said_in(folded):
            return True
        if self._day is not None:
            return tells_day(folded, self._day)
        if self._time is not None:
            return self._time in _times_in(folded)
        if self._figures:
            return any(_GROUPING.sub("", each[0]) == self._figures for each in _GROUPED.finditer(text))
        return False


wording = lru_cache(maxsize=16_384)(Wording)
"""How a value may stand in a message."""


def _day(value: str) -> date | None:
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def _times_in(text: str) -> set[tuple[int, int]]:
    """The times of day that a folded text tells, by hour and minute."""
    found: set[tuple[int, int]] = set()
    for hour, minute, half in _TOLD_TIME.findall(text):
        if minute or half:
            later = 12 if half.startswith("p") and int(hour) < 12 else -12 if half[:1] == "a" and hour == "12" else 0
            found.add((int(hour) + later, int(minute or 0)))
    return found
