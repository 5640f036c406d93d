"""The rows of an audit: judged calls, broken rules and conversations.

This is the one schema of the findings. `calls.jsonl`, `findings.jsonl` and `conversations.jsonl` hold a row a line;
tables, exports and the report are made from the same rows.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from bylaw.audit.finding import FLAGGED, Charge, Finding
from bylaw.engine.limited import LimitedCall
from bylaw.pack import Criterion

encode = msgspec.json.Encoder(enc_hook=str, decimal_format="string").encode

JsonRecord = dict[str, Any]
FINDING_IDS = 2
"""The version of finding ids, for `summary.json`: since 2, an id depends on the arguments of the call."""


class Lookup(Struct):
    """A look-up that would show a fact."""

    tool: str
    args: dict[str, Any] = {}


class MissingRow(Struct, kw_only=True):
    """A fact that the strict criterion lacks."""

    entity: str
    key: list[Any] | None = None
    field: str
    lookup: Lookup | None = None
    reason: str = ""
    claimed_at: int | None = None
    claim: str | None = None
    stale_by: int | None = None
    decisive: bool | None = None


class AskRow(Struct):
    """A fact that only a person knows, and the question for it."""

    fact: str
    question: str


class PolicyRow(Struct, kw_only=True):
    """The verdict of one policy on a call."""

    id: str
    severity: str = "medium"
    strict: str
    determined: str
    evidence: str = ""
    world: str = ""
    missing: list[MissingRow] = []
    asks: list[AskRow] = []
    because: str = ""
    reason: dict[str, Any] = {}
    seen: list[dict[str, Any]] = []
    depends_on_user: bool | UnsetType = UNSET


class RuleRow(Struct, kw_only=True):
    """A rule that an act broke, may have broken, or that a call beyond a limit broke."""

    trajectory: str | UnsetType = UNSET
    finding: str | UnsetType = UNSET
    agent: str = ""
    step: int
    rule: str
    policy: str
    sentence: str = ""
    because: str = ""
    standing: str = "broken"
    predicates: list[Any] = []
    binding: dict[str, Any] | UnsetType = UNSET
    limit: str | UnsetType = UNSET

    def as_finding(self, severity: str) -> Finding:
        """The broken rule as a finding."""
        charge = Charge(self.policy, severity, "violation", self.because)
        head = (self.finding or "", "rule", self.rule, self.trajectory or "", self.agent, self.step)
        return Finding(*head, "violation", None, (charge,), self.because)


class CallRow(Struct, kw_only=True):
    """A judged call. The trajectory and the id of the finding are known when the row is written."""

    trajectory: str | UnsetType = UNSET
    finding: str | UnsetType = UNSET
    agent: str
    step: int
    call_id: str = ""
    tool: str
    executed: bool | None
    strict: str
    determined: str
    policies: list[PolicyRow]
    rules: list[RuleRow] = []
    open_rules: list[RuleRow] = []
    origins: list[Any] | UnsetType = UNSET
    answered: list[Any] | UnsetType = UNSET
    because: str | UnsetType = UNSET

    @property
    def is_plain(self) -> bool:
        """Whether the call is compliant and no rule is broken or undecided."""
        return self.strict == self.determined == "compliant" and not self.rules and not self.open_rules

    def as_finding(self, criterion: Criterion, verdicts: frozenset[str] = FLAGGED) -> Finding:
        """The call as a finding, with the policies that came to one of the verdicts."""
        charges = tuple(
            Charge(each.id, each.severity, getattr(each, criterion), each.because)
            for each in self.policies
            if getattr(each, criterion) in verdicts
        )
        head = (self.finding or "", "call", self.tool, self.trajectory or "", self.agent, self.step)
        is_judged = bool(self.policies or self.because)
        return Finding(*head, getattr(self, criterion), self.executed, charges, self.because or "", is_judged)


class ConversationRow(Struct, kw_only=True):
    """A conversation with its events; an event's index is its step."""

    trajectory: str | UnsetType = UNSET
    agent: str = ""
    file: str = ""
    position: int = 0
    outcome: dict[str, Any] | None = None
    events: list[dict[str, Any]] = []


class Head(Struct, frozen=True):
    """A conversation in figures: the columns of the tables, and what `Counts` counts."""

    agent: str
    file: str
    position: int
    pack: str
    outcome: bool | None
    outcome_source: str | None
    started: float | None
    ended: float | None
    writes: bool
    strict: tuple[str, ...]
    """The verdicts on its executed calls, the worst first."""
    determined: tuple[str, ...]
    violated: tuple[str, ...]
    """The severities of the policies that its executed calls violate (determined), the gravest first."""
    violated_strict: tuple[str, ...]
    rules: tuple[str, ...]
    """The severities of the rules that were broken, the gravest first."""


class Examined(Struct):
    """The encoded rows of one conversation, without its unique name, which depends on the conversations before it."""

    id: str
    calls: list[tuple[str, bool, bytes]]
    """The tool (with the arguments if the call is flagged), whether it is flagged, and its row."""
    conversation: bytes | None
    """Kept if there is a finding."""
    rules: list[tuple[str, bytes]]
    """Broken rules: the rule with the call that broke it, and its row."""
    limited: list[tuple[LimitedCall, bytes]]
    """Calls that count against limits, each with the row to write if it is over the limit."""
    head: Head

    def numbered_calls(self) -> Iterator[tuple[str, bool, bytes]]:
        """The calls, each with the key from which its finding's id is made."""
        keys = numbered(identity for identity, _, _ in self.calls)
        return ((key, flagged, row) for key, (_, flagged, row) in zip(keys, self.calls, strict=True))

    def numbered_rules(self) -> Iterator[tuple[str, bytes]]:
        """The broken rules, each with the key from which its finding's id is made."""
        keys = numbered(f"rule {identity}" for identity, _ in self.rules)
        return ((key, row) for key, (_, row) in zip(keys, self.rules, strict=True))


def record_of(row: Struct) -> JsonRecord:
    """A row as the record in its line."""
    return msgspec.to_builtins(row, enc_hook=str)


def numbered(identities: Iterable[str]) -> Iterator[str]:
    """Each call or broken rule with its number among equal ones of the conversation."""
    made: Counter[str] = Counter()
    for identity in identities:
        made[identity] += 1
        yield f"{identity}\0{made[identity]}"


def finding_id(trajectory: str, key: str) -> str:
    """The id of a finding: a hash of the conversation, the identity, and its number among the same identities.

    Steps are no part of it: a run made anew keeps its findings where only talk or look-ups moved. Arguments are: who
    waives 150.00 to A has not waived 9,000,000.00 to B.
    """
    return hashlib.blake2b(f"{trajectory}\0{key}".encode("utf-8", "replace"), digest_size=6).hexdigest()


def writable(text: str) -> str:
    """A text with invalid characters escaped, such as those of some file names."""
    return text.encode("utf-8", "backslashreplace").decode()


def named(row: bytes, trajectory: str, finding: str | None = None) -> bytes:
    """A line: the conversation's name, the finding's id, and the row."""
    head = b'{"trajectory":' + encode(trajectory)
    if finding is not None:
        head += b',"finding":' + encode(finding)
    return b"".join((head, b",", memoryview(row)[1:], b"\n"))
