"""Checks a call's values against the user's words."""

import re
from collections.abc import Sequence
from decimal import Decimal

from bylaw.engine.request.allowance import Slot
from bylaw.engine.request.bearing import is_weekday
from bylaw.engine.request.figures import is_beyond
from bylaw.engine.request.values import CLOCK, DAY, View, ends_of, number_of, says_a_day
from bylaw.facts.provenance import plain_link
from bylaw.text.day import days, times
from bylaw.text.folding import fold, occurs, stands_whole
from bylaw.text.identifier import identifiers
from bylaw.text.number import figure
from bylaw.text.spelling import spell

_ORDINAL = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b")
_NAMES = r"(?:[$\u20ac\u00a3]|\b(?:eur|usd|gbp|chf|euros?|dollars?|pounds?|francs?)\b)"
_CURRENCY = re.compile(rf"^{_NAMES}|{_NAMES}$")


class Saying:
    def __init__(self, view: View, *, quoted: str) -> None:
        """`quoted` is a text that the user told the agent to follow. Text written by the agent may quote it."""
        self._view, self._quoted = view, fold(quoted)

    def is_fixed(self, slot: Slot, kind: str, value: str | float) -> bool:
        """Whether a value equals the one that the user's words specify. It is not enough that the value occurs in the
        words.
        """
        if slot.value is not None and kind in ("flag", "moment", "number"):
            return _is_same(slot.value, value)
        quotes = self._view.words(slot.said)
        bare = fold(str(plain_link(value)))
        if any(bare in (words, words.removesuffix("'s")) for words in quotes):
            return True
        if kind == "moment":
            return any(_is_only_day(str(value), words) for words in _joined(quotes))
        if kind == "number":
            number = number_of(value)
            return number is not None and any(_is_only_number(number, words) for words in quotes)
        if kind == "flag":
            return any(_abbreviates(bare, words) for words in quotes)
        return kind != "text" and any([*map(fold, identifiers(words))] == [bare] for words in quotes)

    def is_in_part(self, slot: Slot, kind: str, value: str | float) -> bool:
        """Whether the words also specify other values, or specify only part of this value, as in "on the 27th"."""
        quotes = self._view.words(slot.said)
        if kind == "moment":
            return any(_may_be_day(str(value), words) for words in _joined(quotes))
        number = number_of(value) if kind == "number" else None
        if number is None:
            return any(stands_whole(fold(str(plain_link(value))), words) for words in quotes)
        spelling = spell(number)
        return spelling is not None and any(spelling.said_in(words) for words in quotes)

    def is_longer(self, slot: Slot, value: str | float) -> bool:
        """Whether a value contains the user's words that specify it, and more."""
        bare = fold(str(value))
        return any(len(words) > 2 and occurs(words, bare) >= 0 for words in self._view.words(slot.said))

    def is_user_word(self, value: str | float) -> bool:
        return self._view.is_said(value)

    def is_quoted(self, words: str) -> bool:
        """Whether text written by the agent is quoted from the user, or from instructions that the user told the agent
        to follow.
        """
        spelling = spell(words) if self._quoted else None
        return self.is_user_word(words) or (spelling is not None and spelling.said_in(self._quoted))

    def is_at_another_time(self, slot: Slot, kind: str, value: str) -> bool:
        """Whether a time differs from the time of day that the user stated. If the user named a date, a different date
        also counts.
        """
        if any(limit.field == slot.name and is_beyond(limit, value) for limit in slot.limits):
            return True
        if kind == "moment" and (meant := CLOCK.search(str(slot.value))):
            told = CLOCK.search(value)
            return told is not None and told[0] != meant[0]
        clock = CLOCK.search(value) if kind == "moment" and not slot.limits else None
        said = times(" ".join(self._view.words(slot.said))) if clock else ()
        return clock is not None and bool(said) and (int(clock[1]), int(clock[2])) not in said


def _is_same(meant: str | float | bool, given: str | float) -> bool:
    """Whether a value and the user's words mean the same number, time or word. Seconds are not compared."""
    if isinstance(meant, bool) or (one := number_of(meant)) is None or (other := number_of(given)) is None:
        one, other = (fold(str(each)).replace("t", " ") for each in (meant, given))
        return bool(one) and (one == other or (DAY.match(one) is not None and other.startswith(one)))
    return one == other


def _joined(quotes: Sequence[str]) -> list[str]:
    """Return the quotes, and dates formed by several quotes together, such as "the 10th to the 13th" and "of June"."""
    if len(quotes) < 2:
        return [*quotes]
    ordinals = _ORDINAL.findall(" ".join(quotes))
    return [*quotes, " ".join(quotes), *(f"{day} {words}" for day in ordinals for words in quotes)]


def _is_only_day(value: str, words: str) -> bool:
    """Whether the words name the date of this time and no other. Also true for a time of day without a date."""
    day = DAY.match(value)
    spelling = spell(day[0] if day else value)
    named = {(each.month, each.day) for each in days(words)}
    return spelling is not None and len(named) == (day is not None) and spelling.said_in(words)


def _may_be_day(value: str, words: str) -> bool:
    """Whether the words may mean this time's date but also name other dates, or leave out the month or week."""
    day = DAY.match(value)
    if day is None:
        return False
    spelling = spell(day[0])
    if spelling is not None and any(spelling.said_in(each) for each in (words, *ends_of(words))):
        return True
    is_of_some_month = int(day[0][8:]) in map(int, _ORDINAL.findall(words)) or is_weekday(day[0], words)
    return is_of_some_month and not says_a_day(words)


def _is_only_number(number: float, words: str) -> bool:
    """Whether the words consist only of this number, in digits or spelled out, possibly with a currency."""
    spelling = spell(number)
    bare = _CURRENCY.sub("", words).strip()
    return spelling is not None and (figure(bare) == Decimal(repr(number)) or spelling.is_written_out(bare))


def _abbreviates(code: str, words: str) -> bool:
    """Whether an enum value abbreviates the words by their first letters (`r` for read) or by their initials."""
    first = "".join(word[0] for word in words.split() if word != "and")
    return bool(code) and ((" " not in words and words.startswith(code)) or first == code)
