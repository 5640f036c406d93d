"""Many rules followed together, the hot path of a live shield: compiled once, and their state in one episode.

Predicates have bit positions, so what is known of an act is two integers. Each rule has one byte of a third: its state
and, below it, room for the values of its own predicates. One look-up per few predicates fills in that room for all
rules at once; the byte is then the place where the rule's flat table is read.
"""

from collections.abc import Iterable
from functools import lru_cache
from operator import getitem

from msgspec import Struct

from bylaw.rule.automaton import BROKEN, WholeAutomaton
from bylaw.rule.monitor import Flat, Monitor, Program, Values, program
from bylaw.rule.rule import Rule
from bylaw.rule.table import ActValues, Keeps, TruthTable

FLAG = 128
"""The bit of a rule's byte that says it was broken just now."""
MEMO = 4096
"""How many readings are remembered."""
MEMORY = 4_000_000
"""About how many bytes the look-ups of one book may take."""


class RuleStep(Struct, frozen=True, gc=False):
    """Which rules an act broke for good."""

    flags: int = 0
    """One byte per rule run by table; spelled out only when somebody asks."""
    order: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    unsure: tuple[int, ...] = ()
    """Places in `rules` for which it hangs on an unknown predicate."""

    @property
    def broken(self) -> tuple[int, ...]:
        """Places in `rules`."""
        found = list(self.others)
        flags = self.flags
        while flags:
            low = flags & -flags
            found.append(self.order[low.bit_length() - 1 >> 3])
            flags ^= low
        return tuple(sorted(found))


UNTOUCHED = RuleStep()
"""No rule is broken, and none may be."""


class Rulebook:
    """Rules (`FOR EACH` rules aside, see `Family`) with their tables."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        if any(rule.for_each for rule in rules):
            raise ValueError("a `FOR EACH` rule has one monitor per binding: use `Family`")
        self.rules = rules
        programs = [program(rule.formula) for rule in rules]
        self.predicates = tuple(dict.fromkeys(name for ready in programs for name in ready.names))
        self.bits = {name: 1 << place for place, name in enumerate(self.predicates)}
        self.everything = (1 << len(self.predicates)) - 1
        self.quick = tuple(place for place, ready in enumerate(programs) if _fits(ready.flat))
        """The place in `rules` of each rule that is run by table; the tables are in this order."""
        self.slow = [place for place, ready in enumerate(programs) if not _fits(ready.flat)]
        self.names = [programs[place].names for place in self.quick]
        flats = [flat for place in self.quick if (flat := programs[place].flat)]
        self.verdicts = [flat.verdicts for flat in flats]
        self.tables = [_flagged(flat) for flat in flats]
        self.touched: list[list[int]] = [[] for _ in self.predicates]
        """By predicate, the tables that read it."""
        self.masks = [sum(self.bits[name] for name in names) for names in self.names]
        """By table, the bits of the predicates it reads."""
        ends = [(at, place, _ends(programs[place])) for at, place in enumerate(self.quick)]
        self.ends = [each for each in ends if each[2]]
        """Tables with states in which the end of an episode breaks the rule: which table, which rule, which states."""
        self.flags = int.from_bytes(bytes([FLAG]) * len(flats), "little")
        self._width, self._gather = self._gathering()
        # Episodes repeat themselves, and one look-up then does for all rules.
        self.after = lru_cache(maxsize=MEMO)(self._after)
        self.needs = lru_cache(maxsize=MEMO)(self._needs)
        self.passed = lru_cache(maxsize=MEMO)(self._passed)

    def read(self, states: int, values: int) -> int:
        """Where each rule's table is to be read, for these states and values: one byte per rule."""
        width = self._width
        low = (1 << width) - 1
        for chunk in self._gather:
            states |= chunk[values & low]
            values >>= width
        return states

    def _after(self, read: int) -> tuple[int, RuleStep]:
        """The states after what was read, and which rules it broke."""
        places = read.to_bytes(len(self.tables), "little")
        after = int.from_bytes(bytes(map(getitem, self.tables, places)), "little")
        broken = after & self.flags
        if broken:
            return after ^ broken, RuleStep(broken, self.quick)
        return after, UNTOUCHED

    def _passed(self, states: int, values: int, unknown: int) -> tuple[bool, int]:
        """Whether no unknown predicate matters and no rule is broken; and the states after it."""
        after, step = self.after(self.read(states, values))
        return step is UNTOUCHED and not self.needs(states, values, unknown), after

    def _needs(self, states: int, values: int, unknown: int) -> int:
        """The bits of those unknown predicates that change where some rule goes from these states, others unknown."""
        read, found = self.read(states, values), 0
        for at, names in enumerate(self.names):
            mine = [(1 << place, self.bits[name]) for place, name in enumerate(names) if unknown & self.bits[name]]
            places = [read >> 8 * at & FLAG - 1]
            for place, _ in mine:
                places += [each | place for each in places]
            table = self.tables[at]
            for place, bit in mine:
                if any(table[each] != table[each ^ place] for each in places):
                    found |= bit
        return found

    def _gathering(self) -> tuple[int, list[list[int]]]:
        """For each few predicates and each value of theirs: one byte per rule, with its bits for them."""
        numbers = {name: number for number, name in enumerate(self.predicates)}
        single = [0] * len(numbers)
        for at, names in enumerate(self.names):
            for place, name in enumerate(names):
                single[numbers[name]] |= 1 << 8 * at + place
                self.touched[numbers[name]].append(at)
        width = 10
        while width > 1 and (len(single) // width + 1) * (len(self.names) + 32) << width > MEMORY:
            width -= 1
        chunks: list[list[int]] = []
        for first in range(0, len(single), width):
            chunk = [0]
            for bits in single[first : first + width]:
                chunk += [gathered | bits for gathered in chunk]
            # The last chunk may be short of predicates; bits beyond them are nobody's.
            chunks.append(chunk * ((1 << width) // len(chunk)))
        return width, chunks


@lru_cache(maxsize=64)
def _book(rules: tuple[Rule, ...]) -> Rulebook:
    return Rulebook(rules)


def rulebook(rules: Iterable[Rule]) -> Rulebook:
    """The book of these rules, made once."""
    return _book(tuple(rules))


def _ends(ready: Program) -> frozenset[int]:
    face = ready.pair.rearming
    assert isinstance(face, WholeAutomaton)
    return frozenset(state << len(ready.names) for state in range(face.states) if not face.accepts(state))


def _fits(flat: Flat | None) -> bool:
    return flat is not None and len(flat.after) <= FLAG


def _flagged(flat: Flat) -> bytes:
    return bytes(after | FLAG * (mark == BROKEN) for after, mark in zip(flat.after, flat.verdicts, strict=True))


class MonitorSet:
    """The state of every rule of a book in one episode.

    A rule whose table does not fit a byte (many predicates times many states) has a `Monitor` of its own.
    """

    def __init__(self, rules: Iterable[Rule] | Rulebook) -> None:
        self._book: Rulebook = rules if isinstance(rules, Rulebook) else rulebook(rules)
        self.rules = self._book.rules
        self.predicates = self._book.predicates
        """Predicate `j` is bit `j` of what `step` takes."""
        self._states = 0
        """One byte per rule of the book that is run by table."""
        self._slow = {place: Monitor(self.rules[place]) for place in self._book.slow}
        self._sets: dict[int, frozenset[int]] = {}
        """The states of rules that may be in more than one; their byte means nothing."""

    def fork(self) -> "MonitorSet":
        """Another set with the same past."""
        other = MonitorSet.__new__(MonitorSet)
        other._book, other.rules, other.predicates = self._book, self.rules, self.predicates
        other._states = self._states
        other._slow = {place: monitor.fork() for place, monitor in self._slow.items()} if self._slow else {}
        other._sets = self._sets.copy() if self._sets else {}
        return other

    def needs(self, values: int, unknown: int) -> int:
        """The bits of those unknown predicates that change where some rule goes, whatever the others are."""
        book = self._book
        if not (self._sets or self._slow):
            return book.needs(self._states, values, unknown)
        found = book.needs(self._states, values, unknown)
        for at in self._sets:
            found |= book.masks[at]
        for place in self._slow:
            found |= sum(book.bits[name] for name in program(self.rules[place].formula).names)
        return found & unknown

    def passes(self, values: int, unknown: int) -> bool:
        """Read an act that breaks no rule, whatever the unknown predicates are; False, and nothing read, for others."""
        if self._sets or self._slow:
            return False
        passed, after = self._book.passed(self._states, values, unknown)
        if passed:
            self._states = after
        return passed

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
        book = self._book
        before = self._states
        self._states, step = book.after(book.read(before, values))
        if known & book.everything == book.everything and not (self._sets or self._slow):
            return step
        return self._unsure_step(values, known, before, step)

    def tables(self, act: ActValues) -> dict[str, TruthTable]:
        """By rule name, what it would say of an act (see `Monitor.table`)."""
        book = self._book
        found = {self.rules[place].name: monitor.table(act) for place, monitor in self._slow.items()}
        for at, place in enumerate(book.quick):
            name = self.rules[place].name
            states = [self._keeps(at, state) for state in sorted(self._possible(at))]
            found[name] = act.table(name, book.names[at], states)
        return found

    def _keeps(self, at: int, state: int) -> Keeps:
        names, verdicts = self._book.names[at], self._book.verdicts[at]
        return lambda values: verdicts[state + sum(values[name] << place for place, name in enumerate(names))] != BROKEN

    def waiting(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Places of the rules that the end of the episode breaks now, and of those that it may break."""
        broken: list[int] = []
        open: list[int] = []
        for at, place, ends in self._book.ends:
            possible = self._possible(at)
            if possible <= ends:
                broken.append(place)
            elif possible & ends:
                open.append(place)
        for place, monitor in self._slow.items():
            broke = monitor.finish().broke
            if broke is not False:
                (broken if broke else open).append(place)
        return tuple(sorted(broken)), tuple(sorted(open))

    def _possible(self, at: int) -> frozenset[int]:
        return self._sets.get(at) or frozenset([self._states >> 8 * at & FLAG - 1])

    def _unsure_step(self, values: int, known: int, before: int, quick: RuleStep) -> RuleStep:
        """Correct what the quick step got wrong: rules in several states, or with an unknown predicate."""
        book = self._book
        unknown = book.everything & ~known
        affected = set(self._sets)
        for number, touched in enumerate(book.touched):
            if unknown >> number & 1:
                affected.update(touched)
        reports: dict[int, bool | None] = {}
        for at in affected:
            states = self._sets.pop(at, None) or (before >> 8 * at & FLAG - 1,)
            reports[book.quick[at]] = self._move(at, states, values, unknown)
        for place, monitor in self._slow.items():
            seen = {name: bool(values & bit) for name, bit in book.bits.items() if known & bit}
            reports[place] = monitor.step(seen).broke
        broken = [place for place in quick.broken if place not in reports]
        broken += [place for place, broke in reports.items() if broke]
        unsure = [place for place, broke in reports.items() if broke is None]
        return RuleStep(others=tuple(broken), unsure=tuple(sorted(unsure)))

    def _move(self, at: int, states: Iterable[int], values: int, unknown: int) -> bool | None:
        """Move one rule from each of its states by each completion of its predicates; whether that breaks it."""
        book = self._book
        words = [0]
        for place, name in enumerate(book.names[at]):
            if unknown & book.bits[name]:
                words += [word | 1 << place for word in words]
            elif values & book.bits[name]:
                words = [word | 1 << place for word in words]
        places = [state + word for state in states for word in words]
        broke = {book.verdicts[at][place] == BROKEN for place in places}
        after = frozenset(book.tables[at][place] & FLAG - 1 for place in places)
        if len(after) > 1:
            self._sets[at] = after
        self._states = self._states & ~(255 << 8 * at) | min(after) << 8 * at
        return broke.pop() if len(broke) == 1 else None
