"""Many rules compiled together, shared by all episodes that are held to them.

Predicates have bit positions, so what is known of an act is two integers. Each rule has one byte of a third: its state
and, below it, room for the values of its own predicates. One look-up per few predicates fills in that room for all
rules at once; the byte is then the place where the rule's flat table is read.
"""

from collections.abc import Iterable
from functools import lru_cache
from operator import getitem

from msgspec import Struct

from bylaw.rule.automaton import BROKEN, WholeAutomaton
from bylaw.rule.program import Flat, Program, program
from bylaw.rule.rule import Rule

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
        self.ends = [_ends(programs[place]) for place in self.quick]
        """By table, the states in which the end of an episode breaks the rule."""
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
