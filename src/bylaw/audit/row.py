"""The rows of an audit: judged calls, broken rules, conversations and findings.

`calls.jsonl`, `findings.jsonl` and `conversations.jsonl` have one row per line. Tables, exports and the report use the
same rows. A finding is a flagged call or a broken rule. It keeps its id in later audits.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from bylaw.engine.conduct import RuleFinding
from bylaw.engine.limited import LimitedCall
from bylaw.engine.predicate_values import Answered
from bylaw.engine.settlement import CallVerdict, KnownFact, MissingFact, PolicyVerdict
from bylaw.engine.verdict import WORST_FIRST, fact_record
from bylaw.engine.wording import policy_words, rule_words
from bylaw.facts.entity import Fact
from bylaw.facts.value import plain
from bylaw.pack import CRITERIA, Criterion, Pack
from bylaw.pack.review import Sides
from bylaw.policy.statement import Policy
from bylaw.rule.rule import Limit
from bylaw.trace.event import Call, Message, TaskOutcome, Trajectory

FLAGGED = frozenset({"violation", "near_miss", "uninformed"})
"""The verdicts that make a call a finding."""
SEVERITIES = ("high", "medium", "low")
"""Severities, gravest first."""
_GRAVEST_FIRST = ("violation", "near_miss", "broken", "uninformed", "inconclusive")


def rank(word: str, order: Sequence[str] = SEVERITIES) -> int:
    """Return the position of a severity or verdict in its order. Unknown values come last."""
    return order.index(word) if word in order else len(order)


def gravity(verdict: str, severity: str, *, executed: bool | None) -> int:
    """Return the sort key of a finding.

    Executed calls come before refused calls, then wrong before undecided, then the gravest severity and verdict.
    """
    is_wrong = verdict in ("violation", "near_miss", "broken")
    return 500 * (executed is False) + 100 * (not is_wrong) + 10 * rank(severity) + rank(verdict, _GRAVEST_FIRST)


class Charge(Struct, frozen=True):
    policy: str
    severity: str
    verdict: str
    because: str


class Finding(Struct, frozen=True):
    """A flagged call or a broken rule."""

    id: str
    kind: Literal["call", "rule"]
    name: str
    """The name of the tool or the rule."""
    trajectory: str
    agent: str
    step: int
    verdict: str
    """The verdict according to the audit's criterion."""
    executed: bool | None
    charges: tuple[Charge, ...]
    because: str = ""
    judged: bool = True
    """Whether any policy judged the call."""
    is_limit: bool = False
    """Whether the call exceeded a limit."""

    @property
    def gravest_first(self) -> list[Charge]:
        return sorted(self.charges, key=lambda each: gravity(each.verdict, each.severity, executed=self.executed))

    @property
    def gravity(self) -> int:
        severity = next((charge.severity for charge in self.gravest_first), "")
        return gravity(self.verdict, severity, executed=self.executed)

    def record(self) -> dict[str, Any]:
        return {
            "finding": self.id,
            "trajectory": self.trajectory,
            "agent": self.agent,
            "step": self.step,
            "tool" if self.kind == "call" else "rule": self.name,
            "verdict": self.verdict,
            "executed": self.executed,
            "policies": [{"id": c.policy, "severity": c.severity, "verdict": c.verdict} for c in self.charges],
        }


def is_worse(charge: Charge, known: Mapping[str, str]) -> bool:
    """Whether a policy's verdict is new, or worse than before."""
    return rank(charge.verdict, WORST_FIRST) < rank(known.get(charge.policy, ""), WORST_FIRST)


def lacked(missing: list[dict[str, Any]], criterion: Criterion) -> list[dict[str, Any]]:
    """Return the missing facts of a verdict.

    Under the criterion `determined`, return only the decisive facts if there are any.
    """
    deciding = [fact for fact in missing if fact.get("decisive") is not False]
    return deciding if criterion == "determined" and deciding else missing


encode = msgspec.json.Encoder(enc_hook=str, decimal_format="string").encode

JsonRecord = dict[str, Any]
FINDING_IDS = 2
"""The version of finding ids, for `summary.json`. Since version 2, ids depend on the call's arguments."""


class Lookup(Struct):
    tool: str
    args: dict[str, Any] = {}


class MissingRow(Struct, kw_only=True):
    """A missing fact that the strict criterion requires."""

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
    """A fact that only a person knows, with the question to ask."""

    fact: str
    question: str


class PolicyRow(Struct, kw_only=True):
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


class UndecidedRow(Struct):
    """An undecided policy, which a reviewer may settle, with a digest of the text that the reviewer sees."""

    policy: str
    seen: str


class RuleRow(Struct, kw_only=True):
    """A rule that a step broke or may have broken, or a limit that a call exceeded."""

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
        charge = Charge(self.policy, severity, "violation", self.because)
        head = (self.finding or "", "rule", self.rule, self.trajectory or "", self.agent, self.step)
        is_limit = isinstance(self.limit, str)
        return Finding(*head, "violation", None, (charge,), self.because, is_limit=is_limit)


class CallRow(Struct, kw_only=True):
    """A judged call. The conversation's name and the finding's id are added when the row is written."""

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
    called: str | UnsetType = UNSET
    undecided: list[UndecidedRow] | UnsetType = UNSET

    @property
    def is_plain(self) -> bool:
        """Whether the call is compliant and no rule is broken or undecided."""
        return self.strict == self.determined == "compliant" and not self.rules and not self.open_rules

    def as_finding(self, criterion: Criterion, verdicts: frozenset[str] = FLAGGED) -> Finding:
        """Return the call as a finding. It lists the policies whose verdict is one of `verdicts`."""
        charges = tuple(
            Charge(each.id, each.severity, getattr(each, criterion), each.because)
            for each in self.policies
            if getattr(each, criterion) in verdicts
        )
        head = (self.finding or "", "call", self.tool, self.trajectory or "", self.agent, self.step)
        is_judged = bool(self.policies or self.because)
        return Finding(*head, getattr(self, criterion), self.executed, charges, self.because or "", is_judged)


class ConversationRow(Struct, kw_only=True):
    """A conversation with its events. The index of an event is its step."""

    trajectory: str | UnsetType = UNSET
    agent: str = ""
    file: str = ""
    position: int = 0
    outcome: dict[str, Any] | None = None
    events: list[dict[str, Any]] = []


class Head(Struct, frozen=True):
    """A conversation's figures, from which the tables and `Counts` are made."""

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
    """The verdicts on executed calls under the criterion `strict`, worst first."""
    determined: tuple[str, ...]
    violated: tuple[str, ...]
    """The severities of the policies that executed calls violated under the criterion `determined`, gravest first."""
    violated_strict: tuple[str, ...]
    rules: tuple[str, ...]
    """The severities of the broken rules, gravest first."""


class Examined(Struct):
    """The encoded rows of one conversation, without its name.

    The name is added on writing, because it must be unique.
    """

    id: str
    calls: list[tuple[str, bool, bytes]]
    """For each call: its identity, whether it is flagged, and its row. A flagged call's identity includes its
    arguments.
    """
    conversation: bytes | None
    """The conversation, if it has a finding."""
    rules: list[tuple[str, bytes]]
    """For each broken rule: its identity and its row."""
    limited: list[tuple[LimitedCall, bytes]]
    """Calls that count towards limits. The row of each call is written only if the limit is exceeded."""
    head: Head

    def numbered_calls(self) -> Iterator[tuple[str, bool, bytes]]:
        keys = numbered(identity for identity, _, _ in self.calls)
        return ((key, flagged, row) for key, (_, flagged, row) in zip(keys, self.calls, strict=True))

    def numbered_rules(self) -> Iterator[tuple[str, bytes]]:
        keys = numbered(f"rule {identity}" for identity, _ in self.rules)
        return ((key, row) for key, (_, row) in zip(keys, self.rules, strict=True))


def record_of(row: Struct) -> JsonRecord:
    return msgspec.to_builtins(row, enc_hook=str)


def numbered(identities: Iterable[str]) -> Iterator[str]:
    """Append a number to each identity, counting its occurrences: 1 for the first, 2 for the second, and so on."""
    made: Counter[str] = Counter()
    for identity in identities:
        made[identity] += 1
        yield f"{identity}\0{made[identity]}"


def finding_id(trajectory: str, key: str) -> str:
    """Return the id of a finding: a hash of the conversation, the identity, and a number if several findings have this
    identity.

    Steps are not part of the hash, so the id stays the same if messages or look-ups are added. Arguments are part of
    it, so a waiver for 150.00 to A does not cover 9,000,000.00 to B.
    """
    return hashlib.blake2b(f"{trajectory}\0{key}".encode("utf-8", "replace"), digest_size=6).hexdigest()


def writable(text: str) -> str:
    """Escape invalid characters in text, which file names may contain."""
    return text.encode("utf-8", "backslashreplace").decode()


def named(row: bytes, trajectory: str, finding: str | None = None) -> bytes:
    """Add the conversation's name and the finding's id to an encoded row."""
    head = b'{"trajectory":' + encode(trajectory)
    if finding is not None:
        head += b',"finding":' + encode(finding)
    return b"".join((head, b",", memoryview(row)[1:], b"\n"))


_sorted = msgspec.json.Encoder(enc_hook=str, decimal_format="string", order="sorted").encode


def head_of(
    pack: Pack,
    trajectory: Trajectory,
    agent: str,
    outcome: TaskOutcome | None,
    verdicts: Sequence[CallVerdict],
    broken: Sequence[RuleFinding],
) -> Head:
    times = [event.time for event in trajectory.events if event.time is not None]
    executed = [v for v in verdicts if v.made.accepted is not False and v.made.tool is not None]

    def violated(criterion: Criterion) -> tuple[str, ...]:
        found = {p.policy.severity for v in executed for p in v.policies if getattr(p, criterion) == "violation"}
        return _in_order(SEVERITIES, found)

    return Head(
        agent=agent,
        file=writable(trajectory.file),
        position=trajectory.position,
        pack=pack.name,
        outcome=outcome.good if outcome is not None else None,
        outcome_source=outcome.source if outcome is not None else None,
        started=min(times, default=None),
        ended=max(times, default=None),
        writes=any(wrote(v) for v in executed),
        strict=_in_order(WORST_FIRST, {v.strict for v in executed}),
        determined=_in_order(WORST_FIRST, {v.determined for v in executed}),
        violated=violated("determined"),
        violated_strict=violated("strict"),
        rules=_in_order(SEVERITIES, {pack.policies[each.rule.policy].severity for each in broken}),
    )


def _in_order(order: Sequence[str], found: set[str]) -> tuple[str, ...]:
    return tuple(each for each in order if each in found)


def call_row(pack: Pack, agent: str, verdict: CallVerdict, answered: Sequence[JsonRecord] = ()) -> CallRow:
    made = verdict.made
    return CallRow(
        agent=agent,
        step=made.step,
        call_id=made.call.id,
        tool=made.call.tool,
        executed=made.accepted,
        strict=verdict.strict,
        determined=verdict.determined,
        policies=[_policy(pack, policy) for policy in verdict.policies],
        rules=[rule_row(pack, agent, finding) for finding in verdict.rules],
        open_rules=[rule_row(pack, agent, finding) for finding in verdict.open_rules],
        origins=[origin.record() for origin in verdict.origins] or UNSET,
        answered=[*answered] or UNSET,
        because=verdict.fault or UNSET,
        called=made.called or UNSET,
    )


def rule_row(pack: Pack, agent: str, finding: RuleFinding) -> RuleRow:
    policy = pack.policies[finding.rule.policy]
    return RuleRow(
        agent=agent,
        step=finding.step,
        rule=finding.rule.name,
        policy=policy.id,
        sentence=_sentence(policy),
        because=finding.because,
        **finding.record(),
    )


def judged_call(call: LimitedCall, head: Head, verdicts: Iterable[CallVerdict]) -> LimitedCall:
    """Return the judged call, with the guards' verdicts, for a call that counts towards a limit."""
    clean = tuple(each for each in CRITERIA if "violation" not in getattr(head, each))
    for verdict in verdicts:
        if verdict.made.step == call.step and verdict.made.accepted is not False:
            found = tuple(getattr(verdict, each) for each in CRITERIA)
            return replace(call, tool=verdict.made.call.tool, agent=head.agent, verdicts=found, clean=clean)
    return call


def limit_row(pack: Pack, agent: str, call: LimitedCall) -> RuleRow:
    limit: Limit = next(each for each in pack.book.limits if each.name == call.limit)
    policy = pack.policies[limit.policy]
    row = RuleRow(agent=agent, step=call.step, rule=limit.name, policy=policy.id, limit=limit.text)
    row.sentence = _sentence(policy)
    row.because = rule_words(record_of(row))
    return row


def _sentence(policy: Policy) -> str:
    citation = policy.citations[0] if policy.citations else None
    return (citation.whole or str(citation)) if citation else policy.definition


def answer_record(answered: Answered) -> JsonRecord:
    """Return the answer about a predicate at a call, with its value, source, reason, quotes and steps."""
    by = "model" if answered.queries else "host"
    steps = sorted({quote.step for quote in answered.quotes})
    told: JsonRecord = {"predicate": answered.predicate, "value": answered.value, "by": by, "quoted_at": steps}
    if answered.because:
        told["because"] = answered.because
    if answered.quotes:
        told["quotes"] = [{"step": each.step, "text": each.text} for each in answered.quotes]
    return told


@lru_cache(maxsize=4096)
def _plain(id: str, severity: str, world: str) -> PolicyRow:
    """Return the row for a policy whose verdict is plain, as most verdicts are."""
    row = PolicyRow(id=id, severity=severity, strict="compliant", determined="compliant", evidence="permit")
    return replace(row, world=world, reason={"kind": "none", "words": ""})


def _policy(pack: Pack, verdict: PolicyVerdict) -> PolicyRow:
    world = "unknown" if verdict.world == "undetermined" else verdict.world
    if verdict.is_plain:
        return _plain(verdict.policy.id, verdict.policy.severity, world)
    row = PolicyRow(
        id=verdict.policy.id,
        severity=verdict.policy.severity,
        strict=verdict.strict,
        determined=verdict.determined,
        evidence=verdict.evidence,
        world=world,
        missing=[_missing(missing) for missing in verdict.missing],
        asks=[AskRow(str(fact), _question(pack, fact)) for fact in verdict.asks],
        reason=verdict.reason.record(),
        seen=[_known(pack, known) for known in verdict.known],
        depends_on_user=True if verdict.depends_on_user else UNSET,
    )
    row.because = policy_words(record_of(row))
    return row


def _missing(missing: MissingFact) -> MissingRow:
    return MissingRow(
        **fact_record(missing.fact),
        lookup=Lookup(*missing.lookup) if missing.lookup else None,
        reason=missing.reason,
        claimed_at=missing.claimed_at,
        claim=missing.claim,
        stale_by=missing.stale_by,
        decisive=missing.decisive,
    )


def _known(pack: Pack, known: KnownFact) -> JsonRecord:
    record = {**fact_record(known.fact), "shown_at": known.shown_at}
    field = pack.schema.entities[known.fact.entity].fields.get(known.fact.field)
    value = plain(known.value)
    if (field is None or not field.private) and not isinstance(value, dict | list):
        record["value"] = value
    return record


def _question(pack: Pack, fact: Fact) -> str:
    # The host knows the time of the call even if the pack does not declare a clock.
    entity = pack.schema.entities.get(fact.entity)
    field = entity.fields.get(fact.field) if entity is not None else None
    return (field.question if field is not None else "") or f"what is {fact}?"


def conversation_row(trajectory: Trajectory, agent: str, outcome: TaskOutcome | None) -> ConversationRow:
    events: list[JsonRecord] = []
    for event in trajectory.events:
        if isinstance(event, Message):
            events.append({"type": "message", "by": event.by, "text": event.text})
        elif isinstance(event, Call):
            row = {"type": "call", "tool": event.tool, "arguments": event.arguments, "id": event.id, "by": event.by}
            events.append(row)
        else:
            events.append({"type": "result", "call": event.call, "text": event.text, "error": event.error})
    return ConversationRow(
        agent=agent,
        file=writable(trajectory.file),
        position=trajectory.position,
        outcome=None if outcome is None else {"good": outcome.good, "source": outcome.source},
        events=events,
    )


def identity_of(call: Call, name: str, scrubbed: Callable[[str], str] | None = None) -> str:
    """Return the identity of a call in its conversation: the tool or the broken rule, and a hash of the arguments.

    Private arguments are `scrubbed` first, because a value with few possibilities can be guessed from its hash.
    """
    text = _sorted(call.arguments).decode() + call.fault
    text = text if scrubbed is None else scrubbed(text)
    return f"{name}\0{hashlib.blake2b(text.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"


class SeenDigests:
    """Computes digests of the text that a reviewer sees: the conversation up to a call, and one policy with its check.

    Request the digests in step order. A `key` protects short texts from being guessed.
    """

    def __init__(self, name: str, events: Sequence[JsonRecord], key: bytes | None = None) -> None:
        self._events = events
        self._read = 0
        self._hash = hashlib.blake2b(_encoded(name), key=key or b"", digest_size=8)

    def of(self, step: int, policy: str, sides: Sides) -> str:
        for event in self._events[self._read : step + 1]:
            self._hash.update(_encoded(event))
        self._read = max(self._read, step + 1)
        digest = self._hash.copy()
        digest.update(_encoded([step, policy, sides.sentence, sides.check]))
        return digest.hexdigest()


def _encoded(data: Any) -> bytes:
    # Unlike msgspec, `json` can also write invalid text.
    return json.dumps(data, sort_keys=True, default=str).encode() + b"\n"


def undecided_policies(verdict: CallVerdict) -> list[str]:
    """Return the policies that a reviewer may settle at a call: those with no verdict or an undecided rule."""
    names = [each.policy.id for each in verdict.policies if "inconclusive" in (each.strict, each.determined)]
    return list(dict.fromkeys((*names, *(each.rule.policy for each in verdict.open_rules))))


def wrote(verdict: CallVerdict) -> bool:
    """Whether a call was executed and may have changed data."""
    tool = verdict.made.tool
    return tool is not None and tool.effect != "read" and verdict.made.accepted is not False
