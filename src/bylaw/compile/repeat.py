"""Sentences that stand in several parts of a document: read part by part, they would become a policy for each part."""

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.check import Question
from bylaw.compile.section import Section
from bylaw.compile.span import Draft, ranges, under_heading
from bylaw.policy.document import Document, Range, read_quote
from bylaw.policy.statement import told_place

_LITTLE = frozenset(
    re.findall(r"\w+", "a an the this that of to in on at for by with from be is are was were has have")
)
"""Words that two wordings of the same thing may have or lack; none of them turns a meaning round."""


class Repeats(Struct, frozen=True):
    """What came of drafts that stand on the same words in several parts."""

    drafts: tuple[Draft, ...]
    """Without those that say the same again; those that say something else name their place."""
    dropped: dict[str, str]
    """Those that say the same again, by id, and which they repeat."""
    questions: dict[str, tuple[Question, ...]]
    """By policy: whether it says something else than one that stands on the same words elsewhere."""


def told_repeats(section: Section, document: Document) -> str:
    """What is said of the sentences of a part that stand in an earlier part, too; empty where none does."""
    lines: dict[str, str] = {}
    for sentence in section.sentences(document):
        # By all its words: clauses with numbers of their own are told apart by whoever wrote them.
        first, *_ = document.places(sentence.text)
        if first[0] < section.start:
            lines[sentence.text] = f"- {sentence.text} ({_place(first, document)})"
    if not lines:
        return ""
    return (
        "\n\nThese sentences stand in an earlier part as well, and what is listed there goes for all their places. List"
        " one again only where it means something else here:\n\n" + "\n".join(lines.values())
    )


def told_apart(found: Sequence[tuple[Section, Draft]], document: Document) -> Repeats:
    """The drafts of all parts, in order, each once; their ids must differ already."""
    kept: list[tuple[Section, Draft]] = []
    by_words: dict[frozenset[str], list[int]] = {}
    dropped: dict[str, str] = {}
    pairs: list[tuple[int, int]] = []
    for section, draft in found:
        words = _repeated_words(draft, document)
        others = [at for at in by_words.get(words, ()) if kept[at][0] != section] if words else []
        same = next((kept[at][1] for at in others if _gist(kept[at][1]) == _gist(draft)), None)
        if same is not None:
            dropped[draft.id] = same.id
            continue
        pairs += [(at, len(kept)) for at in others]
        by_words.setdefault(words, []).append(len(kept))
        kept.append((section, draft))
    drafts = [draft for _, draft in kept]
    questions: dict[str, tuple[Question, ...]] = {}
    for one, other in pairs:
        for at in (one, other):
            section, draft = kept[at]
            drafts[at] = replace(draft, quotes=tuple(_at_home(quote, section, document) for quote in draft.quotes))
        questions[drafts[other].id] = (*questions.get(drafts[other].id, ()), _asked(drafts[other], drafts[one]))
    return Repeats(tuple(drafts), dropped, questions)


def _repeated_words(draft: Draft, document: Document) -> frozenset[str]:
    """The sentences of a draft, where each of them stands more than once and nothing says which is meant."""
    found = ranges(draft.quotes, document)
    if not found or any(len(places) == 1 for places in found):
        return frozenset()
    return frozenset(each.bare for places in found for each in document.within(*places[0]))


def _at_home(quote: str, section: Section, document: Document) -> str:
    """A quote that says it means its place in a part; as it is where headings do not tell the places apart."""
    words = read_quote(quote, document).words
    own = [start for start, _ in document.places(words) if section.start <= start < section.end]
    return (under_heading(words, own[0], document) if own else "") or quote


def _gist(draft: Draft) -> frozenset[str]:
    """What a draft says, whatever the little words."""
    return frozenset(re.findall(r"\w+", f"{draft.definition} {draft.scope}".lower())) - _LITTLE


def _asked(draft: Draft, other: Draft) -> Question:
    text = (
        f"the words `{draft.quotes[0]}` were read as two policies: here as `{draft.definition}`, and as `{other.id}`:"
        f" `{other.definition}` If they are one, reject this one with a note; if both hold, accept both."
    )
    return Question(f"repeats the words of {other.id}", text)


def _place(place: Range, document: Document) -> str:
    start = place[0]
    return told_place(document.file_at(start).name, document.line_of(start), document.heading_at(start))
