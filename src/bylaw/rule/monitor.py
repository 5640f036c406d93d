"""Following a rule act by act, with predicates that may be unknown.

A monitor holds the set of states it may be in: one while everything is known, more where an unknown predicate decides.
What all of them agree on is reported; on the rest it says None.

Rules run over acts: one message of the agent or one call, with its turn so far and what came before the turn. An act
is told as of the moment it is made: no later event changes it. Only whether a message is followed by a call of the same
turn is not known at once; that is settled by the call, or by the end of the turn.
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
    """What all rules with the same formula share."""

    def __init__(self, formula: Formula) -> None:
        self.formula = formula
        self._alphabet = alphabet(formula)
        self.names = self._alphabet.names
        self.pair: Pair = automaton(self._alphabet)
        self._places = {name: 1 << place for place, name in enumerate(self.names)}
        self._letters: dict[tuple[int, int], tuple[int, ...]] = {}

    def letters(self, values: Mapping[str, bool | None]) -> Sequence[int]:
        """The letters that a step may be, absent names being unknown; none where there are too many to list."""
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
    """The program of a formula, made once."""
    return Program(formula)


Values = Mapping[str, bool | None]
"""What is known of the predicates at one act; None and absent are unknown."""

States = tuple[int, ...] | None
"""The states that a rule may be in: one while everything is known; None once lost."""

SET_CAP = 2048
"""A monitor that may be in more states than these is lost: it says None from there on."""
STEP_CAP = 500_000
"""And so is one that would have to take more steps than these for one act: its states times the letters it may be."""


class MonitorReport(Struct, frozen=True):
    """What a rule says after an act, or at the end."""

    broke: bool | None
    """Whether this act (or the end) broke the rule; None where that hangs on something unknown."""
    verdict: StateVerdict | None
    holds: bool | None
    """Whether the rule holds if the episode ends here."""


_KNOWN = tuple(MonitorReport(place == BROKEN, verdict, place < 2) for place, verdict in enumerate(VERDICTS))
_NOTHING = MonitorReport(None, None, None)


def _same(values: Iterable[bool | None]) -> bool | None:
    found = set(values)
    return found.pop() if len(found) == 1 else None


def look(ready: Program, face: Automaton, states: States, values: Values) -> tuple[States, MonitorReport]:
    """The states after a step with these values, and what is then known."""
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
    """The states after a step whose verdict nobody asks for."""
    letters = ready.letters(values)
    if states is None or len(states) * len(letters) > STEP_CAP:
        return None
    after = {face.move(state, letter) for state in states for letter in letters}
    return tuple(after) if 0 < len(after) <= SET_CAP else None


def holds(formula: Formula, steps: Iterable[Values]) -> bool | None:
    """Whether a formula holds of a whole trace; None if that depends on something unknown."""
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
    """What a rule in one of these states would say of an act, over an action and what is not known."""
    step = ready.pair.rearming.step

    def keeps_from(state: int) -> Keeps:
        def keeps(values: Mapping[str, bool]) -> bool | None:
            verdict = step(state, ready.letters(values)[0])[1]
            return None if verdict is None else verdict != BROKEN

        return keeps

    return act.table(rule.name, ready.names, [keeps_from(each) for each in states or ()])


class Monitor:
    """One rule, followed over the acts of one episode (for a `FOR EACH` rule: those of one binding).

    The act that breaks the rule for good is reported, and the rule is asked anew of what follows, with its history
    kept: `ALWAYS f` with past-only f is thereby judged afresh at each act.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._program = program(rule.formula)
        self._face = self._program.pair.rearming
        self._states: States = (self._face.start,)

    def step(self, values: Values) -> MonitorReport:
        """Read one act."""
        self._states, report = look(self._program, self._face, self._states, values)
        return report

    def is_decided(self, values: Values) -> bool:
        """Whether what is unknown at such an act changes neither what it breaks nor where the rule goes from there."""
        states, report = look(self._program, self._face, self._states, values)
        return states is not None and len(states) == 1 and report.broke is not None

    def finish(self) -> MonitorReport:
        """The end of the episode: what the rule was still waiting for will not come."""
        holds = None if self._states is None else _same(map(self._face.accepts, self._states))
        return _NOTHING if holds is None else _KNOWN[0 if holds else BROKEN]

    def fork(self) -> "Monitor":
        """Another monitor with the same past."""
        other = Monitor(self.rule)
        other._states = self._states
        return other

    def table(self, act: ActValues) -> TruthTable:
        """What the rule would say of an act, over an action and what is not known."""
        return act_table(self.rule, self._program, self._states, act)


class Family:
    """A `FOR EACH` rule: one monitor per binding, so that confirming one reservation does not license another."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._others = Monitor(rule)
        """Stands for every binding not met yet; a new one starts from its past."""
        self._monitors: dict[Hashable, Monitor] = {}

    def fork(self) -> "Family":
        """Another family with the same past."""
        other = Family.__new__(Family)
        other.rule, other._others = self.rule, self._others.fork()
        other._monitors = {binding: monitor.fork() for binding, monitor in self._monitors.items()}
        return other

    @property
    def bindings(self) -> list[Hashable]:
        """Those met so far."""
        return list(self._monitors)

    def monitor(self, binding: Hashable) -> Monitor:
        """The monitor of one binding, made now if this is the first that is heard of it."""
        if binding not in self._monitors:
            self._monitors[binding] = self._others.fork()
        return self._monitors[binding]

    def step(self, values: Mapping[Hashable, Values], others: Values) -> dict[Hashable, MonitorReport]:
        """Read one act: `values` for the bindings it speaks of, `others` for all it does not."""
        for binding in values:
            self.monitor(binding)
        reports = {binding: monitor.step(values.get(binding, others)) for binding, monitor in self._monitors.items()}
        self._others.step(others)
        return reports

    def is_decided(self, values: Mapping[Hashable, Values], others: Values) -> bool:
        """Whether what is unknown of an act changes nothing for any binding; see `Monitor.is_decided`."""
        met = [self._monitors.get(binding, self._others).is_decided(each) for binding, each in values.items()]
        rest = [self._others, *(each for binding, each in self._monitors.items() if binding not in values)]
        return all(met) and all(monitor.is_decided(others) for monitor in rest)

    def table(self, binding: Hashable, act: ActValues, elsewhere: ActValues) -> TruthTable:
        """What the rule would say of an act on one binding, which for all others is as `elsewhere`."""
        others = {name: monitor for name, monitor in self._monitors.items() if name != binding}
        if any(0 in monitor.table(elsewhere).values for monitor in others.values()):
            return lost(self.rule.name, act.action)
        return self._monitors.get(binding, self._others).table(act)

    def finish(self) -> dict[Hashable, MonitorReport]:
        """The end of the episode, for every binding met."""
        return {binding: monitor.finish() for binding, monitor in self._monitors.items()}


MEMO = 16_384
"""Moves that are remembered."""
_FEW = 8
"""Up to so many unknown predicates of a rule, every completion is tried."""


class RuleStep(Struct, frozen=True, gc=False):
    """What an act does to the rules, by their places in `rules`."""

    broken: tuple[int, ...] = ()
    """Broken for good."""
    unsure: tuple[int, ...] = ()
    """Perhaps: it depends on an unknown predicate."""


UNTOUCHED = RuleStep()
"""No rule is broken, and none may be."""


class Rulebook:
    """Rules (`FOR EACH` rules aside, see `Family`) with their automata."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        if any(rule.for_each for rule in rules):
            raise ValueError("a `FOR EACH` rule has one monitor per binding: use `Family`")
        self.rules = rules
        self.programs = [program(rule.formula) for rule in rules]
        self.predicates = tuple(dict.fromkeys(name for ready in self.programs for name in ready.names))
        self.bits = {name: 1 << place for place, name in enumerate(self.predicates)}
        self.everything = (1 << len(self.predicates)) - 1
        self.masks = [sum(self.bits[name] for name in ready.names) for ready in self.programs]
        """By rule, the bits of the predicates it reads."""
        self.start: tuple[States, ...] = tuple((ready.pair.rearming.start,) for ready in self.programs)
        self.move = lru_cache(maxsize=MEMO)(self._move)
        self.step = lru_cache(maxsize=MEMO)(self._step)
        self.needs = lru_cache(maxsize=MEMO)(self._needs)

    def _move(self, place: int, states: States, values: int, known: int) -> tuple[States, bool | None]:
        """The states of a rule after an act with these values of its predicates, and whether the act broke it."""
        ready = self.programs[place]
        given = {name: bool(values & self.bits[name]) for name in ready.names if known & self.bits[name]}
        after, report = look(ready, ready.pair.rearming, states, given)
        return after, report.broke

    def _step(self, every: tuple[States, ...], values: int, known: int) -> tuple[tuple[States, ...], RuleStep]:
        """The states of all rules after an act with these values of the predicates, and what the act did to them."""
        after, broken, unsure = list[States](), list[int](), list[int]()
        for place, (states, mask) in enumerate(zip(every, self.masks, strict=True)):
            reached, broke = self.move(place, states, values & mask, known & mask)
            after.append(reached)
            if broke is not False:
                (broken if broke else unsure).append(place)
        step = RuleStep(tuple(broken), tuple(unsure)) if broken or unsure else UNTOUCHED
        return tuple(after), step

    def _needs(self, every: tuple[States, ...], values: int, unknown: int) -> int:
        """The bits of those unknown predicates that change where some rule goes, whatever the others are."""
        found = 0
        for place, (states, mask) in enumerate(zip(every, self.masks, strict=True)):
            if unknown & mask:
                found |= self._needed(place, states, values & mask, unknown & mask)
        return found

    def _needed(self, place: int, states: States, values: int, unknown: int) -> int:
        """The same for one rule."""
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
    """The book of these rules, made once."""
    return _book(tuple(rules))


class MonitorSet:
    """The state of every rule of a book in one episode."""

    def __init__(self, rules: Iterable[Rule] | Rulebook) -> None:
        self._book: Rulebook = rules if isinstance(rules, Rulebook) else rulebook(rules)
        self.rules = self._book.rules
        self.predicates = self._book.predicates
        """Predicate `j` is bit `j` of what `step` takes."""
        self.states = self._book.start
        """Of each rule the states that its monitor may be in."""

    def fork(self) -> "MonitorSet":
        """Another set with the same past."""
        other = MonitorSet(self._book)
        other.states = self.states
        return other

    def needs(self, values: int, unknown: int) -> int:
        """The bits of those unknown predicates that change where some rule goes, whatever the others are."""
        return self._book.needs(self.states, values & ~unknown, unknown)

    def mask(self, values: Values) -> tuple[int, int]:
        """The values and which are known, as the bits `step` takes; names of no rule are left out."""
        true = known = 0
        bits = self._book.bits
        for name, value in values.items():
            if value is not None and name in bits:
                known |= bits[name]
                if value:
                    true |= bits[name]
        return true, known

    def step(self, values: int, known: int = -1) -> RuleStep:
        """Read one act: the bits of the true predicates, and of those known (all, unless said)."""
        self.states, step = self._book.step(self.states, values, known)
        return step

    def tables(self, act: ActValues) -> dict[str, TruthTable]:
        """By rule name, what it would say of an act (see `Monitor.table`)."""
        parts = zip(self.rules, self._book.programs, self.states, strict=True)
        return {rule.name: act_table(rule, ready, states, act) for rule, ready, states in parts}

    def waiting(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Places of the rules that the end of the episode breaks now, and of those that it may break."""
        broken, open = list[int](), list[int]()
        for place, (ready, states) in enumerate(zip(self._book.programs, self.states, strict=True)):
            holds = {ready.pair.rearming.accepts(state) for state in states} if states is not None else {True, False}
            if False in holds:
                (open if True in holds else broken).append(place)
        return tuple(broken), tuple(open)


class Act(Struct, frozen=True):
    """One message or one call of the agent."""

    step: int
    tool: str | None
    """The tool called; None for a message."""
    arguments: dict[str, Any]
    text: str
    """The message's text; empty for a call."""
    sayings: tuple[Message, ...]
    """What the user said since the agent's last turn."""
    results: tuple[Result, ...]
    """What tools returned since the agent's last turn."""
    calls_in_turn: int
    """Of the turn so far, this act included; likewise the next two."""
    writes_in_turn: int
    text_in_turn: bool
    effect: str
    """The called tool's effect; empty for a message."""
    fault: str = ""
    """Why a call's arguments are not to be trusted."""
    captured: bool = True
    """False for a message whose text was not recorded."""
    without_call: bool = False
    """Whether the turn makes no call at all: the message waits for the user."""
    asked: str = ""
    """The agent's last message before this turn: what the user may have answered."""

    def returns(self) -> list[str]:
        """The results as texts."""
        return [result.text for result in self.results]

    def record(self) -> dict[str, Any]:
        """The act as code in the guard language sees it."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name not in _APART}
        said = "\n".join(message.text for message in self.sayings)
        return {**fields, "said": said, "returned": "\n".join(self.returns())}


_APART = frozenset(("results", "sayings", "fault", "captured", "without_call"))
"""What code in the guard language sees otherwise, or not at all."""


class TurnSpan(Struct, frozen=True, gc=False):
    """Where one turn of the agent stands in a trajectory."""

    start: int
    end: int
    """The first step after it."""


def turns(events: Sequence[Event]) -> Iterator[TurnSpan]:
    """The agent's turns in order. A turn ends where something is heard or another turn begins."""
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
    """Whether a message is more than blanks; one that was not recorded may be."""
    return not message.captured or (bool(message.text) and not message.text.isspace())
