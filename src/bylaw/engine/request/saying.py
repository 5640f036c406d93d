"""What the user's words fix, of the values of a call."""

import re

from bylaw.engine.request.allowance import Deed, Slot
from bylaw.engine.request.bearing import is_weekday
from bylaw.engine.request.by_words import said_amounts
from bylaw.engine.request.choosing import is_beyond
from bylaw.engine.request.values import CLOCK, DAY, ends_of, number_of, says_a_day
from bylaw.engine.request.view import View
from bylaw.facts.provenance import plain_link
from bylaw.policy.verb import words_of
from bylaw.text.day import times
from bylaw.text.folding import fold, occurs
from bylaw.text.identifier import identifiers
from bylaw.text.spelling import spell

_ORDINAL = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b")
_SUMS = frozenset(("amount", "sum", "price", "total", "fee"))


class Saying:
    """Holds values to what the user said."""

    def __init__(self, view: View, *, text: str, quoted: str, meant: str | None) -> None:
        """`text` is one that the user handed over to, whose words count as the user's, and `quoted` one that a model
        read: what the agent writes may be taken from it, and values only as the model says. `meant` are the folded
        words of the request that values may be taken from; all, where it is None."""
        self._view, self._text, self._quoted, self._meant = view, text, fold(quoted), meant

    def is_fixed(self, slot: Slot, kind: str, value: str | float) -> bool:
        """Whether a value is what the words say that fix it."""
        if slot.value is not None and kind in ("flag", "moment", "number") and _is_same(slot.value, value):
            return True
        quotes = [*self._view.words(slot.said)]
        if kind == "moment" and len(quotes) > 1:
            # "The 10th to the 13th of June": a day in pieces.
            quotes += [
                " ".join(quotes),
                *(f"{day} {words}" for day in _ORDINAL.findall(" ".join(quotes)) for words in quotes),
            ]
        if kind == "moment":
            quotes += [ends for words in quotes for ends in ends_of(words)]
        forms = [value]
        if kind == "moment" and (day := DAY.match(str(value))):
            forms.append(day[0])
            said = " ".join(quotes)
            if not says_a_day(said) and int(day[0][8:]) in map(int, _ORDINAL.findall(said)):
                # "On the 27th": nobody says of which month.
                return True
            if any(is_weekday(day[0], words) for words in quotes) and not any(map(says_a_day, quotes)):
                return True
        for form in forms:
            spelling = spell(form)
            if spelling is not None and any(spelling.said_in(words) for words in quotes):
                return True
        bare = fold(str(plain_link(value)))
        if any(occurs(bare, words) >= 0 for words in quotes):
            return True
        if kind == "flag" and any(_abbreviates(bare, words) for words in quotes):
            return True
        # A thing may be called by a part of its name ("the channel that begins with External"), an address may not.
        is_name = kind in ("name", "text") and isinstance(value, str) and not identifiers(value)
        parts = [words for words in quotes if len(words) > 2 and occurs(words, bare) >= 0] if is_name else []
        # Where something is called by just these words, nothing else is.
        return any(kind == "text" or not any(each.is_whole for each in self._view.sights(words)) for words in parts)

    def is_user_word(self, value: str | float) -> bool:
        """Whether the user said a value, or a text that the user handed over to."""
        if self._view.is_said(value):
            return self._is_meant(value)
        spelling = spell(value) if self._text else None
        return spelling is not None and spelling.said_in(self._text)

    def _is_meant(self, value: str | float) -> bool:
        """Whether words that ask for something say a value that the user said, and not only a quoted line, or one that
        refuses."""
        spelling = None if self._meant is None else spell(plain_link(value))
        if spelling is None or self._meant is None:
            return True
        return spelling.said_in(self._meant) or not spelling.said_in(fold(self._view.request))

    def is_quoted(self, words: str) -> bool:
        """The same of words that the agent writes, which may be taken from a text that a model read."""
        spelling = spell(words) if self._quoted else None
        return self.is_user_word(words) or (spelling is not None and spelling.said_in(self._quoted))

    def object_to_amount(self, deed: Deed, slot: Slot, value: str | float, *, is_told: bool) -> bool:
        """Without a model, whether an amount may be another than the user means: it was not said for it, and if it had
        to be worked out, a text tells it (`is_told`), or it is more than all that was said or shown."""
        said, number = said_amounts(self._view.request, deed.asked, slot.name), number_of(value)
        if number is None or number in said.all:
            return number is None
        shown = (each for each in self._view.numbers() if each not in said.numbers)
        return said.asked or is_told or number > max((*said.all, *shown), default=0)

    def is_amount(self, slot: Slot, kind: str) -> bool:
        """Whether an argument is an amount that is held to the user's words, as no model says how it is filled."""
        return self._meant is not None and (kind == "number" or bool(_SUMS & {*words_of(slot.name)}))

    def is_at_another_time(self, slot: Slot, kind: str, value: str) -> bool:
        """Whether a moment is on the day that the user said, or any, and at another time than the user said."""
        if any(limit.field == slot.name and is_beyond(limit, value) for limit in slot.limits):
            return True
        if kind == "moment" and (meant := CLOCK.search(str(slot.value))):
            told = CLOCK.search(value)
            return told is not None and told[0] != meant[0]
        clock = CLOCK.search(value) if kind == "moment" and not slot.limits else None
        said = times(" ".join(self._view.words(slot.said))) if clock else ()
        return clock is not None and bool(said) and (int(clock[1]), int(clock[2])) not in said


def _is_same(meant: str | float | bool, given: str | float) -> bool:
    """Whether a value is what the user's words mean: the same figure, moment or word, whatever the seconds."""
    if isinstance(meant, bool) or (one := number_of(meant)) is None or (other := number_of(given)) is None:
        one, other = (fold(str(each)).replace("t", " ") for each in (meant, given))
        return bool(one) and (one == other or (DAY.match(one) is not None and other.startswith(one)))
    return one == other


def _abbreviates(code: str, words: str) -> bool:
    """Whether a code of a closed list stands for words: by their beginning (`r`: read), or their first letters."""
    first = "".join(word[0] for word in words.split() if word != "and")
    return bool(code) and (words.startswith(code) or first == code)
