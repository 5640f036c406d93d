"""What a policy's sentences refer to: another article that they cite, or the sentence before an "Otherwise, ...".

A policy is read, and checked, beside that.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.span import Draft, covered, places
from bylaw.policy.document import HEADING, Document, File, Sentence

_LONGEST = 1_500
"""Letters of another document that are shown."""
_MOST = 3
"""Documents that are shown beside one policy."""
_LINK = re.compile(r"\]\(([^)\s#]+)[^)]*\)")
_SHORTEST = 2
"""Words of a title that a sentence can be said to name; one word, such as `Fees`, is any sentence's."""


class _Article(Struct, frozen=True):
    file: File
    name: str
    """Its path's last part."""
    title: str


_LEANS = re.compile(
    r"\W*(otherwise|else|instead|then|likewise|in (that|this|such|these|those) cases?|this|these|those|that|such"
    r"|it|they|the same|even (then|so)|both|neither)\b",
    re.IGNORECASE,
)
"""How a sentence begins that nobody can read without the one before."""


def with_references(drafts: Sequence[Draft], document: Document) -> tuple[Draft, ...]:
    """The drafts, each with what stands elsewhere that its sentences refer to."""
    files = document.files if len(document.files) > 1 else ()
    articles = [_Article(file, PurePosixPath(file.name).name, _title(file)) for file in files]
    before = {
        after.start: one
        for one, after in pairwise(document.sentences)
        if one.heading == after.heading and _LEANS.match(after.text)
    }
    found: list[Draft] = []
    for draft in drafts:
        told = [*_referred(draft, document, articles), *_leaned_on(draft, document, before)]
        found.append(replace(draft, refers="\n".join(told)))
    return tuple(found)


def _leaned_on(draft: Draft, document: Document, before: Mapping[int, Sentence]) -> Iterator[str]:
    """The sentences, not its own, that a policy's sentences lean on."""
    own = covered([draft.quotes], document)
    for start in sorted(own):
        if start in before and before[start].start not in own:
            yield f"the sentence before it: {' '.join(before[start].text.split())[:_LONGEST]}"


def _referred(draft: Draft, document: Document, articles: Iterable[_Article]) -> list[str]:
    """The documents that a policy's sentences name, each with how it begins."""
    found = places(draft.quotes, document)
    own = {document.file_at(start).name for start, _ in found}
    text = " ".join(document.whole(start, end) for start, end in found)
    links = {PurePosixPath(link).name for link in _LINK.findall(text)}
    words = f" {_plain(text)} "
    named = [
        each
        for each in articles
        if each.file.name not in own
        and (each.name in links or each.name in text or (each.title and f" {each.title} " in words))
    ]
    return [f"{each.name}: {' '.join(each.file.text.split())[:_LONGEST]}" for each in named[:_MOST]]


def _title(file: File) -> str:
    """The words of a document's first heading; empty where they are too few to be known again in a sentence."""
    heading = next((match[2] for line in file.text.split("\n") if (match := HEADING.match(line.strip()))), "")
    words = _plain(heading)
    return words if len(words.split()) >= _SHORTEST else ""


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
