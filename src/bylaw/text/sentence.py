"""The sentences of a message as people mean them, lines and bullets too, each where it stands in the text."""

import re
from functools import lru_cache
from typing import NamedTuple

LONGEST = 1_000
_SENTENCES = 400
"""Longer texts are cut, so that no text costs more than its length."""
END = re.compile(r"(?<=[.!?;])[\"')*]*\s+|\n+")
_BREAK = re.compile(r"(?:[.!?;\u061f\uff1f]+[\"')\]]*(?=\s)|[\u3002\uff01\uff1f]|\n)\s*")
_LIST = re.compile(r"(?:[\s>#|\-\u2022+]|\(?\d{1,2}[.)](?=\s))+")
_ORDINAL = re.compile(r"(?:^|\s)(?:\d{1,2}|[a-z]|no|st|mr|mrs|ms|dr|vs|approx|e\.g|i\.e|[ap]\.m)\.$")
"""What ends with a point and ends no sentence."""
_PLAIN = str.maketrans(
    dict.fromkeys("\u2018\u2019\u02bc\u2032\u00b4\uff07", "'")
    | dict.fromkeys("\u201c\u201d", '"')
    | dict.fromkeys("\u2014\u2013\u2011", "-")
    | dict.fromkeys("*`\u00a0\u202f", " ")
)


class Sentence(NamedTuple):
    """One sentence or line: its place in the text, and its words in lower case with plain quotes and dashes."""

    start: int
    end: int
    words: str


def lowered(text: str) -> str:
    """A text in lower case, with plain quotes and dashes, each letter where it stood."""
    lower = text.translate(_PLAIN).lower()
    # Lower case may be longer in some languages; places in the text would then be lost.
    return lower if len(lower) == len(text) else text.translate(_PLAIN)


@lru_cache(maxsize=2048)
def sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences and lines of a text; of one that goes on without end, the first and the last."""
    plain = lowered(text)
    found: list[Sentence] = []
    start = 0
    for match in _BREAK.finditer(plain):
        if plain[match.start()] == "." and _ORDINAL.search(plain, max(start, match.start() - 8), match.start() + 1):
            continue
        _add(found, plain, start, match.end())
        start = match.end()
    _add(found, plain, start, len(plain))
    if len(found) > _SENTENCES:
        found = found[: _SENTENCES // 2] + found[-_SENTENCES // 2 :]
    return tuple(found)


def _add(found: list[Sentence], plain: str, start: int, end: int) -> None:
    while end > start and plain[end - 1].isspace():
        end -= 1
    bullet = _LIST.match(plain, start, end)
    start = start if bullet is None else bullet.end()
    end = min(end, start + LONGEST)
    if end > start:
        found.append(Sentence(start, end, plain[start:end]))
