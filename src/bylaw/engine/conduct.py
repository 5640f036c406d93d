"""A conversation under the pack's rules: every act stepped through every monitor."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from msgspec import Struct

from bylaw.engine.act import Act, acts
from bylaw.engine.judgement import moment_of
from bylaw.engine.pack import Pack
from bylaw.engine.rules import Predicate, Rules, Witness
from bylaw.facts.ledger import CallRecord, Ledger
from bylaw.facts.source import SeenFacts
from bylaw.facts.value import key_of, loose, names_several
from bylaw.guard import evaluate, evaluate_condition
from bylaw.rule.formula import atoms
from bylaw.rule.monitor import Family, MonitorReport
from bylaw.rule.monitors import MonitorSet
from bylaw.rule.rule import Rule
from bylaw.trace.event import Call, Event

Ask = Callable[[str, Act], bool | None]
"""Finds the value of a predicate that the act alone does not tell."""

WAITED = "the conversation ended before what it waits for"


class Breach(Struct, frozen=True):
    """A rule that an act broke, or that was still waiting when the episode ended."""

    step: int
    rule: Rule
    binding: str
    because: str


class Conduct:
    """The state of every rule of a pack in one conversation."""

    def __init__(self, rules: Rules, ask: Ask) -> None:
        self._rules = rules
        self._ask = ask
        self._monitors = MonitorSet(rule for rule in rules.rules if not rule.for_each)
        self._families = [Family(rule) for rule in rules.rules if rule.for_each]
        self._spelt: dict[str, str] = {}
        """How what a rule is about was first spelt."""
        self._last = 0

    def step(self, act: Act) -> list[Breach]:
        """Read one act; the rules it breaks."""
        self._last = act.step
        values: dict[str, bool | None] = {}
        true = known = 0
        for place, name in enumerate(self._monitors.predicates):
            value = values[name] = self._value(name, act)
            if value is not None:
                known |= 1 << place
                true |= value << place
        found: list[Breach] = []
        for place in self._monitors.step(true, known).broken:
            rule = self._monitors.rules[place]
            found.append(Breach(act.step, rule, "", because(atoms(rule.formula), values)))
        for family in self._families:
            found.extend(self._each(family, values, act))
        return found

    def finish(self) -> list[Breach]:
        """The episode has ended: what rules were still waiting for will not come."""
        reports = zip(self._monitors.rules, self._monitors.finish(), strict=True)
        ended: list[tuple[Rule, str, MonitorReport]] = [(rule, "", report) for rule, report in reports]
        for family in self._families:
            ended.extend((family.rule, self._spelt[str(key)], report) for key, report in family.finish().items())
        return [Breach(self._last, rule, binding, WAITED) for rule, binding, report in ended if report.broke]

    def _each(self, family: Family, values: dict[str, bool | None], act: Act) -> list[Breach]:
        """Action predicates hold for the binding the act names and for no other; states hold for all."""
        rule = family.rule
        assert rule.for_each is not None
        names = atoms(rule.formula)
        for name in names:
            if name not in values:
                values[name] = self._value(name, act)
        actions = self._rules.actions
        binding = _binding(act, rule.for_each)
        # An act that may be about any of them may be an action on each.
        elsewhere = None if binding is None else False
        others = {name: values[name] and elsewhere if name in actions else values[name] for name in names}
        bound: dict[Hashable, dict[str, bool | None]] = {}
        if binding:
            self._spelt.setdefault(binding, str(act.arguments[rule.for_each]))
            bound[binding] = {name: values[name] for name in names}
        why = because(names, values)
        reports = family.step(bound, others)
        return [Breach(act.step, rule, self._spelt[str(key)], why) for key, report in reports.items() if report.broke]

    def _value(self, name: str, act: Act) -> bool | None:
        predicate = self._rules.predicates[name]
        return predicate.find(act) if predicate.find is not None else self._ask(name, act)


def _binding(act: Act, argument: str) -> str | None:
    """What a call is about, the same for values that a tool may take for one; empty for an act about nothing of the
    kind, None where it may be about any."""
    value: Any = act.arguments.get(argument)
    if act.tool is not None and (act.fault or names_several(value)):
        return None
    return "" if value is None else loose(key_of((value,))[0])


def breaches(pack: Pack, events: Sequence[Event], ledger: Ledger | None) -> list[Breach]:
    """Every rule broken in a finished conversation, in the order of its acts."""
    conduct = Conduct(pack.book, _Facts(pack, events, ledger).ask)
    found: list[Breach] = []
    for act in acts(events, pack.schema.tools):
        found.extend(conduct.step(act))
    return found + conduct.finish()


class _Facts:
    """Answers what an act alone does not tell, from what had been seen before it."""

    def __init__(self, pack: Pack, events: Sequence[Event], ledger: Ledger | None) -> None:
        self._pack = pack
        self._events = events
        self._ledger = ledger
        self._witnesses: dict[str, _Following] = {}

    def ask(self, name: str, act: Act) -> bool | None:
        predicate = self._pack.book.predicates[name]
        if predicate.witness is not None:
            return self._witness(predicate, act)
        event = self._events[act.step]
        call = event if isinstance(event, Call) else Call("", {})
        seen = self._seen(call, act.step)
        now = self._pack.now or moment_of(call)
        if predicate.code is not None:
            return evaluate_condition(predicate.code, {"act": act.record()}, seen, now=now)
        guard = self._pack.guards.get(predicate.guard)
        if guard is None or act.tool not in self._pack.policies[predicate.guard].tools:
            return None if guard is None else False
        tool = self._pack.schema.tools.get(call.tool)
        if call.fault or tool is None:
            return None
        arguments = tool.fitted(call.arguments)
        outcomes = {c.outcome for c in evaluate(guard, arguments, seen, tool=call.tool, now=now)}
        return {frozenset({"deny"}): True, frozenset({"permit"}): False}.get(frozenset(outcomes))

    def _witness(self, predicate: Predicate, act: Act) -> bool | None:
        ledger = self._shown()
        assert predicate.witness is not None
        found = self._witnesses.get(predicate.name)
        if found is None:
            found = self._witnesses[predicate.name] = _Following(predicate.witness(ledger))
        for step in range(found.step, act.step):
            found.witness.observe(step, self._events[step])
        found.step = act.step
        event = self._events[act.step]
        blank = CallRecord(event if isinstance(event, Call) else Call("", {}), act.step, act.step, None)
        return found.witness.ask(act, ledger.calls.get(act.step, blank))

    def _seen(self, call: Call, step: int) -> SeenFacts:
        ledger = self._shown()
        made = ledger.calls.get(step) or CallRecord(call, step, step, None)
        return SeenFacts(ledger, made, {})

    def _shown(self) -> Ledger:
        if self._ledger is None:
            self._ledger = Ledger(self._pack.schema)
            self._ledger.observe_all(0, self._events)
        return self._ledger


class _Following(Struct):
    """A witness, and the step up to which it has taken in the conversation."""

    witness: Witness
    step: int = 0


def because(names: tuple[str, ...], values: dict[str, bool | None]) -> str:
    """The values of a rule's predicates at the act that broke it, in words."""
    shown = {True: "", False: "not ", None: "perhaps "}
    return ", ".join(f"{shown[values[name]]}{name.replace('_', ' ')}" for name in names)
