"""One judged conversation and its rows."""

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from bylaw.audit.counts import wrote
from bylaw.audit.finding import FLAGGED, SEVERITIES
from bylaw.audit.row import (
    AskRow,
    CallRow,
    ConversationRow,
    Examined,
    Head,
    JsonRecord,
    Lookup,
    MissingRow,
    PolicyRow,
    RuleRow,
    encode,
    record_of,
    writable,
)
from bylaw.engine.limited import LimitedCall
from bylaw.engine.needed import KnownFact, MissingFact
from bylaw.engine.predicate_values import Answered
from bylaw.engine.rule_finding import RuleFinding
from bylaw.engine.settlement import CallVerdict, PolicyVerdict
from bylaw.engine.verdict import WORST_FIRST, fact_record
from bylaw.engine.wording import policy_words, rule_words
from bylaw.facts.entity import Fact
from bylaw.facts.value import plain
from bylaw.pack import Criterion, Pack
from bylaw.policy.statement import Citation, Policy
from bylaw.rule.rule import Limit
from bylaw.trace.event import Call, Message
from bylaw.trace.trajectory import TaskOutcome, Trajectory

if TYPE_CHECKING:
    from bylaw.audit.cover import Cover

_sorted = msgspec.json.Encoder(enc_hook=str, decimal_format="string", order="sorted").encode


class Judged(Struct):
    """One conversation that was judged, before it is written."""

    pack: Pack
    trajectory: Trajectory
    outcome: TaskOutcome | None
    head: Head
    verdicts: list[CallVerdict]
    broken: list[RuleFinding]
    answered: list[Answered]
    limited: list[LimitedCall]

    def rows(self, cover: "Cover | None") -> Examined:
        """The rows of the conversation, with private values covered."""
        pack, trajectory, agent = self.pack, self.trajectory, self.head.agent
        scrubbed = cover.scrubbed if cover is not None else None
        calls: list[tuple[str, bool, bytes]] = []
        for verdict in self.verdicts:
            made = verdict.made
            row = call_row(pack, agent, verdict, [each for each in self.answered if each.step == made.step])
            flagged = verdict.strict in FLAGGED or verdict.determined in FLAGGED
            identity = identity_of(made.call, made.call.tool, scrubbed) if flagged else made.call.tool
            calls.append((identity, flagged, encode(row) if cover is None else cover.call(row)))
        rules: list[tuple[str, bytes]] = []
        for finding in self.broken:
            event = trajectory.events[finding.step] if 0 <= finding.step < len(trajectory.events) else None
            name = finding.rule.name
            identity = identity_of(event, name, scrubbed) if isinstance(event, Call) else name
            rules.append((identity, _written(rule_row(pack, agent, finding), cover)))
        conversation = None
        if rules or any(flagged for _, flagged, _ in calls):
            whole = conversation_row(trajectory, agent, self.outcome)
            conversation = encode(whole if cover is None else cover.conversation(whole))
        over = [(call, _written(limit_row(pack, agent, call), cover)) for call in self.limited]
        name = trajectory.id if cover is None else cover.name(trajectory.id)
        return Examined(name, calls, conversation, rules, over, self._shown_head(cover))

    def _shown_head(self, cover: "Cover | None") -> Head:
        if cover is None:
            return self.head
        shown = cover.conversation(ConversationRow(agent=self.head.agent, file=self.head.file))
        return replace(self.head, agent=shown.agent, file=shown.file)


def head_of(
    pack: Pack,
    trajectory: Trajectory,
    agent: str,
    outcome: TaskOutcome | None,
    verdicts: Sequence[CallVerdict],
    broken: Sequence[RuleFinding],
) -> Head:
    """A judged conversation in figures."""
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


def _written(row: RuleRow, cover: "Cover | None") -> bytes:
    return encode(row if cover is None else cover.rule(record_of(row)))


def call_row(pack: Pack, agent: str, verdict: CallVerdict, answered: Sequence[Answered] = ()) -> CallRow:
    """The row of one judged call."""
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
        answered=[_answer(each) for each in answered] or UNSET,
        because=verdict.fault or UNSET,
    )


def rule_row(pack: Pack, agent: str, finding: RuleFinding) -> RuleRow:
    """The row of one rule that is broken or open."""
    policy = pack.policies[finding.rule.policy]
    return RuleRow(
        agent=agent,
        step=finding.step,
        rule=finding.rule.name,
        policy=policy.id,
        sentence=_sentence(pack, policy),
        because=finding.because,
        **finding.record(),
    )


def limit_row(pack: Pack, agent: str, call: LimitedCall) -> RuleRow:
    """The row of a call beyond a limit, should it turn out to be."""
    limit: Limit = next(each for each in pack.book.limits if each.name == call.limit)
    policy = pack.policies[limit.policy]
    row = RuleRow(agent=agent, step=call.step, rule=limit.name, policy=policy.id, limit=limit.text)
    row.sentence = _sentence(pack, policy)
    row.because = rule_words(record_of(row))
    return row


def whole_sentence(pack: Pack, citation: Citation) -> str | None:
    """A citation, completed to whole sentences if it quotes only a beginning."""
    if pack.document is None or citation.start < 0 or not citation.text:
        return citation.text
    return pack.document.whole(citation.start, citation.end)


def _sentence(pack: Pack, policy: Policy) -> str:
    citation = policy.citations[0] if policy.citations else None
    return (whole_sentence(pack, citation) or str(citation)) if citation else policy.definition


def _answer(answered: Answered) -> JsonRecord:
    """The answer to a predicate at a call: its value, its source, and the steps of its quotes."""
    by = "model" if answered.queries else "host"
    steps = sorted({quote.step for quote in answered.quotes})
    return {"predicate": answered.predicate, "value": answered.value, "by": by, "quoted_at": steps}


@lru_cache(maxsize=4096)
def _plain(id: str, severity: str, world: str) -> PolicyRow:
    """The row of a plain verdict, which most policies have on most calls."""
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
    # The time of the call is the host's to say, whether or not the pack declares a context.
    entity = pack.schema.entities.get(fact.entity)
    field = entity.fields.get(fact.field) if entity is not None else None
    return (field.question if field is not None else "") or f"what is {fact}?"


def conversation_row(trajectory: Trajectory, agent: str, outcome: TaskOutcome | None) -> ConversationRow:
    """The row of one conversation."""
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
    """The identity of a call in its conversation: its tool, or the rule it breaks, and a hash of its arguments.

    Private arguments are `scrubbed` first: a hash over few possible values would reveal the value.
    """
    text = _sorted(call.arguments).decode() + call.fault
    text = text if scrubbed is None else scrubbed(text)
    return f"{name}\0{hashlib.blake2b(text.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"
