"""Formulas of linear temporal logic on finite traces (LTL-f) with past operators.

`str(formula)` gives the language of `parser` with few parentheses. Parsing this text gives the same formula.
"""

import re
from collections.abc import Iterator
from typing import get_args

from msgspec import Struct


class _Printed(Struct, frozen=True):
    def __str__(self) -> str:
        return show(self)  # type: ignore[arg-type]


class Constant(_Printed, frozen=True):
    """True or false at every step."""

    value: bool


class Atom(_Printed, frozen=True):
    """A predicate at the current step."""

    name: str


class _Unary(_Printed, frozen=True):
    operand: "Formula"


class _Binary(_Printed, frozen=True):
    left: "Formula"
    right: "Formula"


class Not(_Unary, frozen=True):
    """True if the operand is false."""


class And(_Binary, frozen=True):
    """True if both operands are true."""


class Or(_Binary, frozen=True):
    """True if at least one operand is true."""


class Xor(_Binary, frozen=True):
    """True if exactly one operand is true."""


class Implies(_Binary, frozen=True):
    """False only if the left operand is true and the right one false."""


class Always(_Unary, frozen=True):
    """The operand holds now and at every later step."""


class Eventually(_Unary, frozen=True):
    """The operand holds now or at a later step."""


class Next(_Unary, frozen=True):
    """There is a next step and the operand holds there (strong next)."""


class WeakNext(_Unary, frozen=True):
    """This is the last step, or the operand holds at the next step."""


class Until(_Binary, frozen=True):
    """The right operand holds now or later, and the left operand holds at every step before."""


class Release(_Binary, frozen=True):
    """The right operand holds until the left one does, that step included, or to the end."""


class WeakUntil(_Binary, frozen=True):
    """Like `Until`, but the left operand may also hold to the end."""


class Yesterday(_Unary, frozen=True):
    """There is a previous step and the operand held there (strong)."""


class Once(_Unary, frozen=True):
    """The operand holds now or held at an earlier step."""


class Historically(_Unary, frozen=True):
    """The operand holds now and held at every earlier step."""


class Since(_Binary, frozen=True):
    """The right operand held now or earlier, and the left operand at every step after that."""


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
"""How operators are written, such as `WEAK_NEXT` for `WeakNext`."""
RESERVED = frozenset(KEYWORDS.values()) | {"TRUE", "FALSE", "true", "false", "IFF", "FOR", "EACH"}
"""Words that must be quoted when they name a predicate."""

LEVELS: dict[type[Binary], int] = {Implies: 1, Or: 2, Xor: 3, And: 4, Until: 5, Release: 5, WeakUntil: 5, Since: 5}
"""How tightly binary operators bind. Unary operators bind more tightly than all of these."""
UNARY_LEVEL = 6
RIGHT_ASSOCIATIVE = (Implies, Until, Release, WeakUntil, Since)

_PLAIN_NAME = re.compile(r"[^\W\d]\w*(?:\.\w+)*")


def operands(formula: Formula) -> tuple[Formula, ...]:
    match formula:
        case _Unary():
            return (formula.operand,)
        case _Binary():
            return (formula.left, formula.right)
        case _:
            return ()


def walk(formula: Formula) -> Iterator[Formula]:
    """Yield the formula and all its parts, each part before its own parts, left to right."""
    waiting = [formula]
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(reversed(operands(part)))


def atoms(formula: Formula) -> tuple[str, ...]:
    """Return the predicate names in order of first appearance."""
    return tuple(dict.fromkeys(part.name for part in walk(formula) if isinstance(part, Atom)))


def size(formula: Formula) -> int:
    """Count the operators, atoms and constants."""
    return sum(1 for _ in walk(formula))


def depth(formula: Formula) -> int:
    """Return the nesting depth."""
    deepest = 0
    waiting = [(formula, 1)]
    while waiting:
        part, level = waiting.pop()
        deepest = max(deepest, level)
        waiting.extend((operand, level + 1) for operand in operands(part))
    return deepest


def is_propositional(formula: Formula) -> bool:
    """Whether the formula has no temporal operator."""
    return not any(isinstance(part, Future | Past) for part in walk(formula))


def is_past_only(formula: Formula) -> bool:
    """Whether the formula has no future operator."""
    return not any(isinstance(part, Future) for part in walk(formula))


def show(formula: Formula) -> str:
    return _show(formula, 0)


def show_name(name: str) -> str:
    """Return a predicate's name, quoted if needed."""
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
