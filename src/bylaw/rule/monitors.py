"""Many rules followed together: compiled once, and their state in one episode.

Predicates have bit positions, so what is known of an act is two integers. A rule's move depends on its states and the
bits of its own predicates alone; episodes repeat themselves, so each move is remembered.
"""

from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct

from bylaw.rule.monitor import States, Values, act_table, look, program
from bylaw.rule.rule import Rule
from bylaw.rule.table import ActValues, TruthTable

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
        self.needs = lru_cache(maxsize=MEMO)(self._needs)

    def _move(self, place: int, states: States, values: int, known: int) -> tuple[States, bool | None]:
        """The states of a rule after an act with these values of its predicates, and whether the act broke it."""
        ready = self.programs[place]
        given = {name: bool(values & self.bits[name]) for name in ready.names if known & self.bits[name]}
        after, report = look(ready, ready.pair.rearming, states, given)
        return after, report.broke

    def _needs(self, place: int, states: States, values: int, unknown: int) -> int:
        """The bits of those unknown predicates that change where a rule goes, whatever the others are."""
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
        self._states = self._book.start

    def fork(self) -> "MonitorSet":
        """Another set with the same past."""
        other = MonitorSet(self._book)
        other._states = self._states
        return other

    def needs(self, values: int, unknown: int) -> int:
        """The bits of those unknown predicates that change where some rule goes, whatever the others are."""
        found, book = 0, self._book
        for place, (states, mask) in enumerate(zip(self._states, book.masks, strict=True)):
            if unknown & mask:
                found |= book.needs(place, states, values & mask & ~unknown, unknown & mask)
        return found

    def passes(self, values: int, unknown: int) -> bool:
        """Read an act that breaks no rule, whatever the unknown predicates are; False, and nothing read, for others."""
        if unknown and self.needs(values, unknown):
            return False
        after, step = self._after(values, self._book.everything)
        if step is UNTOUCHED:
            self._states = after
        return step is UNTOUCHED

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
        self._states, step = self._after(values, known)
        return step

    def _after(self, values: int, known: int) -> tuple[tuple[States, ...], RuleStep]:
        move, after, broken, unsure = self._book.move, list[States](), list[int](), list[int]()
        for place, (states, mask) in enumerate(zip(self._states, self._book.masks, strict=True)):
            reached, broke = move(place, states, values & mask, known & mask)
            after.append(reached)
            if broke is not False:
                (broken if broke else unsure).append(place)
        step = RuleStep(tuple(broken), tuple(unsure)) if broken or unsure else UNTOUCHED
        return tuple(after), step

    def tables(self, act: ActValues) -> dict[str, TruthTable]:
        """By rule name, what it would say of an act (see `Monitor.table`)."""
        parts = zip(self.rules, self._book.programs, self._states, strict=True)
        return {rule.name: act_table(rule, ready, states, act) for rule, ready, states in parts}

    def waiting(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Places of the rules that the end of the episode breaks now, and of those that it may break."""
        broken, open = list[int](), list[int]()
        for place, (ready, states) in enumerate(zip(self._book.programs, self._states, strict=True)):
            holds = {ready.pair.rearming.accepts(state) for state in states} if states is not None else {True, False}
            if False in holds:
                (open if True in holds else broken).append(place)
        return tuple(broken), tuple(open)
