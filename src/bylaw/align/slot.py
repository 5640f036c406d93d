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

AMOUNT = re.compile(r"\$\s?(\d+(?:\.\d+)?)|\b(\d+(?:\.\d+)?) dollars\b|\b(\d+\.\d\d)\b")
DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")


class Slot(Struct, frozen=True):
    """Something a text must say: an amount, a date, a ground, a question, the thing it is about."""

    kind: Literal["amount", "date", "ground", "question", "thing"]
    value: str
    says: tuple[str, ...] = ()
    """Patterns (case ignored) of which one must match; none for amounts and dates, which are found by value."""

    def stands_in(self, text: str) -> bool:
        """Whether the text says it."""
        match self.kind:
            case "amount":
                return Decimal(self.value) in amounts_in(text)
            case "date":
                return self.value in DATE.findall(text)
            case _:
                return any(_pattern(pattern).search(text) for pattern in self.says)


def f1(slots: Sequence[Slot], text: str, *, gold: str, known: Iterable[Slot] = ()) -> float:
    """How well a text says the slots of a gold text, and nothing else of the kind, from 0 to 1.

    What counts against it: an amount, a date or a question that the gold text has not, and any of the `known` slots
    that it says and the gold text does not.
    """
    hits = sum(slot.stands_in(text) for slot in slots)
    extras = len(amounts_in(text) - amounts_in(gold)) + len(set(DATE.findall(text)) - set(DATE.findall(gold)))
    extras += "?" in text and "?" not in gold
    extras += sum(slot.stands_in(text) and not slot.stands_in(gold) for slot in known if slot not in slots)
    if not slots and not extras:
        return 1.0
    return 2 * hits / (len(slots) + hits + extras) if hits else 0.0


def amounts_in(text: str) -> set[Decimal]:
    """Every amount of money a text names."""
    return {Decimal(next(part for part in match.groups() if part)) for match in AMOUNT.finditer(text)}


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
