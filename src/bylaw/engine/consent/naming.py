"""How values are put into words: a word of a list, a number of things, a thing by what its record holds."""

import re
from collections.abc import Sequence
from functools import lru_cache

from bylaw.engine.consent.detail import Detail
from bylaw.facts.assent import sentences
from bylaw.facts.identifier import is_identifier
from bylaw.policy.verb import words_of

_DATED = re.compile(r"\d{4}-\d\d-\d\d$")
_TIME = re.compile(r"(\d\d):(\d\d)(?::\d\d)?(?:\+\d)?")
_LETTERS_AND_DIGITS = re.compile(r"(#?[a-z]+[-_ ]?)(\d+)")
_LONG = 6
"""Letters of a word that is known by how it begins."""
_DIGITS_OF_AN_ID = 6
"""A number of so many digits is an id that others may be written like."""
_KIND = 4
"""Letters of a word in an id that says what kind of thing it is."""
_BEGIN = 5
"""So many letters of it must stand at least."""
_CODE = re.compile(r"[A-Z]{3,5}")
_TOKEN = re.compile(r"(?!x\d)[^\W\d_]+-?\d[\w-]*|[$€£]\s?\d[\d,.]*|\d+(?:[.,:/-]\d+)+|\d+|[^\W\d_]+")
"""Words and numbers; ids, sums, times and dates stay whole, as they count nothing."""
_GAPS = re.compile(r"[\s_-]+")
_HOW_MANY = frozenset(("quantity", "qty", "count", "number", "num", "total", "units", "size"))
_BEFORE, _AFTER = 4, 8
"""Words before and after the name of a thing among which its number may stand."""
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_DIGITS = {word: str(number) for number, word in enumerate(_WORDS)}
_PLACES = ("first", "second", "third", "fourth", "fifth", "sixth")
_BEFORE_ONLY = {"no": "0", "without": "0", "a": "1", "an": "1", "another": "1", "both": "2"} | {
    word: str(number) for number, word in enumerate(_PLACES, 1)
}
"""Say how many only where the thing follows."""


def plain(number: float) -> int | float:
    """A number as it would be written."""
    number = round(number, 2)
    return int(number) if number == int(number) else number


def stem(name: str) -> str:
    """What a field is about, as it may begin a word: `bag` of `total_baggages`; empty for a mere `quantity`."""
    return max((word for word in words_of(name) if word not in _HOW_MANY), key=len, default="")[:3]


def heads(matters: Sequence[Detail]) -> int:
    """For how many people or things a call is: the longest list of names in it."""
    names = [detail.name for detail in matters if detail.kind == "name" and detail.name != detail.top]
    return max((names.count(name) for name in names), default=1)


@lru_cache(maxsize=4096)
def counts(text: str, stem: str) -> frozenset[str]:
    """The numbers that a text says of a thing, as digits: shortly before its name, or after it in the same line."""
    found: set[str] = set()
    if not stem:
        return frozenset(number for word in _TOKEN.findall(text.lower()) if (number := _number(word)))
    for line in sentences(text):
        words = _TOKEN.findall(line) if stem in line else ()
        for place, word in enumerate(words):
            if not word.startswith(stem):
                continue
            for near in reversed(words[max(0, place - _BEFORE) : place]):
                if near.startswith(stem):
                    break
                if number := _number(near) or _BEFORE_ONLY.get(near):
                    found.add(number)
            found.update(number for near in words[place + 1 : place + 1 + _AFTER] if (number := _number(near)))
    return frozenset(found)


def _number(word: str) -> str | None:
    return word if word.isdigit() else _DIGITS.get(word)


def names_word(text: str, own: str, others: Sequence[str]) -> tuple[bool, bool]:
    """Whether a text names a word of a list, and whether it names others of it.

    `economy` is not named where only `basic economy` is.
    """
    own = _loose(own)
    spoken = [other for word in others if (other := _loose(word)).split(" ")[0] in text]
    without_longer = text
    for other in spoken:
        if own in other:
            without_longer = _word(other).sub(" ", without_longer)
    names_own = (own[:_BEGIN] in text or own == "now") and _names_own(without_longer, own, others)
    without_own = _word(own).sub(" ", text) if any(other in own for other in spoken) else text
    return names_own, any(_word(other).search(without_own) for other in spoken)


def puts_word(text: str, word: str) -> bool:
    """Whether a text says of a part that it will be so: `only the way out to business`, `(business class)`."""
    found = _loose(word)
    return found in text and _put(found).search(text) is not None


@lru_cache(maxsize=1024)
def _put(word: str) -> re.Pattern[str]:
    part = r"(?:only|just)\b[^.!?]{0,60}"
    return re.compile(rf"\b{part}\b(?:to|into|in) (?:the |a )?{re.escape(word)}\b|\({re.escape(word)} class\)")


def _names_own(text: str, own: str, others: Sequence[str]) -> bool:
    form = _word(own) if " " in own else _inflected(own, tuple(map(_loose, others)))
    return form.search(text) is not None


@lru_cache(maxsize=1024)
def _loose(word: str) -> str:
    return " ".join(_GAPS.split(word.lower()))


@lru_cache(maxsize=1024)
def _inflected(word: str, others: tuple[str, ...]) -> re.Pattern[str]:
    """Matches a word and its other forms, `withdraw` of `withdrawn`, where no other word of the list begins so."""
    begin = word[: max(_BEGIN, len(word) * 7 // 10)]
    if len(word) < _LONG or any(other.startswith(begin) for other in others):
        return _word(word)
    return re.compile(rf"\b{re.escape(begin)}\w*")


@lru_cache(maxsize=4096)
def _word(word: str) -> re.Pattern[str]:
    # `end_of_period` is the end of the period, and what is done now is done at once.
    if word == "now":
        return re.compile(r"\b(?:now|immediately|right away|straight away|at once)\b")
    parts = word.split(" ")
    spoken = (r"(?: \w+){0,2} " if len(parts) > 2 else r"(?: the| your)? ").join(map(re.escape, parts))
    return re.compile(rf"\b{spoken}(?:s|es)?\b")


@lru_cache(maxsize=1024)
def alike(id: str) -> re.Pattern[str] | None:
    """Matches ids written as this one, letters and then digits or many digits; None for one written otherwise."""
    if id.isdecimal() and len(id) >= _DIGITS_OF_AN_ID:
        return _written(None, len(id))
    found = _LETTERS_AND_DIGITS.fullmatch(id)
    return _written(found[1], len(found[2])) if found else None


@lru_cache(maxsize=256)
def _written(letters: str | None, digits: int) -> re.Pattern[str]:
    if letters is None:
        return re.compile(rf"\d(?<![\w.,$€£-]\d)\d{{{digits - 1}}}(?![\w-]|[.,]\d)")
    # What stands before is looked at last: a pattern that begins with letters is found much sooner.
    begin = re.escape(letters)
    return re.compile(rf"{begin}(?<![\w-]{begin})\d{{{digits}}}(?![\w-])")


def names_kind_word(text: str, word: str) -> bool:
    """Whether a text has a word, or several of what it names."""
    return word in text and _word(word).search(text) is not None


def names_kind(text: str, id: str) -> bool:
    """Whether a text has the word that an id is made of: two lamps, `lamp-77`."""
    found = _LETTERS_AND_DIGITS.fullmatch(id)
    word = found[1].strip("#-_ ") if found else ""
    return len(word) >= _KIND and _word(word).search(text) is not None


def mark_forms(name: str, value: str | float) -> list[str]:
    """What a field's value may be told by, where it tells a thing from others of its kind: an id, a day, a name, a
    code, a time of day."""
    if not isinstance(value, str):
        return []
    if found := _TIME.fullmatch(value):
        hour, minute = int(found[1]), found[2]
        return [f"{hour:02}:{minute}"]
    if is_identifier(value) or _DATED.match(value) is not None or _CODE.fullmatch(value) or "name" in name:
        return [value]
    return []
