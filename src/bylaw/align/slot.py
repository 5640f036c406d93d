"""Slots are the values that a text must state.

In the paper, a judge model rates texts from 0 to 10. If the gold turn lists its slots, ten times their F1 score is a
rating that needs no model.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, cast

from msgspec import Struct

from bylaw.align.thought import value_in_words
from bylaw.align.turn_evidence import TurnEvidence
from bylaw.text.day import Day, days
from bylaw.text.identifier import identifiers
from bylaw.text.number import ONES, TENS
from bylaw.trace.event import Event, Result

_NUMBERS = {name: number for number, name in enumerate(ONES[:13])} | {"once": 1, "twice": 2}
_TENS = {name: 10 * number for number, name in enumerate(TENS) if number > 1}
_TIMES = re.compile(r"\b(\d{1,2}):(\d{2})\b\s*([ap]\.?m\b)?", re.IGNORECASE)
_AMOUNTS = re.compile(
    r"(?:\$|usd\s?|eur\s?|€|£)\s?(\d[\d,]*(?:\.\d+)?)|\b(\d[\d,]*(?:\.\d+)?)\s?(?:dollars?|bucks|euros?|usd|eur)\b|\b(\d[\d,]*\.\d{2})\b",
    re.IGNORECASE,
)
_COUNTS = re.compile(r"(?<![\w.$-])(\d{1,6})(?![\w:-]|\.\d)")
_UNIT = re.compile(r"[\s-]*(minute|hour|day|week|month|year|time|visit|refill|move|percent|%)s?", re.IGNORECASE)


class Value(Struct, frozen=True):
    """A value in a text, with its position."""

    kind: str
    """`amount`, `date`, `time` or a unit such as `hour`. A number without a unit has the kind `count`."""
    value: Decimal | date | str
    start: int
    end: int

    @property
    def key(self) -> tuple[str, str]:
        """The kind and the value, which are the same for all spellings of a number."""
        value = self.value
        return self.kind, f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)


def values_in(text: str) -> list[Value]:
    """Return the amounts, dates, times and counts in a text, in order. Numbers may be written as words."""
    found: list[Value] = []
    plain = text

    def take(value: Value) -> None:
        nonlocal plain
        found.append(value)
        plain = plain[: value.start] + " " * (value.end - value.start) + plain[value.end :]

    for each in _clear_days(text):
        with suppress(ValueError):
            day = date(*each[:3]) if each.year else f"{each.month:02}-{each.day:02}"
            take(Value("date", day, each.start, each.end))
    for match in _AMOUNTS.finditer(plain):
        number = next(group for group in match.groups() if group)
        take(Value("amount", Decimal(number.replace(",", "")).quantize(Decimal("0.01")), match.start(), match.end()))
    for match in _TIMES.finditer(plain):
        hour = int(match[1]) % 12 + 12 * (match[3].lower().startswith("p")) if match[3] else int(match[1])
        take(Value("time", f"{hour:02}:{match[2]}", match.start(), match.end()))
    for start, end, number in _counts(plain):
        unit = _UNIT.match(text, end)
        kind = unit[1].lower() if unit else "count"
        take(Value(kind, Decimal(number), start, end))
    return sorted(found, key=lambda value: value.start)


def _counts(text: str) -> Iterator[tuple[int, int, int]]:
    for match in _COUNTS.finditer(text):
        yield match.start(), match.end(), int(match[1])
    for match in re.finditer(r"[A-Za-z]+(?:-[A-Za-z]+)?", text):
        word = match[0].lower()
        first, _, second = word.partition("-")
        if word in _NUMBERS and (word != "one" or _UNIT.match(text, match.end())):
            yield match.start(), match.end(), _NUMBERS[word]
        elif first in _TENS and (not second or second in _NUMBERS):
            yield match.start(), match.end(), _TENS[first] + _NUMBERS.get(second, 0)


def _clear_days(text: str) -> list[Day]:
    """Return the days in a text, without ambiguous ones such as `3/4`."""
    every = days(text.lower())
    return [each for each in every if all(other.month == each.month for other in every if other.start == each.start)]


DENIAL = re.compile(
    r"\b(?:can(?:no|['’])?t|can not|won['’]?t|will not|unable|not (?:able|possible|allowed|permitted|eligible)|may not"
    r"|isn['’]t possible|not something I can|sorry|unfortunately|declin\w+|refus\w+)\b",
    re.IGNORECASE,
)
"""Matches words of refusal. The match is approximate, so it is used only to lower a score or leave a text out."""


class Slot(Struct, frozen=True):
    """A value that a text must contain: an amount, day, time, reason, question or subject."""

    kind: Literal["amount", "date", "time", "ground", "question", "thing"]
    value: str
    says: tuple[str, ...] = ()
    """Patterns, at least one of which must match, ignoring case. Amounts, days and times are compared by value
    instead.
    """

    def stands_in(self, text: str) -> bool:
        match self.kind:
            case "amount":
                return Decimal(self.value) in amounts_in(text)
            case "date":
                return any(is_day(said, self.value) for said in dates_in(text))
            case "time":
                return self.value in times_in(text)
            case _:
                return any(re.search(pattern, text, re.IGNORECASE) for pattern in self.says)


def f1(slots: Sequence[Slot], text: str, *, gold: str) -> float:
    """Return a score from 0 to 1 for how well a text states the slots of a gold text.

    Other amounts, days, ids and questions lower the score. A refusal that is not in the gold text, or a question about
    the wrong subject, makes it 0.
    """
    if DENIAL.search(text) is not None and DENIAL.search(gold) is None:
        return 0.0
    said = [slot for slot in slots if slot.stands_in(text)]
    if any(slot.kind != "question" for slot in slots) and all(slot.kind == "question" for slot in said):
        said = []
    days = dates_in(gold)
    extras = len(amounts_in(text) - amounts_in(gold))
    extras += sum(not any(is_day(day, each) or is_day(each, day) for each in days) for day in dates_in(text))
    extras += len(set(identifiers(text)) - set(identifiers(gold)))
    extras += "?" in text and "?" not in gold
    if not slots and not extras:
        return 1.0
    return 2 * len(said) / (len(slots) + len(said) + extras) if said else 0.0


def amounts_in(text: str) -> set[Decimal]:
    return {value.value for value in values_in(text) if value.kind == "amount" and isinstance(value.value, Decimal)}


def dates_in(text: str) -> set[str]:
    """Return every day in a text, as `2025-03-14`, or as `03-14` without a year."""
    return {str(value.value) for value in values_in(text) if value.kind == "date"}


def times_in(text: str) -> set[str]:
    """Return every time of day in a text, such as `16:30`."""
    return {str(value.value) for value in values_in(text) if value.kind == "time"}


def is_day(said: str, day: str) -> bool:
    """Whether two days are the same. The first day may lack a year."""
    return said == day or (len(said) == 5 and day.endswith(f"-{said}"))


_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
_CLOCK = re.compile(r"\b(\d\d:\d\d):\d\d\b")
_LONGEST = 60
"""The maximum length of a value in a text. Longer text is treated as prose."""


def recorded_slots(text: str, before: Sequence[Event], found: TurnEvidence) -> tuple[Slot, ...]:
    """Return the slots of a recorded text. The result is empty if the text cannot be checked."""
    if DENIAL.search(text):
        return ()
    known = _Known(before, found)
    slots = [Slot("amount", f"{amount:f}") for amount in sorted(amounts_in(text) & known.amounts)]
    for said in sorted(dates_in(text)):
        day = next((each for each in sorted(known.days) if is_day(said, each)), None)
        slots += [Slot("date", day)] if day is not None else []
    slots += [Slot("time", time) for time in sorted(times_in(text) & known.times)]
    slots += [Slot("thing", name, (pattern,)) for name in known.names if re.search(pattern := _said(name), text)]
    if slots and found.purpose in ("announce", "ask") and "?" in text:
        slots.append(Slot("question", "asks", (r"\?",)))
    return tuple(dict.fromkeys(slots))


class _Known:
    """Values that are known before a text: from results, from the facts that the guards read, and from the next
    write.
    """

    def __init__(self, before: Sequence[Event], found: TurnEvidence) -> None:
        self.amounts: set[Decimal] = set()
        self.days: set[str] = set()
        self.times: set[str] = set()
        self.names: dict[str, None] = {}
        for event in before:
            if isinstance(event, Result) and event.captured:
                self._take_all(event.value())
        for item in found.seen:
            if not item.field.private:
                self._take(value_in_words(item.field, item.value))
                if item.field.type == "enum":
                    self.names[str(item.value)] = None
        if found.target is not None and found.target.is_made:
            self._take_all(found.target.call.arguments)

    def _take_all(self, value: Any) -> None:
        for leaf in _leaves(value):
            self._take(leaf)

    def _take(self, value: Any) -> None:
        if isinstance(value, bool) or value is None:
            return
        text = _CLOCK.sub(r"\1 ", _STAMP.sub(r"\1 \2 ", str(value)))
        if (amount := _number(text)) is not None:
            self.amounts.add(amount)
        self.amounts |= amounts_in(text)
        self.days |= {day for day in dates_in(text) if len(day) > 5}
        self.times |= times_in(text)
        if isinstance(value, str) and _names(value):
            self.names[value.strip()] = None


def _leaves(value: Any) -> Iterator[Any]:
    pending: list[Any] = [value]
    while pending:
        found = pending.pop()
        if isinstance(found, dict):
            fields = cast(dict[Any, Any], found)
            # Ids, such as flight numbers, are also names.
            pending += [*fields.values(), *(key for key in fields if str(key)[:1].isupper())]
        elif isinstance(found, list | tuple):
            pending += cast(Sequence[Any], found)
        else:
            yield found


def _number(text: str) -> Decimal | None:
    try:
        found = Decimal(text.strip())
        return found.quantize(Decimal("0.01")) if found.is_finite() else None
    except InvalidOperation:
        return None


def _names(value: str) -> bool:
    """Whether a value is a code, name or address rather than an ordinary word, a number or prose."""
    value = value.strip()
    if not 2 < len(value) <= _LONGEST or value.count(" ") > 4 or _STAMP.fullmatch(value) or _number(value) is not None:
        return False
    if re.fullmatch(r"[\d:.,/ -]+", value):
        return value.isdigit()
    return any(letter.isupper() or letter.isdigit() or letter == "@" for letter in value)


def _said(name: str) -> str:
    """Return a pattern for a name written with spaces, hyphens or underscores."""
    words = r"[ _-]".join(map(re.escape, re.split(r"[ _-]", name)))
    return rf"(?i:(?<![\w@.-]){words}(?![\w@-]))"
