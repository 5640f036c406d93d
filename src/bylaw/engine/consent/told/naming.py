"""How things are named: by an id written like others, by the word their id is made of, by what their record holds."""

import re
from functools import lru_cache

from bylaw.facts.identifier import is_identifier

_DATED = re.compile(r"\d{4}-\d\d-\d\d$")
_TIME = re.compile(r"(\d\d):(\d\d)(?::\d\d)?(?:\+\d)?")
_LETTERS_AND_DIGITS = re.compile(r"(#?[a-z]+[-_ ]?)(\d+)")
_DIGITS_OF_AN_ID = 6
"""A number of so many digits is an id that others may be written like."""
_KIND = 4
"""Letters of a word in an id that says what kind of thing it is."""
_CODE = re.compile(r"[A-Z]{3,5}")


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
    return word in text and in_words(word).search(text) is not None


def names_kind(text: str, id: str) -> bool:
    """Whether a text has the word that an id is made of: two lamps, `lamp-77`."""
    found = _LETTERS_AND_DIGITS.fullmatch(id)
    word = found[1].strip("#-_ ") if found else ""
    return len(word) >= _KIND and in_words(word).search(text) is not None


@lru_cache(maxsize=4096)
def in_words(word: str) -> re.Pattern[str]:
    """Matches a word of a list, or several of what it names, as people would say it."""
    # `end_of_period` is the end of the period, and what is done now is done at once.
    if word == "now":
        return re.compile(r"\b(?:now|immediately|right away|straight away|at once)\b")
    parts = word.split(" ")
    first, *others = map(re.escape, parts)
    between = r"(?: \w+){0,2} " if len(parts) > 2 else r"(?: the| your)? "
    # What stands before is looked at last, as above.
    begin = rf"{first}(?<!\w{first})" if word[:1].isalnum() else rf"\b{first}"
    return re.compile(rf"{between.join((begin, *others))}(?:s|es)?\b")


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
