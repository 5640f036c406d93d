"""Many rules, one step: the hot path of a live episode.

Predicates have bit positions in the set, so what is known of an act is two integers. Each rule reads its own predicates
as one byte: the bytes of all rules are gathered by a table look-up per eight predicates, and the rest is C-level maps
over flat tables.
"""

from collections.abc import Callable, Iterable, Sequence
from math import tanh
from operator import add, getitem, itemgetter
from typing import cast

from msgspec import Struct

from bylaw.rule.automaton import BROKEN, VERDICTS, Verdict
from bylaw.rule.monitor import Monitor, Report, Values
from bylaw.rule.program import Flat, program
from bylaw.rule.rule import Rule
from bylaw.rule.table import Table


_gain = cast("Callable[[Sequence[float], int], float]", getitem)


class Step(Struct, frozen=True):
    """Which rules an act broke for good, as places in `rules`."""

    broken: tuple[int, ...] = ()
    unsure: tuple[int, ...] = ()
    """Those for which it hangs on an unknown predicate."""


class Margin(Struct, frozen=True):
    """How the rules lean on an action, everything being known; hard rules stay out of the margin."""

    margin: float
    veto: tuple[int, ...] = ()
    """Hard rules broken only with the action."""
    conflict: tuple[int, ...] = ()
    """Hard rules broken with it and without it."""


_NOTHING_BROKEN = Step()


class MonitorSet:
    """The rules of a pack (`FOR EACH` rules aside, see `Family`), followed together."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        if any(rule.for_each for rule in self.rules):
            raise ValueError("a `FOR EACH` rule has one monitor per binding: use `Family`")
        programs = [program(rule.formula) for rule in self.rules]
        self.predicates = tuple(dict.fromkeys(name for ready in programs for name in ready.names))
        """Predicate `j` is bit `j` of what `step` takes."""
        self._bits = {name: 1 << place for place, name in enumerate(self.predicates)}
        self._everything = (1 << len(self.predicates)) - 1
        flats = [(place, ready, ready.flat) for place, ready in enumerate(programs)]
        self._quick = [place for place, _, flat in flats if flat is not None]
        """The place in `rules` of each rule that is run by table."""
        self._slow = {place: Monitor(self.rules[place]) for place, _, flat in flats if flat is None}
        self._flats: list[Flat] = [flat for _, _, flat in flats if flat is not None]
        self._names = [ready.names for _, ready, flat in flats if flat is not None]
        self._after = [flat.after for flat in self._flats]
        self._verdicts = [flat.verdicts for flat in self._flats]
        self._gather = self._gathering()
        self._touched = [tuple(at for at, names in enumerate(self._names) if name in names) for name in self.predicates]
        self._leanings: dict[str, _Leaning] = {}
        self._states = [0] * len(self._flats)
        self._sets: dict[int, frozenset[int]] = {}
        """The states of rules that may be in more than one; their entry in `_states` means nothing."""
        self._reports: dict[int, Report] = {}
        self._marks = bytes(len(self._flats))

    def mask(self, values: Values) -> tuple[int, int]:
        """The values and which are known, as the bits `step` takes; names of no rule are left out."""
        true = known = 0
        bits = self._bits
        for name, value in values.items():
            if value is not None and name in bits:
                known |= bits[name]
                if value:
                    true |= bits[name]
        return true, known

    def step(self, values: int, known: int = -1) -> Step:
        """Read one act: the bits of the true predicates, and of those known (all, unless said)."""
        places = self._places(values)
        before = self._states
        self._states = list(map(getitem, self._after, places))
        self._marks = marks = bytes(map(getitem, self._verdicts, places))
        if self._reports:
            self._reports = {}
        if known & self._everything == self._everything and not self._sets and not self._slow:
            if BROKEN not in marks:
                return _NOTHING_BROKEN
            return Step(tuple(self._quick[at] for at, mark in enumerate(marks) if mark == BROKEN))
        return self._unsure_step(values, known, places, before)

    def margin(self, action: str, values: int) -> Margin:
        """How the rules lean on `action` at an act, all predicates and states being known; nothing moves."""
        return self._leaning(action).read(self._places(values))

    def act(self, action: str, values: int) -> tuple[Margin, Step]:
        """`margin` and `step` in one go, everything being known."""
        if self._sets or self._slow:
            return self.margin(action, values), self.step(values)
        places = self._places(values)
        margin = (self._leanings.get(action) or self._leaning(action)).read(places)
        self._states = list(map(getitem, self._after, places))
        self._marks = marks = bytes(map(getitem, self._verdicts, places))
        if BROKEN not in marks:
            return margin, _NOTHING_BROKEN
        return margin, Step(tuple(self._quick[at] for at, mark in enumerate(marks) if mark == BROKEN))

    @property
    def is_certain(self) -> bool:
        """Whether every rule is run by table and in one known state, as `margin` and `act` need."""
        return not self._sets and not self._slow

    def verdicts(self) -> list[Verdict | None]:
        """What each rule said of the last act."""
        found: list[Verdict | None] = [None] * len(self.rules)
        for at, place in enumerate(self._quick):
            found[place] = VERDICTS[self._marks[at]]
        for place, report in self._reports.items():
            found[place] = report.verdict
        return found

    def tables(self) -> dict[str, tuple[Table, ...]]:
        """By rule name, the tables of every state the rule may be in (see `Monitor.tables`)."""
        found = {self.rules[place].name: monitor.tables() for place, monitor in self._slow.items()}
        for at, place in enumerate(self._quick):
            states = sorted(self._sets.get(at, (self._states[at],)))
            rows = 1 << len(self._names[at])
            kept = [bytes(mark != BROKEN for mark in self._verdicts[at][state : state + rows]) for state in states]
            found[self.rules[place].name] = tuple(Table(self._names[at], values) for values in dict.fromkeys(kept))
        return found

    def finish(self) -> list[Report]:
        """The end of the episode, by rule."""
        found: dict[int, Report] = {place: monitor.finish() for place, monitor in self._slow.items()}
        for at, place in enumerate(self._quick):
            monitor = Monitor(self.rules[place])
            shift = len(self._names[at])
            monitor.place(state >> shift for state in self._sets.get(at, (self._states[at],)))
            found[place] = monitor.finish()
        return [found[place] for place in range(len(self.rules))]

    def _gathering(self) -> list[list[int]]:
        """For each eight predicates and each value of theirs: one byte per rule, with its bits for them."""
        single = [
            sum(1 << 8 * at + names.index(name) for at, names in enumerate(self._names) if name in names)
            for name in self.predicates
        ]
        chunks: list[list[int]] = []
        for first in range(0, max(1, len(single)), 8):
            chunk = [0]
            for bits in single[first : first + 8]:
                chunk += [gathered | bits for gathered in chunk]
            chunks.append(chunk)
        return chunks

    def _places(self, values: int) -> list[int]:
        """Where each rule's table is to be read, for its state and these values."""
        gathered = 0
        for chunk in self._gather:
            gathered |= chunk[values & len(chunk) - 1]
            values >>= 8
        return list(map(add, self._states, gathered.to_bytes(len(self._states), "little")))

    def _unsure_step(self, values: int, known: int, places: Sequence[int], before: Sequence[int]) -> Step:
        """Correct what the quick step got wrong: rules in several states, or with an unknown predicate."""
        unknown = self._everything & ~known
        affected = set(self._sets).union(
            *(self._touched[place] for place in range(len(self.predicates)) if unknown >> place & 1)
        )
        broken = [self._quick[at] for at, mark in enumerate(self._marks) if mark == BROKEN and at not in affected]
        unsure: list[int] = []
        for at in sorted(affected):
            place = self._quick[at]
            letter = places[at] - before[at]
            free = sum(1 << bit for bit, name in enumerate(self._names[at]) if unknown & self._bits[name])
            states = self._sets.pop(at, frozenset([before[at]]))
            spots = [state + word for state in states for word in _completions(letter, free)]
            after = frozenset(self._after[at][spot] for spot in spots)
            marks = {self._verdicts[at][spot] for spot in spots}
            if len(after) == 1:
                self._states[at] = next(iter(after))
            else:
                self._sets[at] = after
            self._reports[place] = Report(
                _agreed({mark == BROKEN for mark in marks}),
                VERDICTS[next(iter(marks))] if len(marks) == 1 else None,
                _agreed({mark < 2 for mark in marks}),
            )
        for place, monitor in self._slow.items():
            self._reports[place] = monitor.step(
                {name: bool(values & bit) for name, bit in self._bits.items() if known & bit}
            )
        for place, report in self._reports.items():
            if report.broke:
                broken.append(place)
            elif report.broke is None:
                unsure.append(place)
        return Step(tuple(sorted(broken)), tuple(sorted(unsure)))

    def _leaning(self, action: str) -> "_Leaning":
        leaning = self._leanings.get(action)
        if leaning is None:
            leaning = self._leanings[action] = _Leaning(
                action, self._names, self._verdicts, [self.rules[place] for place in self._quick], self._quick
            )
        return leaning


class _Leaning:
    """For one action: by rule, state and letter, what changes if only the action is taken away."""

    def __init__(
        self,
        action: str,
        names: Sequence[tuple[str, ...]],
        verdicts: Sequence[bytes],
        rules: Sequence[Rule],
        numbers: Sequence[int],
    ) -> None:
        concerned = [at for at, own in enumerate(names) if action in own]
        soft = [at for at in concerned if not rules[at].hard and rules[at].weight]
        self._numbers = numbers
        self._hard = [at for at in concerned if rules[at].hard]
        self._every = len(soft) == len(names)
        # itemgetter gives a bare item for one place, so that one is read twice and counted once.
        self._pick = itemgetter(*soft, *soft[:1]) if soft else None
        self._gains = [
            tuple(
                rules[at].weight * ((with_it != BROKEN) - (without != BROKEN))
                for with_it, without in _both_ways(verdicts[at], 1 << names[at].index(action))
            )
            for at in soft
        ]
        self._both = [list(_both_ways(verdicts[at], 1 << names[at].index(action))) for at in self._hard]

    def read(self, places: Sequence[int]) -> Margin:
        if self._every:
            z = sum(map(_gain, self._gains, places))
        elif self._pick is not None:
            z = sum(map(_gain, self._gains, self._pick(places)))
        else:
            z = 0.0
        if not self._hard:
            return Margin(tanh(z / 2))
        veto: list[int] = []
        conflict: list[int] = []
        for at, both in zip(self._hard, self._both, strict=True):
            with_it, without = both[places[at]]
            if with_it == BROKEN:
                (conflict if without == BROKEN else veto).append(self._numbers[at])
        return Margin(tanh(z / 2), tuple(veto), tuple(conflict))


def _both_ways(verdicts: bytes, bit: int) -> Iterable[tuple[int, int]]:
    return ((verdicts[place | bit], verdicts[place & ~bit]) for place in range(len(verdicts)))


def _completions(letter: int, free: int) -> list[int]:
    found = [letter & ~free]
    while free:
        low = free & -free
        found += [word | low for word in found]
        free ^= low
    return found


def _agreed(values: set[bool]) -> bool | None:
    return values.pop() if len(values) == 1 else None
