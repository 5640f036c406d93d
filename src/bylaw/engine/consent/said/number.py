"""The numbers that a text says of a thing: two bags, bags: 2, both nights."""

import re
from functools import lru_cache

from bylaw.facts.sentence import sentences

_TOKEN = re.compile(r"(?!x\d)[^\W\d_]+-?\d[\w-]*|[$€£]\s?\d[\d,.]*|\d+(?:[.,:/-]\d+)+|\d+|[^\W\d_]+")
"""Words and numbers; ids, sums, times and dates stay whole, as they count nothing."""
_BEFORE, _AFTER = 4, 8
"""Words before and after the name of a thing among which its number may stand."""
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_DIGITS = {word: str(number) for number, word in enumerate(_WORDS)}
_PLACES = ("first", "second", "third", "fourth", "fifth", "sixth")
_BEFORE_ONLY = {"no": "0", "without": "0", "a": "1", "an": "1", "another": "1", "both": "2"} | {
    word: str(number) for number, word in enumerate(_PLACES, 1)
}
"""Say how many only where the thing follows."""


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
