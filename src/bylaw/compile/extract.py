"""The policies of the document: listed part by part, each with the sentences it stands on, letter for letter.

What no policy cites is asked about once more, and then listed. A policy whose quote does not stand in the document is
sent back, and left out where it still does not. Where the document has changed, what still stands is not read anew.
"""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from bylaw.compile.check import Question
from bylaw.compile.desk import Desk, Outcome, render, stage
from bylaw.compile.naming import slug
from bylaw.compile.reference import with_references
from bylaw.compile.repeat import told_apart, told_repeats
from bylaw.compile.section import Section, sections
from bylaw.compile.span import Draft, Listed, covered, places, stands
from bylaw.llm.chat import bare_json, schema_of
from bylaw.policy.document import Document, Sentence

_ROUNDS = 2
UNSAID = "nothing was said of it"
"""What stands beside a sentence that was asked about, and that the answer passed over."""


class Remark(Struct, frozen=True):
    """A sentence that is said to lay nothing down."""

    number: int
    why: str = ""


class _Listing(Struct, frozen=True):
    policies: tuple[Listed, ...]


class _Covering(Struct, frozen=True):
    policies: tuple[Listed, ...] = ()
    others: tuple[Remark, ...] = ()


class Extraction(Struct, frozen=True):
    """What the document was found to say."""

    drafts: tuple[Draft, ...]
    dropped: tuple[str, ...] = ()
    """Policies that were left out, each with why."""
    aside: dict[str, str] = {}
    """Sentences that no policy cites, by digest, with what was said of them."""
    questions: dict[str, tuple[Question, ...]] = {}
    """By policy what the owner of the document has to say of it."""
    repeats: dict[str, str] = {}
    """Policies that were left out, since they say what another one says on the same words in another part."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """What was left out, and why, a line each."""
        told = (f"`{name}` says what `{other}` says, on the same words" for name, other in self.repeats.items())
        return (*self.dropped, *told)


@stage
def extract(desk: Desk, document: Document, title: str) -> Extraction:
    """The policies of the document."""

    def ask(section: Section) -> Outcome[tuple[Draft, ...]]:
        shown = {"title": _called(title, section), "above": " > ".join(section.above) or "none", "text": section.text}
        shown["again"] = told_repeats(section, document)
        request = render("extract", shown, schema=schema_of(_Listing), max_tokens=8192)
        return desk.converse(request, lambda text: _judged(text, document), rounds=_ROUNDS)

    parts = sections(document)
    outcomes = desk.each(parts, ask)
    found = [(part, draft) for part, outcome in zip(parts, outcomes, strict=True) for draft in outcome.made]
    named = named_apart([draft for _, draft in found])
    once = told_apart([(section, draft) for (section, _), draft in zip(found, named, strict=True)], document)
    drafts = with_references(once.drafts, document)
    dropped = tuple(each for outcome in outcomes for each in outcome.complaints)
    return Extraction(drafts, dropped, questions=once.questions, repeats=once.dropped)


@stage
def cover(desk: Desk, document: Document, title: str, first: Extraction) -> Extraction:
    """The policies in sentences that none cites, and what is said of the others."""
    asked: set[str] = set()
    quoted = covered((draft.quotes for draft in first.drafts), document)
    uncited: list[tuple[Section, list[Sentence]]] = []
    for section in sections(document):
        # A sentence that stands again is asked about where it stands first.
        left = list({each.digest: each for each in section.sentences(document) if each.start not in quoted}.values())
        left = [each for each in left if each.digest not in first.aside and each.digest not in asked]
        asked |= {each.digest for each in left}
        uncited += [(section, left)] if left else []
    homes = [(draft, [start for start, _ in places(draft.quotes, document)]) for draft in first.drafts]

    def ask(part: tuple[Section, list[Sentence]]) -> Outcome[tuple[tuple[Draft, ...], tuple[Remark, ...]]]:
        section, left = part
        here = [draft for draft, starts in homes if any(section.start <= each < section.end for each in starts)]
        shown = {
            "title": _called(title, section),
            "text": section.text,
            "policies": "\n".join(f"- {draft.id}: {draft.definition}" for draft in here) or "none",
            "sentences": "\n".join(f"{number}. {each.text}" for number, each in enumerate(left, 1)),
        }
        request = render("cover", shown, schema=schema_of(_Covering))
        return desk.converse(request, lambda text: _judged_cover(text, document), rounds=_ROUNDS)

    found: list[Draft] = []
    dropped: list[str] = []
    aside = dict(first.aside)
    for (_, left), outcome in zip(uncited, desk.each(uncited, ask), strict=True):
        drafts, others = outcome.made
        found += drafts
        dropped += outcome.complaints
        aside |= {left[each.number - 1].digest: each.why for each in others if 0 < each.number <= len(left)}
        # What nobody spoke of is listed, too, so that the same document is not asked about again.
        spoken_of = covered((draft.quotes for draft in drafts), document)
        unsaid = [each for each in left if each.start not in spoken_of and each.digest not in aside]
        aside |= {each.digest: UNSAID for each in unsaid}
    taken = {draft.id for draft in first.drafts}
    drafts = with_references(named_apart(found, taken), document)
    return Extraction(drafts, tuple(dropped), aside)


def _called(title: str, section: Section) -> str:
    return f"{title}: {section.file}" if section.file else title


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
        listed = msgspec.json.decode(bare_json(text), type=_Listing)
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


def _quoted(drafts: Sequence[Listed], document: Document) -> tuple[tuple[Draft, ...], list[str]]:
    """The drafts whose quotes stand in the document, and a complaint for each other."""
    kept: list[Draft] = []
    complaints: list[str] = []
    for draft in drafts:
        wrong = [quote for quote in draft.quotes if not stands([quote], document)]
        if not draft.quotes:
            complaints.append(f"`{draft.id}` quotes nothing")
        elif wrong:
            complaints += [f"`{draft.id}`: not in the text, letter for letter: {each}" for each in wrong]
        else:
            kept.append(Draft(*astuple(draft)))
    return tuple(kept), complaints


_ALIKE = 0.6
"""How much of the words two versions of a policy's sentences share."""


def still_standing(earlier: Sequence[Extraction], document: Document) -> Extraction:
    """The policies all of whose sentences still stand in the document, and what was said of sentences without one."""
    drafts = [draft for each in earlier for draft in each.drafts]
    present = {sentence.digest for sentence in document.sentences}
    aside = {digest: said for each in earlier for digest, said in each.aside.items() if digest in present}
    kept = [draft for draft in drafts if stands(draft.quotes, document)]
    standing = {draft.id for draft in kept}
    asked = {name: each for found in earlier for name, each in found.questions.items() if name in standing}
    repeats = {name: other for found in earlier for name, other in found.repeats.items() if other in standing}
    return Extraction(with_references(kept, document), aside=aside, questions=asked, repeats=repeats)


def under_old_names(found: Extraction, kept: Extraction, before: Sequence[Draft]) -> Extraction:
    """New policies, each under the id of the one whose sentences it has in a new wording, where there is one."""
    standing = {draft.id for draft in kept.drafts}
    gone = [draft for draft in before if draft.id not in standing]
    pairs = sorted(
        ((_alike(new, old), new.id, old.id) for new in found.drafts for old in gone),
        key=lambda pair: (-pair[0], pair[1], pair[2]),
    )
    names: dict[str, str] = {}
    for alike, new, old in pairs:
        if alike >= _ALIKE and new not in names and old not in names.values():
            names[new] = old
    # A name that goes to another policy is no longer its bearer's.
    taken = standing | set(names.values())
    drafts: list[Draft] = []
    for draft in found.drafts:
        name = names.get(draft.id, draft.id)
        while draft.id not in names and name in taken:
            name = f"{name}-new"
        taken.add(name)
        drafts.append(replace(draft, id=name))
    return replace(found, drafts=tuple(drafts))


def _alike(one: Draft, other: Draft) -> float:
    texts = [" ".join(draft.quotes).split() for draft in (one, other)]
    return SequenceMatcher(None, *texts, autojunk=False).ratio()
