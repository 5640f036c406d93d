"""Days that a text tells together: 17-21 April, April 17 to 21, 17 April for four nights."""

import re
from datetime import date, timedelta
from functools import lru_cache

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_WEEKDAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,? )?(?:the )?"
_FIGURES = r"(\d{1,2})(?:st|nd|rd|th)?(?![\d:%])"
_DAY = rf"{_WEEKDAY}(?<![\d.,$€£:/-]){_FIGURES}"
_LATE_DAY = _WEEKDAY + _FIGURES
_TO = r"(?: ?[-\u2013\u2014] ?| (?:to|till|until|through|and) )"
_YEAR = r"(?:,? (\d{4}))?"
_BEFORE = re.compile(rf"{_DAY}{_TO}{_LATE_DAY} (?:of )?{_MONTH}{_YEAR}")
"""17-21 April 2026"""
_AFTER = re.compile(rf"\b{_MONTH} {_DAY}{_TO}{_LATE_DAY}(?! (?:of )?{_MONTH}){_YEAR}")
"""April 17 to 21, 2026"""
_AROUND = re.compile(rf"{_DAY} (?:of )?{_MONTH}{_TO}{_LATE_DAY}(?! (?:of )?{_MONTH}){_YEAR}")
"""the 17th of April through Tuesday the 21st"""
_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {word: number for number, word in enumerate(_WORDS, 1)}
_NIGHTS = r"(?:,? for (\d{1,2}|" + "|".join(_NUMBERS) + r") nights?\b)"
_STAY = re.compile(rf"{_DAY} (?:of )?{_MONTH}{_YEAR}{_NIGHTS}|\b{_MONTH} {_DAY}{_YEAR}{_NIGHTS}")
"""17 April for four nights"""


_ISO = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)")
_ONE = re.compile(rf"(?<![\d.,$€£:/-]){_FIGURES} (?:of )?{_MONTH}{_YEAR}|\b{_MONTH} (?:the )?{_FIGURES}{_YEAR}")
"""9 June 2026, June the 9th"""


@lru_cache(maxsize=1024)
def days_told(text: str) -> frozenset[tuple[int, int, int]]:
    """The days that a folded text tells by month and day, alone or with others; the year is 0 where it names none."""
    found = {(int(year), int(month), int(day)) for year, month, day in _ISO.findall(text)}
    for day, month, year, late_month, late_day, late_year in _ONE.findall(text):
        found.add((int(year or late_year or 0), _number(month or late_month), int(day or late_day)))
    return frozenset(found) | _days(text, 0)


def tells_day(text: str, day: date) -> bool:
    """Whether a folded text tells a day as the first or the last of several; where it names no year, of any."""
    if "night" not in text and (_MONTHS[day.month - 1] not in text or str(day.day) not in text):
        # Only a number of nights ends on a day that is not written out.
        return False
    return any(
        (month, at) == (day.month, day.day) and year in (0, day.year) for year, month, at in _days(text, day.year)
    )


@lru_cache(maxsize=1024)
def _days(text: str, year: int) -> frozenset[tuple[int, int, int]]:
    found: set[tuple[int, int, int]] = set()
    for first, last, month, told in _BEFORE.findall(text):
        found |= _both(first, last, month, told)
    for month, first, last, _, told in _AFTER.findall(text):
        found |= _both(first, last, month, told)
    for first, month, last, _, told in _AROUND.findall(text):
        found |= _both(first, last, month, told)
    for parts in _STAY.finditer(text) if "night" in text else ():
        first, month, told, nights = parts.group(1, 2, 3, 4) if parts[1] else parts.group(6, 5, 7, 8)
        start = _date(int(told or year), _number(month), int(first))
        if start is not None:
            last = start + timedelta(_NUMBERS.get(nights) or int(nights))
            found.add((last.year if told else 0, last.month, last.day))
    return frozenset(found)


def _both(first: str, last: str, month: str, year: str) -> set[tuple[int, int, int]]:
    if int(first) >= int(last):
        return set()
    return {(int(year or 0), _number(month), int(day)) for day in (first, last)}


def _number(month: str) -> int:
    return _MONTHS.index(month[:3]) + 1


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
