"""The policy document: its text, its sentences, and where each stands."""

import hashlib
import re
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

LONGEST = 2_000_000
"""Characters of a document that is read: some thousand pages."""
_HEADING = re.compile(r"#{1,6}\s+(.*?)\s*#*$")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_RULE = re.compile(r"\s*(?:[-*_]\s*){3,}$|\s*\|?\s*:?-{2,}")
_END = re.compile(r"[.!?][\"')\]*_]*(?=\s)")
_ABBREVIATION = re.compile(
    r"\b(?:e\.g|i\.e|etc|vs|cf|no|nr|dr|mr|mrs|ms|st|approx|hrs|min|max|p\.m|a\.m|[A-Z])\.$", re.I
)


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


class Document:
    """A policy document in Markdown or plain text."""

    def __init__(self, text: str, *, name: str = "policy.md") -> None:
        self.text = text
        self.name = name
        self._whole: dict[tuple[int, int], str] = {}

    @cached_property
    def sha256(self) -> str:
        """Digest of the whole text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """Every sentence, list item and table row; headings and bare labels such as `Payment:` are not sentences."""
        return tuple(_sentences(self.text))

    @cached_property
    def _by_digest(self) -> dict[str, Sentence]:
        return {sentence.digest: sentence for sentence in reversed(self.sentences)}

    def by_digest(self, digest: str) -> Sentence | None:
        """The sentence with that digest, wherever it stands now."""
        return self._by_digest.get(digest)

    def find(self, quote: str) -> tuple[int, int] | None:
        """Character range of `quote`, however its lines are wrapped; None where it does not stand.

        Of several places the one where it is a sentence of its own, else the first.
        """
        places = list(self._places(quote))
        whole = {(each.start, each.end) for each in self.sentences} if len(places) > 1 else set[tuple[int, int]]()
        return next((each for each in places if each in whole), places[0] if places else None)

    def holding(self, quote: str) -> list[Sentence]:
        """The sentences that a quote may mean: the one that it is, else all in which it stands."""
        places = list(self._places(quote))
        found = [each for each in self.sentences if any(s < each.end and each.start < e for s, e in places)]
        whole = [each for each in found if (each.start, each.end) in places]
        return whole or found

    def whole(self, start: int, end: int) -> str:
        """The whole sentences that a range of the text is part of, as written; what is in none of them as it is."""
        found = self._whole.get((start, end))
        if found is None:
            told = [each.text for each in self.sentences if start < each.end and each.start < end]
            found = self._whole[start, end] = " ".join(told) or " ".join(self.text[start:end].split())
        return found

    def _places(self, quote: str) -> Iterator[tuple[int, int]]:
        if words := quote.split():
            pattern = r"\s+".join(re.escape(word) for word in words)
            yield from (match.span() for match in re.finditer(pattern, self.text))

    def line_of(self, offset: int) -> int:
        """1-based line of a character offset."""
        return self.text.count("\n", 0, offset) + 1

    def heading_at(self, offset: int) -> str:
        """The heading above a character offset."""
        heading = ""
        for line in self.text[:offset].splitlines():
            if match := _HEADING.match(line):
                heading = match[1]
        return heading


def digest_of(text: str) -> str:
    """Twelve hex digits of a sentence's text, whatever its wrapping."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:12]


def _sentences(text: str) -> Iterator[Sentence]:
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
        title = _HEADING.match(bare)
        item = _ITEM.match(line)
        row = bare.startswith("|")
        breaks = not bare or fence or fenced or title is not None or item is not None or row or _RULE.match(bare)
        if breaks and begin >= 0:
            yield begin, stop, heading
            begin = -1
        if title and not fenced:
            heading = title[1]
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
