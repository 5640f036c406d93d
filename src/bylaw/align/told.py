"""What a recorded text must say to be as good: the values it tells that results, guards or the next write know.

A log has no list of slots. What can be checked without a model is whether another text tells the same things: ids,
names, amounts, days and times. A value that stands nowhere before is no slot, since nobody should learn to make it up.
A text that denies something cannot be told from one that grants it by its values, so it has no slots at all.
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from bylaw.align.bearing import Bearing
from bylaw.align.slot import DENIAL, Slot, amounts_in, dates_in, is_day, times_in
from bylaw.align.thought_words import value_in_words
from bylaw.trace.event import Event, Result

_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
_CLOCK = re.compile(r"\b(\d\d:\d\d):\d\d\b")
_LONGEST = 60
"""Characters of a value that a text may tell; longer ones are prose."""


def told_slots(text: str, before: Sequence[Event], found: Bearing) -> tuple[Slot, ...]:
    """The slots of a recorded text; none where nothing of it can be checked by values."""
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
    """Values that were there before a text: in results, in what the guards read, in the write it works towards."""

    def __init__(self, before: Sequence[Event], found: Bearing) -> None:
        self.amounts: set[Decimal] = set()
        self.days: set[str] = set()
        self.times: set[str] = set()
        self.names: dict[str, None] = {}
        for event in before:
            if isinstance(event, Result) and event.captured:
                self._take_all(event.value())
        for saw in found.seen:
            if not saw.field.private:
                self._take(value_in_words(saw.field, saw.value))
                if saw.field.type == "enum":
                    self.names[str(saw.value)] = None
        if found.serving is not None and found.serving.is_made:
            self._take_all(found.serving.call.arguments)

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
            # Keys that are ids, as of flights by their numbers, name things too.
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
    """Whether a value names something: a code, a name, an address; not a plain word, a number or prose."""
    value = value.strip()
    if not 2 < len(value) <= _LONGEST or value.count(" ") > 4 or _STAMP.fullmatch(value) or _number(value) is not None:
        return False
    if re.fullmatch(r"[\d:.,/ -]+", value):
        return value.isdigit()
    return any(letter.isupper() or letter.isdigit() or letter == "@" for letter in value)


def _said(name: str) -> str:
    """How a text says a name: as it is written, or in words where it joins them."""
    words = r"[ _-]".join(map(re.escape, re.split(r"[ _-]", name)))
    return rf"(?i:(?<![\w@.-]){words}(?![\w@-]))"
