"""What a means of payment may be called: by its id, its last digits, its balance, its brand or its kind."""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import islice

from bylaw.engine.consent.once import once
from bylaw.engine.consent.shown.entry import Entry, scalars
from bylaw.engine.consent.shown.records import Records
from bylaw.facts.folded_text import fold, fold_name, occurs

_DIGITS = re.compile(r"\d{3,}")
_TAIL = re.compile(r"[\d_-]+$")
_SIGNS = "$€£"
_LONGEST = 30
_LEAST = r"(?:smallest|smaller|lowest|lower|least|minimum)"
_MOST = r"(?:largest|larger|biggest|bigger|highest|higher|greatest|most|maximum)"
_RANKS = ("small", "low", "least", "min", "larg", "big", "high", "great", "most", "max")
_BY_DIGITS = r"[\s#(:]*(?:(?:ending|ends|number|no)\.?)?(?: in| with| by)?[\s*x•.]*\d{3,}"
_ENTRIES = 3
"""Records of a means of payment that are looked at, the newest first."""
_FEW_WORDS = r"\W+(?:\w+\W+){0,4}?"


class Called:
    """What one means of payment may be called, by the records that bear its id.

    `beside` are the others that are used with it: where a call uses all gift cards, `the gift cards` are all told.
    """

    def __init__(self, value: str, entries: Sequence[Entry], beside: Collection[str] = ()) -> None:
        self.is_recorded = bool(entries)
        """Whether its last digits and the like are known."""
        self._kind, self._entries, self._beside = _kind(value), entries, beside
        self._every = {self._kind, _initials(self._kind)} - {""}
        self.own = _marks(value)
        """What means it alone, whatever else there is: its id, its last digits, its balance."""
        self._balance: float | None = None
        for entry in entries:
            for part in entry.parts:
                if not isinstance(part, str):
                    self._balance = float(part)
                if fold_name(str(part)) != fold_name(value):
                    (self.own if _is_number(part) else self._every).update(_forms(part))

    @once
    def _apart(self) -> tuple[set[str], set[str], list[float]]:
        """What means another alone, what others are called, and how much is on others of its kind."""
        others, shared, alike = set[str](), set[str](), list[float]()
        for entry in self._entries:
            for other in entry.others:
                if other is entry.fields:
                    continue
                parts = [part for _, part in scalars(other)]
                ids = {part for part in parts if isinstance(part, str) and _kind(part) == self._kind}
                if ids:
                    alike += [float(part) for part in parts if not isinstance(part, str)]
                if ids.isdisjoint(self._beside):
                    _tell_apart(parts, others, shared)
        return others, shared, alike

    @once
    def others(self) -> set[str]:
        """What means another one alone."""
        return self._apart[0] - self.own

    @once
    def shared(self) -> set[str]:
        """What means it or another of its kind."""
        shared = self._apart[1]
        return (shared | {_initials(form) for form in shared}) & self._every

    @once
    def kind(self) -> set[str]:
        """What means it as the only one of its kind, or all of its kind: `credit card`, `visa`, `gift cards`."""
        return (self._every - self.shared) | {f"{form}s" for form in self._every}

    @once
    def ranked(self) -> re.Pattern[str] | None:
        """Says it by how much is on it, of several of its kind: `the smaller gift card`."""
        return None if self._balance is None else _ranked(self._kind, _ranks(self._balance, self._apart[2])[0])

    @once
    def outranked(self) -> re.Pattern[str] | None:
        """Says another of its kind by how much is on that."""
        return None if self._balance is None else _ranked(self._kind, _ranks(self._balance, self._apart[2])[1])

    @once
    def another(self) -> re.Pattern[str]:
        """Names one of its kind by digits; where these are not its own, another."""
        return _by_digits(tuple(sorted(self._every)))

    def is_own_in(self, text: str) -> bool:
        """Whether a folded text names it and no other."""
        return any(occurs(form, text) >= 0 for form in self.own) or (
            tells_rank(text) and self.ranked is not None and self.ranked.search(text) is not None
        )


class Wallet:
    """What the means of payment of one conversation may be called, each found once for the records that bear it."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self._called: dict[tuple[str, frozenset[str], tuple[int, ...]], Called] = {}

    def called(self, value: str, beside: frozenset[str], before: int) -> Called:
        """What one may be called, by what was shown before a step."""
        entries = list(islice(self.records.entries(value, before), _ENTRIES))
        asked = (value, beside, tuple(map(id, entries)))
        found = self._called.get(asked)
        if found is None:
            found = self._called[asked] = Called(value, entries, beside)
        return found


def tells_rank(text: str) -> bool:
    """Whether a folded text may say how much is on a card beside others; if not, nothing ranked stands there."""
    return any(rank in text for rank in _RANKS)


def _tell_apart(parts: Sequence[str | float], others: set[str], shared: set[str]) -> None:
    """Take in what another one may be called: what means it alone, and what it shares with others of its kind."""
    for part in parts:
        if _is_number(part):
            others.update(_forms(part))
        elif isinstance(part, str) and _kind(part) != fold_name(part):
            others.update(_marks(part))
            shared.add(_kind(part))
        else:
            shared.update(_forms(part))


def _ranks(balance: float, alike: list[float]) -> tuple[str, str]:
    """Words for its rank among those of its kind, and for that of another."""
    if not alike or min(alike) <= balance <= max(alike):
        return "", ""
    return (_LEAST, _MOST) if balance < min(alike) else (_MOST, _LEAST)


@lru_cache(maxsize=256)
def _by_digits(forms: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, forms))})s?{_BY_DIGITS}")


@lru_cache(maxsize=256)
def _ranked(kind: str, rank: str) -> re.Pattern[str] | None:
    if not rank:
        return None
    return re.compile(rf"\b{rank}{_FEW_WORDS}{re.escape(kind)}|\b{re.escape(kind)}s?{_FEW_WORDS}{rank}\b")


def _marks(value: str) -> set[str]:
    digits = _DIGITS.search(value)
    return {fold_name(value), digits[0]} if digits else {fold_name(value)}


def _initials(kind: str) -> str:
    """`gc` of `gift card`; of a single word, nothing."""
    words = kind.split()
    return "".join(word[0] for word in words) if len(words) > 1 else ""


@lru_cache(maxsize=2048)
def _kind(value: str) -> str:
    """`credit card` of `credit_card_4421486`."""
    return fold(_TAIL.sub("", value))


def _is_number(value: str | float) -> bool:
    return not isinstance(value, str) or _DIGITS.fullmatch(value) is not None


@lru_cache(maxsize=2048, typed=True)
def _forms(value: str | float) -> frozenset[str]:
    if isinstance(value, str):
        text = fold_name(value)
        # `mastercard` is often written in two words.
        return frozenset((text, text.replace("card", " card").strip()) if 2 < len(text) <= _LONGEST else ())
    if value < 1:
        return frozenset()
    places = 0 if value == int(value) else 2
    return frozenset(f"{sign}{form}" for sign in _SIGNS for form in (f"{value:,.{places}f}", f"{value:.{places}f}"))
