"""The document's sentences, and the policies that cover each."""

from msgspec import Struct

from bylaw.pack import Pack
from bylaw.policy.document import Sentence
from bylaw.policy.statement import Policy


class Covered(Struct, frozen=True):
    """One sentence of the document and the policies that cite it."""

    sentence: Sentence
    policies: tuple[Policy, ...]
    checked: tuple[str, ...]
    """The citing policies that a guard or rule enforces."""
    document: str = ""
    """The sentence's file."""

    @property
    def enforced(self) -> bool:
        return bool(self.checked)

    @property
    def state(self) -> str:
        """`enforced`, `listed` (a policy cites it, nothing enforces it) or `uncovered`."""
        if self.enforced:
            return "enforced"
        return "listed" if self.policies else "uncovered"


def covered_sentences(pack: Pack) -> list[Covered]:
    """Every sentence of the document, in order; empty if the document is not available."""
    document = pack.document
    if document is None:
        return []
    citing: dict[int, dict[str, Policy]] = {}
    for policy in pack.policies.values():
        for start, end in (each for citation in policy.citations for each in citation.ranges):
            for sentence in document.within(start, end):
                citing.setdefault(sentence.start, {})[policy.id] = policy
    held = pack.guards.keys() | pack.book.enforced
    covered: list[Covered] = []
    for sentence in document.sentences:
        policies = tuple(citing.get(sentence.start, {}).values())
        checked = tuple(policy.id for policy in policies if policy.id in held and policy.unenforced is None)
        covered.append(Covered(sentence, policies, checked, document.file_at(sentence.start).name))
    return covered
