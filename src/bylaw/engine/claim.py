"""Whether a user message states a fact's value. What a user says is a claim, not a fact."""

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from bylaw.facts.entity import ABSENT, UNSEEN, Field, FieldType

_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)


def claim(field: Field, value: Any, said: Sequence[tuple[int, str]], before: int) -> tuple[int, str] | None:
    """The last user message before a call that states the value: its step, and the words that do.

    UNSEEN stands for any value the field may take.
    """
    pattern = _pattern(field, value)
    if pattern is None:
        return None
    for step, text in reversed(said):
        if step < before and (match := pattern.search(text)):
            return step, match[0]
    return None


def _pattern(field: Field, value: Any) -> re.Pattern[str] | None:
    if value is UNSEEN:
        values: tuple[Any, ...] = (
            field.values if field.type == "enum" else (True, False) if field.type == "boolean" else ()
        )
    elif isinstance(value, list | dict) or value is None or value is ABSENT:
        return None
    else:
        values = (value,)
    # Not by the field itself: its default may be a list or a record, which cannot be a key.
    return _compile(field.type, field.claims, values) if values else None


_Claims = tuple[tuple[str, tuple[str, ...]], ...]


@lru_cache(maxsize=4096)
def _compile(type: FieldType, claims: _Claims, values: tuple[Any, ...]) -> re.Pattern[str] | None:
    alternatives = [form for value in values for form in _forms(type, claims, value)]
    return re.compile("|".join(alternatives), re.IGNORECASE) if alternatives else None


def _forms(type: FieldType, claims: _Claims, value: Any) -> Iterator[str]:
    """Patterns that state the value, each bounded by non-word characters where it is a word."""
    name = ("true" if value else "false") if isinstance(value, bool) else str(value)
    for claimed, phrases in claims:
        if claimed == name:
            yield from (re.escape(phrase) for phrase in phrases)
    match type:
        case "string" | "enum":
            if len(name) > 1:
                yield rf"(?<!\w){_loose(name)}(?!\w)"
        case "money" | "number":
            yield from _amounts(value)
        case "date":
            yield from _dates(value)
        case _:
            return


def _loose(text: str) -> str:
    return r"[\s_-]+".join(re.escape(part) for part in re.split(r"[\s_-]+", text) if part)


def _amounts(value: Any) -> Iterator[str]:
    amount = value if isinstance(value, Decimal) else Decimal(str(value))
    whole = amount == amount.to_integral_value()
    grouped = f"{amount:,.2f}".split(".")[0].replace(",", ",?")
    cents = r"(?:\.00?)?" if whole else re.escape("." + f"{amount:.2f}".split(".")[1])
    yield rf"(?<![\w.,]){grouped}{cents}(?!\w|[.,]\d)"


def _dates(value: Any) -> Iterator[str]:
    day = value.date() if isinstance(value, datetime) else value
    if not isinstance(day, date):
        return
    month = _MONTHS[day.month - 1]
    name = rf"{month[:3]}(?:{month[3:]})?\.?" if len(month) > 3 else month
    number = rf"0?{day.day}(?:st|nd|rd|th)?"
    yield rf"(?<!\d){day.isoformat()}(?!\d)"
    yield rf"(?<!\w){name}\s+{number}(?!\w)"
    yield rf"(?<!\w){number}\s+(?:of\s+)?{name}(?!\w)"
    yield rf"(?<!\d)0?{day.month}/0?{day.day}(?:/(?:{day.year}|{day.year % 100:02d}))?(?!\d)"
