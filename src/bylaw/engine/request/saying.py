"""What the user's words fix, of the values of a call."""

import re

from bylaw.engine.request.allowance import Slot
from bylaw.engine.request.bearing import is_weekday
from bylaw.engine.request.choosing import is_beyond
from bylaw.engine.request.values import CLOCK, DAY, View, ends_of, number_of, says_a_day
from bylaw.facts.provenance import plain_link
from bylaw.text.day import times
from bylaw.text.folding import fold, occurs
from bylaw.text.spelling import spell

_ORDINAL = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b")


class Saying:
    """Holds values to what the user said."""

    def __init__(self, view: View, *, quoted: str) -> None:
        """`quoted` is a text that the user handed over to: texts that the agent writes may quote it."""
        self._view, self._quoted = view, fold(quoted)

    def is_fixed(self, slot: Slot, kind: str, value: str | float) -> bool:
        """Whether a value is what the words say that fix it."""
        if slot.value is not None and kind in ("flag", "moment", "number"):
            return _is_same(slot.value, value)
        quotes = [*self._view.words(slot.said)]
        if kind == "moment" and len(quotes) > 1:
            # "The 10th to the 13th of June": a day in pieces.
            quotes += [
                " ".join(quotes),
                *(f"{day} {words}" for day in _ORDINAL.findall(" ".join(quotes)) for words in quotes),
            ]
        if kind == "moment":
            quotes += [ends for words in quotes for ends in ends_of(words)]
        forms = [number if kind == "number" and (number := number_of(value)) is not None else value]
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
        return kind == "flag" and any(_abbreviates(bare, words) for words in quotes)

    def is_partly_said(self, slot: Slot, value: str | float) -> bool:
        """Whether a value contains words that fix it."""
        bare = fold(str(value))
        return any(len(words) > 2 and occurs(words, bare) >= 0 for words in self._view.words(slot.said))

    def is_user_word(self, value: str | float) -> bool:
        """Whether the user said a value."""
        return self._view.is_said(value)

    def is_quoted(self, words: str) -> bool:
        """The same of words that the agent writes, which may be taken from a text that a model read."""
        spelling = spell(words) if self._quoted else None
        return self.is_user_word(words) or (spelling is not None and spelling.said_in(self._quoted))

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
