"""Which sentences of the document the pack covers, and with what."""

from msgspec import Struct

from bylaw.engine.pack import Pack
from bylaw.policy.document import Sentence
from bylaw.policy.statement import Policy


class Covered(Struct, frozen=True):
    """One sentence of the document and the policies that cite it."""

    sentence: Sentence
    policies: tuple[Policy, ...]
    checked: tuple[str, ...]
    """Those of them that a guard or a rule holds calls to, and nobody marked as unenforced."""

    @property
    def enforced(self) -> bool:
        """Whether calls are held to it."""
        return bool(self.checked)

    @property
    def state(self) -> str:
        """`enforced`, `listed` (a policy cites it, nothing enforces it) or `uncovered`."""
        if self.enforced:
            return "enforced"
        return "listed" if self.policies else "uncovered"


def covered_sentences(pack: Pack) -> list[Covered]:
    """Every sentence of the document, in order; empty where the document is not at hand."""
    if pack.document is None:
        return []
    spans = [(c.start, c.end, policy) for policy in pack.policies.values() for c in policy.citations if c.start >= 0]
    held = pack.guards.keys() | {rule.policy for rule in pack.book.rules}
    covered: list[Covered] = []
    for sentence in pack.document.sentences:
        citing = (policy for start, end, policy in spans if start < sentence.end and sentence.start < end)
        policies = tuple({policy.id: policy for policy in citing}.values())
        checked = tuple(policy.id for policy in policies if policy.id in held and policy.unenforced is None)
        covered.append(Covered(sentence, policies, checked))
    return covered
