"""Computes a formula's value at every step of a whole trace, for formulas too large for a monitor.

The time is the formula's size times the trace's length. Unknown values use three-valued logic. A value that is given is
certain, but some certain values are reported as unknown (`a OR NOT a`).
"""

from collections.abc import Callable, Mapping, Sequence

from bylaw.rule.formula import (
    Always,
    And,
    Atom,
    Constant,
    Eventually,
    Formula,
    Historically,
    Implies,
    Next,
    Not,
    Once,
    Or,
    Release,
    Since,
    Until,
    WeakNext,
    WeakUntil,
    Xor,
    Yesterday,
)

TruthValue = bool | None


def values_of(formula: Formula, steps: Sequence[Mapping[str, TruthValue]]) -> list[TruthValue]:
    """Return the formula's value at every step."""
    match formula:
        case Constant(value):
            return [value] * len(steps)
        case Atom(name):
            return [step.get(name) for step in steps]
        case Not(operand):
            return list(map(_not, values_of(operand, steps)))
        case And(left, right):
            return list(map(_and, values_of(left, steps), values_of(right, steps)))
        case Or(left, right):
            return list(map(_or, values_of(left, steps), values_of(right, steps)))
        case Implies(left, right):
            return list(map(_or, map(_not, values_of(left, steps)), values_of(right, steps)))
        case Xor(left, right):
            pairs = zip(values_of(left, steps), values_of(right, steps), strict=True)
            return [None if one is None or other is None else one != other for one, other in pairs]
        case Next(operand):
            return [*values_of(operand, steps)[1:], False]
        case WeakNext(operand):
            return [*values_of(operand, steps)[1:], True]
        case Yesterday(operand):
            return [False, *values_of(operand, steps)[:-1]]
        case Always(operand):
            return _carried(values_of(operand, steps)[::-1], True, _and)[::-1]
        case Historically(operand):
            return _carried(values_of(operand, steps), True, _and)
        case Eventually(operand):
            return _carried(values_of(operand, steps)[::-1], False, _or)[::-1]
        case Once(operand):
            return _carried(values_of(operand, steps), False, _or)
        case Until(kept, goal):
            return _until(values_of(kept, steps)[::-1], values_of(goal, steps)[::-1], False)[::-1]
        case WeakUntil(kept, goal):
            return _until(values_of(kept, steps)[::-1], values_of(goal, steps)[::-1], True)[::-1]
        case Since(kept, start):
            return _until(values_of(kept, steps), values_of(start, steps), False)
        case Release(freed, kept):
            # The dual of UNTIL: NOT (NOT freed UNTIL NOT kept).
            waits, goals = map(_not, values_of(freed, steps)[::-1]), map(_not, values_of(kept, steps)[::-1])
            return list(map(_not, _until(list(waits), list(goals), False)))[::-1]


def _carried(
    values: Sequence[TruthValue], first: bool, join: Callable[[TruthValue, TruthValue], TruthValue]
) -> list[TruthValue]:
    found: list[TruthValue] = []
    so_far: TruthValue = first
    for value in values:
        so_far = join(so_far, value)
        found.append(so_far)
    return found


def _until(kept: Sequence[TruthValue], goal: Sequence[TruthValue], first: bool) -> list[TruthValue]:
    found: list[TruthValue] = []
    so_far: TruthValue = first
    for waits, met in zip(kept, goal, strict=True):
        so_far = _or(met, _and(waits, so_far))
        found.append(so_far)
    return found


def _not(value: TruthValue) -> TruthValue:
    return None if value is None else not value


def _and(one: TruthValue, other: TruthValue) -> TruthValue:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _or(one: TruthValue, other: TruthValue) -> TruthValue:
    if one is True or other is True:
        return True
    return None if one is None or other is None else False
