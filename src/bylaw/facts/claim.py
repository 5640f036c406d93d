"""Whether a user message states a fact's value. What a user says is a claim, not a fact."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from bylaw.facts.entity import ABSENT, UNSEEN, Field
from bylaw.text.day import MONTHS

_GAPS = re.compile(r"[\s_-]+")


class Claims:
    """What the messages of one user state; `said` may grow."""

    def __init__(self, said: Sequence[tuple[int, str]]) -> None:
        self._said = said
        self._lower: str | None = ""
        """The words of all messages in lower case; None where some are not ASCII."""
        self._starts: list[int] = []
        """Where in it each message begins."""
        self._stating: dict[tuple[Form, ...], tuple[int, list[tuple[int, str]]]] = {}
        """By forms, how many messages were searched for them, and those that have one: step and words."""

    def last(self, field: Field, value: Any, before: int) -> tuple[int, str] | None:
        """The last message before a step that states the value: its step, and the words that do.

        UNSEEN stands for any value the field may take.
        """
        forms = _kept(field, value)
        if not forms:
            return None
        count, found = self._stating.get(forms, (0, []))
        if count < len(self._said):
            for place in self._places(forms, count):
                step, text = self._said[place]
                if (words := _stated(forms, text)) is not None:
                    found.append((step, words))
            self._stating[forms] = (len(self._said), found)
        place = bisect_left(found, (before,))
        return found[place - 1] if place else None

    def _places(self, forms: "tuple[Form, ...]", count: int) -> Iterable[int]:
        """Where, after the first so many, the messages stand that may have one of the forms."""
        lower, starts = self._lower, self._starts
        if lower is not None and len(starts) < len(self._said):
            new = [f"{text}\n" for _, text in self._said[len(starts) :]]
            starts += accumulate(map(len, new[:-1]), initial=len(lower))
            words = "".join(new)
            lower = self._lower = lower + words.lower() if words.isascii() else None
        if lower is None:
            return range(count, len(self._said))
        found: set[int] = set()
        for form in forms:
            part = form.has[0] if form.has else ""
            at = lower.find(part, starts[count])
            while at >= 0:
                place = bisect_right(starts, at) - 1
                found.add(place)
                at = lower.find(part, starts[place + 1]) if place + 1 < len(starts) else -1
        return sorted(found)


class Form(NamedTuple):
    """One way to state a value."""

    pattern: str
    has: tuple[str, ...]
    """What every match in an ASCII text has in it, in lower case."""
    by: Literal["pattern", "word", "phrase"] = "pattern"
    """What states it in an ASCII text: a match; or just what it has, by itself or within other words too."""


def _stated(forms: tuple[Form, ...], text: str) -> str | None:
    """The first words of a text that are one of these forms."""
    if text.isascii():
        # Making a pattern takes longer than looking for words that every match has in it.
        lower = text.lower()
        forms = tuple([form for form in forms if all(part in lower for part in form.has)])
        if not forms:
            return None
        if all(form.by != "pattern" for form in forms):
            # Of those that begin at one place, the first form counts, as in a pattern of all of them.
            found = [(_place_of(form, lower), order) for order, form in enumerate(forms)]
            start, order = min(found)
            return None if start == len(text) else text[start : start + len(forms[order].has[0])]
    match = _compile(forms).search(text)
    return match[0] if match else None


def _place_of(form: Form, text: str) -> int:
    """Where a word stands in a text with nothing before or after it that could be part of it, or a phrase at all; the
    text's end where it does not."""
    word = form.has[0]
    start = text.find(word)
    while start >= 0 and form.by == "word":
        around = text[start - 1 : start] + text[start + len(word) : start + len(word) + 1]
        if not any(each.isalnum() or each == "_" for each in around):
            break
        start = text.find(word, start + 1)
    return start if start >= 0 else len(text)


_forms_of: dict[tuple[int, type, Any], tuple[Field, tuple[Form, ...]]] = {}
_KEPT = 4096


def _kept(field: Field, value: Any) -> tuple[Form, ...]:
    """How a value is stated, found once for each: many calls lack the same fact."""
    if isinstance(value, list | dict):
        return ()
    asked = (id(field), value.__class__, value)
    found = _forms_of.get(asked)
    if found is None:
        if len(_forms_of) >= _KEPT:
            _forms_of.clear()
        # The field is kept too: its place in memory is taken as long as it is asked for.
        found = _forms_of[asked] = (field, _stating(field, value))
    return found[1]


def _stating(field: Field, value: Any) -> tuple[Form, ...]:
    if value is UNSEEN:
        values: tuple[Any, ...] = (
            field.values if field.type == "enum" else (True, False) if field.type == "boolean" else ()
        )
    elif isinstance(value, list | dict) or value is None or value is ABSENT:
        return ()
    else:
        values = (value,)
    return tuple(form for each in values for form in _forms(field, each))


@lru_cache(maxsize=4096)
def _compile(forms: tuple[Form, ...]) -> re.Pattern[str]:
    return re.compile("|".join(form.pattern for form in forms), re.IGNORECASE)


def _forms(field: Field, value: Any) -> Iterator[Form]:
    """What states the value, each bounded by non-word characters where it is a word."""
    name = ("true" if value else "false") if isinstance(value, bool) else str(value)
    for claimed, phrases in field.claims:
        if claimed == name:
            for phrase in phrases:
                yield Form(re.escape(phrase), (_plain(phrase),), "phrase" if phrase and phrase.isascii() else "pattern")
    match field.type:
        case "string" | "enum":
            if len(name) > 1:
                parts = [part for part in _GAPS.split(name) if part]
                loose = r"[\s_-]+".join(map(re.escape, parts))
                is_word = len(parts) == 1 and name.isascii() and name.isalnum()
                yield Form(rf"(?<!\w){loose}(?!\w)", tuple(map(_plain, parts)), "word" if is_word else "pattern")
        case "money" | "number":
            yield from _amounts(value)
        case "date":
            yield from _dates(value)
        case _:
            return


def _plain(text: str) -> str:
    """In lower case where it is ASCII; other letters match in ways that lower case does not show."""
    return text.lower() if text.isascii() else ""


def _amounts(value: Any) -> Iterator[Form]:
    amount = value if isinstance(value, Decimal) else Decimal(str(value))
    whole = amount == amount.to_integral_value()
    grouped = f"{amount:,.2f}".split(".")[0].replace(",", ",?")
    cents = "." + f"{amount:.2f}".split(".")[1]
    part = r"(?:\.00?)?" if whole else re.escape(cents)
    has = grouped.split(",?") if whole else [*grouped.split(",?"), cents]
    yield Form(rf"(?<![\w.,]){grouped}{part}(?!\w|[.,]\d)", tuple(has))


def _dates(value: Any) -> Iterator[Form]:
    day = value.date() if isinstance(value, datetime) else value
    if not isinstance(day, date):
        return
    month = MONTHS[day.month - 1]
    name = rf"{month[:3]}(?:{month[3:]})?\.?" if len(month) > 3 else month
    number = rf"0?{day.day}(?:st|nd|rd|th)?"
    yield Form(rf"(?<!\d){day.isoformat()}(?!\d)", (day.isoformat(),))
    yield Form(rf"(?<!\w){name}\s+{number}(?!\w)", (month[:3], str(day.day)))
    yield Form(rf"(?<!\w){number}\s+(?:of\s+)?{name}(?!\w)", (month[:3], str(day.day)))
    year = rf"(?:/(?:{day.year}|{day.year % 100:02d}))?"
    yield Form(rf"(?<!\d)0?{day.month}/0?{day.day}{year}(?!\d)", (f"{day.month}/", str(day.day)))
