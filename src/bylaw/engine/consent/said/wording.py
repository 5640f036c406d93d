"""How one value may stand in a message: as it is spelled, as one of several days, a time of day, a long number."""

import re
from datetime import date
from functools import lru_cache

from bylaw.engine.consent.said.day import tells_day
from bylaw.engine.consent.said.hours import Time, span_in, spans_told, time_in, times_told
from bylaw.facts.spelling import spell

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_GROUPING = re.compile(r"[\s().+-]+")
_GROUPED = re.compile(r"\+?\(?\d[\d\s().-]{5,24}\d")
_LONG = 7
"""Figures of a number that people group as they like: a telephone's."""
_NUMBERED = re.compile(r"(?:[A-Za-z]{1,4}[-_#/]?)?([\d\s().+-]+)")
"""A long number, perhaps with the letters of its kind before it: `M-07700901801`."""
_WITHOUT_COUNTRY = 9
"""So many last figures tell a telephone, with its country's figures before them or with a nought."""
_ENDING = re.compile(r"\b(?:end(?:s|ing)?(?: in| with)?|last (?:four|4|three|3)(?: digits)?)\W{1,3}(\d{3,6})\b")
_HYPHENED = re.compile(r"[^\W\d_]\w*(?:[-_]\w+)+")
_HYPHENS = re.compile("[-_]")
_LETTERS = 3
"""Letters of a word in a name of several that stands for more than a kind of number."""


class Wording:
    """What may be looked for in a message, found once for a value."""

    __slots__ = ("_day", "_figures", "_mark", "_said_in", "_span", "_time", "needed", "spoken")

    def __init__(self, value: str | float) -> None:
        spelling = spell(value)
        self._said_in = None if spelling is None else spelling.said_in
        self._mark = "" if spelling is None else spelling.mark
        self._day: date | None = None
        self._time: Time | None = None
        self._span: tuple[Time, Time] | None = None
        self._figures = ""
        self.spoken: tuple[str, ...] = ()
        """The words of a name with hyphens, where the value is one."""
        if isinstance(value, str) and _HYPHENED.fullmatch(value):
            self.spoken = tuple(_HYPHENS.split(value.lower()))
        self.needed = self._mark
        """What stands, as it was written, in every message that states the value; the others need not be folded."""
        if not isinstance(value, str) or not value[-1:].isdigit():
            return
        self._time, self._span = time_in(value), span_in(value)
        if _DATE.fullmatch(value):
            self._day = _day(value)
        elif self._time is None and self._span is None:
            found = _NUMBERED.fullmatch(value)
            figures = _GROUPING.sub("", found[1]) if found else ""
            self._figures = figures if len(figures) >= _LONG and figures.isdigit() else ""
        if self._day or self._time or self._span or self._figures:
            self.needed = ""

    def stands_in(self, text: str, folded: str) -> bool:
        """Whether a message states the value in any usual form: 7:30 pm, 17-21 April, 555-0142."""
        if self._said_in is not None and self._mark in text and self._said_in(folded):
            return True
        if self._day is not None:
            return tells_day(folded, self._day)
        if self._time is not None:
            return self._time in times_told(folded)
        if self._span is not None:
            return self._span in spans_told(folded)
        if self._figures:
            return self._is_told_in_figures(text, folded)
        return False

    def is_spoken_in(self, loose: str) -> bool:
        """Whether a message says a name with hyphens as people do: `weekend-booster`, the weekend data booster."""
        return all(part in loose for part in self.spoken) and _spoken(self.spoken).search(loose) is not None

    def _is_told_in_figures(self, text: str, folded: str) -> bool:
        """Whether a message tells a long number, grouped in another way or by its last figures: ending 7433."""
        if any(_is_same_number(_GROUPING.sub("", each), self._figures) for each in _GROUPED.findall(text)):
            return True
        is_by_end = "end" in folded or "last" in folded
        return is_by_end and any(map(self._figures.endswith, _ENDING.findall(folded)))


wording = lru_cache(maxsize=16_384)(Wording)
"""How a value may stand in a message."""


def _is_same_number(one: str, other: str) -> bool:
    """Whether the figures of two long numbers tell one: alike, or but for a nought or a country before them."""
    short, long = sorted((one.lstrip("0"), other.lstrip("0")), key=len)
    return short == long or (len(short) >= _WITHOUT_COUNTRY and long.endswith(short))


@lru_cache(maxsize=1024)
def _spoken(parts: tuple[str, ...]) -> re.Pattern[str]:
    """Matches a name of several words as people say it."""
    # Another word may stand between two that say something, and not between a letter and a number.
    between = r"(?: \w+)? " if sum(len(each) >= _LETTERS and each.isalpha() for each in parts) > 1 else " "
    return re.compile(rf"\b{between.join(map(re.escape, parts))}(?:s|es)?\b")


def _day(value: str) -> date | None:
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None
