"""What was found of a conversation as rows of the tables, made from the very lines that the small audit writes.

So whatever those lines hide is hidden here, too.
"""

from collections import Counter
from datetime import UTC, date, datetime
from typing import Any

import msgspec
from msgspec import Raw, Struct

from bylaw.audit.batch.columns import Gathered
from bylaw.audit.batch.schema import TABLES
from bylaw.audit.examine import Examined
from bylaw.audit.finding import SEVERITIES
from bylaw.audit.line import FLAGGED, finding_id


class _Lookup(Struct):
    tool: str
    args: Raw = Raw(b"{}")


class _Missing(Struct):
    entity: str
    field: str
    key: list[Any] | None = None
    lookup: _Lookup | None = None
    reason: str = ""
    claimed_at: int | None = None
    claim: str | None = None
    stale_by: int | None = None
    decisive: bool | None = None


class _Ask(Struct):
    fact: str
    question: str


class _Policy(Struct):
    id: str
    severity: str
    strict: str
    determined: str
    because: str = ""
    missing: list[_Missing] = []
    asks: list[_Ask] = []


class _Rule(Struct):
    rule: str
    policy: str
    step: int
    agent: str = ""
    because: str = ""


class _Call(Struct):
    agent: str
    step: int
    call_id: str
    tool: str
    executed: bool | None
    strict: str
    determined: str
    policies: list[_Policy]
    rules: list[Raw] = []
    open_rules: list[_Rule] = []
    because: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the call is compliant and breaks no rule: its columns say all there is to say."""
        return self.strict == self.determined == "compliant" and not self.rules and not self.open_rules


_calls = msgspec.json.Decoder(_Call)
_rules = msgspec.json.Decoder(_Rule)
_json = msgspec.json.Encoder()


class Rows:
    """The rows of conversations, gathered until they are written."""

    def __init__(self, severities: dict[str, str], *, has_lines: bool = False) -> None:
        self.tables = {name: Gathered(name) for name in TABLES}
        self._severities = severities
        """By policy: the line of a broken rule does not name the severity."""
        self._has_lines = has_lines
        """Whether the lines of all calls are kept, so that files of lines can be written."""

    def __len__(self) -> int:
        """How many conversations are held."""
        return len(self.tables["conversations"])

    def clear(self) -> None:
        for table in self.tables.values():
            table.clear()

    def add(self, part: Examined, name: str, ordinal: int) -> None:
        """Add one conversation under its name."""
        head = part.head
        assert head is not None
        day, started = _moment(head.started)
        shared = {"conversation": name, "ordinal": ordinal, "day": day, "agent": head.agent}
        self.tables["conversations"].add(
            shared
            | {
                "file": head.file,
                "position": head.position,
                "pack": head.pack,
                "started": started,
                "ended": _moment(head.ended)[1],
                "outcome": head.good,
                "outcome_source": head.outcome_source,
                "calls": len(part.calls),
                "writes": head.writes,
                "strict": head.strict,
                "determined": head.determined,
                "violated": head.violated,
                "violated_strict": head.violated_strict,
                "rules": head.rules,
                "record": part.conversation.decode() if part.conversation is not None else None,
            }
        )
        made: Counter[str] = Counter()
        for _, tool, flagged, line in part.calls:
            made[tool] += 1
            self._call(shared, name, tool, made[tool], flagged, line)
        for rule, line in part.findings:
            made["rule " + rule] += 1
            self._rule(shared, name, rule, made["rule " + rule], line)

    def _call(self, shared: dict[str, Any], name: str, tool: str, number: int, flagged: bool, line: bytes) -> None:
        call = _calls.decode(line)
        id = finding_id(name, tool, number) if flagged else None
        of_call = shared | {"step": call.step, "executed": call.executed}
        of_verdict = of_call | {"strict": call.strict, "determined": call.determined}
        of_name = {"finding": id, "_name": tool, "_number": number}
        policies = [(p.id, p.severity, p.strict, p.determined) for p in call.policies]
        self.tables["calls"].add(
            of_verdict
            | of_name
            | {
                "call_id": call.call_id,
                "tool": call.tool,
                "because": call.because,
                "policies": policies,
                "policies_json": _coded(policies),
                "record": None if call.is_plain else line.decode(),
                "_line": line.decode() if self._has_lines else None,
                "open_rules": len(call.open_rules),
            }
        )
        if flagged:
            charged = [p for p in call.policies if p.strict in FLAGGED or p.determined in FLAGGED]
            self.tables["findings"].add(
                of_verdict
                | of_name
                | {
                    "kind": "call",
                    "name": call.tool,
                    "severity": gravest(p.severity for p in charged),
                    "policies": [(p.id, p.severity, p.strict, p.determined, p.because) for p in charged],
                    "because": call.because or "; ".join(filter(None, (p.because for p in charged))),
                }
            )
        for policy in call.policies:
            if policy.asks or policy.missing:
                self._wants(of_call | {"tool": call.tool}, call, policy)
        for rule in call.open_rules:
            self.tables["open_questions"].add(
                of_call
                | {"tool": call.tool, "kind": "rule", "policy": rule.policy, "rule": rule.rule, "because": rule.because}
            )

    def _wants(self, of_call: dict[str, Any], call: _Call, policy: _Policy) -> None:
        """What a policy asks, and what it lacks."""
        for ask in policy.asks:
            self.tables["open_questions"].add(
                of_call
                | {
                    "kind": "fact",
                    "policy": policy.id,
                    "fact": ask.fact,
                    "question": ask.question,
                    "because": policy.because,
                }
            )
        for fact in policy.missing:
            self.tables["missing_facts"].add(
                of_call
                | {
                    "strict": call.strict,
                    "determined": call.determined,
                    "policy": policy.id,
                    "severity": policy.severity,
                    "policy_strict": policy.strict,
                    "policy_determined": policy.determined,
                    "entity": fact.entity,
                    "key": None if fact.key is None else [str(part) for part in fact.key],
                    "field": fact.field,
                    "reason": fact.reason,
                    "lookup": fact.lookup.tool if fact.lookup is not None else None,
                    "lookup_args": bytes(fact.lookup.args).decode() if fact.lookup is not None else None,
                    "claim": fact.claim or None,
                    "claimed_at": fact.claimed_at,
                    "stale_by": fact.stale_by,
                    "decisive": fact.decisive,
                }
            )

    def _rule(self, shared: dict[str, Any], name: str, rule: str, number: int, line: bytes) -> None:
        found = _rules.decode(line)
        severity = self._severities.get(found.policy, "medium")
        key = "rule " + rule
        self.tables["findings"].add(
            shared
            | {
                "finding": finding_id(name, key, number),
                "_name": key,
                "_number": number,
                "kind": "rule",
                "name": found.rule,
                "step": found.step,
                "strict": "violation",
                "determined": "violation",
                "severity": severity,
                "policies": [(found.policy, severity, "violation", "violation", found.because)],
                "because": found.because,
                "record": line.decode(),
            }
        )


def _coded(policies: list[tuple[str, str, str, str]]) -> str:
    """The policies of a call as one word: there are few such words, so that calls alike are counted by their codes."""
    return _json.encode(policies).decode()


def gravest(severities: Any) -> str | None:
    """The gravest of some severities."""
    return min(severities, key=SEVERITIES.index, default=None)


def _moment(time: float | None) -> tuple[date | None, datetime | None]:
    """The day and the moment of a time, in UTC; neither where no calendar has it."""
    if time is None:
        return None, None
    try:
        moment = datetime.fromtimestamp(time, UTC)
    except (ValueError, OverflowError, OSError):
        return None, None
    return moment.date(), moment
