"""Many rules followed together over one episode: the hot path of a live shield."""

from collections.abc import Hashable, Iterable

from bylaw.rule.automaton import BROKEN
from bylaw.rule.monitor import Monitor, Values
from bylaw.rule.program import program
from bylaw.rule.rule import Rule
from bylaw.rule.rulebook import FLAG, Rulebook, RuleStep, rulebook
from bylaw.rule.table import ActValues, Keeps, TruthTable


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

    @property
    def standing(self) -> Hashable | None:
        """Where all rules stand, the same for sets of one book of which the same can be said; None where that would
        take as long to tell as to ask."""
        return None if self._slow else (self._states, tuple(self._sets.items()))

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
        for at, place in enumerate(self._book.quick):
            possible = self._possible(at)
            ends = self._book.ends[at]
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
