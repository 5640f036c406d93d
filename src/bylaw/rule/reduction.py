"""A rule under what is known: cut down to its unknown predicates, once with the action and once without it."""

from functools import lru_cache
from operator import sub
from typing import NamedTuple

from bylaw.rule.elimination import Variables
from bylaw.rule.formula import Always, Constant, Formula, atoms, is_propositional
from bylaw.rule.table import MOST_ATOMS, TruthTable, condition, table_of

MEMO = 4096


class Reduced(NamedTuple):
    """A rule under what is known: its two columns, with the action and without it, over the unknown predicates."""

    scope: Variables
    kept_with: bytes
    kept_without: bytes
    is_wide: bool = False
    """Too many unknown predicates for columns: they hold one entry per value the rule might have, in no order."""


class Column:
    """A rule's table split by the action, and its reductions met so far."""

    def __init__(self, table: TruthTable, action: str, numbers: dict[str, int]) -> None:
        names = table.atoms
        self.bits = [numbers.setdefault(name, len(numbers)) if name != action else -1 for name in names]
        self.values = table.values
        self.mask = sum(1 << bit for bit in self.bits if bit >= 0)
        self._reduced = lru_cache(maxsize=MEMO)(self._reduce)

    def reduce(self, known: int, true: int) -> Reduced:
        return self._reduced(known & self.mask, true & self.mask)

    def _reduce(self, known: int, true: int) -> Reduced:
        base, action, scope, index = 0, 0, list[int](), [0]
        for position, bit in enumerate(self.bits):
            if bit < 0:
                action = 1 << position
            elif known >> bit & 1:
                base |= (true >> bit & 1) << position
        for bit, position in sorted((bit, j) for j, bit in enumerate(self.bits) if bit >= 0 and not known >> bit & 1):
            scope.append(bit)
            index += [i | 1 << position for i in index]
        values = self.values
        return _narrowed(
            tuple(scope), bytes([values[base | action | i] for i in index]), bytes([values[base | i] for i in index])
        )


class WideRule:
    """A rule with too many predicates for a table of its own: tabled afresh once enough of them are known."""

    def __init__(self, formula: Formula, action: str, numbers: dict[str, int]) -> None:
        self.formula, self.action, self.numbers = formula, action, numbers
        self.names = [name for name in atoms(formula) if name != action]
        for name in self.names:
            numbers.setdefault(name, len(numbers))
        self.mask = sum(1 << numbers[name] for name in self.names)

    def reduce(self, known: int, true: int) -> Reduced:
        values = {n: bool(true >> self.numbers[n] & 1) for n in self.names if known >> self.numbers[n] & 1}
        left = condition(self.formula, values)
        if len(atoms(left)) <= MOST_ATOMS:
            return Column(table_of(left), self.action, self.numbers).reduce(known, true)
        columns = (_possible_values(condition(left, {self.action: taken})) for taken in (True, False))
        scope = sorted(self.numbers[name] for name in atoms(left) if name != self.action)
        return Reduced(tuple(scope), *columns, is_wide=True)


def _possible_values(formula: Formula) -> bytes:
    return bytes([formula.value]) if isinstance(formula, Constant) else b"\x00\x01"


def _narrowed(scope: Variables, kept_with: bytes, kept_without: bytes) -> Reduced:
    """Drops unknown predicates that make no difference to the rule."""
    position = 0
    while position < len(scope):
        step = 1 << position
        blocks = range(0, len(kept_with), 2 * step)
        if all(
            column[at : at + step] == column[at + step : at + 2 * step]
            for column in (kept_with, kept_without)
            for at in blocks
        ):
            kept_with, kept_without = (
                b"".join([column[at : at + step] for at in blocks]) for column in (kept_with, kept_without)
            )
            scope = scope[:position] + scope[position + 1 :]
        else:
            position += 1
    return Reduced(scope, kept_with, kept_without)


def column_of(formula: Formula, action: str, numbers: dict[str, int]) -> Column | WideRule | None:
    """The rule ready to be reduced; None where it is temporal, and then its predicates are numbered all the same."""
    formula = formula.operand if isinstance(formula, Always) else formula
    names = atoms(formula)
    if not is_propositional(formula):
        for name in names:
            if name != action:
                numbers.setdefault(name, len(numbers))
        return None
    if len(names) > MOST_ATOMS:
        return WideRule(formula, action, numbers)
    return Column(table_of(formula, names), action, numbers)


@lru_cache(maxsize=8192)
def differences(reduced: Reduced) -> tuple[int, ...]:
    """What keeping the rule gains by the action, -1, 0 or 1, per completion."""
    if reduced.is_wide:
        return tuple(one - other for one in reduced.kept_with for other in reduced.kept_without)
    return tuple(map(sub, reduced.kept_with, reduced.kept_without))


@lru_cache(maxsize=8192)
def lanes(reduced: Reduced, kept: float = 1.0, broken: float = 0.0) -> tuple[float, ...]:
    """Both columns as one table of two numbers, the action its lowest bit."""
    values = bytearray(2 * len(reduced.kept_with))
    values[0::2] = reduced.kept_without
    values[1::2] = reduced.kept_with
    return tuple([kept if value else broken for value in values])
