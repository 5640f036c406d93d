"""What a means of payment may be called: by its id, its last digits, its balance, its brand or its kind."""

import re

from msgspec import Struct

from bylaw.engine.consent.records import Entry, scalars
from bylaw.facts.provenance import fold

_DIGITS = re.compile(r"\d{3,}")
_TAIL = re.compile(r"[\d_-]+$")
_SIGNS = "$€£"
_LONGEST = 30


class Called(Struct, frozen=True):
    """What one means of payment may be called."""

    own: set[str]
    """What means it alone, whatever else there is: its id, its last digits, its balance."""
    others: set[str]
    """What means another one alone."""
    kind: set[str]
    """What means it as the only one of its kind, or all of its kind: `credit card`, `visa`, `gift cards`."""
    shared: set[str]
    """What means it or another of its kind."""


def called(value: str, entries: list[Entry]) -> Called:
    """What the means of payment with this id may be called, by the records that bear the id."""
    own, others = _marks(value), set[str]()
    kind, shared = {_kind(value)}, set[str]()
    for entry in entries:
        for _, part in scalars(entry.fields):
            if fold(str(part)) != fold(value):
                (own if _is_number(part) else kind).update(_forms(part))
        for other in entry.others:
            if other is entry.fields:
                continue
            for _, part in scalars(other):
                if _is_number(part):
                    others.update(_forms(part))
                elif isinstance(part, str) and _kind(part) != fold(part):
                    others.update(_marks(part))
                    shared.add(_kind(part))
                else:
                    shared.update(_forms(part))
    shared &= kind
    plural = {f"{form}s" for form in kind if form}
    return Called(own, others - own, (kind - shared - {""}) | plural, shared - {""})


def _marks(value: str) -> set[str]:
    digits = _DIGITS.search(value)
    return {fold(value), digits[0]} if digits else {fold(value)}


def _kind(value: str) -> str:
    """`credit card` of `credit_card_4421486`."""
    return fold(_TAIL.sub("", value))


def _is_number(value: str | float) -> bool:
    return not isinstance(value, str) or _DIGITS.fullmatch(value) is not None


def _forms(value: str | float) -> set[str]:
    if isinstance(value, str):
        text = fold(value)
        return {text} if 2 < len(text) <= _LONGEST else set()
    if value < 1:
        return set()
    places = 0 if value == int(value) else 2
    return {f"{sign}{form}" for sign in _SIGNS for form in (f"{value:,.{places}f}", f"{value:.{places}f}")}
