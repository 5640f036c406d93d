"""The common spellings of dates, amounts, numbers and other values in text and data."""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import product
from string import ascii_lowercase, digits
from typing import Any

from bylaw.text.day import MONTHS, days
from bylaw.text.folding import fold, lowered, occurs, runs_of, stands_whole
from bylaw.text.identifier import is_word
from bylaw.text.number import ONES, TENS, canonical

_SPOKEN = 10_000
"""The largest number that may be written out in words."""
_NEAR = 40
"""The maximum distance, in characters, from a month or number to other parts of the same date."""
_IN_WORD = ascii_lowercase + digits + "._/:-"
"""Characters that can be part of a word. If a shortened text begins or ends with one, a word may have been cut off."""
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ]\d\d:\d\d(?::\d\d)?\S*)?")


class Spelling:
    def __init__(self, value: str | float) -> None:
        self.is_number = not isinstance(value, str)
        plain = value if isinstance(value, str) else canonical(value)
        self.folded = fold(plain)
        # In text that keeps underscores, a value with spaces also matches its form with underscores, and vice versa.
        self._is_word = is_word(plain)
        forms = [self.folded, lowered(plain), self.folded.replace(" ", "_")]
        # A number must not be part of a longer number, except that "250.00" states 250.
        forms += [f"{plain}.0", f"{plain}.00"] if plain.isdecimal() else []
        self._said = tuple(dict.fromkeys(forms))
        self.written: tuple[str, ...] = (plain,)
        if not plain.isascii() or '"' in plain or "\\" in plain or not plain.isprintable():
            self.written = tuple(dict.fromkeys((plain, *(_escaped(plain, ascii=flag) for flag in (False, True)))))
        # The spellings of the integer part of a number, and its fraction.
        self._fraction, self._day = "", None
        if isinstance(value, str):
            self._parts, self._day = _date(plain)
        else:
            self._parts, self._fraction = _number(value)

    @cached_property
    def runs(self) -> tuple[tuple[str, ...], ...]:
        """For each kind of spelling, its runs of letters and digits. A text that matches has all the runs of at least
        one kind.
        """
        if self.is_number:
            return tuple(runs_of(part.lstrip("-")) for part in self._parts)
        found = _DATE.fullmatch(self.written[0]) if self._parts else None
        # In a date with dashes, the year and the day may touch other digits, but the month may not.
        other = ((str(int(found[3])),), (found[3],), (found[2],)) if found is not None else ()
        return (runs_of(self.folded), *other)

    def said_in(self, words: str) -> bool:
        """Whether normalised text states the value in a common spelling, not as part of a longer word or number."""
        if not self.is_number and any(self._stands(each, words) for each in self._said):
            return True
        return self._matches(words)

    def _stands(self, form: str, words: str) -> bool:
        # A word may be part of "Hart/Smith" or "the 12-month plan". An address, id or path must match as a whole.
        return occurs(form, words) >= 0 if self._is_word else stands_whole(form, words)

    def is_written_out(self, words: str) -> bool:
        return self.is_number and not self._fraction and words in self._parts

    def held_in(self, words: str) -> bool:
        """Like `said_in`, but the value may be part of a longer word or number."""
        return (not self.is_number and occurs(self.folded, words) >= 0) or self._matches(words)

    def stands_in(self, text: str) -> bool:
        if self.is_number:
            return self._matches(text)
        return any(occurs(written, text) >= 0 for written in self.written)

    def _matches(self, text: str) -> bool:
        for part in self._parts:
            if part in text:
                if self._day is not None:
                    return self._is_day_in(text)
                if _is_said(part, self._fraction, text):
                    return True
        return False

    def _is_day_in(self, text: str) -> bool:
        """Whether normalised text names the date, with or without the year."""
        assert self._day is not None
        year, month, day = self._day
        for near in _around(self._parts, text):
            if any((each.month, each.day) == (month, day) and each.year in (0, year) for each in days(near)):
                return True
            if any(stands_whole(each, near) for each in (f"{month:02}-{day:02}", f"{month}-{day}")):
                return True
        return False


def _around(parts: Sequence[str], text: str) -> Iterator[str]:
    for part in parts:
        here = text.find(part)
        while here >= 0:
            start, end = max(0, here - _NEAR), here + _NEAR
            near = text[start:end] if end >= len(text) else text[start:end].rstrip(_IN_WORD)
            yield near.lstrip(_IN_WORD) if start else near
            here = text.find(part, here + 1)


def spell(value: Any) -> Spelling | None:
    """Return the spellings of `value`. None for booleans, null, objects and empty text."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        return None
    return _spelling(value)


@lru_cache(maxsize=4096, typed=True)
def _spelling(value: str | float) -> Spelling:
    return Spelling(value)


def _escaped(text: str, *, ascii: bool) -> str:
    return json.dumps(text, ensure_ascii=ascii)[1:-1]


def _number(number: float) -> tuple[tuple[str, ...], str]:
    whole, _, part = canonical(number).partition(".")
    spoken = [whole]
    if whole.lstrip("-").isdigit() and len(whole) < 20:
        spoken += [(grouped := f"{int(whole):,}"), grouped.replace(",", "'"), grouped.replace(",", "\u2019")]
    if not part and whole.isdigit() and int(whole) < _SPOKEN:
        spoken += _in_words(int(whole))
    return tuple(dict.fromkeys(spoken)), part


def _in_words(number: int) -> list[str]:
    """Return a number in words, with and without `and`: `two hundred and fifty`, `two hundred fifty`."""
    if number < len(ONES):
        return [ONES[number]]
    if number < 100:
        ten, one = divmod(number, 10)
        return [f"{TENS[ten]}{mark}{ONES[one]}" for mark in "- "] if one else [TENS[ten]]
    word, size = ("thousand", 1_000) if number >= 1_000 else ("hundred", 100)
    head, rest = divmod(number, size)
    heads = [f"{each} {word}" for each in _in_words(head)] + [f"a {word}"] * (head == 1)
    if number >= 1_000 and not number % 100 and number < 10_000 and number % 1_000:
        heads_in_hundreds = [f"{each} hundred" for each in _in_words(number // 100)]
    else:
        heads_in_hundreds = []
    if not rest:
        return heads
    joined = [f"{one}{mark}{two}" for one in heads for mark in (" ", " and ") for two in _in_words(rest)]
    return [*joined, *heads_in_hundreds]


def _is_said(whole: str, part: str, text: str) -> bool:
    """Whether the text contains a number, not as part of a longer number. Trailing zeros are allowed."""
    here = text.find(whole)
    while here >= 0:
        end = here + len(whole)
        if _begins(text, here) or (_CENTS.match(text, end) and _AFTER_LETTERS.search(text, max(0, here - 4), here)):
            fraction = f".{part}" if part else ".0"
            if text.startswith(f",{part:0<2}", end) and len(part) < 3:
                # In "250,00", the two digits after the comma are decimals.
                end += 3
            elif text.startswith(fraction, end):
                end += len(fraction)
                while text[end : end + 1] == "0":
                    end += 1
            elif part:
                end = len(text) + 1
            if unit := _UNIT.match(text, end):
                end = unit.end()
            after = text[end : end + 2]
            is_more = after[:1].isalnum() or after[:1] == "_" or (after[:1] in (".", ",") and after[1:].isdecimal())
            if end <= len(text) and not is_more:
                return True
        here = text.find(whole, here + 1)
    return False


_UNIT = re.compile(
    r"(?:[kmgt]i?b|[kmg]bps|kg|mg|km|cm|mm|ml|lbs?|oz|ft|hrs?|mins?|kwh|eur|usd|gbp|chf)(?!\w)", re.IGNORECASE
)
"""Matches a unit that directly follows a number, as in 0.5gb. `k` and `m` are excluded, because they multiply the
number.
"""
_CENTS = re.compile(r"[.,]\d\d(?!\w|[.,]\d)")
_AFTER_LETTERS = re.compile(r"(?:^|[^\w.-])[a-z]{1,3}$", re.IGNORECASE)
"""Matches a currency code that directly precedes an amount, as in R500.00 and CHF12.50."""


def _begins(text: str, here: int) -> bool:
    before = text[here - 1] if here else " "
    if before.isalnum() or before in "_-":
        return False
    return before not in ".," or not text[max(0, here - 2) : here - 1].isdecimal()


def _date(text: str) -> tuple[tuple[str, ...], tuple[int, int, int] | None]:
    """Return the date, and parts such that every text with the date contains at least one of them."""
    match = _DATE.fullmatch(text)
    if match is None or not 1 <= int(match[2]) <= 12:
        return (), None
    month, day = int(match[2]), int(match[3])
    both = {str(day), match[3]}, {str(month), match[2]}
    figures = {f"{one}{mark}{two}" for mark in "/.-" for each in (both, both[::-1]) for one, two in product(*each)}
    return (MONTHS[month - 1][:3], *sorted(figures)), (int(match[1]), month, day)
