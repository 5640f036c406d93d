"""Which sentences of the document the pack covers, and with what."""

from msgspec import Struct

from bylaw.pack import Pack
from bylaw.policy.document import Sentence
from bylaw.policy.statement import Policy


class Covered(Struct, frozen=True):
    """One sentence of the document and the policies that cite it."""

    sentence: Sentence
    policies: tuple[Policy, ...]
    checked: tuple[str, ...]
    """Those of them that a guard or a rule holds calls to, and nobody marked as unenforced."""
    document: str = ""
    """The file that it stands in."""

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
    """Every sentence of the document, in order; empty where the document is not at hand."""
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
