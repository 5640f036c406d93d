"""What a text must say, slot by slot, and how well a text says it.

The paper has a judge model mark assistant turns from 0 to 10; where the gold turn lists its slots, ten times their F1
is such a mark that needs no model.
"""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import cache
from typing import Literal

from msgspec import Struct

from bylaw.align.values import values_in
from bylaw.text.identifier import identifiers

DENIAL = re.compile(
    r"\b(?:can(?:no|['’])?t|can not|won['’]?t|will not|unable|not (?:able|possible|allowed|permitted|eligible)|may not"
    r"|isn['’]t possible|not something I can|sorry|unfortunately|declin\w+|refus\w+)\b",
    re.IGNORECASE,
)
"""Words by which an agent says that it does not do something. Rough, so it only ever costs or leaves out."""


class Slot(Struct, frozen=True):
    """Something a text must say: an amount, a day, a time, a ground, a question, the thing it is about."""

    kind: Literal["amount", "date", "time", "ground", "question", "thing"]
    value: str
    says: tuple[str, ...] = ()
    """Patterns (case ignored) of which one must match; none for amounts, days and times, which are found by value."""

    def stands_in(self, text: str) -> bool:
        """Whether the text says it."""
        match self.kind:
            case "amount":
                return Decimal(self.value) in amounts_in(text)
            case "date":
                return any(is_day(said, self.value) for said in dates_in(text))
            case "time":
                return self.value in times_in(text)
            case _:
                return any(_pattern(pattern).search(text) for pattern in self.says)


def f1(slots: Sequence[Slot], text: str, *, gold: str, known: Iterable[Slot] = ()) -> float:
    """How well a text says the slots of a gold text, and nothing else of the kind, from 0 to 1.

    What counts against it: an amount, a day, an id or a question that the gold text has not, and any of the `known`
    slots that it says and the gold text does not. A denial that the gold text has not is worth nothing, whatever else
    it tells; a question about none of the things it should be about is none.
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
    extras += sum(slot.stands_in(text) and not slot.stands_in(gold) for slot in known if slot not in slots)
    if not slots and not extras:
        return 1.0
    return 2 * len(said) / (len(slots) + len(said) + extras) if said else 0.0


def amounts_in(text: str) -> set[Decimal]:
    return {value.value for value in values_in(text) if value.kind == "amount" and isinstance(value.value, Decimal)}


def dates_in(text: str) -> set[str]:
    """Every day a text names, `2025-03-14`, or `03-14` where it leaves out the year."""
    return {str(value.value) for value in values_in(text) if value.kind == "date"}


def times_in(text: str) -> set[str]:
    """Every time of day a text names, as `16:30`."""
    return {str(value.value) for value in values_in(text) if value.kind == "time"}


def is_day(said: str, day: str) -> bool:
    """Whether a day, perhaps said without its year, is `day`."""
    return said == day or (len(said) == 5 and day.endswith(f"-{said}"))


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
