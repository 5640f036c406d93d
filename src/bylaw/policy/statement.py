"""One atomic policy: what it says, where the document says it, and what holds calls to it."""

from typing import Literal

from msgspec import Struct

PolicyKind = Literal["guard", "rule", "conversation", "knowledge"]
Severity = Literal["high", "medium", "low"]


class Citation(Struct, frozen=True):
    """Where the document says it. `text` is None where the document is not at hand."""

    document: str
    heading: str
    line: int
    text: str | None = None
    start: int = -1
    end: int = -1

    def __str__(self) -> str:
        where = f"{self.document}:{self.line}"
        return f"{where} ({self.heading})" if self.heading else where


class Unenforced(Struct, frozen=True):
    """A person's word that a policy nothing enforces may stay so for now."""

    accepted_by: str
    reason: str


class Policy(Struct, frozen=True):
    """One atomic policy of a pack."""

    id: str
    kind: PolicyKind
    definition: str
    """One sentence of our own wording."""
    tools: tuple[str, ...] = ()
    description: str = ""
    citations: tuple[Citation, ...] = ()
    severity: Severity = "medium"
    unenforced: Unenforced | None = None
    stale: bool = False
    """The cited sentence no longer stands in the document."""
