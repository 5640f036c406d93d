"""A quote of the document, and which of its places is meant where the same words stand more than once.

A manager must approve it.                      everywhere that it stands
[Returns] A manager must approve it.            under that heading
[Returns > Exceptions] A manager must ...       under the second of them, below the first
[fees.md] A manager must approve it.            in that file
[fees.md > Returns] A manager must ...          in that file, under that heading
[fees.md:12] A manager must approve it.         on that line
"""

import re

from msgspec import Struct

from bylaw.policy.document import Document, Range

_WHICH = re.compile(r"\[([^\[\]\s][^\[\]]*)\]\s+(?=\S)")
_LINE = re.compile(r"(.+?):(\d+)$")


class Which(Struct, frozen=True):
    """What a quote says of its place; empty where it means all of them."""

    document: str = ""
    headings: tuple[str, ...] = ()
    line: int = 0

    def holds(self, place: Range, document: Document) -> bool:
        """Whether a place is one of those meant."""
        start, end = place
        if self.document and not is_named(document.file_at(start).name, self.document):
            return False
        if self.line and not document.line_of(start) <= self.line <= document.line_of(end - 1):
            return False
        above = iter([_plain(each) for each in document.headings_at(start)])
        # In order, each below the one before; others may stand between them.
        return all(_plain(heading) in above for heading in self.headings)

    def __str__(self) -> str:
        file = f"{self.document}:{self.line}" if self.line else self.document
        return " > ".join(filter(None, (file, *self.headings)))


EVERYWHERE = Which()


class Quote(Struct, frozen=True):
    """Words of the document, and which of their places is meant."""

    words: str
    which: Which = EVERYWHERE

    def places(self, document: Document) -> tuple[Range, ...]:
        """The places that it means; none where the words do not stand there."""
        found = document.places(self.words)
        return found if self.which == EVERYWHERE else tuple(each for each in found if self.which.holds(each, document))


def read_quote(written: str, document: Document | None = None) -> Quote:
    """A quote as it is written; what stands in the document with its bracket needs no other reading."""
    match = _WHICH.match(written)
    if match is None or (document is not None and document.places(written)):
        return Quote(written)
    parts = [part.strip() for part in match[1].split(" > ")]
    words = written[match.end() :]
    file, line = parts[0], 0
    if numbered := _LINE.match(parts[0]):
        file, line = numbered[1], int(numbered[2])
    if line or _is_file(file, document):
        return Quote(words, Which(file, tuple(parts[1:]), line))
    return Quote(words, Which(headings=tuple(parts)))


def places_of(written: str, document: Document) -> tuple[Range, ...]:
    """The places that a quote means, as it is written. What is covered, here and everywhere, goes by this alone."""
    return read_quote(written, document).places(document)


def _is_file(name: str, document: Document | None) -> bool:
    if document is None:
        return bool(re.search(r"\.\w{1,5}$", name))
    return any(is_named(file.name, name) for file in document.files)


def is_named(file: str, name: str) -> bool:
    """Whether a file is meant by a name: its own, or the end of its path."""
    return file == name or file.endswith(f"/{name}")


def _plain(heading: str) -> str:
    """A heading however it is spaced, capitalised, numbered or set off."""
    words = " ".join(heading.replace("*", "").replace("`", "").split()).casefold().rstrip(":.")
    return re.sub(r"^(?:§\s*)?\d+(?:\.\d+)*[.)]?\s+(?=\S)", "", words)
