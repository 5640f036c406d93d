"""Private values as somebody else wrote them: a number in other groups, a day in words."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import lru_cache

from bylaw.audit.private import Found
from bylaw.audit.scrub import leaves
from bylaw.facts.echoes import letters_of
from bylaw.text.day import days
from bylaw.trace.event import Call, Event

_DIGITS = 5
"""A number of fewer stands anywhere by chance."""
_NO_DIGITS = re.compile(r"\D+")
_ASCII_NO_DIGITS = bytes(code for code in range(128) if not chr(code).isdigit())
_LONGEST = 40
_CODE = 3
"""Digits of a country's code at most, which a number is often written without."""
_BETWEEN = r"[ \u00a0().,/\-]{0,3}"


def respelled(found: Iterable[tuple[Found, int | None]], events: Sequence[Event]) -> Iterator[tuple[Found, int | None]]:
    """Private values that were found, as the texts of the conversation spell them otherwise."""
    numbers: dict[str, str] = {}
    dates: dict[date, str] = {}
    rounded: set[str] = set()
    for (label, value, name, _), _ in found:
        for leaf, _ in leaves(value, name):
            text = str(int(leaf)) if isinstance(leaf, float) and leaf.is_integer() else str(leaf).strip()
            if len(text) > _LONGEST or sum(map(str.isdigit, text)) < _DIGITS:
                continue
            numbers.setdefault(text, label)
            if isinstance(leaf, float):
                rounded.add(text)
            if (day := _day(text[:10])) is not None:
                dates.setdefault(day, label)
    if not numbers:
        return
    # No number goes on from one text to the next: nothing that may stand between its digits ends a line.
    texts = [*_texts(events)]
    whole = "\n".join(texts)
    digits = _digits(whole)
    for number, label in numbers.items():
        # Most stand there only as they were found, and making a pattern takes longer than all the rest.
        as_found = 0 if number in rounded else whole.count(number)
        if digits.count(_digits(number)[-_DIGITS:]) > as_found:
            yield from (((label, each[0], "", False), None) for each in _grouped(number).finditer(whole))
    years = {str(day.year) for day in dates}
    for text in texts:
        lower = text.lower()
        if len(lower) == len(text) and any(year in text for year in years):
            for each in days(lower):
                for day, label in dates.items():
                    if (each.year, each.month, each.day) == (day.year, day.month, day.day):
                        yield (label, text[each.start : each.end], "", False), None


def _digits(text: str) -> str:
    if text.isascii():
        return text.encode().translate(None, _ASCII_NO_DIGITS).decode()
    return _NO_DIGITS.sub("", text)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _texts(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        if isinstance(event, Call):
            yield from (leaf for leaf, _ in leaves(event.arguments, "") if isinstance(leaf, str))
        elif event.captured:
            yield event.text


@lru_cache(maxsize=1024)
def _grouped(number: str) -> re.Pattern[str]:
    letters = [re.escape(letter) for letter in letters_of(number)]
    size = _CODE if number.startswith("+") else 0
    code = "".join(f"(?:{letter}{_BETWEEN})?" for letter in letters[:size])
    return re.compile(rf"(?<![^\W_])\+?{code}{_BETWEEN.join(letters[size:])}(?![^\W_])", re.IGNORECASE)
