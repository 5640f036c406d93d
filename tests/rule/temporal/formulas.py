"""Formulas and traces to test with: all small ones, and random larger ones."""

import random
from collections.abc import Iterator, Sequence
from itertools import product

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
    is_past_only,
)

FUTURE_UNARY = (Always, Eventually, Next, WeakNext)
PAST_UNARY = (Yesterday, Once, Historically)
FUTURE_BINARY = (Until, Release, WeakUntil)
BOOLEAN_BINARY = (And, Or, Xor, Implies)


def every_formula(size: int, names: Sequence[str] = ("a", "b")) -> Iterator[Formula]:
    """Every well-formed formula with exactly `size` operators and atoms."""
    if size == 1:
        yield from map(Atom, names)
        return
    for operand in every_formula(size - 1, names):
        for kind in (Not, *FUTURE_UNARY):
            yield kind(operand)
        if is_past_only(operand):
            for kind in PAST_UNARY:
                yield kind(operand)
    for left_size in range(1, size - 1):
        for left in every_formula(left_size, names):
            for right in every_formula(size - 1 - left_size, names):
                for kind in (*BOOLEAN_BINARY, *FUTURE_BINARY):
                    yield kind(left, right)
                if is_past_only(left) and is_past_only(right):
                    yield Since(left, right)


def random_formula(dice: random.Random, size: int, names: Sequence[str] = ("a", "b"), *, past: bool = False) -> Formula:
    """A well-formed formula with `size` operators, atoms and (now and then) constants."""
    if size == 1:
        return Constant(dice.random() < 0.5) if dice.random() < 0.05 else Atom(dice.choice(names))
    unary = (Not, *PAST_UNARY) if past else (Not, *FUTURE_UNARY, *PAST_UNARY)
    binary = (*BOOLEAN_BINARY, Since) if past else (*BOOLEAN_BINARY, *FUTURE_BINARY, Since)
    kind = dice.choice(unary if size == 2 else (*unary, *binary, *binary))
    past = past or kind in PAST_UNARY or kind is Since
    if kind in unary:
        return kind(random_formula(dice, size - 1, names, past=past))
    left = dice.randint(1, size - 2)
    return kind(random_formula(dice, left, names, past=past), random_formula(dice, size - 1 - left, names, past=past))


def every_step(names: Sequence[str] = ("a", "b")) -> list[dict[str, bool]]:
    return [dict(zip(names, values, strict=True)) for values in product((False, True), repeat=len(names))]


def every_trace(
    longest: int, names: Sequence[str] = ("a", "b"), *, shortest: int = 1
) -> Iterator[list[dict[str, bool]]]:
    for length in range(shortest, longest + 1):
        for steps in product(every_step(names), repeat=length):
            yield list(steps)


def random_trace(dice: random.Random, longest: int, names: Sequence[str] = ("a", "b")) -> list[dict[str, bool]]:
    return [{name: dice.random() < 0.5 for name in names} for _ in range(dice.randint(1, longest))]


def with_unknowns(dice: random.Random, trace: Sequence[dict[str, bool]], most: int) -> list[dict[str, bool | None]]:
    """The trace with up to `most` values forgotten, some of them by leaving the name out."""
    found: list[dict[str, bool | None]] = [dict(step) for step in trace]
    for _ in range(dice.randint(1, most)):
        step = dice.choice(found)
        name = dice.choice(("a", "b"))
        if dice.random() < 0.5:
            step[name] = None
        else:
            step.pop(name, None)
    return found
