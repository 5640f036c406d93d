"""Finds related policies. They show the author of a check where a policy ends.

Two policies are related if they bind the same tool and cite the same sentence. They are also related if they share a
heading and one of them states an exception ("unless", "does not apply", "instead"). If policies from different
documents may repeat or contradict each other, the owner is asked.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from bylaw.compile.check import Question
from bylaw.compile.sort import Sorted
from bylaw.compile.span import Draft, covered, places
from bylaw.policy.document import Document

_MOST = 4
"""The maximum number of related policies to show."""
_EXCEPTS = re.compile(
    r"\b(except|unless|exempt|waive|exceptions?|instead of|in place of|regardless|overrides?|takes precedence"
    r"|(?:does|do|shall|will) not apply)",
    re.IGNORECASE,
)


def related(drafts: Sequence[Draft], kinds: Mapping[str, Sorted], document: Document) -> dict[str, tuple[Draft, ...]]:
    """For each policy, return the related policies, closest first. Only policies that bind tools are considered."""
    bound = [each for each in drafts if each.id in kinds and kinds[each.id].tools]
    starts = {each.id: covered([each.quotes], document) for each in bound}
    headings = {name: {document.headings_at(start)[-1:] for start in found} - {()} for name, found in starts.items()}
    excepts = {each.id: _EXCEPTS.search(" ".join((each.definition, *each.quotes))) is not None for each in bound}
    found: dict[str, tuple[Draft, ...]] = {}
    for one in bound:
        shared: list[Draft] = []
        excepted: list[Draft] = []
        for other in bound:
            if other.id == one.id or not set(kinds[one.id].tools) & set(kinds[other.id].tools):
                continue
            if starts[one.id] & starts[other.id]:
                shared.append(other)
            elif headings[one.id] & headings[other.id] and (excepts[one.id] or excepts[other.id]):
                excepted.append(other)
        if shared or excepted:
            found[one.id] = (*shared, *excepted)[:_MOST]
    return found


def related_text(policies: Sequence[Draft]) -> str:
    """List related policies, one per line, for display below the policy. Empty if there are none."""
    if not policies:
        return ""
    lines = (f"\n    {each.id}: {each.definition}" for each in policies)
    return f"\n  Beside it stand, each with a check of its own:{''.join(lines)}"


_ALIKE = 0.6
"""Two policies are similar if they have at least this share of words in common."""
_ASKED = 3
"""The maximum number of questions per policy."""
_COMMON = 0.1
"""Words that occur in more than this share of policies do not help to tell policies apart."""
_FEW = 20
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class _Said(Struct, frozen=True):
    draft: Draft
    files: frozenset[str]
    words: frozenset[str]
    numbers: frozenset[str]
    place: str


def overlaps(drafts: Sequence[Draft], document: Document) -> dict[str, tuple[Question, ...]]:
    """For each policy, ask whether it repeats or contradicts a policy from an earlier document."""
    if len(document.files) == 1:
        return {}
    said = [_said(draft, document) for draft in drafts]
    counts = Counter(word for each in said for word in each.words)
    most = max(_FEW, _COMMON * len(said))
    by_word: dict[str, list[int]] = {}
    found: dict[str, tuple[Question, ...]] = {}
    for number, one in enumerate(said):
        rare = [word for word in one.words if counts[word] <= most]
        rivals = Counter(other for word in rare for other in by_word.get(word, ()))
        asked = [_question(one, said[other]) for other in sorted(rivals) if _is_alike(one, said[other])]
        if asked:
            found[one.draft.id] = tuple(asked[:_ASKED])
        for word in rare:
            by_word.setdefault(word, []).append(number)
    return found


def _said(draft: Draft, document: Document) -> _Said:
    found = places(draft.quotes, document)
    text = " ".join([draft.definition, *(document.whole(start, end) for start, end in found)]).lower()
    words = frozenset(word.removesuffix("s") for word in re.findall(r"[^\W\d_]{3,}", text)) - _LITTLE
    first = found[0][0] if found else 0
    where = f"{document.file_at(first).name}:{document.line_of(first)}"
    files = frozenset(document.file_at(start).name for start, _ in found)
    return _Said(draft, files, words, frozenset(_NUMBER.findall(text)), where)


_LITTLE = frozenset(re.findall(r"\w+", "the and for with from are was has have must may can not any that this when"))


def _is_alike(one: _Said, other: _Said) -> bool:
    if one.files & other.files:
        return False
    return len(one.words & other.words) >= _ALIKE * len(one.words | other.words)


def _question(one: _Said, other: _Said) -> Question:
    told = f"`{one.draft.definition}` ({one.place}) and `{other.draft.definition}` ({other.draft.id}, {other.place})"
    if one.numbers != other.numbers:
        only = ", ".join(sorted(one.numbers ^ other.numbers))
        text = f"{told} differ in {only}. Do they contradict each other, and which holds? Correct the other document."
        return Question(f"may contradict {other.draft.id}", text)
    text = (
        f"{told} have similar wording. If they are one policy, reject this one with a note; if both hold, accept both."
    )
    return Question(f"may repeat {other.draft.id}", text)
