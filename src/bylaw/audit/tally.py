"""Counts of an audit, kept so that parts add up to the whole whatever the parts were."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bylaw.audit.finding import SEVERITIES
from bylaw.engine.settlement import CallVerdict, PolicyVerdict
from bylaw.engine.verdict import WORST_FIRST, Verdict
from bylaw.facts.interval import rate
from bylaw.guard import no_such
from bylaw.pack import CRITERIA, Criterion
from bylaw.trace.trajectory import TaskOutcome

REASONS = ("never_seen", "stale", "pending", "claimed")
_SAID = {True: "yes", False: "no", None: "open"}


class Tally:
    """Everything `summary.json` counts, as one flat counter keyed by what is counted."""

    def __init__(self, *, factless: frozenset[str] = frozenset()) -> None:
        self.counts: Counter[tuple[str, ...]] = Counter()
        self._factless = factless
        """Policies whose guards ask for no fact: the call itself decides them, every time."""

    def __iadd__(self, other: "Tally") -> "Tally":
        self.counts.update(other.counts)
        return self

    def add(self, agent: str, outcome: TaskOutcome | None, verdicts: Sequence[CallVerdict]) -> None:
        """Count one conversation."""
        counts = self.counts
        counts["agent", agent, "trajectories"] += 1
        if outcome is not None:
            counts["outcome", outcome.source] += 1
            counts["agent", agent, "outcome_known"] += 1
            if not outcome.good:
                counts["agent", agent, "failures"] += 1
        if not verdicts:
            return
        executed = [v for v in verdicts if v.made.accepted is not False and v.made.tool is not None]
        writes = [v for v in executed if v.made.tool is not None and v.made.tool.effect != "read"]
        if writes:
            counts["agent", agent, "with_write_calls"] += 1
        for criterion in CRITERIA:
            found = {getattr(v, criterion) for v in executed}
            if "violation" in found:
                counts["agent", agent, criterion, "violation"] += 1
                broken = [p for v in executed for p in v.policies if getattr(p, criterion) == "violation"]
                for severity in {p.policy.severity for p in broken}:
                    counts["agent", agent, criterion, "violation", severity] += 1
            good = outcome.good if outcome is not None else "violation" not in found
            if "near_miss" in found and good:
                counts["agent", agent, criterion, "near_miss"] += 1
                if any(getattr(v, criterion) == "near_miss" for v in writes):
                    counts["agent", agent, criterion, "near_miss", "write"] += 1
            if "uninformed" in found:
                counts["agent", agent, criterion, "uninformed"] += 1
        for verdict in verdicts:
            self._call(agent, verdict)

    def add_pack(self, name: str) -> None:
        """Count a conversation under the pack it was held to."""
        self.counts["pack", name] += 1

    def packs(self) -> dict[str, int]:
        """The packs that conversations were held to, with how many."""
        return self._under("pack")

    def add_untimed(self) -> None:
        """Count a conversation that does not say when anything happened, under a pack in which facts grow old."""
        self.counts[("untimed",)] += 1

    def clockless(self) -> int:
        """How many executed calls hang on the time of the call, which nobody tells."""
        return self.counts[("clockless",)]

    def contradicted(self) -> int:
        """How many executed calls the database decides otherwise than what the agent had looked up."""
        return self.counts[("contradicted",)]

    def untimed(self) -> int:
        """How many such conversations there are."""
        return self.counts[("untimed",)]

    def add_rules(self, agent: str, broken: Sequence[tuple[str, str]]) -> None:
        """Count the rules broken in one conversation, each with its severity: how often, and in how many of them."""
        if broken:
            self.counts["agent", agent, "rules"] += 1
        for severity in {severity for _, severity in broken}:
            self.counts["agent", agent, "rules", severity] += 1
        for name, severity in broken:
            self.counts["rule", name, "broken"] += 1
            self.counts["rule", name, "severity", severity] |= 1
        for name in {name for name, _ in broken}:
            self.counts["rule", name, "trajectories"] += 1
            self.counts["rule", name, "agents", agent] += 1

    def add_open(self, calls: Sequence[Sequence[tuple[str, str]]]) -> None:
        """Count the undecided rules of one conversation: per executed call its rules, each with the reason."""
        for rules in calls:
            for name, reason in rules:
                self.counts["open", name, "calls"] += 1
                self.counts["open", name, "reasons", reason] += 1
        for name in {name for rules in calls for name, _ in rules}:
            self.counts["open", name, "trajectories"] += 1

    def headline(self, criterion: Criterion) -> dict[str, Any]:
        """The counts that every output shows, as docs/reference/audit-output.md defines them."""
        counts = self.counts.items()
        return {
            "conversations": sum(n for key, n in counts if key[0] == "agent" and key[2:] == ("trajectories",)),
            **self._calls("executed", criterion),
            "broken_rules": sum(n for key, n in counts if key[0] == "rule" and key[2:] == ("broken",)),
            "refused": self._calls("refused", criterion),
        }

    def _calls(self, done: str, criterion: Criterion) -> dict[str, int]:
        found = self._verdicts("call", done, criterion)
        return {
            "calls": sum(found.values()),
            "violations": found["violation"],
            "near_misses": found["near_miss"],
            "uninformed": found["uninformed"],
            "undecided": self.counts["undecided", done, criterion],
        }

    def open(self, criterion: Criterion) -> dict[str, Any]:
        """Executed calls that code could not decide, and per rule how many, where, and why."""
        rules = {
            name: {
                "calls": self.counts["open", name, "calls"],
                "trajectories": self.counts["open", name, "trajectories"],
                "reasons": self._under("open", name, "reasons"),
            }
            for name in self._names("open")
        }
        return {"calls": self.counts["undecided", "executed", criterion], "rules": rules}

    def failed(self) -> dict[str, dict[str, int]]:
        """Per policy whose guard failed, the lines of the guard with the executed calls it failed at."""
        return {name: self._under("failed", name) for name in self._names("failed")}

    def add_answered(self, answers: Iterable[tuple[str, bool | None]]) -> None:
        """Count what a model answered in one conversation: predicates with the values it gave."""
        for name, value in answers:
            self.counts["answered", name, _SAID[value]] += 1

    def answered(self) -> dict[str, Any]:
        """Per predicate that a model was asked about: how often it said yes or no, or left it open."""
        return {
            name: {said: self.counts["answered", name, said] for said in _SAID.values()}
            for name in self._names("answered")
        }

    def by_rule(self) -> dict[str, Any]:
        """Per rule: how often it was broken, and by whom."""
        return {
            name: {
                "severity": next(iter(self._under("rule", name, "severity")), "medium"),
                "broken": self.counts["rule", name, "broken"],
                "trajectories": self.counts["rule", name, "trajectories"],
                "agents": self._under("rule", name, "agents"),
            }
            for name in self._names("rule")
        }

    def _call(self, agent: str, verdict: CallVerdict) -> None:
        counts, tool = self.counts, verdict.made.call.tool
        counts["tool", tool, "calls"] += 1
        if verdict.made.result is None or not verdict.made.result.captured:
            counts["tool", tool, "result_not_captured"] += 1
        done = "refused" if verdict.made.accepted is False else "executed"
        for criterion in CRITERIA:
            found: Verdict = getattr(verdict, criterion)
            counts["call", done, criterion, found] += 1
            if found == "inconclusive" or verdict.open_rules:
                counts["undecided", done, criterion] += 1
        if done == "refused":
            return
        if verdict.made.is_perhaps_done():
            counts["tool", tool, "perhaps_done"] += 1
        counts["tool", tool, "executed"] += 1
        if verdict.made.tool is not None and verdict.made.tool.effect == "read":
            counts["tool", tool, "read"] |= 1
        counts["tool", tool, "strict", verdict.strict] += 1
        counts["tool", tool, "determined", verdict.determined] += 1
        for policy in verdict.policies:
            # The four figures of a policy in one count, taken apart when they are asked for.
            could = "could_deny" if policy.could_deny or policy.policy.id in self._factless else ""
            counts["policy", policy.policy.id, policy.strict, policy.determined, could] += 1
        # A policy that has nothing to say asks for nothing, and world and evidence agree.
        if speaking := [policy for policy in verdict.policies if not policy.is_plain]:
            self._speaking(agent, verdict, speaking)

    def _speaking(self, agent: str, verdict: CallVerdict, speaking: Sequence[PolicyVerdict]) -> None:
        counts, tool = self.counts, verdict.made.call.tool
        lookups: dict[str, set[str]] = {criterion: set() for criterion in CRITERIA}
        reasons: dict[str, set[str]] = {criterion: set() for criterion in CRITERIA}
        if any(_asks_the_time(policy) for policy in speaking):
            counts[("clockless",)] += 1
        if any(_is_contradicted(policy) for policy in speaking):
            counts[("contradicted",)] += 1
        for policy in speaking:
            if policy.reason.kind == "failed":
                # Only the place: what went wrong there quotes values of the log.
                counts["failed", policy.policy.id, policy.reason.words.partition(": ")[0]] += 1
            if not policy.missing:
                continue
            for criterion in CRITERIA:
                if {getattr(policy, criterion), getattr(verdict, criterion)} - {"near_miss", "uninformed"}:
                    continue
                for missing in policy.missing:
                    if criterion == "determined" and not missing.decisive:
                        continue
                    lookups[criterion].add(missing.lookup[0] if missing.lookup else f"({missing.fact.entity})")
                    reasons[criterion].add(missing.reason)
        for criterion, tools in lookups.items():
            for lookup in tools:
                counts["lookup", lookup, criterion] += 1
                counts["lookup", lookup, criterion, "agents", agent] += 1
                counts["lookup", lookup, criterion, "tools", tool] += 1
            for reason in reasons[criterion]:
                counts["reason", criterion, reason] += 1

    def agents(self, criterion: Criterion) -> list[dict[str, Any]]:
        """One row per agent, by name; rates by severity under one criterion."""
        names = sorted({key[1] for key in self.counts if key[0] == "agent"})
        return [self._agent(name, criterion) for name in names]

    def _agent(self, agent: str, criterion: Criterion) -> dict[str, Any]:
        def count(*key: str) -> int:
            return self.counts["agent", agent, *key]

        every, writing = count("trajectories"), count("with_write_calls")
        return {
            "agent": agent,
            "trajectories": every,
            "with_write_calls": writing,
            "outcome_known": count("outcome_known"),
            "failure_rate": rate(count("failures"), count("outcome_known")),
            "violation_rates": {
                severity: rate(count(criterion, "violation", severity), every) for severity in SEVERITIES
            },
            "rule_rate": rate(count("rules"), every),
            "rule_rates": {severity: rate(count("rules", severity), every) for severity in SEVERITIES},
            **{
                each: {
                    "violation_rate": rate(count(each, "violation"), every),
                    "near_miss_rate": rate(count(each, "near_miss"), every),
                    "near_miss_rate_of_writing": rate(count(each, "near_miss", "write"), writing),
                    "uninformed_rate": rate(count(each, "uninformed"), every),
                }
                for each in CRITERIA
            },
        }

    def by_tool(self) -> dict[str, Any]:
        """Verdicts on executed calls, per write tool, and per look-up that a guard binds."""
        return {
            name: {
                "effect": "read" if self.counts["tool", name, "read"] else "write",
                "calls": self.counts["tool", name, "calls"],
                "executed": self.counts["tool", name, "executed"],
                "result_not_captured": self.counts["tool", name, "result_not_captured"],
                "perhaps_done": self.counts["tool", name, "perhaps_done"],
                **{criterion: self._verdicts("tool", name, criterion) for criterion in CRITERIA},
            }
            for name in self._names("tool")
        }

    def by_policy(self, policies: Sequence[str]) -> dict[str, Any]:
        """Per policy: the calls it applied to, how often it could have denied, and its verdicts."""
        found: Counter[tuple[str, str]] = Counter()
        for key, count in self.counts.items():
            if key[0] == "policy":
                _, name, strict, determined, could = key
                found[name, "applied"] += count
                found[name, could] += count
                found[name, f"strict {strict}"] += count
                found[name, f"determined {determined}"] += count
        return {
            name: {
                "applied": found[name, "applied"],
                "could_deny": found[name, "could_deny"],
                **{
                    criterion: {verdict: found[name, f"{criterion} {verdict}"] for verdict in WORST_FIRST}
                    for criterion in CRITERIA
                },
            }
            for name in policies
        }

    def by_lookup(self, criterion: Criterion) -> dict[str, Any]:
        """Per look-up: the near-miss and uninformed calls that lacked it; by agent and tool under one criterion."""
        return {
            name: {
                "strict": self.counts["lookup", name, "strict"],
                "determined": self.counts["lookup", name, "determined"],
                "agents": self._under("lookup", name, criterion, "agents"),
                "tools": self._under("lookup", name, criterion, "tools"),
            }
            for name in self._names("lookup")
        }

    def by_reason(self, criterion: Criterion) -> dict[str, int]:
        """Per reason, the near-miss and uninformed calls that lacked a fact for it."""
        return {reason: self.counts["reason", criterion, reason] for reason in REASONS}

    def outcome_from(self) -> dict[str, int]:
        """Where outcomes were read, with how many conversations each."""
        return self._under("outcome")

    def verdicts(self, criterion: str) -> Mapping[Verdict, int]:
        """Executed calls by verdict."""
        found = self._verdicts("call", "executed", criterion)
        return {verdict: count for verdict, count in found.items() if count}

    def _verdicts(self, *prefix: str) -> dict[Verdict, int]:
        return {verdict: self.counts[(*prefix, verdict)] for verdict in WORST_FIRST}

    def _names(self, kind: str) -> list[str]:
        return sorted({key[1] for key in self.counts if key[0] == kind})

    def _under(self, *prefix: str) -> dict[str, int]:
        size = len(prefix)
        own = [(key, n) for key, n in self.counts.items() if key[0] == prefix[0]]
        found = [(key[size], n) for key, n in own if len(key) == size + 1 and key[:size] == prefix]
        return dict(sorted(found))


def _asks_the_time(policy: PolicyVerdict) -> bool:
    return any(fact.entity == "context" and fact.field == "now" for fact in policy.asks)


def _is_contradicted(policy: PolicyVerdict) -> bool:
    """Whether the database decides otherwise than what was seen, or lacks a thing that was seen."""
    if policy.world != "deny":
        return policy.world == "permit" and policy.evidence == "deny"
    seen = {no_such(known.fact.entity, known.fact.key) for known in policy.known}
    return policy.evidence == "permit" or policy.reason.words in seen
