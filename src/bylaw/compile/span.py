"""Extracted policies, the positions of their quotes, and their format in `policies.yaml`.

All stages use this module to determine coverage. A quote that occurs several times normally refers to all its
occurrences. But if another quote of the policy occurs only once, the repeated quote refers only to the occurrence
closest to it, and the span states that position.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from bylaw.policy.document import Document, Quote, Range, Sentence, Which, places_of, read_quote


class Listed(Struct, frozen=True):
    """A policy as a model lists it in an answer."""

    id: str
    definition: str
    # Optional fields have defaults, because some models ignore schemas.
    scope: str = ""
    description: str = ""
    quotes: tuple[str, ...] = ()


class Draft(Listed, frozen=True):
    refers: str = ""
    """Text elsewhere in the documents that the sentences refer to. If that text changes, the policy is compiled again.
    """
    remark: str = ""
    """A remark that applies to one update only, such as why the check was rejected."""


def ranges(quotes: Sequence[str], document: Document) -> list[tuple[Range, ...]]:
    """Return the positions of each quote. A quote that is not in the document is left out."""
    found = [places for quote in quotes if (places := places_of(quote, document))]
    sure = [places[0][0] for places in found if len(places) == 1]
    if not sure:
        return found
    return [(min(places, key=lambda place: min(abs(place[0] - each) for each in sure)),) for places in found]


def stands(quotes: Sequence[str], document: Document) -> bool:
    """Whether the document contains every quote at the position stated for it."""
    return all(places_of(quote, document) for quote in quotes)


def places(quotes: Sequence[str], document: Document) -> list[Range]:
    """Return the positions of all quotes, in document order."""
    return [place for found in ranges(quotes, document) for place in found]


def first_place(quotes: Sequence[str], document: Document) -> int:
    """Return the earliest position of any quote, or 0 if the document contains none of them."""
    return min((start for start, _ in places(quotes, document)), default=0)


def covered(quotes: Iterable[Sequence[str]], document: Document) -> set[int]:
    """Return the start of each sentence that overlaps one of a policy's quotes."""
    found = (place for each in quotes for place in places(each, document))
    return {sentence.start for start, end in found for sentence in document.within(start, end)}


def spans(quotes: Sequence[str], document: Document) -> list[dict[str, Any]]:
    """Return a policy's spans for `policies.yaml`. Each quote refers to exactly the positions that `ranges` returns."""
    standing = [quote for quote in quotes if places_of(quote, document)]
    return [_span(quote, found, document) for quote, found in zip(standing, ranges(standing, document), strict=True)]


def _span(quote: str, found: tuple[Range, ...], document: Document) -> dict[str, Any]:
    start, end = found[0]
    if places_of(quote, document) == found:
        which = read_quote(quote, document).which
        words = " ".join(document.text[start:end].split())
        return {"quote": f"[{which}] {words}" if str(which) else words}
    held = document.within(start, end)
    whole = " ".join(document.text[held[0].start : held[-1].end].split()) if held else ""
    if whole and document.places(whole) == ((held[0].start, held[-1].end),):
        return {"quote": whole}
    if under := under_heading(read_quote(quote, document).words, start, document):
        return {"quote": under}
    return _by_digest(held, document) if held else {"quote": quote}


def under_heading(words: str, start: int, document: Document) -> str:
    """Return the text with as few headings as identify its position, and with the file name if needed. Empty if
    headings and file name are not enough.
    """
    above = document.headings_at(start)
    file = document.file_at(start).name if len(document.files) > 1 else ""
    ways = [Which(headings=above[-1:]), Which(headings=above[-2:]), Which(headings=above)]
    ways += [Which(file), Which(file, above)] if file else []
    for which in ways:
        found = Quote(words, which).places(document) if str(which) else ()
        if [each[0] for each in found] == [start]:
            return f"[{which}] {' '.join(words.split())}"
    return ""


def _by_digest(held: Sequence[Sentence], document: Document) -> dict[str, Any]:
    sentence = held[0]
    file = {"document": document.file_at(sentence.start).name} if len(document.files) > 1 else {}
    at = {"line": sentence.line, "sentence": sentence.index, "digest": sentence.digest}
    return {**file, "heading": sentence.heading, **at}
