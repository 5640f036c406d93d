"""A document in parts that fit one question: whole headings, or whole paragraphs where these are long."""

import re
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct

from bylaw.policy.document import Document, File, Sentence

LONGEST = 3_000
"""Letters in one part; a paragraph that is longer stays whole."""
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n\s*\n")


class Section(Struct, frozen=True):
    """A range of the document, and the headings above its start."""

    start: int
    end: int
    above: tuple[str, ...]
    text: str
    file: str = ""
    """Which document it is of, where there are several."""

    def sentences(self, document: Document) -> list[Sentence]:
        return list(document.starting_in(self.start, self.end))


def sections(document: Document, *, longest: int = LONGEST) -> tuple[Section, ...]:
    """The document in parts of about `longest` letters, each with at least one sentence."""
    found = [_section(document, file, *each) for file in document.files for each in _parts(file.text, longest)]
    return tuple(each for each in found if document.starting_in(each.start, each.end))


def _parts(text: str, longest: int) -> Iterator[tuple[int, int]]:
    begin: int | None = None
    for start, end in _blocks(text, longest):
        if begin is not None and end - begin > longest:
            yield begin, start
            begin = start
        begin = start if begin is None else begin
    if begin is not None:
        yield begin, len(text)


def _section(document: Document, file: File, start: int, end: int) -> Section:
    above = document.headings_at(file.start + start)
    if _HEADING.match(file.text, start):
        above = above[:-1]
    name = file.name if len(document.files) > 1 else ""
    return Section(file.start + start, file.start + end, above, file.text[start:end].strip(), name)


def _blocks(text: str, longest: int) -> Iterator[tuple[int, int]]:
    """Ranges that are not cut: a heading with what stands under it, or its paragraphs where that is too long."""
    cuts = sorted({0, len(text), *(match.start() for match in _HEADING.finditer(text))})
    for start, end in pairwise(cuts):
        if end - start <= longest:
            yield start, end
            continue
        inner = [start, *(match.end() for match in _PARAGRAPH.finditer(text, start, end)), end]
        yield from ((first, last) for first, last in pairwise(inner) if first < last)
