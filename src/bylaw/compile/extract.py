"""Extracts the document's policies section by section, with verbatim quotes.

Sentences that no policy cites are put to the model once more, and those that still yield no policy are listed. A policy
with a quote that is not in the document is sent back for correction, and dropped if its quote is still wrong. If the
document changes, the policies of unchanged sections are reused.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import astuple, replace

from bylaw.compile.check import Question
from bylaw.compile.desk import Desk, Outcome, json_prompt, stage
from bylaw.compile.naming import slug
from bylaw.compile.span import Draft, Listed, covered, places, ranges, stands, under_heading
from bylaw.policy.document import HEADING, Document, File, Sentence, read_quote
from bylaw.policy.statement import told_place

LONGEST = 3_000
"""The maximum length of a section in characters. A longer paragraph is not split."""
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n\s*\n")


class Section(Struct, frozen=True):
    """A range of the document, with the headings above it."""

    start: int
    end: int
    above: tuple[str, ...]
    text: str
    file: str = ""
    """The document's name, if there are several documents."""

    def sentences(self, document: Document) -> list[Sentence]:
        return list(document.starting_in(self.start, self.end))


def sections(document: Document, *, longest: int = LONGEST) -> tuple[Section, ...]:
    """Split the document into sections of about `longest` characters, each with at least one sentence."""
    found = [_section(document, file, *each) for file in document.files for each in _parts(file.text, longest)]
    return tuple(each for each in found if document.starting_in(each.start, each.end))


def _section(document: Document, file: File, start: int, end: int) -> Section:
    above = document.headings_at(file.start + start)
    if _HEADING.match(file.text, start):
        above = above[:-1]
    name = file.name if len(document.files) > 1 else ""
    return Section(file.start + start, file.start + end, above, file.text[start:end].strip(), name)


def _parts(text: str, longest: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of consecutive blocks. A range ends before it would be too long."""
    begin = 0
    for start, end in _blocks(text, longest):
        if start > begin and end - begin > longest:
            yield begin, start
            begin = start
    yield begin, len(text)


def _blocks(text: str, longest: int) -> Iterator[tuple[int, int]]:
    """Yield ranges that are not split: a heading with its text or, if the text is too long, single paragraphs."""
    cuts = sorted({0, len(text), *(match.start() for match in _HEADING.finditer(text))})
    for start, end in pairwise(cuts):
        if end - start <= longest:
            yield start, end
            continue
        inner = [start, *(match.end() for match in _PARAGRAPH.finditer(text, start, end)), end]
        yield from ((first, last) for first, last in pairwise(inner) if first < last)


_LONGEST = 1_500
"""The maximum number of characters shown from another document."""
_MOST = 3
"""The maximum number of other documents shown with one policy."""
_LINK = re.compile(r"\]\(([^)\s#]+)[^)]*\)")
_SHORTEST = 2
"""The minimum number of words in a title. A single word such as `Fees` occurs in too many sentences."""
_LEANS = re.compile(
    r"\W*(otherwise|else|instead|then|likewise|in (that|this|such|these|those) cases?|this|these|those|that|such"
    r"|it|they|the same|even (then|so)|both|neither)\b",
    re.IGNORECASE,
)
"""Matches the start of a sentence that depends on the preceding sentence."""


def with_references(drafts: Sequence[Draft], document: Document) -> tuple[Draft, ...]:
    """Add to each draft the passages to which its sentences refer: other documents, and the sentence before."""
    titles = {file.name: _title(file) for file in document.files} if len(document.files) > 1 else {}
    before = {
        after.start: one
        for one, after in pairwise(document.sentences)
        if one.heading == after.heading and _LEANS.match(after.text)
    }
    found: list[Draft] = []
    for draft in drafts:
        own = covered([draft.quotes], document)
        earlier = [before[start] for start in sorted(own) if start in before and before[start].start not in own]
        leaned_on = (f"the sentence before it: {' '.join(each.text.split())[:_LONGEST]}" for each in earlier)
        found.append(replace(draft, refers="\n".join([*_referred(draft, document, titles), *leaned_on])))
    return tuple(found)


def _referred(draft: Draft, document: Document, titles: Mapping[str, str]) -> list[str]:
    """Return the other documents that a policy's sentences link to or name."""
    found = places(draft.quotes, document)
    own = {document.file_at(start).name for start, _ in found}
    text = " ".join(document.whole(start, end) for start, end in found)
    links = {PurePosixPath(link).name for link in _LINK.findall(text)}
    words = f" {_plain(text)} "
    named: list[str] = []
    for file in document.files:
        name, title = PurePosixPath(file.name).name, titles.get(file.name)
        if title is None or file.name in own:
            continue
        if name in links or name in text or (title and f" {title} " in words):
            named.append(f"{name}: {' '.join(file.text.split())[:_LONGEST]}")
    return named[:_MOST]


def _title(file: File) -> str:
    """Return a document's first heading, or an empty string if that heading is too short to be recognised in a
    sentence.
    """
    heading = next((match[2] for line in file.text.split("\n") if (match := HEADING.match(line.strip()))), "")
    words = _plain(heading)
    return words if len(words.split()) >= _SHORTEST else ""


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


class Repeats(Struct, frozen=True):
    """The result of comparing drafts that quote the same words in several sections."""

    drafts: tuple[Draft, ...]
    """The drafts without repetitions. If two drafts quote the same text with different meanings, their quotes also
    state the section.
    """
    dropped: dict[str, str]
    """Maps the id of each dropped draft to the id of the draft that it repeats."""
    questions: dict[str, tuple[Question, ...]]
    """Questions about policies that quote the same text in different sections."""


def repeats_text(section: Section, document: Document) -> str:
    """Return a note on sentences that also occur in an earlier section, or an empty string if there are none."""
    lines: dict[str, str] = {}
    for sentence in section.sentences(document):
        # Clause numbers are compared too, because authors tell clauses apart by number.
        start, _ = document.places(sentence.text)[0]
        if start < section.start:
            place = told_place(document.file_at(start).name, document.line_of(start), document.heading_at(start))
            lines[sentence.text] = f"- {sentence.text} ({place})"
    if not lines:
        return ""
    return (
        "\n\nThese sentences stand in an earlier part as well, and what is listed there goes for all their places. List"
        " one again only where it means something else here:\n\n" + "\n".join(lines.values())
    )


def told_apart(found: Sequence[tuple[Section, Draft]], document: Document) -> Repeats:
    """Return the drafts of all sections in order, without repetitions. Requires unique draft ids."""
    kept: list[tuple[Section, Draft]] = []
    by_words: dict[frozenset[str], list[int]] = {}
    dropped: dict[str, str] = {}
    pairs: list[tuple[int, int]] = []
    for section, draft in found:
        words = _repeated_words(draft, document)
        others = [at for at in by_words.get(words, ()) if kept[at][0] != section] if words else []
        same = next((kept[at][1] for at in others if _meaning(kept[at][1]) == _meaning(draft)), None)
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
    """Return the sentences that a draft quotes if its quotes match several places. Otherwise, return an empty set."""
    found = ranges(draft.quotes, document)
    if any(len(places) == 1 for places in found):
        return frozenset()
    return frozenset(each.bare for places in found for each in document.within(*places[0]))


def _at_home(quote: str, section: Section, document: Document) -> str:
    """Add the section's headings to a quote, if these headings are enough to identify the place."""
    words = read_quote(quote, document).words
    own = [start for start, _ in document.places(words) if section.start <= start < section.end]
    return (under_heading(words, own[0], document) if own else "") or quote


def _meaning(draft: Draft) -> str:
    return _plain(f"{draft.definition} {draft.scope}")


def _asked(draft: Draft, other: Draft) -> Question:
    text = (
        f"the model derived two policies from `{draft.quotes[0]}`: `{draft.definition}` (this one), and `{other.id}`:"
        f" `{other.definition}` If both mean the same, reject this policy with a note; otherwise accept both."
    )
    return Question(f"quotes the same words as {other.id}", text)


UNSAID = "nothing was said of it"
"""The remark for a sentence that no answer mentions."""


class Remark(Struct, frozen=True):
    """A sentence that states no policy."""

    number: int
    why: str = ""


class _Listing(Struct, frozen=True):
    policies: tuple[Listed, ...]


class _Covering(Struct, frozen=True):
    policies: tuple[Listed, ...] = ()
    others: tuple[Remark, ...] = ()


_EXTRACT = json_prompt("extract", _Listing, max_tokens=8192)
_COVER = json_prompt("cover", _Covering)


class Extraction(Struct, frozen=True):
    drafts: tuple[Draft, ...]
    dropped: tuple[str, ...] = ()
    """Maps each policy that was left out to the reason."""
    aside: dict[str, str] = {}
    """Remarks on sentences that no policy cites, keyed by digest."""
    questions: dict[str, tuple[Question, ...]] = {}
    """Questions for the document's owner, keyed by policy."""
    repeats: dict[str, str] = {}
    """Maps each policy left out as a repetition to the policy in another section with the same quote and meaning."""

    @property
    def left_out(self) -> tuple[str, ...]:
        told = (f"`{name}` duplicates `{other}`: both quote the same words" for name, other in self.repeats.items())
        return (*self.dropped, *told)


@stage
def extract(desk: Desk, document: Document, title: str) -> Extraction:
    """Return the document's policies."""

    def ask(section: Section) -> Outcome[tuple[Draft, ...]]:
        shown = {"title": _called(title, section), "above": " > ".join(section.above) or "none", "text": section.text}
        shown["again"] = repeats_text(section, document)
        return desk.ask(_EXTRACT, shown, lambda listing: _quoted(listing.policies, document), empty=())

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
    """Return the policies found in uncited sentences, and remarks on the remaining uncited sentences."""
    asked = set(first.aside)
    quoted = covered((draft.quotes for draft in first.drafts), document)
    uncited: list[tuple[Section, list[Sentence]]] = []
    for section in sections(document):
        # Ask about a repeated sentence only at its first occurrence.
        unquoted = {each.digest: each for each in section.sentences(document) if each.start not in quoted}
        left = [each for digest, each in unquoted.items() if digest not in asked]
        asked |= unquoted.keys()
        uncited += [(section, left)] if left else []
    homes = [(draft, [start for start, _ in places(draft.quotes, document)]) for draft in first.drafts]

    def judged(answer: _Covering) -> tuple[tuple[tuple[Draft, ...], tuple[Remark, ...]], list[str]]:
        drafts, complaints = _quoted(answer.policies, document)
        return (drafts, answer.others), complaints

    def ask(part: tuple[Section, list[Sentence]]) -> Outcome[tuple[tuple[Draft, ...], tuple[Remark, ...]]]:
        section, left = part
        here = [draft for draft, starts in homes if any(section.start <= each < section.end for each in starts)]
        shown = {
            "title": _called(title, section),
            "text": section.text,
            "policies": "\n".join(f"- {draft.id}: {draft.definition}" for draft in here) or "none",
            "sentences": "\n".join(f"{number}. {each.text}" for number, each in enumerate(left, 1)),
        }
        return desk.ask(_COVER, shown, judged, empty=((), ()))

    found: list[Draft] = []
    dropped: list[str] = []
    aside = dict(first.aside)
    for (_, left), outcome in zip(uncited, desk.each(uncited, ask), strict=True):
        drafts, others = outcome.made
        found += drafts
        dropped += outcome.complaints
        aside |= {left[each.number - 1].digest: each.why for each in others if 0 < each.number <= len(left)}
        # Also list sentences that the answer does not mention, so that they are not asked about again while the
        # document is unchanged.
        spoken_of = covered((draft.quotes for draft in drafts), document)
        unsaid = [each for each in left if each.start not in spoken_of and each.digest not in aside]
        aside |= {each.digest: UNSAID for each in unsaid}
    taken = {draft.id for draft in first.drafts}
    drafts = with_references(named_apart(found, taken), document)
    return Extraction(drafts, tuple(dropped), aside)


def _called(title: str, section: Section) -> str:
    return f"{title}: {section.file}" if section.file else title


def named_apart(drafts: Sequence[Draft], taken: Iterable[str] = ()) -> tuple[Draft, ...]:
    """Give each draft a unique id that is also a valid function name."""
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


def _quoted(drafts: Sequence[Listed], document: Document) -> tuple[tuple[Draft, ...], list[str]]:
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
"""Two sentences are treated as versions of one sentence if at least this fraction of their words is the same."""


def still_standing(earlier: Sequence[Extraction], document: Document) -> Extraction:
    """Return earlier policies whose sentences are all still in the document, and remarks on uncited sentences."""
    drafts = [draft for each in earlier for draft in each.drafts]
    present = {sentence.digest for sentence in document.sentences}
    aside = {digest: said for each in earlier for digest, said in each.aside.items() if digest in present}
    kept = [draft for draft in drafts if stands(draft.quotes, document)]
    standing = {draft.id for draft in kept}
    asked = {name: each for found in earlier for name, each in found.questions.items() if name in standing}
    repeats = {name: other for found in earlier for name, other in found.repeats.items() if other in standing}
    return Extraction(with_references(kept, document), aside=aside, questions=asked, repeats=repeats)


def under_old_names(found: Extraction, kept: Extraction, before: Sequence[Draft]) -> Extraction:
    """Give a new policy the id of an earlier policy if the new policy only rewords the earlier one."""
    standing = {draft.id for draft in kept.drafts}
    gone = [draft for draft in before if draft.id not in standing]
    pairs = sorted((-_alike(new, old), new.id, old.id) for new in found.drafts for old in gone)
    names: dict[str, str] = {}
    for unlike, new, old in pairs:
        if -unlike >= _ALIKE and new not in names and old not in names.values():
            names[new] = old
    # A draft that takes an earlier policy's id frees the id that it had before.
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
