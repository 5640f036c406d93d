"""Documents that refer to each other: a policy that cites another article is read, and checked, beside that article."""

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.draft import Draft
from bylaw.compile.span import ranges
from bylaw.policy.document import Document, File
from bylaw.policy.sentence import HEADING

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


def with_references(drafts: Sequence[Draft], document: Document) -> tuple[Draft, ...]:
    """The drafts, each with what other documents say that its sentences refer to."""
    if len(document.files) == 1:
        return tuple(replace(draft, refers="") if draft.refers else draft for draft in drafts)
    articles = [_Article(file, PurePosixPath(file.name).name, _title(file)) for file in document.files]
    return tuple(replace(draft, refers=_told(_referred(draft, document, articles))) for draft in drafts)


def _referred(draft: Draft, document: Document, articles: Iterable[_Article]) -> list[_Article]:
    places = [place for found in ranges(draft.quotes, document) for place in found]
    own = {document.file_at(start).name for start, _ in places}
    text = " ".join(document.whole(start, end) for start, end in places)
    links = {PurePosixPath(link).name for link in _LINK.findall(text)}
    words = f" {_plain(text)} "
    return [
        each
        for each in articles
        if each.file.name not in own
        and (each.name in links or each.name in text or (each.title and f" {each.title} " in words))
    ][:_MOST]


def _told(articles: Iterable[_Article]) -> str:
    return "\n".join(f"{each.name}: {' '.join(each.file.text.split())[:_LONGEST]}" for each in articles)


def _title(file: File) -> str:
    """The words of a document's first heading; empty where they are too few to be known again in a sentence."""
    heading = next((match[2] for line in file.text.split("\n") if (match := HEADING.match(line.strip()))), "")
    words = _plain(heading)
    return words if len(words.split()) >= _SHORTEST else ""


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
