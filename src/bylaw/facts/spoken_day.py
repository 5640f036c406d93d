"""Days as people say them: "14th November 1969", "Nov 14, 1969", "14/11/1969" where no other day can be meant."""

import re
from datetime import date

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})"
_WORDS = (
    re.compile(rf"(?:the\s+)?{_DAY}\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}"),
    re.compile(rf"{_MONTH}\s+(?:the\s+)?{_DAY},?\s+{_YEAR}"),
)
_FIGURES = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})")
_YEAR_FIRST = re.compile(r"(\d{4})([./-])(\d{1,2})\2(\d{1,2})")


def spoken_day(text: str) -> date | None:
    """The day a text names; None if it names none, or if its digits could be another day."""
    said = " ".join(text.casefold().split()).strip(" .,;!")
    for pattern in _WORDS:
        if match := pattern.fullmatch(said):
            return _day(int(match["year"]), _MONTHS.index(match["month"]) + 1, int(match["day"]))
    if match := _YEAR_FIRST.fullmatch(said):
        return _day(int(match[1]), int(match[3]), int(match[4]))
    if match := _FIGURES.fullmatch(said):
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        meant = {_day(year, first, second), _day(year, second, first)} - {None}
        return meant.pop() if len(meant) == 1 else None
    return None


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
