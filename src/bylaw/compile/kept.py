"""A document that changed: what an earlier reading found and still stands, so that only the change is read anew."""

from collections.abc import Sequence
from difflib import SequenceMatcher

from msgspec.structs import replace

from bylaw.compile.draft import Draft
from bylaw.compile.extract import Extraction
from bylaw.compile.reference import with_references
from bylaw.compile.span import stands
from bylaw.policy.document import Document

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
