"""Spellings of names: of ids, of entities, and as identifiers in guards."""

import keyword
from collections.abc import Collection

from bylaw.policy.verb import words_of

TAILS = {"id", "ids", "number", "no", "nr", "code", "key", "ref", "uuid"}
_SHORT = 100


def bare(name: str) -> tuple[str, ...]:
    """The words of a name without those that only mean id: both `reservationId` and `reservation` give reservation."""
    words = words_of(name)
    while words and words[-1] in TAILS:
        words.pop()
    return tuple(words)


def spelled_like(part: str, names: Collection[str], *, thing: str = "") -> str:
    """The name that means the same as a part of a key, ignoring case, separators and the word `id`."""
    if part in names:
        return part
    words = words_of(part)
    same = [name for name in names if words and words_of(name) == words]
    # A part called just `id` is its entity's id.
    meant = bare(part) or tuple(words_of(thing))
    same = same or [name for name in names if meant and bare(name) == meant]
    return same[0] if same else ""


def singular(word: str) -> str:
    """`stories` -> `story`, `boxes` -> `box`, `bills` -> `bill`."""
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def is_name(text: str) -> bool:
    """Whether a guard can use it as an attribute name."""
    plain = text.isidentifier() and text.isascii() and len(text) < _SHORT
    return plain and not text.startswith("_") and not keyword.iskeyword(text)
