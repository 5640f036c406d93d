"""Sentences of a policy document: how its text is cut, and where each one stands."""

import hashlib
import re
from collections.abc import Iterator

from msgspec import Struct

HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_RULE = re.compile(r"\s*(?:[-*_]\s*){3,}$|\s*\|?\s*:?-{2,}")
_END = re.compile(r"[.!?][\"')\]*_]*(?=\s)")
_ABBREVIATION = re.compile(
    r"\b(?:e\.g|i\.e|etc|vs|cf|no|nr|dr|mr|mrs|ms|st|approx|hrs|min|max|p\.m|a\.m|[A-Z])\.$", re.I
)
_CLAUSE = re.compile(r"(?:§+\s*)?(?:\d+(?:\.\d+)+[.)]?|\d+[.)]|\((?:\d+|[a-z]{1,3})\)|[a-z]\))\s+", re.I)
"""The number of a clause: `4.3`, `(a)`, `2)`. It is not what the clause says."""


class Sentence(Struct, frozen=True):
    """One sentence of the document, as a character range."""

    start: int
    end: int
    line: int
    """1-based line on which it starts."""
    index: int
    """1 for the first sentence that starts on that line, 2 for the next."""
    heading: str
    text: str
    """As written, whitespace made single spaces."""

    @property
    def digest(self) -> str:
        """Twelve hex digits that stand for the sentence where its text may not."""
        return digest_of(self.text)

    @property
    def bare(self) -> str:
        """Its text without the number of the clause."""
        return self.text[number_of(self.text) :]


def number_of(text: str, at: int = 0) -> int:
    """How many characters the number of a clause takes up there, the blank after it too."""
    found = _CLAUSE.match(text, at)
    return found.end() - at if found else 0


def digest_of(text: str) -> str:
    """Twelve hex digits of a sentence's text, whatever its wrapping."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:12]


def sentences_of(text: str) -> Iterator[Sentence]:
    """Every sentence, list item and table row; headings and bare labels such as `Payment:` are not sentences."""
    seen_on: dict[int, int] = {}
    line, counted = 1, 0
    for start, end, heading in _blocks(text):
        for first, last in _split(text, start, end):
            words = " ".join(text[first:last].split())
            if words.endswith(":") and len(words.split()) <= 4:
                continue
            line += text.count("\n", counted, first)
            counted = first
            seen_on[line] = seen_on.get(line, 0) + 1
            yield Sentence(first, last, line, seen_on[line], heading, words)


def _blocks(text: str) -> Iterator[tuple[int, int, str]]:
    """Paragraphs, list items and table rows as character ranges, with the heading above each."""
    heading, begin, stop, offset, fenced = "", -1, -1, 0, False
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        fence = bare.startswith("```")
        title = HEADING.match(bare)
        item = _ITEM.match(line)
        row = bare.startswith("|")
        breaks = not bare or fence or fenced or title is not None or item is not None or row or _RULE.match(bare)
        if breaks and begin >= 0:
            yield begin, stop, heading
            begin = -1
        if title and not fenced:
            heading = title[2]
        if fence:
            fenced = not fenced
        elif not fenced and not title and bare and not _RULE.match(bare):
            if begin < 0:
                begin = offset + (item.end() if item else len(line) - len(line.lstrip()))
            stop = offset + len(line.rstrip())
            if row:
                yield begin, stop, heading
                begin = -1
        offset += len(line)
    if begin >= 0:
        yield begin, stop, heading


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    first = start
    for match in _END.finditer(text, start, end):
        last = match.end()
        following = next((at for at in range(last, end) if not text[at].isspace()), end)
        if following == end or _ABBREVIATION.search(text[first : match.start() + 1]):
            continue
        if not (text[following].isupper() or text[following].isdigit() or text[following] in "\"'(*_["):
            continue
        yield first, last
        first = following
    if first < end:
        yield first, end
