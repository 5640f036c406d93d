"""Recognises identifiers (codes, addresses and links), either on their own or in text."""

import re
from functools import lru_cache

_PROSE_WORDS = 6
_SEARCHED = 200_000
_BREAK = re.compile(r"[\s<>\\\"'(),;]+|:(?!//)")
_TRIM = ".,;:!?'\"()"


def is_prose(text: str) -> bool:
    """Whether a person or an agent composed the text. False if it was copied from a record."""
    return len(text) > 80 or text.count(" ") >= _PROSE_WORDS or "\n" in text


def identifiers(text: str) -> list[str]:
    found = (token.strip(_TRIM) for token in _BREAK.split(text[:_SEARCHED]))
    return list(dict.fromkeys(token for token in found if is_identifier(token)))


@lru_cache(maxsize=4096)
def is_identifier(value: str) -> bool:
    """Whether `value` looks like an identifier (a code, an address or a link) and not like a word or a date."""
    if len(value) < 3 or len(value) > 200 or any(character.isspace() for character in value):
        return False
    if "://" in value or value.startswith("www.") or re.fullmatch(r"[^@]+@[^@]+\.[^@]+", value):
        return True
    if not any(character.isdigit() for character in value) or re.fullmatch(r"[\d.,:/-]+(?:T[\d.:Z+-]+)?", value):
        return value.isdigit() and len(value) >= 6
    return any(character.isalpha() for character in value)


_JOINED = re.compile(
    r"""
      [\w.+'%-]+@[\w-]+(?:\.[\w-]+)*                        # an address
    | (?:[a-z][a-z+.-]*://|www\.)[^\s<>"]+                  # a link
    | [\w.-]+\.(?:com|org|net|edu|gov|io|co\.[a-z]{2})\b(?:/[^\s<>"]*)?
    | (?:~|\.{1,2}|[a-z]:)?[/\\][\w.-]+[/\\][^\s<>"]*       # a path, or a file by its name
    | (?:[\w.-]+[/\\])*[\w-]+\.(?:csv|docx?|eml|html?|jpe?g|json|md|pdf|png|pptx?|py|txt|xlsx?|xml|ya?ml|zip)\b
    | (?<![\w-])(?:[^\W\d_]+[-_\#])+\d[\w-]*                # an id
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ENDS = ".,;:!?'\"()"
_NOT_A_WORD = re.compile(r"[\d@/\\.#]")


def without_joined(text: str) -> str:
    """Remove addresses, links, paths and ids from the text."""
    # The pattern is slow. Most tokens are simple words, for which it is not needed.
    tokens = text.split()
    return " ".join(each if each.strip(_ENDS).isalpha() else _JOINED.sub(" | ", each) for each in tokens)


def is_word(value: str) -> bool:
    """Whether a value consists of simple words, so that it could occur in an address by chance."""
    return _NOT_A_WORD.search(value) is None
