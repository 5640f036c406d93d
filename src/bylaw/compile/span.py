"""Where the quotes of a policy stand: words that stand more than once are those nearest to its other quotes."""

import re
from collections.abc import Sequence
from typing import Any

from bylaw.policy.document import Document

Range = tuple[int, int]


def ranges(quotes: Sequence[str], document: Document) -> list[Range]:
    """The range of each quote that stands in the document."""
    found = [places for quote in quotes if (places := _places(quote, document))]
    sure = [places[0][0] for places in found if len(places) == 1] or [places[0][0] for places in found]
    return [min(places, key=lambda place: min(abs(place[0] - each) for each in sure)) for places in found]


def spans(quotes: Sequence[str], document: Document) -> list[dict[str, Any]]:
    """The spans of a policy as `policies.yaml` has them: a quote, or the sentence where the words stand again."""
    made: list[dict[str, Any]] = []
    for start, end in ranges(quotes, document):
        text = " ".join(document.text[start:end].split())
        sentence = next((each for each in document.sentences if each.start <= start < each.end), None)
        if document.find(text) == (start, end) or sentence is None:
            made.append({"quote": text})
        else:
            at = {"line": sentence.line, "sentence": sentence.index, "digest": sentence.digest}
            made.append({"heading": sentence.heading, **at})
    return made


def _places(quote: str, document: Document) -> list[Range]:
    words = quote.split()
    pattern = r"\s+".join(re.escape(word) for word in words)
    return [match.span() for match in re.finditer(pattern, document.text)] if words else []
