"""Follows a rule act by act, even with unknown predicates.

A monitor has a set of possible states: a single state while all predicates are known, and several after an unknown
predicate. The monitor reports a value if all states agree on it, and None otherwise.

An act is a message or a call by the agent, with its turn and the messages and results before the turn. Later events do
not change an act, with one exception: whether a call follows a message in the same turn is known only when the call is
made or the turn ends.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from bylaw.rule.automaton import BROKEN, VERDICTS, Automaton, Pair, StateVerdict, automaton
from bylaw.rule.formula import Formula
from bylaw.rule.letters import ActValues, Keeps, TruthTable, alphabet, letter_of, lost, possible_letters
from bylaw.rule.rule import Rule
from bylaw.trace.event import Event, Message, Result


class Program:
    def __init__(self, formula: Formula) -> None:
        self.formula = formula
        self._alphabet = alphabet(formula)
        self.names = self._alphabet.names
        self.pair: Pair = automaton(self._alphabet)
        self._places = {name: 1 << place for place, name in enumerate(self.names)}
        self._letters: dict[tuple[int, int], tuple[int, ...]] = {}

    def letters(self, values: Mapping[str, bool | None]) -> Sequence[int]:
        """Return the possible letters at a step, or none if there are too many. Missing predicates are unknown."""
        bits = unknown = 0
        for name, place in self._places.items():
            value = values.get(name)
            if value is None:
                unknown |= place
            elif value:
                bits |= place
        letters = self._letters.get((bits, unknown))
        if letters is None:
            letters = self._find(bits, unknown)
            if len(self._letters) < 4096:
                self._letters[bits, unknown] = letters
        return letters

    def _find(self, bits: int, unknown: int) -> tuple[int, ...]:
        known = {name: bool(bits & place) for name, place in self._places.items() if not unknown & place}
        if not unknown:
            return (letter_of(self._alphabet.leaves, known),)
        return possible_letters(self._alphabet.leaves, known)[0]


@lru_cache(maxsize=4096)
def program(formula: Formula) -> Program:
    return Program(formula)


Values = Mapping[str, bool | None]
"""The known predicates at an act. None and missing names mean unknown."""

States = tuple[int, ...] | None
"""The possible states of a rule: one while all predicates are known, and None after the monitor has given up."""

SET_CAP = 2048
"""A monitor with more possible states than this gives up, and reports None from then on."""
STEP_CAP = 500_000
"""A monitor gives up if one act needs more steps than this. The number of steps is that of possible states times
possible letters.
"""


class MonitorReport(Struct, frozen=True):
    broke: bool | None
    """Whether this act, or the end of the episode, broke the rule. None if unknown."""
    verdict: StateVerdict | None
    holds: bool | None


_KNOWN = tuple(MonitorReport(place == BROKEN, verdict, place < 2) for place, verdict in enumerate(VERDICTS))
_NOTHING = MonitorReport(None, None, None)


def _same(values: Iterable[bool | None]) -> bool | None:
    found = set(values)
    return found.pop() if len(found) == 1 else None


def look(ready: Program, face: Automaton, states: States, values: Values) -> tuple[States, MonitorReport]:
    """Return the states after a step with these values, and the report on the step."""
    letters = ready.letters(values)
    if states is None or not letters or len(states) * len(letters) > STEP_CAP:
        return None, _NOTHING
    step = face.step
    if len(letters) == 1 and len(states) == 1:
        state, verdict = step(states[0], letters[0])
        if verdict is not None:
            return (state,), _KNOWN[verdict]
    reached = {step(state, letter) for state in states for letter in letters}
    after = tuple(sorted({state for state, _ in reached}))
    return (after if len(after) <= SET_CAP else None), _report(face, reached)


def skip(ready: Program, face: Automaton, states: States, values: Values) -> States:
    """Return the states after a step, without computing a report."""
    letters = ready.letters(values)
    if states is None or len(states) * len(letters) > STEP_CAP:
        return None
    after = {face.move(state, letter) for state in states for letter in letters}
    return tuple(after) if 0 < len(after) <= SET_CAP else None


def holds(formula: Formula, steps: Iterable[Values]) -> bool | None:
    """Whether a formula holds for a whole trace. None if unknown."""
    ready = program(formula)
    face = ready.pair.plain
    states: States = (face.start,)
    for step in steps:
        states = skip(ready, face, states, step)
    return None if states is None else _same(map(face.accepts, states))


def _report(face: Automaton, reached: set[tuple[int, int | None]]) -> MonitorReport:
    verdicts = {verdict for _, verdict in reached}
    if len(verdicts) == 1 and (only := verdicts.pop()) is not None:
        return _KNOWN[only]
    holds = _same(face.accepts(state) if verdict is None else verdict < 2 for state, verdict in reached)
    broke = _same(None if verdict is None else verdict == BROKEN for _, verdict in reached)
    if None in verdicts and holds:
        broke = False
    return MonitorReport(broke, None, holds)


def act_table(rule: Rule, ready: Program, states: States, act: ActValues) -> TruthTable:
    """Return the truth table of a rule for an act, over the action and the unknown predicates."""
    step = ready.pair.rearming.step

    def keeps_from(state: int) -> Keeps:
        def keeps(values: Mapping[str, bool]) -> bool | None:
            verdict = step(state, ready.letters(values)[0])[1]
            return None if verdict is None else verdict != BROKEN

        return keeps

    return act.table(rule.name, ready.names, [keeps_from(each) for each in states or ()])


class Monitor:
    """Follows one rule, or one binding of a `FOR EACH` rule, through an episode.

    Reports each act that permanently violates the rule. After such an act, the rule starts again but keeps its history,
    so that `ALWAYS f` is judged at every act if `f` refers only to the past.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._program = program(rule.formula)
        self._face = self._program.pair.rearming
        self._states: States = (self._face.start,)

    def step(self, values: Values) -> MonitorReport:
        self._states, report = look(self._program, self._face, self._states, values)
        return report

    def is_decided(self, values: Values) -> bool:
        """Whether the unknown predicates of an act affect neither the report nor the next state."""
        states, report = look(self._program, self._face, self._states, values)
        return states is not None and len(states) == 1 and report.broke is not None

    def finish(self) -> MonitorReport:
        """Report the end of the episode. All events for which the rule was still waiting count as not having
        occurred.
        """
        holds = None if self._states is None else _same(map(self._face.accepts, self._states))
        return _NOTHING if holds is None else _KNOWN[0 if holds else BROKEN]

    def fork(self) -> "Monitor":
        other = Monitor(self.rule)
        other._states = self._states
        return other

    def table(self, act: ActValues) -> TruthTable:
        return act_table(self.rule, self._program, self._states, act)


class Family:
    """A `FOR EACH` rule with one monitor per binding, because confirming one reservation does not confirm another."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._others = Monitor(rule)
        """Follows the rule for all bindings that have not occurred yet. The monitor of a new binding starts as a copy
        of this monitor.
        """
        self._monitors: dict[Hashable, Monitor] = {}

    def fork(self) -> "Family":
        other = Family.__new__(Family)
        other.rule, other._others = self.rule, self._others.fork()
        other._monitors = {binding: monitor.fork() for binding, monitor in self._monitors.items()}
        return other

    @property
    def bindings(self) -> list[Hashable]:
        return list(self._monitors)

    def monitor(self, binding: Hashable) -> Monitor:
        """Return the monitor of a binding, created on first use."""
        if binding not in self._monitors:
            self._monitors[binding] = self._others.fork()
        return self._monitors[binding]

    def step(self, values: Mapping[Hashable, Values], others: Values) -> dict[Hashable, MonitorReport]:
        """Process one act. `values` applies to the bindings in the act, and `others` applies to all other bindings."""
        for binding in values:
            self.monitor(binding)
        reports = {binding: monitor.step(values.get(binding, others)) for binding, monitor in self._monitors.items()}
        self._others.step(others)
        return reports

    def is_decided(self, values: Mapping[Hashable, Values], others: Values) -> bool:
        """Whether the unknown predicates of an act make no difference for any binding. See `Monitor.is_decided`."""
        met = [self._monitors.get(binding, self._others).is_decided(each) for binding, each in values.items()]
        rest = [self._others, *(each for binding, each in self._monitors.items() if binding not in values)]
        return all(met) and all(monitor.is_decided(others) for monitor in rest)

    def table(self, binding: Hashable, act: ActValues, elsewhere: ActValues) -> TruthTable:
        """Return the truth table of the rule for an act on one binding. `elsewhere` contains the values for all other
        bindings.
        """
        others = {name: monitor for name, monitor in self._monitors.items() if name != binding}
        if any(0 in monitor.table(elsewhere).values for monitor in others.values()):
            return lost(self.rule.name, act.action)
        return self._monitors.get(binding, self._others).table(act)

    def finish(self) -> dict[Hashable, MonitorReport]:
        return {binding: monitor.finish() for binding, monitor in self._monitors.items()}


MEMO = 16_384
_FEW = 8
"""The maximum number of unknown predicates for which all values are tried."""


class RuleStep(Struct, frozen=True, gc=False):
    """The effect of an act on the rules, by their index in `rules`."""

    broken: tuple[int, ...] = ()
    unsure: tuple[int, ...] = ()
    """Rules that may be broken, depending on unknown predicates."""


UNTOUCHED = RuleStep()


class Rulebook:
    """Rules and their automata. `FOR EACH` rules are in `Family` instead."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        if any(rule.for_each for rule in rules):
            raise ValueError("a `FOR EACH` rule has one monitor per binding: use `Family`")
        self.rules = rules
        self.programs = [program(rule.formula) for rule in rules]
        self.predicates = tuple(dict.fromkeys(name for ready in self.programs for name in ready.names))
        self.bits = {name: 1 << place for place, name in enumerate(self.predicates)}
        self.everything = (1 << len(self.predicates)) - 1
        self.masks = [sum(self.bits[name] for name in ready.names) for ready in self.programs]
        self.start: tuple[States, ...] = tuple((ready.pair.rearming.start,) for ready in self.programs)
        self.move = lru_cache(maxsize=MEMO)(self._move)
        self.step = lru_cache(maxsize=MEMO)(self._step)
        self.needs = lru_cache(maxsize=MEMO)(self._needs)

    def _move(self, place: int, states: States, values: int, known: int) -> tuple[States, bool | None]:
        ready = self.programs[place]
        given = {name: bool(values & self.bits[name]) for name in ready.names if known & self.bits[name]}
        after, report = look(ready, ready.pair.rearming, states, given)
        return after, report.broke

    def _step(self, every: tuple[States, ...], values: int, known: int) -> tuple[tuple[States, ...], RuleStep]:
        after, broken, unsure = list[States](), list[int](), list[int]()
        for place, (states, mask) in enumerate(zip(every, self.masks, strict=True)):
            reached, broke = self.move(place, states, values & mask, known & mask)
            after.append(reached)
            if broke is not False:
                (broken if broke else unsure).append(place)
        step = RuleStep(tuple(broken), tuple(unsure)) if broken or unsure else UNTOUCHED
        return tuple(after), step

    def _needs(self, every: tuple[States, ...], values: int, unknown: int) -> int:
        found = 0
        for place, (states, mask) in enumerate(zip(every, self.masks, strict=True)):
            if unknown & mask:
                found |= self._needed(place, states, values & mask, unknown & mask)
        return found

    def _needed(self, place: int, states: States, values: int, unknown: int) -> int:
        bits = [bit for bit in self.bits.values() if bit & unknown]
        if states is None or len(states) > 1 or len(bits) > _FEW:
            return unknown
        completions = [values]
        for bit in bits:
            completions += [each | bit for each in completions]
        goes = {each: self.move(place, states, each, self.masks[place]) for each in completions}
        return sum(bit for bit in bits if any(goes[each] != goes[each ^ bit] for each in completions))


@lru_cache(maxsize=64)
def _book(rules: tuple[Rule, ...]) -> Rulebook:
    return Rulebook(rules)


def rulebook(rules: Iterable[Rule]) -> Rulebook:
    return _book(tuple(rules))


class MonitorSet:
    """The state of all rules in a rule book during one episode."""

    def __init__(self, rules: Iterable[Rule] | Rulebook) -> None:
        self._book: Rulebook = rules if isinstance(rules, Rulebook) else rulebook(rules)
        self.rules = self._book.rules
        self.predicates = self._book.predicates
        """Predicate `j` is bit `j` of the values for `step`."""
        self.states = self._book.start

    def fork(self) -> "MonitorSet":
        other = MonitorSet(self._book)
        other.states = self.states
        return other

    def needs(self, values: int, unknown: int) -> int:
        """Return, as bits, the unknown predicates that can change the next state of a rule."""
        return self._book.needs(self.states, values & ~unknown, unknown)

    def mask(self, values: Values) -> tuple[int, int]:
        """Return two bit masks: the true predicates, and the known predicates. Names that no rule uses are left out."""
        true = known = 0
        bits = self._book.bits
        for name, value in values.items():
            if value is not None and name in bits:
                known |= bits[name]
                if value:
                    true |= bits[name]
        return true, known

    def step(self, values: int, known: int = -1) -> RuleStep:
        """Process one act, given the true and the known predicates as bits. By default, all predicates are known."""
        self.states, step = self._book.step(self.states, values, known)
        return step

    def tables(self, act: ActValues) -> dict[str, TruthTable]:
        """Return the truth table of each rule for an act, by rule name. See `Monitor.table`."""
        parts = zip(self.rules, self._book.programs, self.states, strict=True)
        return {rule.name: act_table(rule, ready, states, act) for rule, ready, states in parts}

    def waiting(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the indexes of the rules that are broken if the episode ends now, and of those that may be broken."""
        broken, open = list[int](), list[int]()
        for place, (ready, states) in enumerate(zip(self._book.programs, self.states, strict=True)):
            holds = {ready.pair.rearming.accepts(state) for state in states} if states is not None else {True, False}
            if False in holds:
                (open if True in holds else broken).append(place)
        return tuple(broken), tuple(open)


class Act(Struct, frozen=True):
    step: int
    tool: str | None
    """The called tool, or None for a message."""
    arguments: dict[str, Any]
    text: str
    """The text of the message. Empty for a call."""
    sayings: tuple[Message, ...]
    """The user's messages since the agent's previous turn."""
    results: tuple[Result, ...]
    """Tool results since the agent's previous turn."""
    calls_in_turn: int
    """The number of calls in the turn up to and including this act. The two fields below also cover the turn up to this
    act.
    """
    writes_in_turn: int
    text_in_turn: bool
    effect: str
    """The effect of the called tool. Empty for a message."""
    fault: str = ""
    """Why the arguments of the call are unreliable. Empty if they are reliable."""
    captured: bool = True
    """False for a message without recorded text."""
    without_call: bool = False
    """Whether the turn has no calls, so that the user replies to the message next."""
    asked: str = ""
    """The agent's last message before this turn, which the user may have answered."""

    def returns(self) -> list[str]:
        return [result.text for result in self.results]

    def record(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name not in _APART}
        said = "\n".join(message.text for message in self.sayings)
        return {**fields, "said": said, "returned": "\n".join(self.returns())}


_APART = frozenset(("results", "sayings", "fault", "captured", "without_call"))
"""Fields that the guard language omits or represents differently."""


class TurnSpan(Struct, frozen=True, gc=False):
    start: int
    end: int


def turns(events: Sequence[Event]) -> Iterator[TurnSpan]:
    """Yield the agent's turns in order. A turn ends at the next message or result, or when another turn begins."""
    start, number = 0, None
    for step, event in enumerate(events):
        mine = None if isinstance(event, Result) or event.by != "agent" else event.turn
        if mine != number:
            if number is not None:
                yield TurnSpan(start, step)
            start, number = step, mine
    if number is not None:
        yield TurnSpan(start, len(events))


def says_something(message: Message) -> bool:
    """Whether a message contains more than spaces. True for a message whose text was not recorded."""
    return not message.captured or (bool(message.text) and not message.text.isspace())
