"""The counts of an audit. The counts of all parts add up to the counts of the whole audit."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import msgspec

from bylaw.audit.row import Head, wrote
from bylaw.engine.conduct import RuleFinding
from bylaw.engine.limited import LimitedCall, over_limits
from bylaw.engine.predicate_values import UNSAID, Answered
from bylaw.engine.settlement import CallVerdict, PolicyVerdict
from bylaw.engine.verdict import Verdict
from bylaw.facts.evidence import EvidenceCount
from bylaw.guard import no_such
from bylaw.pack import CRITERIA, Pack
from bylaw.trace.event import Call, Event, Result

if TYPE_CHECKING:
    from bylaw.audit.attestation import Settled
    from bylaw.audit.redaction import Redaction

ANSWERS = {True: "yes", False: "no", None: "open"}
"""The name of each answer in the counts. A value that is not listed here was stated by the user."""
STATED = "stated"
OPEN_REASONS: Mapping[str, str] = {
    "unread": "only a model or a person can judge the messages",
    "unanswered": "the log has no answer to the question",
    "perhaps_spent": "a similar call may already have used this consent",
    "no_card": "the card was not answered",
    "expired": "the user's yes is too old",
    "beside_card": "the message contained more than the question",
    "changed_card": "the text of the card was changed",
    "interrupted": "another message came between the card and the answer",
    "conditional": "the answer to the card is conditional",
    "other_language": "the answer to the card is in an unsupported language",
    "unclear": "the answer to the card is neither a clear yes nor a clear no",
    "unrecorded": "the message was not recorded",
    "question": "a question that only a model or a person can answer",
    "unseen": "a fact is unknown",
    "elsewhere": "an earlier step of the conversation is undecided",
}
"""The reasons why a rule is undecided, in words."""


class Counts:
    """All counts for `summary.json`: one flat counter, and values that are not counters."""

    def __init__(self, packs: Sequence[Pack]) -> None:
        self.numbers: Counter[tuple[str, ...]] = Counter()
        self.evidence = {pack.name: EvidenceCount(pack.schema) for pack in packs}
        """For each pack, how often the results of look-ups could be used as evidence."""
        self.limited: list[LimitedCall] = []
        """Calls that count towards a limit across conversations."""
        self.faults: list[dict[str, Any]] = []
        """Errors in Bylaw's own code, with their locations."""
        self.times: list[float] = []
        """The earliest and the latest event time, if the logs have times."""
        self._factless = {name for pack in packs for name, guard in pack.guards.items() if not guard.facts}
        """Policies whose guard reads no facts, so the call alone determines the verdict."""

    def record(self) -> dict[str, Any]:
        return {
            "numbers": [[*key, count] for key, count in self.numbers.items()],
            "evidence": {pack: count.graded for pack, count in self.evidence.items()},
            "limited": msgspec.to_builtins(self.limited),
            "faults": self.faults,
            "times": self.times,
        }

    def add(self, record: Mapping[str, Any], times: int = 1) -> None:
        """Add the counts of one part from its `record`. If several parts have equal counts, add them `times` times."""
        for *key, count in record["numbers"]:
            self.numbers[tuple(key)] += count * times
        for pack, graded in record["evidence"].items():
            self.evidence[pack].add_graded(graded, times)
        self.limited += msgspec.convert(record["limited"], list[LimitedCall]) * times
        self.faults += record["faults"] * times
        self._reach(record["times"])

    def with_limits(self, packs: Sequence[Pack]) -> "Counts":
        """Return a copy of the counts in which calls over a limit are violations."""
        made = copy(self)
        made.numbers = numbers = self.numbers.copy()
        judged = [call for call in over_limits(packs, self.limited) if call.verdicts]
        for call in {(call.file, call.position, call.step): call for call in judged}.values():
            for criterion, found in zip(CRITERIA, call.verdicts, strict=True):
                for prefix in (("call", "executed", criterion), ("tool", call.tool, criterion)):
                    numbers[*prefix, found] -= 1
                    numbers[*prefix, "violation"] += 1
        for call in {(call.file, call.position): call for call in judged}.values():
            for criterion in call.clean:
                numbers["agent", call.agent, criterion, "violation"] += 1
        return made

    def under(self, *prefix: str) -> dict[str, int]:
        """Return the counts whose names have this prefix, keyed by the last part of the name."""
        size = len(prefix)
        found = [(key[size], n) for key, n in self.numbers.items() if len(key) == size + 1 and key[:size] == prefix]
        return dict(sorted(found))

    def names(self, kind: str) -> list[str]:
        return sorted({key[1] for key in self.numbers if key[0] == kind})

    def add_times(self, events: Sequence[Event]) -> bool:
        """Record the time of a conversation. Return whether the conversation has a time."""
        times = [event.time for event in events if event.time is not None]
        self._reach(times)
        return bool(times)

    def _reach(self, times: Sequence[float]) -> None:
        if times:
            every = (*self.times, *times)
            self.times = [min(every), max(every)]

    def add_conversation(self, head: Head, verdicts: Sequence[CallVerdict]) -> None:
        counts, agent = self.numbers, head.agent
        counts["agent", agent, "trajectories"] += 1
        if head.outcome_source is not None:
            counts["outcome", head.outcome_source] += 1
            counts["agent", agent, "outcome_known"] += 1
            if not head.outcome:
                counts["agent", agent, "failures"] += 1
        if head.writes:
            counts["agent", agent, "with_write_calls"] += 1
        for severity in head.rules:
            counts["agent", agent, "rules", severity] += 1
        if head.rules:
            counts["agent", agent, "rules"] += 1
        for criterion, severities in (("strict", head.violated_strict), ("determined", head.violated)):
            found: tuple[str, ...] = getattr(head, criterion)
            if "violation" in found:
                counts["agent", agent, criterion, "violation"] += 1
            for severity in severities:
                counts["agent", agent, criterion, "violation", severity] += 1
            good = head.outcome if head.outcome is not None else "violation" not in found
            if "near_miss" in found and good:
                counts["agent", agent, criterion, "near_miss"] += 1
                if any(getattr(v, criterion) == "near_miss" and wrote(v) for v in verdicts):
                    counts["agent", agent, criterion, "near_miss", "write"] += 1
            if "uninformed" in found:
                counts["agent", agent, criterion, "uninformed"] += 1
        for verdict in verdicts:
            self._add_call(agent, verdict)

    def _add_call(self, agent: str, verdict: CallVerdict) -> None:
        counts, made, tool = self.numbers, verdict.made, verdict.made.call.tool
        counts["tool", tool, "calls"] += 1
        if made.result is None or not made.result.captured:
            counts["tool", tool, "result_not_captured"] += 1
        done = "refused" if made.accepted is False else "executed"
        for criterion in CRITERIA:
            found: Verdict = getattr(verdict, criterion)
            counts["call", done, criterion, found] += 1
            if found == "inconclusive" or verdict.open_rules:
                counts["undecided", done, criterion] += 1
        if done == "refused":
            return
        if made.is_perhaps_done():
            counts["tool", tool, "perhaps_done"] += 1
        counts["tool", tool, "executed"] += 1
        if made.tool is not None and made.tool.effect == "read":
            counts["tool", tool, "read"] |= 1
        counts["tool", tool, "strict", verdict.strict] += 1
        counts["tool", tool, "determined", verdict.determined] += 1
        for policy in verdict.policies:
            # One entry holds all four figures for a policy. `summary` separates them.
            could = "could_deny" if policy.could_deny or policy.policy.id in self._factless else ""
            counts["policy", policy.policy.id, policy.strict, policy.determined, could] += 1
        # If a verdict is plain, no facts are missing and the evidence matches the ground truth.
        if speaking := [policy for policy in verdict.policies if not policy.is_plain]:
            self._add_speaking(agent, verdict, speaking)

    def _add_speaking(self, agent: str, verdict: CallVerdict, speaking: Sequence[PolicyVerdict]) -> None:
        counts, tool = self.numbers, verdict.made.call.tool
        counts[("clockless",)] += any(
            fact.entity == "context" and fact.field == "now" for policy in speaking for fact in policy.asks
        )
        counts[("contradicted",)] += any(_is_contradicted(policy) for policy in speaking)
        for policy in speaking:
            if policy.reason.kind == "failed":
                # Record only the location of the error, because the message may contain private values.
                counts["failed", policy.policy.id, policy.reason.words.partition(": ")[0]] += 1
        for criterion in CRITERIA:
            if getattr(verdict, criterion) not in ("near_miss", "uninformed"):
                continue
            lacked = [
                missing
                for policy in speaking
                if getattr(policy, criterion) in ("near_miss", "uninformed")
                for missing in policy.missing
                if criterion == "strict" or missing.decisive
            ]
            for lookup in {each.lookup[0] if each.lookup else f"({each.fact.entity})" for each in lacked}:
                counts["lookup", lookup, criterion] += 1
                counts["lookup", lookup, criterion, "agents", agent] += 1
                counts["lookup", lookup, criterion, "tools", tool] += 1
            for reason in {each.reason for each in lacked}:
                counts["reason", criterion, reason] += 1

    def add_rules(self, agent: str, broken: Sequence[tuple[str, str]]) -> None:
        """Count the broken rules of one conversation. Each rule comes with its severity."""
        counts = self.numbers
        for name, severity in broken:
            counts["rule", name, "broken"] += 1
            counts["rule", name, "severity", severity] |= 1
        for name in {name for name, _ in broken}:
            counts["rule", name, "trajectories"] += 1
            counts["rule", name, "agents", agent] += 1

    def add_open(self, pack: Pack, verdicts: Sequence[CallVerdict]) -> None:
        """Count the undecided rules on a conversation's executed calls, by reason."""
        names: set[str] = set()
        for verdict in verdicts:
            if verdict.open_rules and verdict.made.accepted is not False:
                for name, reason in {each.rule.name: _open_reason(pack, each) for each in verdict.open_rules}.items():
                    names.add(name)
                    self.numbers["open", name, "calls"] += 1
                    self.numbers["open", name, "reasons", reason] += 1
        for name in names:
            self.numbers["open", name, "trajectories"] += 1

    def add_answered(self, answered: Sequence[Answered]) -> None:
        """Count the answers that a model gave in one conversation, by predicate and value."""
        for each in answered:
            if each.queries:
                value = each.value
                name = UNSAID if value == UNSAID else STATED if isinstance(value, str) else ANSWERS[value]
                self.numbers["answered", each.predicate, name] += 1

    def add_settled(self, settled: Sequence["Settled"]) -> None:
        """Count the reviewers' answers about one conversation, by rule or policy."""
        for each in settled:
            self.numbers["settled", each.name, ANSWERS[each.attestation.is_fine]] += 1


def _open_reason(pack: Pack, finding: RuleFinding) -> str:
    """Return why a rule is undecided: the reason of the first predicate without a value."""
    whys = dict(finding.whys)
    for name, value in finding.values:
        if value is not None:
            continue
        if (reason := str(whys.get(name, {}).get("reason", ""))) in OPEN_REASONS:
            return reason
        match pack.book.predicates[name].way:
            case "question":
                return "question"
            case "code" | "guard" | "tool":
                return "unseen"
            case _:
                return "unrecorded"
    return "elsewhere"


def _is_contradicted(policy: PolicyVerdict) -> bool:
    """Whether the ground-truth database contradicts the evidence, or lacks an entity that the agent saw."""
    if policy.world != "deny":
        return policy.world == "permit" and policy.evidence == "deny"
    seen = {no_such(known.fact.entity, known.fact.key) for known in policy.known}
    return policy.evidence == "permit" or policy.reason.words in seen


class UnmappedFields:
    """Reports the result fields that the pack does not map, each field once."""

    def __init__(self, pack: Pack, redaction: "Redaction | None") -> None:
        self._pack = pack
        self._redaction = redaction
        self._known: dict[str, set[str]] = {}
        """For each tool, the field names that are mapped or already reported."""

    def of(self, events: Sequence[Event]) -> Iterator[tuple[str, str]]:
        """Yield each unmapped field in the results of a conversation, with its tool."""
        for result in events:
            if type(result) is not Result or result.call is None or not result.captured:
                continue
            call = events[result.call]
            if type(call) is not Call or call.tool not in self._pack.schema.tools:
                continue
            value, known = result.value(), self._known_of(call.tool)
            found = [name for name in _names_in(value) if name not in known]
            if found and self._redaction is not None:
                # A field name that is public in one result may be private in another.
                found = self._redaction.safe_names(call.tool, value, found)
            known.update(found)
            hidden = map(self._redaction.field_name, found) if self._redaction is not None else found
            yield from ((call.tool, name) for name in hidden)

    def _known_of(self, tool: str) -> set[str]:
        if tool not in self._known:
            shown = self._pack.schema.shows.get(tool, {})
            observations = [observation for each in shown.values() for observation in each]
            named = {name for each in observations for name in (*each.entity.fields, *each.entity.key)}
            self._known[tool] = named.union(*(each.reads for each in observations))
        return self._known[tool]


def _names_in(value: Any) -> tuple[str, ...]:
    row: Any = value
    if isinstance(value, list):
        row = value[0] if value else None  # pyright: ignore[reportUnknownVariableType]
    return tuple(row) if isinstance(row, dict) else ()  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
