"""Formulas of finite-trace linear temporal logic (LTL-f) with past, and how they are written.

`str(formula)` is the surface language of `parser` with as few parentheses as it allows; parsing it gives the same
formula again.
"""

import re
from collections.abc import Iterator
from typing import get_args

from msgspec import Struct


class _Printed(Struct, frozen=True):
    def __str__(self) -> str:
        return show(self)  # type: ignore[arg-type]


class Constant(_Printed, frozen=True):
    """True or false, whatever the step."""

    value: bool


class Atom(_Printed, frozen=True):
    """A predicate, at this step."""

    name: str


class _Unary(_Printed, frozen=True):
    """An operator before one formula."""

    operand: "Formula"


class _Binary(_Printed, frozen=True):
    """An operator between two formulas."""

    left: "Formula"
    right: "Formula"


class Not(_Unary, frozen=True):
    """The operand does not hold."""


class And(_Binary, frozen=True):
    """Both hold."""


class Or(_Binary, frozen=True):
    """One or both hold."""


class Xor(_Binary, frozen=True):
    """Exactly one holds."""


class Implies(_Binary, frozen=True):
    """Where the left holds, the right does."""


class Always(_Unary, frozen=True):
    """At this step and every later one."""


class Eventually(_Unary, frozen=True):
    """At this step or a later one."""


class Next(_Unary, frozen=True):
    """There is a next step, and the operand holds there (strong)."""


class WeakNext(_Unary, frozen=True):
    """This is the last step, or the operand holds at the next."""


class Until(_Binary, frozen=True):
    """The right holds now or later, and the left at every step before that one."""


class Release(_Binary, frozen=True):
    """The right holds up to and including the first step where the left does, or to the end."""


class WeakUntil(_Binary, frozen=True):
    """Like `Until`, but the right need never come if the left holds to the end."""


class Yesterday(_Unary, frozen=True):
    """There is a step before this one, and the operand held there (strong)."""


class Once(_Unary, frozen=True):
    """At this step or an earlier one."""


class Historically(_Unary, frozen=True):
    """At this step and every earlier one."""


class Since(_Binary, frozen=True):
    """The right held now or earlier, and the left at every step after that one, this one included."""


Formula = (
    Constant
    | Atom
    | Not
    | And
    | Or
    | Xor
    | Implies
    | Always
    | Eventually
    | Next
    | WeakNext
    | Until
    | Release
    | WeakUntil
    | Yesterday
    | Once
    | Historically
    | Since
)
Unary = Not | Always | Eventually | Next | WeakNext | Yesterday | Once | Historically
Binary = And | Or | Xor | Implies | Until | Release | WeakUntil | Since
Future = Always | Eventually | Next | WeakNext | Until | Release | WeakUntil
Past = Yesterday | Once | Historically | Since

KEYWORDS: dict[type[Unary] | type[Binary], str] = {
    kind: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).upper() for kind in (*get_args(Unary), *get_args(Binary))
}
"""How operators are written: `WeakNext` is `WEAK_NEXT`."""
RESERVED = frozenset(KEYWORDS.values()) | {"TRUE", "FALSE", "true", "false", "IFF", "FOR", "EACH"}
"""Words that a predicate of that name must be quoted to avoid."""

LEVELS: dict[type[Binary], int] = {Implies: 1, Or: 2, Xor: 3, And: 4, Until: 5, Release: 5, WeakUntil: 5, Since: 5}
"""How tightly binary operators bind; unary ones bind tighter than all of them."""
UNARY_LEVEL = 6
RIGHT_ASSOCIATIVE = (Implies, Until, Release, WeakUntil, Since)

_PLAIN_NAME = re.compile(r"[^\W\d]\w*(?:\.\w+)*")


def operands(formula: Formula) -> tuple[Formula, ...]:
    """The direct parts of a formula, left to right."""
    match formula:
        case _Unary():
            return (formula.operand,)
        case _Binary():
            return (formula.left, formula.right)
        case _:
            return ()


def walk(formula: Formula) -> Iterator[Formula]:
    """The formula and all its parts, each before its own parts, left to right."""
    waiting = [formula]
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(reversed(operands(part)))


def atoms(formula: Formula) -> tuple[str, ...]:
    """The predicates' names in the order they first appear."""
    return tuple(dict.fromkeys(part.name for part in walk(formula) if isinstance(part, Atom)))


def size(formula: Formula) -> int:
    """How many operators, atoms and constants it is written with."""
    return sum(1 for _ in walk(formula))


def depth(formula: Formula) -> int:
    """How many parts stand inside one another at the deepest place."""
    deepest = 0
    waiting = [(formula, 1)]
    while waiting:
        part, level = waiting.pop()
        deepest = max(deepest, level)
        waiting.extend((operand, level + 1) for operand in operands(part))
    return deepest


def is_propositional(formula: Formula) -> bool:
    """Whether it speaks of one step only."""
    return not any(isinstance(part, Future | Past) for part in walk(formula))


def is_past_only(formula: Formula) -> bool:
    """Whether no step after this one can matter."""
    return not any(isinstance(part, Future) for part in walk(formula))


def show(formula: Formula) -> str:
    """The formula in the surface language."""
    return _show(formula, 0)


def show_name(name: str) -> str:
    """A predicate's name, quoted where it would not read as one."""
    if _PLAIN_NAME.fullmatch(name) and name not in RESERVED:
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _show(formula: Formula, around: int) -> str:
    match formula:
        case Constant(value):
            return "TRUE" if value else "FALSE"
        case Atom(name):
            return show_name(name)
        case _Unary():
            return f"{KEYWORDS[type(formula)]} {_show(formula.operand, UNARY_LEVEL)}"
        case _:
            kind = type(formula)
            level = LEVELS[kind]
            to_the_right = kind in RIGHT_ASSOCIATIVE
            left = _show(formula.left, level + 1 if to_the_right else level)
            right = _show(formula.right, level if to_the_right else level + 1)
            text = f"{left} {KEYWORDS[kind]} {right}"
            return f"({text})" if level < around else text
