"""Recognises identifiers, alone or in running text: codes, addresses, links."""

import re
from functools import lru_cache

_PROSE_WORDS = 6
_SEARCHED = 200_000
_BREAK = re.compile(r"[\s<>\\\"'(),;]+|:(?!//)")
_TRIM = ".,;:!?'\"()"


def is_prose(text: str) -> bool:
    """Whether `text` was composed rather than copied from a record."""
    return len(text) > 80 or text.count(" ") >= _PROSE_WORDS or "\n" in text


def identifiers(text: str) -> list[str]:
    """The distinct addresses, links and codes in running text."""
    found = (token.strip(_TRIM) for token in _BREAK.split(text[:_SEARCHED]))
    return list(dict.fromkeys(token for token in found if is_identifier(token)))


@lru_cache(maxsize=4096)
def is_identifier(value: str) -> bool:
    """Whether `value` looks like an identifier (a code, an address, a link) rather than a word or a date."""
    if len(value) < 3 or len(value) > 200 or any(character.isspace() for character in value):
        return False
    if "://" in value or value.startswith("www.") or re.fullmatch(r"[^@]+@[^@]+\.[^@]+", value):
        return True
    if not any(character.isdigit() for character in value) or re.fullmatch(r"[\d.,:/-]+(?:T[\d.:Z+-]+)?", value):
        return value.isdigit() and len(value) >= 6
    return any(character.isalpha() for character in value)
