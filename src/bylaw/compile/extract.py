"""The policies of the document: listed part by part, each with the sentences it stands on, letter for letter.

What no policy cites is asked about once more, and then listed. A policy whose quote does not stand in the document is
sent back, and left out where it still does not.
"""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.desk import Desk
from bylaw.compile.identifier import slug
from bylaw.compile.prompt import render
from bylaw.compile.section import Section, sections
from bylaw.llm.chat import bare_json, schema_of
from bylaw.policy.document import Document, Sentence

_ROUNDS = 2


class Draft(Struct, frozen=True):
    """A policy as it was extracted."""

    id: str
    definition: str
    # What may be empty may be left out: a schema asks for it, and not every model has one.
    scope: str = ""
    description: str = ""
    quotes: tuple[str, ...] = ()


class Remark(Struct, frozen=True):
    """A sentence that is said to lay nothing down."""

    number: int
    why: str = ""


class _Listed(Struct, frozen=True):
    policies: tuple[Draft, ...]


class _Covering(Struct, frozen=True):
    policies: tuple[Draft, ...] = ()
    others: tuple[Remark, ...] = ()


class Extraction(Struct, frozen=True):
    """What the document was found to say."""

    drafts: tuple[Draft, ...]
    dropped: tuple[str, ...] = ()
    """Policies that were left out, each with why."""
    aside: dict[str, str] = {}
    """Sentences that no policy cites, by digest, with what was said of them."""


def extract(desk: Desk, document: Document, title: str) -> Extraction | None:
    """The policies of the document; None while an answer is missing."""
    found: list[Draft] = []
    dropped: list[str] = []
    missing = False
    for section in sections(document):
        shown = {"title": title, "above": " > ".join(section.above) or "none", "text": section.text}
        request = render("extract", shown, schema=schema_of(_Listed), max_tokens=8192)
        outcome = desk.converse(request, lambda text: _judged(text, document), rounds=_ROUNDS)
        if outcome is None:
            missing = True
            continue
        found += outcome.made
        dropped += outcome.complaints
    return None if missing else Extraction(named_apart(found), tuple(dropped))


def cover(desk: Desk, document: Document, title: str, first: Extraction) -> Extraction | None:
    """The policies in sentences that none cites, and what is said of the others; None while an answer is missing."""
    found: list[Draft] = []
    dropped: list[str] = []
    aside = dict(first.aside)
    missing = False
    for section in sections(document):
        left = [each for each in uncovered(document, section, first.drafts) if each.digest not in first.aside]
        if not left:
            continue
        here = [draft for draft in first.drafts if _stands_in(draft, document, section)]
        shown = {
            "title": title,
            "text": section.text,
            "policies": "\n".join(f"- {draft.id}: {draft.definition}" for draft in here) or "none",
            "sentences": "\n".join(f"{number}. {each.text}" for number, each in enumerate(left, 1)),
        }
        request = render("cover", shown, schema=schema_of(_Covering))
        outcome = desk.converse(request, lambda text: _judged_cover(text, document), rounds=_ROUNDS)
        if outcome is None:
            missing = True
            continue
        drafts, others = outcome.made
        found += drafts
        dropped += outcome.complaints
        aside |= {left[each.number - 1].digest: each.why for each in others if 0 < each.number <= len(left)}
    taken = {draft.id for draft in first.drafts}
    return None if missing else Extraction(named_apart(found, taken), tuple(dropped), aside)


def uncovered(document: Document, section: Section, drafts: Iterable[Draft]) -> list[Sentence]:
    """The sentences of a part that no policy quotes, not even partly."""
    ranges = [place for draft in drafts for quote in draft.quotes if (place := document.find(quote)) is not None]
    return [
        each
        for each in section.sentences(document)
        if not any(start < each.end and each.start < end for start, end in ranges)
    ]


def named_apart(drafts: Sequence[Draft], taken: Iterable[str] = ()) -> tuple[Draft, ...]:
    """The drafts, each under an id of its own that a guard's function can bear."""
    used = set(taken)
    made: list[Draft] = []
    for draft in drafts:
        name = base = slug(draft.id) or "policy"
        number = 2
        while name in used:
            name, number = f"{base}-{number}", number + 1
        used.add(name)
        made.append(replace(draft, id=name))
    return tuple(made)


def _judged(text: str, document: Document) -> tuple[tuple[Draft, ...], list[str]]:
    try:
        listed = msgspec.json.decode(bare_json(text), type=_Listed)
    except (msgspec.DecodeError, RecursionError) as error:
        return (), [f"not the JSON asked for: {error}"]
    return _quoted(listed.policies, document)


def _judged_cover(text: str, document: Document) -> tuple[tuple[tuple[Draft, ...], tuple[Remark, ...]], list[str]]:
    try:
        covering = msgspec.json.decode(bare_json(text), type=_Covering)
    except (msgspec.DecodeError, RecursionError) as error:
        return ((), ()), [f"not the JSON asked for: {error}"]
    drafts, complaints = _quoted(covering.policies, document)
    return (drafts, covering.others), complaints


def _quoted(drafts: Sequence[Draft], document: Document) -> tuple[tuple[Draft, ...], list[str]]:
    """The drafts whose quotes stand in the document, and a complaint for each other."""
    kept: list[Draft] = []
    complaints: list[str] = []
    for draft in drafts:
        wrong = [quote for quote in draft.quotes if document.find(quote) is None]
        if not draft.quotes:
            complaints.append(f"`{draft.id}` quotes nothing")
        elif wrong:
            complaints += [f"`{draft.id}`: not in the text, letter for letter: {each}" for each in wrong]
        else:
            kept.append(draft)
    return tuple(kept), complaints


def _stands_in(draft: Draft, document: Document, section: Section) -> bool:
    places = [document.find(quote) for quote in draft.quotes]
    return any(place is not None and section.start <= place[0] < section.end for place in places)
