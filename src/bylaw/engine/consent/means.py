"""What a means of payment may be called: by its id, its last digits, its balance, its brand or its kind."""

import re
from collections.abc import Collection

from msgspec import Struct

from bylaw.engine.consent.records import Entry, scalars
from bylaw.facts.provenance import fold, occurs

_DIGITS = re.compile(r"\d{3,}")
_TAIL = re.compile(r"[\d_-]+$")
_SIGNS = "$€£"
_LONGEST = 30
_LEAST = r"(?:smallest|smaller|lowest|lower|least|minimum)"
_MOST = r"(?:largest|larger|biggest|bigger|highest|higher|greatest|most|maximum)"
_BY_DIGITS = r"[\s#(:]*(?:(?:ending|ends|number|no)\.?)?(?: in| with| by)?[\s*x•.]*\d{3,}"
_FEW_WORDS = r"\W+(?:\w+\W+){0,4}?"


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
    ranked: re.Pattern[str] | None
    """Says it by how much is on it, of several of its kind: `the smaller gift card`."""

    outranked: re.Pattern[str] | None
    """Says another of its kind by how much is on that."""
    another: re.Pattern[str]
    """Names one of its kind by digits; where these are not its own, another."""
    is_recorded: bool
    """Whether its last digits and the like are known."""

    def is_own_in(self, text: str) -> bool:
        """Whether a folded text names it and no other."""
        return any(occurs(form, text) >= 0 for form in self.own) or (
            self.ranked is not None and self.ranked.search(text) is not None
        )


def called(value: str, entries: list[Entry], beside: Collection[str] = ()) -> Called:
    """What the means of payment with this id may be called, by the records that bear the id.

    `beside` are the others that are used with it: where a call uses all gift cards, `the gift cards` are all told.
    """
    own, others = _marks(value), set[str]()
    kind, shared = {_kind(value), _initials(_kind(value))}, set[str]()
    alike: list[float] = []
    balance: float | None = None
    for entry in entries:
        for _, part in scalars(entry.fields):
            if fold(str(part)) != fold(value):
                (own if _is_number(part) else kind).update(_forms(part))
            if isinstance(part, int | float):
                balance = float(part)
        for other in entry.others:
            if other is entry.fields:
                continue
            ids = {part for _, part in scalars(other) if isinstance(part, str) and _kind(part) == _kind(value)}
            if ids:
                alike.extend(float(part) for _, part in scalars(other) if isinstance(part, int | float))
            if ids & {*beside}:
                continue
            for _, part in scalars(other):
                if _is_number(part):
                    others.update(_forms(part))
                elif isinstance(part, str) and _kind(part) != fold(part):
                    others.update(_marks(part))
                    shared.add(_kind(part))
                else:
                    shared.update(_forms(part))
    shared |= {_initials(form) for form in shared}
    shared &= kind
    plural = {f"{form}s" for form in kind if form}
    rank, other_rank = _ranks(balance, alike)
    return Called(
        own=own,
        others=others - own,
        kind=(kind - shared - {""}) | plural,
        shared=shared - {""},
        ranked=_ranked(_kind(value), rank),
        outranked=_ranked(_kind(value), other_rank),
        another=re.compile(rf"\b(?:{'|'.join(re.escape(form) for form in sorted(kind) if form)})s?{_BY_DIGITS}"),
        is_recorded=bool(entries),
    )


def _ranks(balance: float | None, alike: list[float]) -> tuple[str, str]:
    """Words for its rank among those of its kind, and for that of another."""
    if balance is None or not alike or min(alike) <= balance <= max(alike):
        return "", ""
    return (_LEAST, _MOST) if balance < min(alike) else (_MOST, _LEAST)


def _ranked(kind: str, rank: str) -> re.Pattern[str] | None:
    if not rank:
        return None
    return re.compile(rf"\b{rank}{_FEW_WORDS}{re.escape(kind)}|\b{re.escape(kind)}s?{_FEW_WORDS}{rank}\b")


def _marks(value: str) -> set[str]:
    digits = _DIGITS.search(value)
    return {fold(value), digits[0]} if digits else {fold(value)}


def _initials(kind: str) -> str:
    """`gc` of `gift card`; of a single word, nothing."""
    words = kind.split()
    return "".join(word[0] for word in words) if len(words) > 1 else ""


def _kind(value: str) -> str:
    """`credit card` of `credit_card_4421486`."""
    return fold(_TAIL.sub("", value))


def _is_number(value: str | float) -> bool:
    return not isinstance(value, str) or _DIGITS.fullmatch(value) is not None


def _forms(value: str | float) -> set[str]:
    if isinstance(value, str):
        text = fold(value)
        # `mastercard` is often written in two words.
        return {text, text.replace("card", " card").strip()} if 2 < len(text) <= _LONGEST else set()
    if value < 1:
        return set()
    places = 0 if value == int(value) else 2
    return {f"{sign}{form}" for sign in _SIGNS for form in (f"{value:,.{places}f}", f"{value:.{places}f}")}
