"""What a formula can tell apart at one step.

The largest parts without temporal operators are its leaves; what is left is its temporal skeleton. A letter is one
possible vector of leaf values, as bits. Formulas with the same skeleton and the same possible letters share an
automaton, whatever their predicates are called.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from bylaw.rule.formula import Atom, Constant, Formula, Future, Past, atoms, operands
from bylaw.rule.table import condition, truth_bits

TABLE_CAP = 18
"""Up to so many predicates that hang together, which letters are possible is read off truth tables."""
SEARCH_CAP = 1000
"""How many cases are tried beyond that."""
LETTER_CAP = 4096
"""More letters than these are not listed."""


class Alphabet(Struct, frozen=True):
    """A formula's skeleton, and how predicates turn into its letters."""

    skeleton: Formula
    """The formula with its leaves replaced by atoms named `0`, `1`, ..."""
    leaves: tuple[Formula, ...]
    names: tuple[str, ...]
    """The predicates, in order of appearance; predicate `j` is bit `j` of an assignment."""
    possible: tuple[int, ...]
    """All letters some assignment gives, in order; empty where there are too many to list."""
    exact: bool
    """False where `possible` may hold letters that no assignment gives."""
    samples: tuple[int, ...] = ()
    """Some letters that assignments do give, where there are too many to list."""


def alphabet(formula: Formula) -> Alphabet:
    """The alphabet of a formula."""
    leaves: dict[Formula, int] = {}
    skeleton = _skeleton(formula, leaves)
    every = tuple(leaves)
    names = atoms(formula)
    if all(isinstance(leaf, Atom) for leaf in every) and len(every) <= 12:
        return Alphabet(skeleton, every, names, tuple(range(1 << len(every))), exact=True)
    possible, exact = possible_letters(every, {})
    return Alphabet(skeleton, every, names, possible, exact, () if possible else _samples(every, names))


def possible_letters(leaves: Sequence[Formula], known: Mapping[str, bool | None]) -> tuple[tuple[int, ...], bool]:
    """The letters that some completion of `known` gives, and whether these are exactly all.

    Where there are too many to list the first part is empty.
    """
    if known:
        settled = {name: value for name, value in known.items() if value is not None}
        leaves = [condition(leaf, settled) for leaf in leaves]
    letters = [0]
    exact = True
    for group in _groups(leaves):
        names = _names(leaves, group)
        if len(names) <= TABLE_CAP:
            vectors = _joint([truth_bits(leaves[place], names) for place in group], group, 1 << len(names))
        else:
            vectors, complete = _search(leaves, group)
            exact = exact and complete
        if not vectors or len(vectors) * len(letters) > LETTER_CAP:
            return (), False
        letters = [letter | vector for letter in letters for vector in vectors]
    return tuple(sorted(letters)), exact


def letter_of(leaves: Sequence[Formula], assignment: Mapping[str, bool]) -> int:
    """The letter that a whole assignment gives."""
    return sum(truth_bits(leaf, (), assignment) << place for place, leaf in enumerate(leaves))


def _samples(leaves: Sequence[Formula], names: Sequence[str]) -> tuple[int, ...]:
    """The letters of a few assignments: all true, all false, each predicate alone, and some mixed."""
    assignments = [dict.fromkeys(names, value) for value in (True, False)]
    assignments += [{name: name == one for name in names} for one in names[:24]]
    for seed in range(1, 25):
        state = seed
        mixed: dict[str, bool] = {}
        for name in names:
            # A linear congruential generator: `random` costs more to import than all of this package.
            state = (state * 1103515245 + 12345) % 2147483648
            mixed[name] = state >> 16 & 1 == 1
        assignments.append(mixed)
    return tuple(dict.fromkeys(letter_of(leaves, assignment) for assignment in assignments))


def _skeleton(formula: Formula, leaves: dict[Formula, int]) -> Formula:
    if not _is_temporal(formula):
        if isinstance(formula, Constant):
            return formula
        return Atom(str(leaves.setdefault(formula, len(leaves))))
    match operands(formula):
        case (operand,):
            return type(formula)(_skeleton(operand, leaves))  # type: ignore[call-arg]
        case (left, right):
            first = _skeleton(left, leaves)
            return type(formula)(first, _skeleton(right, leaves))  # type: ignore[call-arg]
        case _:
            return formula


def _is_temporal(formula: Formula) -> bool:
    return isinstance(formula, Future | Past) or any(_is_temporal(part) for part in operands(formula))


def _groups(leaves: Sequence[Formula]) -> list[list[int]]:
    """Leaf places, together where they share predicates."""
    groups: list[tuple[set[str], list[int]]] = []
    for place, leaf in enumerate(leaves):
        names = set(atoms(leaf))
        members = [place]
        apart: list[tuple[set[str], list[int]]] = []
        for group in groups:
            if group[0] & names:
                names |= group[0]
                members = group[1] + members
            else:
                apart.append(group)
        groups = [*apart, (names, members)]
    return [members for _, members in groups]


def _names(leaves: Sequence[Formula], group: Sequence[int]) -> list[str]:
    return list(dict.fromkeys(name for place in group for name in atoms(leaves[place])))


def _search(leaves: Sequence[Formula], group: Sequence[int]) -> tuple[list[int], bool]:
    """The vectors of leaves with very many predicates: settle one predicate after the other, until all were met.

    Where that takes too long every vector is given, and False.
    """
    if len(group) > 12:
        return [], False
    everything = [0]
    for place in group:
        everything += [vector | 1 << place for vector in everything]
    found: set[int] = set()
    waiting = [[leaves[place] for place in group]]
    for _ in range(SEARCH_CAP):
        if not waiting or len(found) == len(everything):
            return sorted(found), True
        parts = waiting.pop()
        name = next((name for part in parts for name in atoms(part)), None)
        if name is None:
            values = zip(parts, group, strict=True)
            found.add(sum(1 << place for part, place in values if part == Constant(True)))
        else:
            waiting += [[condition(part, {name: value}) for part in parts] for value in (False, True)]
    return everything, False


def _joint(tables: Sequence[int], group: Sequence[int], rows: int) -> list[int]:
    """The vectors that some row of the truth tables shows: split the rows by one leaf after the other."""
    parts = [(0, (1 << rows) - 1)]
    for table, place in zip(tables, group, strict=True):
        split: list[tuple[int, int]] = []
        for vector, left in parts:
            if without := left & ~table:
                split.append((vector, without))
            if within := left & table:
                split.append((vector | 1 << place, within))
        parts = split
    return [vector for vector, _ in parts]
