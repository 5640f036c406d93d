"""Letters, which are the distinct inputs to a formula at one step, and truth tables.

The leaves of a formula are its largest subformulas without temporal operators. The rest of the formula is its temporal
skeleton. A letter is one possible vector of leaf values, stored as bits. Formulas with the same skeleton and possible
letters share an automaton, even if their predicates have different names.

A truth table gives the value of a rule at one act as a Boolean function of predicates. A propositional rule has one
table. A temporal rule has one table per act, which says whether the values at the act permanently violate the rule.
Circuits use only tables, so they can combine both kinds of rule.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import msgspec
from msgspec import Struct

from bylaw.errors import FormulaError
from bylaw.rule.formula import (
    Always,
    And,
    Atom,
    Constant,
    Formula,
    Future,
    Not,
    Or,
    Past,
    Xor,
    atoms,
    basic,
    operands,
)

MOST_ATOMS = 16

Keeps = Callable[[Mapping[str, bool]], bool | None]
"""Returns whether an act with these values complies with a rule, given the state of the rule's monitor. None if this is
unknown.
"""


class TruthTable(msgspec.Struct, frozen=True):
    """A Boolean function. `values[i]` is the function's value if each predicate `atoms[j]` has the value of bit `j` of
    `i`.
    """

    atoms: tuple[str, ...]
    values: bytes

    def __call__(self, letter: Mapping[str, bool]) -> bool:
        return bool(self.values[sum(1 << j for j, name in enumerate(self.atoms) if letter[name])])


def table_of(formula: Formula, names: tuple[str, ...] | None = None) -> TruthTable:
    """Return the truth table of a propositional formula over `names`, which default to the formula's own predicates.

    `ALWAYS f` is treated as `f` at the current act.
    """
    if isinstance(formula, Always):
        formula = formula.operand
    if names is None:
        names = atoms(formula)
    _limit(names)
    return TruthTable(names, _spread(truth_bits(formula, names), 1 << len(names)))


def truth_bits(formula: Formula, names: Sequence[str], known: Mapping[str, bool] = {}) -> int:
    """Return the truth table of a propositional formula over `names` as bits. All other predicates of the formula must
    be given.
    """
    full = (1 << (1 << len(names))) - 1
    patterns = {name: full if value else 0 for name, value in known.items()}
    patterns |= {name: _pattern(j, full) for j, name in enumerate(names)}
    return _bits(formula, patterns, full)


def condition(formula: Formula, known: Mapping[str, bool]) -> Formula:
    """Replace the known predicates by their values, and simplify. The resulting function may still be constantly
    true.
    """
    match basic(formula):
        case Atom(name):
            return Constant(known[name]) if name in known else formula
        case Not(operand):
            inner = condition(operand, known)
            return Constant(not inner.value) if isinstance(inner, Constant) else Not(inner)
        case And(left, right):
            return _joined(And, condition(left, known), condition(right, known), absorbing=False)
        case Or(left, right):
            return _joined(Or, condition(left, known), condition(right, known), absorbing=True)
        case Xor(left, right):
            one, other = condition(left, known), condition(right, known)
            if isinstance(one, Constant):
                one, other = other, one
            if isinstance(other, Constant):
                return condition(Not(one), {}) if other.value else one
            return Xor(one, other)
        case _:
            return formula


def _joined(kind: type[And] | type[Or], left: Formula, right: Formula, *, absorbing: bool) -> Formula:
    if isinstance(left, Constant):
        return left if left.value == absorbing else right
    if isinstance(right, Constant):
        return right if right.value == absorbing else left
    return kind(left, right)


def chosen_table(name: str, tables: Sequence[TruthTable]) -> TruthTable:
    """Return the table of a rule whose monitor may be in several states.

    New predicates `name@0`, `name@1`, ... select the state, so their values are always unknown.
    """
    first = tables[0]
    if all(table == first for table in tables):
        return first
    if any(table.atoms != first.atoms for table in tables):
        raise ValueError("tables of one rule must list the same predicates in the same order")
    count = (len(tables) - 1).bit_length()
    names = (*first.atoms, *(f"{name}@{i}" for i in range(count)))
    _limit(names)
    # Combinations that select no state repeat the last state. The bounds stay the same, and the weights stay nearly
    # uniform.
    chosen = [tables[min(i, len(tables) - 1)].values for i in range(1 << count)]
    return TruthTable(names, b"".join(chosen))


def lost(name: str, action: str) -> TruthTable:
    """Return the table of a rule whose monitor has given up. The rule's value is unknown with and without the
    action.
    """
    return TruthTable((action, f"{name}@0", f"{name}@1"), bytes((0, 0, 1, 0, 0, 1, 1, 1)))


class ActValues(msgspec.Struct, frozen=True):
    """The known predicates of an act if the action is taken, and the values that differ if it is not taken."""

    action: str
    taken: Mapping[str, bool]
    left: Mapping[str, bool]

    def table(self, name: str, names: Sequence[str], states: Sequence[Keeps]) -> TruthTable:
        """Return the table of the rule over the action and the unknown predicates in `names`.

        `states` has one function for each possible state of the monitor. The function says whether an act complies with
        the rule.
        """
        open = tuple(each for each in names if each not in self.taken)
        if not states or len(open) + len(states).bit_length() + 1 >= MOST_ATOMS:
            return lost(name, self.action)
        found: dict[TruthTable, None] = {}
        for keeps in states:
            rows: list[bool | None] = []
            for completion in range(1 << len(open)):
                values = {**self.taken, **{each: bool(completion >> place & 1) for place, each in enumerate(open)}}
                rows += [keeps({**values, **self.left}), keeps(values)]
            for unsure in (True, False) if None in rows else (True,):
                kept = bytes(unsure if row is None else row for row in rows)
                found[TruthTable((self.action, *open), kept)] = None
        return chosen_table(name, list(found))


def _limit(names: Sequence[str]) -> None:
    if len(names) > MOST_ATOMS:
        raise FormulaError(
            f"a rule in a circuit may mention at most {MOST_ATOMS} predicates; this rule mentions {len(names)}",
            hint="split the rule into smaller ones",
        )


@lru_cache(maxsize=256)
def _pattern(j: int, full: int) -> int:
    """Return the integer in which each bit `i` equals bit `j` of the number `i`."""
    block = 1 << j
    return full // ((1 << block) + 1) << block


def _bits(formula: Formula, patterns: Mapping[str, int], full: int) -> int:
    match basic(formula):
        case Constant(value):
            return full if value else 0
        case Atom(name):
            return patterns[name]
        case Not(operand):
            return full ^ _bits(operand, patterns, full)
        case And(left, right):
            return _bits(left, patterns, full) & _bits(right, patterns, full)
        case Or(left, right):
            return _bits(left, patterns, full) | _bits(right, patterns, full)
        case Xor(left, right):
            return _bits(left, patterns, full) ^ _bits(right, patterns, full)
        case _:
            raise FormulaError(
                f"`{type(formula).__name__.upper()}` refers to other steps, so the rule has no table",
                hint="use the table of its monitor's state",
            )


def _spread(bits: int, size: int) -> bytes:
    return format(bits, f"0{size}b")[::-1].encode().translate(_DIGITS)


_DIGITS = bytes.maketrans(b"01", b"\x00\x01")


TABLE_CAP = 18
"""The maximum number of connected predicates for which truth tables give the possible letters."""
SEARCH_CAP = 1000
"""The maximum number of cases in a search for letters."""
LETTER_CAP = 4096


class Alphabet(Struct, frozen=True):
    """A formula's skeleton, and the mapping from predicates to letters."""

    skeleton: Formula
    """The formula with atoms named `0`, `1`, ... in place of its leaves."""
    leaves: tuple[Formula, ...]
    names: tuple[str, ...]
    """Predicates in order of appearance. Predicate `j` is bit `j` of an assignment."""
    possible: tuple[int, ...]
    """All possible letters, in order. Empty if there are too many to list."""
    exact: bool
    """False if `possible` may contain impossible letters."""
    samples: tuple[int, ...] = ()
    """Some of the possible letters, if there are too many to list."""


def alphabet(formula: Formula) -> Alphabet:
    leaves: dict[Formula, int] = {}
    skeleton = _skeleton(formula, leaves)
    every = tuple(leaves)
    names = atoms(formula)
    if all(isinstance(leaf, Atom) for leaf in every) and len(every) <= 12:
        return Alphabet(skeleton, every, names, tuple(range(1 << len(every))), exact=True)
    possible, exact = possible_letters(every, {})
    return Alphabet(skeleton, every, names, possible, exact, () if possible else _samples(every, names))


def possible_letters(leaves: Sequence[Formula], known: Mapping[str, bool | None]) -> tuple[tuple[int, ...], bool]:
    """Return the possible letters, given the known predicates, and whether the list is exact. The list is empty if
    there are too many.
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
    """Return the letter of a complete assignment."""
    return sum(truth_bits(leaf, (), assignment) << place for place, leaf in enumerate(leaves))


def _samples(leaves: Sequence[Formula], names: Sequence[str]) -> tuple[int, ...]:
    """Return the letters of a few assignments: all true, all false, each predicate true alone, and mixtures."""
    assignments = [dict.fromkeys(names, value) for value in (True, False)]
    assignments += [{name: name == one for name in names} for one in names[:24]]
    for seed in range(1, 25):
        state = seed
        mixed: dict[str, bool] = {}
        for name in names:
            # A linear congruential generator, because importing `random` is slower than importing this package.
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
    """Find the leaf vectors for many predicates by fixing one predicate after another.

    If the search is too long, return every vector and False.
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
