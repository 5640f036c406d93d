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


class Ambiguous(Struct, frozen=True):
    """A quote that stands in several sentences; the first of them is taken."""

    policy: str
    quote: str
    lines: tuple[int, ...]


def ambiguous_quotes(pack: Pack) -> list[Ambiguous]:
    """The quotes of a pack that do not say which sentence they mean."""
    if pack.document is None:
        return []
    found: list[Ambiguous] = []
    for policy in pack.policies.values():
        for citation in policy.citations:
            held = pack.document.holding(citation.text) if citation.start >= 0 and citation.text else []
            if len({each.text for each in held}) > 1 and not _covers(citation.start, citation.end, held):
                found.append(Ambiguous(policy.id, citation.text or "", tuple(each.line for each in held)))
    return found


def _covers(start: int, end: int, held: list[Sentence]) -> bool:
    """Whether a quote goes over several sentences, and means them all."""
    return sum(start < each.end and each.start < end for each in held) == len(held)


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
