"""Finds the sentences that a policy cites: all places of a quote, or the one that it says it means."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from bylaw.policy.document import Document, Range
from bylaw.policy.quote import Quote, Which, read_quote
from bylaw.policy.reading import Scalar
from bylaw.policy.sentence import number_of
from bylaw.policy.statement import Citation, Stand, StatementError, WrittenSpan, told_place

_SHOWN = 4
"""Places that a message names."""
_LONGEST = 200
"""Letters of a quote that a message repeats."""


class Ambiguous(Struct, frozen=True):
    """A quote that stands in sentences that differ; all of them are taken to be meant."""

    policy: str
    quote: str
    lines: tuple[int, ...]
    documents: tuple[str, ...]
    """The file of each line."""

    @property
    def places(self) -> str:
        """Where it stands, as far as a line can name it."""
        told = [f"{file}:{line}" for file, line in zip(self.documents, self.lines, strict=True)]
        more = f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
        return ", ".join(told[:_SHOWN]) + more

    @property
    def example(self) -> str:
        """How the quote would say that it means the first of them."""
        return f"[{self.documents[0]}:{self.lines[0]}] {self.quote}"


class Cited(Struct, frozen=True):
    """What became of one span."""

    citations: tuple[Citation, ...]
    ambiguous: Ambiguous | None = None
    lost: StatementError | None = None
    """Why it stands nowhere in the document at hand."""


class Citing:
    """Finds what the spans of policies cite in a document, or in none, where it is not at hand."""

    def __init__(self, document: Document | None, title: str) -> None:
        self._document = document
        self._title = title

    def cite(self, span: WrittenSpan, policy: str, place: str) -> Cited:
        """The sentences of a span, which has a quote or a digest. `place` is where it is written."""
        document = self._document
        if document is None:
            return Cited((_outside(span, self._title),))
        if span.quote is None:
            return self._by_digest(span, document, policy, place)
        quote = _quote(span, document)
        found = quote.places(document)
        if not found and not span.document and str(span.quote) == quote.words:
            # A heading or a line beside a quote, as keys, may be out of date: it decides where the words stand twice.
            found = every if len(every := document.places(quote.words)) == 1 else ()
        if not found:
            return Cited((_outside(span, self._title),), lost=_nowhere(quote, document, policy, place))
        stands = tuple(cited(found, document))
        return Cited(stands, _ambiguous(policy, quote, found, document) if len(stands) > 1 else None)

    def _by_digest(self, span: WrittenSpan, document: Document, policy: str, place: str) -> Cited:
        """The sentence of that digest; of several the one on its line, else the nearest to it under its heading."""
        digest, line = span.digest or "", span.line or 0
        found = document.all_by_digest(digest)
        if span.document:
            which = Which(str(span.document))
            found = [each for each in found if which.holds((each.start, each.end), document)]
        if not found:
            message = f"no sentence of {document.name} has the digest `{digest}`, which policy `{policy}` cites"
            return Cited((_outside(span, self._title),), lost=StatementError(message, place=place))
        best = min(
            found,
            key=lambda each: (
                (each.line, each.index) != (line, span.sentence),
                each.heading != str(span.heading),
                abs(each.line - line),
            ),
        )
        return Cited(tuple(cited([(best.start, best.end)], document)))


def cited(places: Iterable[Range], document: Document) -> Iterator[Citation]:
    """Whole sentences with their places; those that stand again are cited once."""
    stands: dict[str, list[Stand]] = {}
    told: set[tuple[int, ...]] = set()
    for start, end in places:
        held = document.within(start, end)
        sentences = tuple(each.start for each in held) or (start,)
        if sentences in told:
            continue
        told.add(sentences)
        text = " ".join(each.text for each in held) or " ".join(document.text[start:end].split())
        if held and start >= held[0].start + number_of(document.text, held[0].start):
            # The number of a clause is told only where it was quoted.
            text = text[number_of(text) :]
        where = (document.file_at(start).name, document.heading_at(start), document.line_of(start))
        stands.setdefault(text, []).append(Stand(*where, start, end))
    for text, found in stands.items():
        one, *others = found
        yield Citation(one.document, one.heading, one.line, text, one.start, one.end, tuple(others))


def merged(citations: Sequence[Citation]) -> tuple[Citation, ...]:
    """Each sentence once, with all its places, where several quotes are of the same."""
    found: dict[str | int, Citation] = {}
    for number, each in enumerate(citations):
        known = found.get(each.text or number)
        if known is None:
            found[each.text or number] = each
            continue
        own = Stand(each.document, each.heading, each.line, each.start, each.end)
        here = {(stand.document, stand.line) for stand in (known, *known.again)}
        more = tuple(stand for stand in (own, *each.again) if (stand.document, stand.line) not in here)
        found[each.text or number] = replace(known, again=(*known.again, *more)) if more else known
    return tuple(found.values())


def _quote(span: WrittenSpan, document: Document) -> Quote:
    """A quote with what its span says of its place, in brackets before the words or in keys of its own."""
    quote = read_quote(str(span.quote), document)
    if not (span.document or span.heading or span.line):
        return quote
    headings = (*quote.which.headings, *([str(span.heading)] if span.heading else ()))
    document_name = str(span.document) or quote.which.document or (document.name if span.line else "")
    return Quote(quote.words, Which(document_name, headings, span.line or quote.which.line))


def _nowhere(quote: Quote, document: Document, policy: str, place: str) -> StatementError:
    """That a quote does not stand in the document, or not where it says."""
    words = quote.words if len(quote.words) <= _LONGEST else f"{quote.words[:_LONGEST]}..."
    if elsewhere := document.places(quote.words):
        told = [_told(start, document) for start, _ in elsewhere[:_SHOWN]]
        more = f" and {len(elsewhere) - _SHOWN} more" if len(elsewhere) > _SHOWN else ""
        message = f"`{words}`, quoted by `{policy}`, does not stand at `{quote.which}`"
        return StatementError(message, place=place, hint=f"it stands at {', '.join(told)}{more}")
    message = f"`{words}`, quoted by `{policy}`, does not stand in {_named(document)}"
    nearest = document.nearest(quote.words)
    if nearest is None:
        return StatementError(message, place=place, hint="quote the document letter for letter")
    hint = f"the nearest sentence is `{nearest.bare}`, {_told(nearest.start, document)}"
    return StatementError(message, place=place, hint=f"{hint}: quote it letter for letter")


def _named(document: Document) -> str:
    return document.name if len(document.files) == 1 else f"any of the {len(document.files)} documents"


def _told(offset: int, document: Document) -> str:
    return told_place(document.file_at(offset).name, document.line_of(offset), document.heading_at(offset))


def _ambiguous(policy: str, quote: Quote, places: Sequence[Range], document: Document) -> Ambiguous:
    lines = tuple(document.line_of(start) for start, _ in places)
    files = tuple(document.file_at(start).name for start, _ in places)
    return Ambiguous(policy, quote.words, lines, files)


def spans_of(given: Sequence[Scalar | WrittenSpan]) -> Iterator[tuple[int, WrittenSpan]]:
    """Each sentence cited, with which entry it is of: a text is a quote, and `at` names several by `line:sentence`."""
    for index, span in enumerate(given):
        record = span if isinstance(span, WrittenSpan) else WrittenSpan(quote=span)
        if not record.at:
            yield index, record
        for place, digest in record.at.items():
            line, _, sentence = place.partition(":")
            if line.isdigit() and (sentence or "1").isdigit():
                at = (record.heading, int(line), int(sentence or 1), digest)
                yield index, WrittenSpan(None, record.document, *at)
            else:
                yield index, WrittenSpan()


def _outside(span: WrittenSpan, title: str) -> Citation:
    """A sentence that is not at hand: its place as written, and its words where it quotes them."""
    quote = read_quote(str(span.quote)) if span.quote is not None else None
    return Citation(str(span.document) or title, str(span.heading), span.line or 0, quote.words if quote else None)
