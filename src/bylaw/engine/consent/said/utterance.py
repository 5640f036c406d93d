"""One message of a conversation, as consent reads it."""

import re
from datetime import date
from functools import lru_cache

from bylaw.engine.consent.once import once
from bylaw.engine.consent.said.day import tells_day
from bylaw.facts.folded_text import fold, occurs, runs_of
from bylaw.facts.spelling import spell

_MARKS = "-*`\"'"
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"(\d{1,2}):(\d\d)(?::00)?")
_TOLD_TIME = re.compile(r"(?<![\d:.])(\d{1,2})(?:[:.](\d\d))?\s?(a\.?m|p\.?m)?\b")
_GROUPING = re.compile(r"[\s().+-]+")
_GROUPED = re.compile(r"\+?\(?\d[\d\s().-]{5,24}\d")
_LONG = 7
"""Figures of a number that people group as they like: a telephone's."""


class Utterance:
    """One message, folded once where anybody asks."""

    def __init__(self, step: int, by: str, text: str) -> None:
        self.step = step
        self.by = by
        self.text = text
        self._told: dict[str | float, bool] = {}

    @once
    def folded(self) -> str:
        """The text with case and blanks made alike."""
        return fold(self.text)

    @once
    def loose(self) -> str:
        """The same without hyphens and marks of emphasis, for words of a list."""
        text = self.folded
        for mark in _MARKS:
            text = text.replace(mark, " ")
        return " ".join(text.split())

    @once
    def runs(self) -> frozenset[str]:
        """The runs of letters and of digits in it."""
        return frozenset(runs_of(self.folded))

    def says(self, value: str | float) -> bool:
        """Whether it states a value in any usual form."""
        told = self._told.get(value)
        if told is None:
            spelling = spell(value)
            told = spelling is not None and spelling.mark in self.text and spelling.said_in(self.folded)
            if not told and isinstance(value, str) and value[-1:].isdigit():
                told = self._says_in_figures(value)
            self._told[value] = told
        return told

    def _says_in_figures(self, value: str) -> bool:
        """Whether it states a time of day, one of several days, or a long number that is grouped in another way: 7:30
        pm, 17-21 April, 555-0142."""
        if _DATE.fullmatch(value):
            try:
                return tells_day(self.folded, date.fromisoformat(value))
            except ValueError:
                return False
        wanted = _figures_of(value)
        if wanted is None:
            return False
        if isinstance(wanted, tuple):
            return wanted in _times_in(self.folded)
        return any(_GROUPING.sub("", each[0]) == wanted for each in _GROUPED.finditer(self.text))

    def names(self, form: str) -> bool:
        """Whether folded words stand in it as they are."""
        return occurs(form, self.folded) >= 0


@lru_cache(maxsize=16_384)
def _figures_of(value: str) -> tuple[int, int] | str | None:
    """The time of day that a value is, or its figures where they are many; None where it is neither."""
    if found := _TIME.fullmatch(value):
        return int(found[1]), int(found[2])
    figures = _GROUPING.sub("", value)
    return figures if len(figures) >= _LONG and figures.isdigit() else None


def _times_in(text: str) -> set[tuple[int, int]]:
    """The times of day that a folded text tells, by hour and minute."""
    found: set[tuple[int, int]] = set()
    for hour, minute, half in _TOLD_TIME.findall(text):
        if minute or half:
            later = 12 if half.startswith("p") and int(hour) < 12 else -12 if half[:1] == "a" and hour == "12" else 0
            found.add((int(hour) + later, int(minute or 0)))
    return found
