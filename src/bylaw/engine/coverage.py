"""Which sentences of the document the pack covers, and with what."""

from msgspec import Struct

from bylaw.engine.pack import Pack
from bylaw.policy.document import Sentence
from bylaw.policy.statement import Policy


class Covered(Struct, frozen=True):
    """One sentence of the document and the policies that cite it."""

    sentence: Sentence
    policies: tuple[Policy, ...]

    @property
    def state(self) -> str:
        """`enforced`, `listed` (a policy cites it, nothing enforces it) or `uncovered`."""
        if any(p.kind in ("guard", "rule") and p.unenforced is None for p in self.policies):
            return "enforced"
        return "listed" if self.policies else "uncovered"


def cover(pack: Pack) -> list[Covered]:
    """Every sentence of the document, in order; empty where the document is not at hand."""
    if pack.document is None:
        return []
    spans = [(c.start, c.end, policy) for policy in pack.policies.values() for c in policy.citations if c.start >= 0]
    return [
        Covered(s, tuple(dict.fromkeys(policy for start, end, policy in spans if start < s.end and s.start < end)))
        for s in pack.document.sentences
    ]
