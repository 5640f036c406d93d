"""Whether a user message states a fact's value. What a user says is a claim, not a fact."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from bylaw.facts.entity import ABSENT, UNSEEN, Field, FieldType
from bylaw.text.day import MONTHS

_GAPS = re.compile(r"[\s_-]+")


class Form(NamedTuple):
    """One way to state a value."""

    pattern: str
    parts: tuple[str, str]
    """Texts in lower case that every match in an ASCII text contains."""


class Claims:
    """What the messages of one user state; `said` may grow."""

    def __init__(self, said: Sequence[tuple[int, str]]) -> None:
        self._said = said
        self._stating: dict[tuple[Form, ...], tuple[int, list[tuple[int, str]]]] = {}
        """By forms, how many messages were searched for them, and those that have one: step and words."""

    def last(self, field: Field, value: Any, before: int) -> tuple[int, str] | None:
        """The last message before a step that states the value: its step, and the words that do.

        UNSEEN stands for any value the field may take.
        """
        forms = _stating(field, value)
        if not forms:
            return None
        count, found = self._stating.get(forms, (0, []))
        for step, text in self._said[count:]:
            if text.isascii():
                # Compiling a pattern takes longer than looking for texts that every match contains.
                lower = text.lower()
                for _, (first, last) in forms:
                    if first in lower and last in lower:
                        break
                else:
                    continue
            if match := _compile(forms).search(text):
                found.append((step, match[0]))
        self._stating[forms] = (len(self._said), found)
        place = bisect_left(found, (before,))
        return found[place - 1] if place else None


def _stating(field: Field, value: Any) -> tuple[Form, ...]:
    if value is UNSEEN:
        values: tuple[Any, ...] = (
            field.values if field.type == "enum" else (True, False) if field.type == "boolean" else ()
        )
    elif isinstance(value, list | dict) or value is None or value is ABSENT:
        return ()
    else:
        return _forms(field.type, field.claims, value)
    return tuple(form for each in values for form in _forms(field.type, field.claims, each))


@lru_cache(maxsize=4096)
def _compile(forms: tuple[Form, ...]) -> re.Pattern[str]:
    return re.compile("|".join(form.pattern for form in forms), re.IGNORECASE)


@lru_cache(maxsize=4096, typed=True)
def _forms(kind: FieldType, claims: tuple[tuple[str, tuple[str, ...]], ...], value: Any) -> tuple[Form, ...]:
    return tuple(_listed(kind, claims, value))


def _listed(kind: FieldType, claims: tuple[tuple[str, tuple[str, ...]], ...], value: Any) -> Iterator[Form]:
    """What states the value, each bounded by non-word characters where it is a word."""
    name = ("true" if value else "false") if isinstance(value, bool) else str(value)
    for claimed, phrases in claims:
        if claimed == name:
            yield from (_form(re.escape(phrase), phrase) for phrase in phrases)
    match kind:
        case "string" | "enum":
            if len(name) > 1:
                parts = [part for part in _GAPS.split(name) if part]
                loose = r"[\s_-]+".join(map(re.escape, parts))
                yield _form(rf"(?<!\w){loose}(?!\w)", parts[0] if parts else "", parts[-1] if parts else "")
        case "money" | "number":
            yield _amount(value)
        case "date":
            yield from _dates(value)
        case _:
            return


def _form(pattern: str, first: str, last: str = "") -> Form:
    # Letters beyond ASCII match in ways that lower case does not show.
    first, last = (part.lower() if part.isascii() else "" for part in (first, last))
    return Form(pattern, (first, last))


def _amount(value: Any) -> Form:
    amount = value if isinstance(value, Decimal) else Decimal(str(value))
    whole, cents = f"{amount:,.2f}".split(".")
    part = r"(?:\.00?)?" if amount == amount.to_integral_value() else rf"\.{cents}"
    return _form(rf"(?<![\w.,]){whole.replace(',', ',?')}{part}(?!\w|[.,]\d)", whole.partition(",")[0])


def _dates(value: Any) -> Iterator[Form]:
    day = value.date() if isinstance(value, datetime) else value
    if not isinstance(day, date):
        return
    month = MONTHS[day.month - 1]
    name = rf"{month[:3]}(?:{month[3:]})?\.?" if len(month) > 3 else month
    number = rf"0?{day.day}(?:st|nd|rd|th)?"
    yield _form(rf"(?<!\d){day.isoformat()}(?!\d)", day.isoformat())
    yield _form(rf"(?<!\w){name}\s+{number}(?!\w)", month[:3], str(day.day))
    yield _form(rf"(?<!\w){number}\s+(?:of\s+)?{name}(?!\w)", month[:3], str(day.day))
    year = rf"(?:/(?:{day.year}|{day.year % 100:02d}))?"
    yield _form(rf"(?<!\d)0?{day.month}/0?{day.day}{year}(?!\d)", f"{day.month}/", str(day.day))
