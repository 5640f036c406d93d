"""One atomic policy: what it says, where the document says it, and what holds calls to it."""

from typing import Literal

from msgspec import Struct, field

from bylaw.errors import BylawError
from bylaw.policy.reading import Scalar

DRAFTED_BY = "bylaw init"
"""Who signs for what a draft leaves undecided: nobody has looked at it yet."""


class StatementError(BylawError):
    """A policy or a tool of a pack does not say what it must."""

    code = "BY406"


PolicyKind = Literal["guard", "rule", "conversation", "knowledge"]
Severity = Literal["high", "medium", "low"]


class Stand(Struct, frozen=True):
    """A place where a cited sentence stands once more."""

    document: str
    heading: str
    line: int
    start: int
    end: int

    def __str__(self) -> str:
        return told_place(self.document, self.line, self.heading)


class Citation(Struct, frozen=True):
    """What the document says, in whole sentences, and where. `text` is None where the document is not at hand."""

    document: str
    heading: str
    line: int
    """0 where nobody knows it: the document is not at hand, or does not say it."""
    text: str | None = None
    start: int = -1
    end: int = -1
    again: tuple[Stand, ...] = ()
    """The same sentences elsewhere, where the policy means these places, too."""

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The characters of the document that it covers."""
        own = ((self.start, self.end),) if self.start >= 0 else ()
        return (*own, *((each.start, each.end) for each in self.again))

    def __str__(self) -> str:
        return ", ".join([told_place(self.document, self.line, self.heading), *map(str, self.again)])


def told_place(document: str, line: int, heading: str) -> str:
    """`policy.md:12 (Returns)`, as far as it is known."""
    where = f"{document}:{line}" if line else document
    return f"{where} ({heading})" if heading else where


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


class WrittenTools(Struct, frozen=True, forbid_unknown_fields=True):
    """The tools that a policy binds, by what they do and take."""

    effect: Scalar | None = None
    with_: Scalar | list[Scalar] = field(name="with", default_factory=list[Scalar])
    except_: Scalar | list[Scalar] = field(name="except", default_factory=list[Scalar])


class WrittenSpan(Struct, frozen=True, forbid_unknown_fields=True):
    """A cited sentence in policies.yaml: its words, or its place and digest; `at` has several of them."""

    quote: Scalar | None = None
    document: Scalar = ""
    heading: Scalar = ""
    line: int | None = None
    sentence: int = 1
    digest: str | None = None
    at: dict[str, str] = {}


class WrittenUnenforced(Struct, frozen=True, forbid_unknown_fields=True):
    """Who accepts that nothing enforces a policy, and why."""

    accepted_by: Scalar = ""
    reason: Scalar = ""


class WrittenPolicy(Struct, frozen=True, forbid_unknown_fields=True):
    """A policy in policies.yaml."""

    id: Scalar = ""
    kind: Scalar = "guard"
    definition: Scalar = ""
    description: Scalar = ""
    scope: Scalar = ""
    severity: Scalar = "medium"
    tools: list[Scalar | WrittenTools] | WrittenTools = field(default_factory=list[Scalar | WrittenTools])
    spans: list[Scalar | WrittenSpan] = []
    unenforced: WrittenUnenforced | None = None


class PoliciesFile(Struct, frozen=True, forbid_unknown_fields=True):
    """policies.yaml."""

    policies: list[WrittenPolicy] = []
