"""What an audit writes of a conversation: lines of `calls.jsonl`, `findings.jsonl` and `conversations.jsonl`."""

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw

from bylaw.engine.needed import KnownFact, MissingFact
from bylaw.engine.predicate_values import Answered
from bylaw.engine.reason import fact_record
from bylaw.engine.rule_finding import RuleFinding
from bylaw.engine.settlement import CallVerdict, PolicyVerdict
from bylaw.engine.wording import policy_words, rule_words
from bylaw.facts.entity import Fact
from bylaw.facts.value import plain
from bylaw.pack import Pack
from bylaw.policy.statement import Citation, Policy
from bylaw.rule.rule import Limit
from bylaw.trace.event import Call, Message
from bylaw.trace.trajectory import TaskOutcome, Trajectory

FLAGGED = frozenset({"violation", "near_miss", "uninformed"})

encode = msgspec.json.Encoder(enc_hook=str, decimal_format="string").encode
_sorted = msgspec.json.Encoder(enc_hook=str, decimal_format="string", order="sorted").encode


_QUOTED = re.compile(r"`[^`]*`?|'[^']*'?|\"[^\"]*\"?")
FINDING_IDS = 2
"""Which way findings are named, for `summary.json`: a finding's name used to say nothing of the call's arguments."""


def finding_id(trajectory: str, deed: str, number: int) -> str:
    """A finding's name: the `number`th such call (or breach of a rule by one) in a conversation.

    Steps are no part of it: a run made anew keeps its findings where only talk or look-ups moved. What was called with
    what is: who waives 150.00 to A has not waived 9,000,000.00 to B.
    """
    return hashlib.blake2b(f"{trajectory}\0{deed}\0{number}".encode("utf-8", "replace"), digest_size=6).hexdigest()


def deed_of(call: Call, told: str, scrubbed: Callable[[str], str] | None = None) -> str:
    """What names a call among those of a conversation: its tool, or the rule it breaks, and its arguments.

    Where something is private, arguments are `scrubbed` first: a hash of few possible values would tell which it was.
    """
    text = _sorted(call.arguments).decode() + call.fault
    text = text if scrubbed is None else scrubbed(text)
    return f"{told}\0{hashlib.blake2b(text.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"


def writable(text: str) -> str:
    """A text as a file can hold it: what is no character, as in some file names, is spelt out."""
    return text.encode("utf-8", "backslashreplace").decode()


def unquoted(text: str) -> str:
    """A message without the values it quotes."""
    return _QUOTED.sub("...", text)


def named(line: bytes, trajectory: str, finding: str | None = None) -> bytes:
    """A line's record with the conversation's name put first, as bytes."""
    head = b'{"trajectory":' + encode(trajectory)
    if finding is not None:
        head += b',"finding":' + encode(finding)
    return b"".join((head, b",", memoryview(line)[1:], b"\n"))


def call_line(pack: Pack, agent: str, verdict: CallVerdict, answered: Sequence[Answered] = ()) -> dict[str, Any]:
    """The record of one write call, all but its conversation's name."""
    made = verdict.made
    line: dict[str, Any] = {
        "agent": agent,
        "step": made.step,
        "call_id": made.call.id,
        "tool": made.call.tool,
        "executed": made.accepted,
        "strict": verdict.strict,
        "determined": verdict.determined,
        "policies": [_policy(pack, policy) for policy in verdict.policies],
        "rules": [rule_line(pack, agent, finding) for finding in verdict.rules],
        "open_rules": [rule_line(pack, agent, finding) for finding in verdict.open_rules],
    }
    if verdict.origins:
        line["origins"] = [origin.record() for origin in verdict.origins]
    if answered:
        line["answered"] = [_answer(each) for each in answered]
    if verdict.fault:
        line["because"] = verdict.fault
    return line


def whole_sentence(pack: Pack, citation: Citation) -> str | None:
    """What a policy cites, in whole sentences where it quotes only the beginning of one."""
    if pack.document is None or citation.start < 0 or not citation.text:
        return citation.text
    return pack.document.whole(citation.start, citation.end)


def rule_line(pack: Pack, agent: str, finding: RuleFinding) -> dict[str, Any]:
    """The record of one rule that is broken or open, all but its conversation's name."""
    policy = pack.policies[finding.rule.policy]
    return {
        "agent": agent,
        "step": finding.step,
        "rule": finding.rule.name,
        "policy": policy.id,
        "sentence": _sentence(pack, policy),
        "because": finding.because,
        **finding.record(),
    }


def limit_line(pack: Pack, agent: str, limit: Limit, step: int) -> dict[str, Any]:
    """The same of a call beyond a limit, should it turn out to be."""
    policy = pack.policies[limit.policy]
    line: dict[str, Any] = {
        "agent": agent,
        "step": step,
        "rule": limit.name,
        "policy": policy.id,
        "sentence": _sentence(pack, policy),
        "standing": "broken",
        "predicates": [],
        "limit": limit.text,
    }
    return line | {"because": rule_words(line)}


def _sentence(pack: Pack, policy: Policy) -> str:
    citation = policy.citations[0] if policy.citations else None
    return (whole_sentence(pack, citation) or str(citation)) if citation else policy.definition


def _answer(answered: Answered) -> dict[str, Any]:
    """Who said what of a predicate at a call, and at which steps the words stand that it rests on."""
    by = "model" if answered.queries else "host"
    steps = sorted({quote.step for quote in answered.quotes})
    return {"predicate": answered.predicate, "value": answered.value, "by": by, "quoted_at": steps}


@lru_cache(maxsize=4096)
def _compliant(id: str, severity: str, world: str) -> Raw:
    """Most policies have nothing to say of a call: their part of the line is written once."""
    verdict = {"strict": "compliant", "determined": "compliant", "evidence": "permit", "world": world}
    nothing: dict[str, Any] = {
        "missing": [],
        "asks": [],
        "because": "",
        "reason": {"kind": "none", "words": ""},
        "seen": [],
    }
    return Raw(encode({"id": id, "severity": severity, **verdict, **nothing}))


def _policy(pack: Pack, verdict: PolicyVerdict) -> dict[str, Any] | Raw:
    if verdict.is_plain:
        world = "unknown" if verdict.world == "undetermined" else verdict.world
        return _compliant(verdict.policy.id, verdict.policy.severity, world)
    record: dict[str, Any] = {
        "id": verdict.policy.id,
        "severity": verdict.policy.severity,
        "strict": verdict.strict,
        "determined": verdict.determined,
        "evidence": verdict.evidence,
        "world": "unknown" if verdict.world == "undetermined" else verdict.world,
        "missing": [_missing(missing) for missing in verdict.missing],
        "asks": [{"fact": str(fact), "question": _question(pack, fact)} for fact in verdict.asks],
        "because": "",
        "reason": verdict.reason.record(),
        "seen": [_known(pack, known) for known in verdict.known],
    }
    record["because"] = policy_words(record)
    if verdict.depends_on_user:
        record["depends_on_user"] = True
    return record


def _missing(missing: MissingFact) -> dict[str, Any]:
    lookup = missing.lookup
    return {
        **fact_record(missing.fact),
        "lookup": {"tool": lookup[0], "args": lookup[1]} if lookup else None,
        "reason": missing.reason,
        "claimed_at": missing.claimed_at,
        "claim": missing.claim,
        "stale_by": missing.stale_by,
        "decisive": missing.decisive,
    }


def _known(pack: Pack, known: KnownFact) -> dict[str, Any]:
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


def conversation_line(trajectory: Trajectory, agent: str, outcome: TaskOutcome | None) -> dict[str, Any]:
    """The record of one conversation, all but its name; an event's index is its step."""
    events: list[dict[str, Any]] = []
    for event in trajectory.events:
        if isinstance(event, Message):
            events.append({"type": "message", "by": event.by, "text": event.text})
        elif isinstance(event, Call):
            record = {"type": "call", "tool": event.tool, "arguments": event.arguments, "id": event.id, "by": event.by}
            events.append(record)
        else:
            events.append({"type": "result", "call": event.call, "text": event.text, "error": event.error})
    return {
        "agent": agent,
        "file": writable(trajectory.file),
        "position": trajectory.position,
        "outcome": None if outcome is None else {"good": outcome.good, "source": outcome.source},
        "events": events,
    }
