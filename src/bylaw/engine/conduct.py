"""Runs a pack's rules over the acts (calls and messages of the agent) in one conversation.

A predicate that depends on more than the tool and the turn is expensive. It is evaluated only if its value can change a
rule's state.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from bylaw.consent import Reason
from bylaw.engine.wording import consent_words_for_agent, rule_words
from bylaw.facts.value import alike, key_of, loose, names_several
from bylaw.pack.predicate import Predicate
from bylaw.pack.rules import THE_CALL, ReadyRules
from bylaw.policy.tool import Tool
from bylaw.rule.circuit import Assessment, Evidence
from bylaw.rule.letters import ActValues, TruthTable, lost
from bylaw.rule.monitor import UNTOUCHED, Act, Family, MonitorSet, says_something
from bylaw.rule.rule import Rule
from bylaw.trace.event import Call, Event, Message, Result

RuleStanding = Literal["broken", "open", "waiting"]
"""`broken` by the act, `open` because a value is unknown, or `waiting` for a later event when the conversation ended.
"""

PUTTABLE = frozenset(get_args(Reason)) - {"confirmed", "declined"}
"""Reasons for undecided consent that asking the user can resolve. A user who has just declined is not asked again."""


class RuleFinding(Struct, frozen=True):
    step: int
    rule: Rule
    standing: RuleStanding
    values: tuple[tuple[str, bool | None], ...] = ()
    """The rule's predicates at the act, None if unknown. Empty for a rule that was still waiting."""
    whys: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """The reasons for the values of some predicates. The reason for a consent predicate states what the user was shown,
    and when.
    """
    binding: str = ""
    """For a rule with `FOR EACH`: the value to which this finding applies, in the spelling that occurred first."""

    def record(self) -> dict[str, Any]:
        """The reason as stored in `findings.jsonl`."""
        whys = dict(self.whys)
        predicates = [
            {"name": name, "value": value} | ({"why": whys[name]} if name in whys else {})
            for name, value in self.values
        ]
        told: dict[str, Any] = {"standing": self.standing, "predicates": predicates}
        return told | {"binding": {"name": self.rule.for_each, "value": self.binding}} if self.binding else told

    @property
    def because(self) -> str:
        return rule_words(self.record())

    @property
    def for_agent(self) -> str:
        """The reason that tells the agent what to do about consent. Empty if the rule does not concern consent."""
        return "; ".join(filter(None, (consent_words_for_agent(why) for _, why in self.whys)))

    @property
    def puts_card(self) -> bool:
        """Whether a card could still change the outcome, because the user could give the missing consent."""
        return any(why.get("reason") in PUTTABLE for _, why in self.whys)


class ActFindings(Struct, frozen=True):
    """The findings of all rules about one act."""

    step: int
    turn: int
    """The index of the act's turn among the agent's turns."""
    broken: tuple[RuleFinding, ...] = ()
    open: tuple[RuleFinding, ...] = ()


Ask = Callable[[Predicate, Act], bool | None]
"""Evaluates a predicate that depends on more than the act. Returns None if its value is unknown."""
Tell = Callable[[Predicate, Act], Mapping[str, Any] | None]
"""Explains the value of a predicate that depends on more than the act, or returns None."""

HEARD = frozenset(("said", "returned"))
"""Sources whose predicates search the events before the turn. The result is the same for all acts of the turn."""

MEMO = 4096
"""The number of entries at which the cache of act kinds is cleared."""


class AgentTurn(Struct):
    """The agent's current turn, with the messages and results that preceded it."""

    number: int | None = None
    """The turn number, or None if it is not the agent's turn."""
    serial: int = 0
    heard: tuple[Message, ...] = ()
    answered: tuple[Result, ...] = ()
    """`heard` and `answered` contain the messages and results since the agent's previous turn."""
    found: dict[str, bool | None] = {}
    """Results of searches through the events before the turn. All acts of the turn share them."""
    sayings: tuple[Message, ...] = ()
    results: tuple[Result, ...] = ()
    spoken: str = ""
    """The agent's latest message so far."""
    asked: str = ""
    """The agent's latest message before this turn."""
    calls: int = 0
    writes: int = 0
    text: bool = False
    is_calling: bool = False
    """Whether the turn contains a call, including a refused call. From then on, a message need not wait to see whether
    a call follows.
    """
    has_acted: bool = False
    waiting: tuple[Act, ...] = ()
    """Messages that are not processed yet, because a call may still follow in the same turn."""

    def end(self) -> None:
        """End the turn. If all its calls were refused, the next turn sees the same preceding messages and results."""
        kept = (self.sayings, self.results) if not self.has_acted else ((), ())
        self.number, (self.heard, self.answered) = None, kept
        self.serial += 1

    def hear(self, event: Event) -> None:
        """Record an event that the agent did not cause."""
        if type(event) is Result:
            self.answered = (*self.answered, event)
        elif type(event) is Message:
            self.heard = (*self.heard, event)

    def begin(self, number: int) -> None:
        self.number = number
        self.sayings, self.results, self.found = self.heard, self.answered, {}
        self.asked = self.spoken
        self.calls = self.writes = 0
        self.text = self.is_calling = self.has_acted = False

    def say(self, step: int, message: Message) -> Act:
        self.has_acted = True
        if says_something(message):
            self.text, self.spoken = True, message.text
        return Act(
            step, None, {}, message.text, self.sayings, self.results,
            self.calls, self.writes, self.text, "", "", message.captured, asked=self.asked,
        )  # fmt: skip

    def call(self, step: int, call: Call, effect: str, *, is_beside: bool) -> Act:
        self.is_calling = self.has_acted = True
        self.calls += not is_beside
        self.writes += effect == "write"
        return Act(
            step, call.tool, call.arguments, "", self.sayings, self.results,
            self.calls, self.writes, self.text, effect, call.fault, asked=self.asked,
        )  # fmt: skip


class Conduct:
    def __init__(self, ready: ReadyRules, ask: Ask, tell: Tell | None = None) -> None:
        self._ready = ready
        self._ask = ask
        self._tell = tell
        self._monitors = MonitorSet(ready.book)
        self._families = [Family(rule) for rule in ready.families]
        self._spelt: dict[str, str] = {}
        self._turn = AgentTurn()
        self._last = (0, 0)
        self.acts: list[tuple[Act, dict[str, bool | None]]] | None = None
        """All acts so far with the values of all predicates. Kept only on request."""

    def fork(self) -> "Conduct":
        """Return an independent copy that has processed the same events."""
        other = Conduct.__new__(Conduct)
        other._ready, other._ask, other._tell, other._last = self._ready, self._ask, self._tell, self._last
        other._monitors, other._turn = self._monitors.fork(), replace(self._turn)
        other._families = [family.fork() for family in self._families] if self._families else []
        other._spelt = self._spelt.copy() if self._spelt else {}
        other.acts = None
        return other

    def asking(self, ask: Ask, tell: Tell | None) -> "Conduct":
        """Return a copy that has processed the same events but uses these callbacks from now on."""
        other = self.fork()
        other._ask, other._tell, other.acts = ask, tell, self.acts
        return other

    def afresh(self, ask: Ask, tell: Tell | None) -> "Conduct":
        """Return a copy of the rules that has processed no events. The turn numbers continue."""
        other = Conduct(self._ready, ask, tell)
        other._turn.serial = self._turn.serial
        return other

    def observe(self, step: int, event: Event, said: list[ActFindings], *, is_beside: bool = False) -> None:
        """Process an event. Append to `said` the findings for each act that is now complete, the event's own act last.

        With `is_beside`, a generic call is processed in addition to its actions, so it does not count as another call.
        """
        act = self._arrive(step, event, said, is_beside=is_beside)
        if act is not None:
            self._step(act, said)

    def _arrive(self, step: int, event: Event, said: list[ActFindings], *, is_beside: bool = False) -> Act | None:
        """Return the event's act if it can be processed now. First process the acts that were waiting for it."""
        turn = self._turn
        if type(event) is Result or event.by != "agent":
            if turn.number is not None:
                self._end(said)
            turn.hear(event)
            return None
        if event.turn != turn.number:
            if turn.number is not None:
                self._end(said)
            turn.begin(event.turn)
        if type(event) is Message:
            act = turn.say(step, event)
            if turn.is_calling or not self._ready.has_waiting:
                return act
            turn.waiting = (*turn.waiting, act)
            return None
        if turn.waiting:
            self._settle(said, without_call=False)
        if event.refused:
            turn.is_calling = True
            return None
        tool = self._ready.tools.get(event.tool)
        effect = "unknown" if tool is None else "read" if is_beside else tool.effect
        return turn.call(step, event, effect, is_beside=is_beside)

    def act_of(self, step: int, call: Call) -> Act | None:
        """Return the act of a planned call, or None if the call is not the agent's. Changes no state."""
        return self.fork()._arrive(step, call, [])

    def weigh(self, step: int, call: Call, answers: Evidence) -> Assessment | None:
        """Return the assessment of a planned call, or None if the call is not the agent's. Changes no state."""
        ahead = self.fork()
        act = ahead._arrive(step, call, [])
        if act is None:
            return None
        ready, predicates = self._ready, self._ready.predicates
        values = {name: ahead._value(predicates[name], act) for name in ready.weighed}
        known = {name: value for name, value in values.items() if value is not None}
        left = {name: each.unmade(act) for name in ready.weighed if (each := predicates[name]).is_about_act}
        if ahead._families:
            return ready.circuit.assess({**answers, **known}, tables=ahead._tables(act, known, left))
        # Without per-binding rules, the result depends only on these values. They rarely differ between acts, so it is
        # cached.
        kind = (ahead._monitors.states, *(tuple(each.items()) for each in (known, left, answers)))
        found = ready.weighings.get(kind)
        if found is None:
            if len(ready.weighings) >= MEMO:
                ready.weighings.clear()
            found = ready.circuit.assess({**answers, **known}, tables=ahead._tables(act, known, left))
            ready.weighings[kind] = found
        return found

    def _tables(self, act: Act, known: Mapping[str, bool], left: Mapping[str, bool]) -> dict[str, TruthTable]:
        ready = self._ready
        made = ActValues(THE_CALL, known, left)
        tables = self._monitors.tables(made)
        for family in self._families:
            assert family.rule.for_each is not None
            binding = binding_of(act, family.rule.for_each, ready.tools)
            if binding is None:
                # The value of the binding is unknown, so the call may apply to any of them.
                tables[family.rule.name] = lost(family.rule.name, THE_CALL)
            else:
                elsewhere = ActValues(THE_CALL, {**known, **dict.fromkeys(ready.actions, False)}, left)
                about = (binding, *_near(family, binding))
                found = [family.table(each, made if binding else elsewhere, elsewhere) for each in about]
                # Use the binding with the worst result.
                tables[family.rule.name] = next((table for table in found if 0 in table.values), found[0])
        # Background knowledge describes the situation of the call, which is the same for every binding.
        fixed = ActValues(THE_CALL, known, {})
        return tables | {name: fixed.table(name, table.atoms, (table,)) for name, table in ready.knowledge.items()}

    def finish(self) -> list[ActFindings]:
        """Finish the conversation: process the last turn, and report the rules that are still waiting."""
        said: list[ActFindings] = []
        self._settle(said, without_call=True)
        step, turn = self._last
        waiting, unsure = self._monitors.waiting()
        rules = self._monitors.rules
        ended = [RuleFinding(step, rules[place], "waiting") for place in waiting]
        open = [RuleFinding(step, rules[place], "open") for place in unsure]
        for family in self._families:
            for key, report in family.finish().items():
                if report.broke is not False:
                    found = RuleFinding(step, family.rule, "waiting" if report.broke else "open")
                    (ended if report.broke else open).append(replace(found, binding=self._spelt[str(key)]))
        return [*said, ActFindings(step, turn, tuple(ended), tuple(open))] if ended or open else said

    def _end(self, said: list[ActFindings]) -> None:
        if self._turn.waiting:
            self._settle(said, without_call=True)
        self._turn.end()

    def _settle(self, said: list[ActFindings], *, without_call: bool) -> None:
        """Process the messages that waited to see whether a call follows in their turn."""
        if self._turn.waiting:
            waiting, self._turn.waiting = self._turn.waiting, ()
            for act in waiting:
                self._step(replace(act, without_call=True) if without_call else act, said)

    def _step(self, act: Act, said: list[ActFindings]) -> None:
        self._last = (act.step, self._turn.serial)
        ready, monitors = self._ready, self._monitors
        values: dict[str, bool | None] = {}
        if self.acts is not None:
            every = {name: self._value(ready.predicates[name], act) for name in ready.weighed}
            self.acts.append((act, every))
        true = self._told(act)
        unknown, lost = ready.untold, 0
        while unknown and (needed := monitors.needs(true, unknown | lost) & unknown):
            bit, predicate = next(each for each in ready.asked if each[0] & needed)
            unknown ^= bit
            value = values[predicate.name] = self._value(predicate, act)
            if value is None:
                lost |= bit
            elif value:
                true |= bit
        step = monitors.step(true, ready.book.everything & ~lost)
        if step is UNTOUCHED and not self._families:
            return
        broken = [self._found(act, monitors.rules[place], "broken", values) for place in step.broken]
        open = [self._found(act, monitors.rules[place], "open", values) for place in step.unsure]
        for family in self._families:
            self._each(family, act, values, broken, open)
        if broken or open:
            said.append(ActFindings(act.step, self._turn.serial, tuple(broken), tuple(open)))

    def _told(self, act: Act) -> int:
        # These predicates depend only on the following values. A count matters only if it exceeds one.
        kind = (act.tool, act.effect, act.calls_in_turn > 1, act.writes_in_turn > 1, act.text_in_turn, act.without_call)
        known = self._ready.bits
        found = known.get(kind)
        if found is None:
            if len(known) >= MEMO:
                known.clear()
            told = ((bit, each.find) for bit, each in self._ready.told)
            found = known[kind] = sum(bit for bit, find in told if find is not None and find(act))
        return found

    def _each(
        self,
        family: Family,
        act: Act,
        values: dict[str, bool | None],
        broken: list[RuleFinding],
        open: list[RuleFinding],
    ) -> None:
        """Advance a `FOR EACH` rule. Action predicates hold only for the act's binding, state predicates for all
        bindings.
        """
        rule, ready = family.rule, self._ready
        assert rule.for_each is not None
        names = ready.names[rule.name]
        binding = binding_of(act, rule.for_each, ready.tools)
        self._spelt.setdefault(binding or "", str(act.arguments[rule.for_each]) if binding else "")
        for name in sorted(names, key=lambda name: ready.predicates[name].price):
            if name in values:
                continue
            is_dear = ready.predicates[name].price > 0
            if not is_dear or not family.is_decided(*self._bound(family, names, binding, values)):
                values[name] = self._value(ready.predicates[name], act)
        reports = family.step(*self._bound(family, names, binding, values))
        for key, report in reports.items():
            if report.broke is not False:
                found = self._found(act, rule, "broken" if report.broke else "open", values)
                (broken if report.broke else open).append(replace(found, binding=self._spelt[str(key)]))

    def _bound(
        self, family: Family, names: Sequence[str], binding: str | None, values: Mapping[str, bool | None]
    ) -> tuple[dict[Hashable, dict[str, bool | None]], dict[str, bool | None]]:
        """Return the predicate values for the act's binding and for other spellings of it, and the values for all other
        bindings.
        """
        known = {name: values.get(name) for name in names}
        # If the act's binding is unknown, the act may apply to any binding.
        elsewhere = None if binding is None else False
        actions = self._ready.actions
        others = {name: value and elsewhere if name in actions else value for name, value in known.items()}
        perhaps = {name: value and None if name in actions else value for name, value in known.items()}
        if binding is None and perhaps != known:
            # The act may be the first with its binding, so it gets a monitor of its own.
            return {"": perhaps}, others
        if not binding:
            return {}, others
        return {**dict.fromkeys(_near(family, binding), perhaps), binding: known}, others

    def _found(self, act: Act, rule: Rule, standing: RuleStanding, values: dict[str, bool | None]) -> RuleFinding:
        names = self._ready.names[rule.name]
        for name in names:
            if name not in values:
                values[name] = self._value(self._ready.predicates[name], act)
        predicates = self._ready.predicates
        whys = (
            (name, why)
            for name in names
            if self._tell is not None
            and predicates[name].find is None
            and (why := self._tell(predicates[name], act)) is not None
        )
        return RuleFinding(act.step, rule, standing, tuple((name, values[name]) for name in names), tuple(whys))

    def _value(self, predicate: Predicate, act: Act) -> bool | None:
        if predicate.find is None:
            return self._ask(predicate, act)
        if predicate.way not in HEARD:
            return predicate.find(act)
        found = self._turn.found
        if predicate.name not in found:
            found[predicate.name] = predicate.find(act)
        return found[predicate.name]


def _near(family: Family, binding: str) -> list[Hashable]:
    """Return known bindings that may be another spelling of this one, because a tool may treat `AC-11` and `AC11`
    alike.
    """
    return [key for key in family.bindings if binding and key != binding and alike(key) == alike(binding)]


def binding_of(act: Act, argument: str, tools: Mapping[str, Tool]) -> str | None:
    """Return the act's normalised value of the argument. Empty if the tool has no such argument, None if the value is
    unknown and may be any.
    """
    if act.tool is None:
        return ""
    value: Any = act.arguments.get(argument)
    if act.fault or names_several(value):
        return None
    if value is not None and (found := loose(key_of((value,))[0])):
        return found
    tool = tools.get(act.tool)
    return None if argument in act.arguments or (tool is not None and argument in tool.parameters) else ""
