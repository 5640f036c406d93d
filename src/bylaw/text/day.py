"""Dates and times as people write them: "14th November 1969", "17-21 April", "14/11/1969", "7:30 pm", "9-11 am"."""

import re
from datetime import date
from functools import lru_cache
from typing import NamedTuple

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_NUMBER = r"(\d{1,2})(?:st|nd|rd|th)?(?![\d:%]|[.,]\d)"
_LEAD = r"(?<![\d.,$\u20ac\u00a3:/-])"
_WEEKDAY = r"(?:(?:mon|tue|tues|wed|wednes|thu|thur|thurs|fri|sat|satur|sun)(?:day)?\.?,?\s)?(?:the\s)?"
_TO = r"(?:\s?-\s?|\s(?:to|till|until|through|and|&)\s)"
_YEAR = r"(?:,?\s((?:19|20)\d\d)(?![\d:]))?"
_ANY_MONTH = re.compile(r"jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec")
_FIGURED = re.compile(r"\d[-/.]\d")
_TIMED = re.compile(r"\d\s?(?:[:.]\d\d|[ap]\.?m|h|uhr)")
"""A quick test: text that this pattern does not match contains no time of day."""
_ISO = re.compile(r"(?<![\d-])(\d{4})[-/.](\d\d?)[-/.](\d\d?)(?!\d)")
_MONTH_FIRST = re.compile(
    rf"\b{_MONTH}\s(?:the\s)?{_NUMBER}(?:{_TO}{_WEEKDAY}{_NUMBER}(?!\s(?:of\s)?{_MONTH}))?{_YEAR}"
)
_DAY_FIRST = re.compile(rf"(?=\d){_LEAD}(?:{_NUMBER}{_TO}{_WEEKDAY})?{_NUMBER}\s(?:of\s)?{_MONTH}{_YEAR}")
_FIGURES = re.compile(r"(?<![\w./:-])(\d{1,2})([./-])(\d{1,2})(?:\2(\d{4}|\d\d))?(?![\w/:-]|[.]\d)")
_HOUR = re.compile(r"(?<![\w:.,$\u20ac\u00a3/-])(\d{1,2})(?:[:.](\d\d))?(?::\d\d)?\s?(a\.?m\b|p\.?m\b|h\b|uhr\b)?\.?")
_HOURS = re.compile(
    r"(?<![\w:.,$\u20ac\u00a3/-])(\d{1,2})(?:[:.](\d\d))?\s?(a\.?m|p\.?m)?\.?"
    r"(?:\s?-\s?|\s(?:to|till|until|and)\s)(\d{1,2})(?:[:.](\d\d))?\s?(a\.?m\b|p\.?m\b|h\b|uhr\b)?(?![\w/]|[.,:]\d)"
)


class Day(NamedTuple):
    """A date and its position in the text. The year is 0 if the text does not state it."""

    year: int
    month: int
    day: int
    start: int
    end: int


def month_number(word: str) -> int:
    """Return the number of a month, given its name or an abbreviation such as `Mar`. 0 if the word is no month."""
    start = word.lower()[:3]
    return next((at for at, month in enumerate(MONTHS, 1) if month[:3] == start), 0)


@lru_cache(maxsize=4096)
def days(words: str) -> tuple[Day, ...]:
    """Return the dates in lower-case text, in order. A numeric date that is ambiguous is returned in both readings."""
    found: list[Day] = []
    if _ANY_MONTH.search(words):
        for each in _MONTH_FIRST.finditer(words):
            year, month = int(each[5] or 0), month_number(each[1])
            found += [Day(year, month, int(figures), *each.span()) for figures in filter(None, each.group(2, 3))]
        for each in _DAY_FIRST.finditer(words):
            year, month = int(each[4] or 0), month_number(each[3])
            found += [Day(year, month, int(figures), *each.span()) for figures in filter(None, each.group(1, 2))]
    if _FIGURED.search(words):
        for each in _ISO.finditer(words):
            if 1 <= int(each[2]) <= 12 and 1 <= int(each[3]) <= 31:
                found.append(Day(int(each[1]), int(each[2]), int(each[3]), *each.span()))
        for each in _FIGURES.finditer(words):
            first, second, year = int(each[1]), int(each[3]), int(each[4] or 0)
            if each[2] == "/" or each[4]:
                year += 2000 if 0 < year < 100 else 0
                for month, day in {(first, second), (second, first)}:
                    if 0 < month <= 12 and 0 < day <= 31:
                        found.append(Day(year, month, day, *each.span()))
    return tuple(sorted(dict.fromkeys(found), key=lambda day: (day.start, day.year, day.month, day.day)))


def spoken_day(text: str) -> date | None:
    """Return the date if the whole text is a single unambiguous date. Otherwise, return None."""
    said = " ".join(text.casefold().split()).strip(" .,;!")
    meant: set[date] = set()
    for each in days(said):
        if each.year and said[: each.start] in ("", "the ") and each.end == len(said):
            try:
                meant.add(date(each.year, each.month, each.day))
            except ValueError:
                continue
    return meant.pop() if len(meant) == 1 else None


@lru_cache(maxsize=4096)
def times(words: str) -> frozenset[tuple[int, int]]:
    """Return the times in lower-case text, as pairs of hour and minute. For a range such as `9-11 am`, both ends are
    returned.
    """
    found: set[tuple[int, int]] = set()
    if not _TIMED.search(words):
        return frozenset()
    for each in _HOUR.finditer(words):
        hour, minute, half = each.groups()
        if minute or half:
            found.add(_time(hour, minute, half))
    for hour, minute, half, last, late, end in _HOURS.findall(words):
        if half or end or minute or late:
            found.add(_time(last, late, end))
            found |= {_time(hour, minute, half), _time(hour, minute, half or end)}
    return frozenset(each for each in found if each < (24, 1))


def _time(hour: str, minute: str | None, half: str | None) -> tuple[int, int]:
    number = int(hour)
    if half and half[0] == "p" and number < 12:
        number += 12
    elif half and half[0] == "a" and number == 12:
        number = 0
    return number, int(minute or 0)


_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_WRITTEN = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s?([smhd]?)")


def read_duration(text: str, *, unit: bool = False) -> float | None:
    """Return a positive duration in seconds. None if the text is not a duration. With `unit`, the text must name a
    unit.
    """
    found = _WRITTEN.fullmatch(text.strip())
    if found is not None and unit and not found[2]:
        return None
    seconds = float(found[1]) * _SECONDS[found[2]] if found is not None else 0.0
    return seconds or None


def told_duration(seconds: float) -> str:
    """Return a duration as text, for example `hour`, `2 hours` or `90 minutes`."""
    for name, size in (("day", 86_400.0), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0)):
        count = seconds / size
        if count >= 1 and count == int(count):
            return name if count == 1 else f"{int(count)} {name}s"
    return f"{seconds:g} seconds"
