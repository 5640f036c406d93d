"""The part of a message that is about one thing, where it speaks of several."""

import re

from bylaw.text.folding import fold
from bylaw.text.identifier import identifiers
from bylaw.text.spelling import spell

_END = re.compile(r"(?<=[.!?;])\s+|\n+")


def passages_about(text: str, value: str | float) -> list[tuple[int, int]]:
    """Where a message speaks of the thing named `value`: sentences that name it, and those after them up to one that
    names another. Nothing where the message does not name it."""
    spelling = spell(value)
    found: list[tuple[int, int]] = []
    is_meant = False
    begin = 0
    for end in [*(match.start() for match in _END.finditer(text)), len(text)]:
        sentence = text[begin:end]
        if spelling is not None and spelling.said_in(fold(sentence)):
            is_meant = True
        elif identifiers(sentence):
            is_meant = False
        if is_meant:
            found.append((begin, end))
        begin = end
    return found
