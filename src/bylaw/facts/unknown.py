"""Unknown values: expressions over facts. Comparing an unknown value yields an `UnknownBool`.

An `Unknown` records its fact or expression, so that the same question gets the same answer along one path. Arithmetic
on one fact with constants is undone: `now() - r.created_at < hours(24)` becomes a question about `created_at` alone.
Any other derived value is a variable of its own, identified by its expression.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn, Protocol, cast

from bylaw.facts.entity import Fact, Origin
from bylaw.facts.variable import (
    ANY_TEXT,
    EITHER,
    EVERYWHERE,
    FLIPPED,
    LINES,
    ORDERS,
    TRUE,
    Order,
    ValueKind,
    ValueSet,
    Variable,
    Words,
    is_exact,
    meet,
    place_of,
    plain_kind,
    points,
    result_kind,
    show_region,
    span_of,
    unlike,
    word,
)

NEEDS = 64
TEXT = 500


class Stuck(Exception):
    """Raised if a path needs the actual value of an `Unknown`. The path then ends as undetermined and not as failed."""

    def __init__(self, unknown: "Unknown") -> None:
        self.unknown = unknown


class BranchDecider(Protocol):
    """Decides whether an unknown boolean is true, when a branch depends on it."""

    def decide(self, truth: "UnknownBool") -> bool: ...


def _comparison(order: Order) -> "Callable[[Unknown, object], Any]":
    return lambda one, other: compare(order, one, other)


class Unknown:
    """An unknown value: either `sign * variable + offset`, or any other expression."""

    __slots__ = ("decider", "exact", "kind", "needs", "offset", "sign", "step", "text", "variable")

    def __init__(
        self,
        decider: BranchDecider,
        text: str,
        needs: Mapping[Fact, Origin],
        kind: ValueKind = "any",
        *,
        step: int | None = None,
        exact: bool = True,
        lowest: int | None = None,
        highest: int | None = None,
        words: Words = ANY_TEXT,
    ) -> None:
        self.decider = decider
        self.text = text = _short(text) if len(text) > TEXT else text
        self.needs = needs
        self.kind: ValueKind = kind
        self.step = step
        self.exact = exact
        self.sign = 1
        self.offset: int | Fraction = 0
        self.variable: Variable | None = None
        if kind == "text":
            self.variable = Variable(text, words, None, needs, kind)
        elif kind in LINES:
            universe = EVERYWHERE if lowest is None else span_of(">=", lowest, step)
            universe = universe if highest is None else universe.meet(span_of("<=", highest, step))
            self.variable = Variable(text, universe, step, needs, kind)

    def __repr__(self) -> str:
        return f"<unknown {self.text}>"

    def moved(self, sign: int, offset: int | Fraction, kind: ValueKind, text: str) -> "Unknown":
        """Return an unknown value over the same variable, transformed to `sign * self + offset`."""
        other = Unknown.__new__(Unknown)
        other.decider, other.needs, other.variable = self.decider, self.needs, self.variable
        other.step, other.exact, other.kind, other.text = self.step, self.exact, kind, _short(text)
        other.sign, other.offset = self.sign * sign, self.offset * sign + offset
        return other

    def __eq__(self, other: object) -> Any:
        return compare("==", self, other)

    def __ne__(self, other: object) -> Any:
        return compare("!=", self, other)

    __lt__, __le__ = _comparison("<"), _comparison("<=")
    __gt__, __ge__ = _comparison(">"), _comparison(">=")

    def __add__(self, other: object) -> Any:
        return add(self, other)

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        return subtract(self, other)

    def __rsub__(self, other: object) -> Any:
        return subtract(other, self)

    def __neg__(self) -> Any:
        if self.kind in ("number", "duration") and self.exact:
            return self.moved(-1, 0, self.kind, f"-({self.text})")
        return derive("-", (self,), self.kind)

    def __bool__(self) -> bool:
        return self.decider.decide(self.truth())

    def __hash__(self) -> int:
        raise Stuck(self)

    def __iter__(self) -> NoReturn:
        raise Stuck(self)

    def __len__(self) -> NoReturn:
        raise Stuck(self)

    def truth(self) -> "UnknownBool":
        if self.kind in ("number", "duration"):
            zero = 0 if self.kind == "number" else timedelta(0)
            return cast(UnknownBool, compare("!=", self, zero))
        if self.kind == "text" and self.variable is not None and self.variable.universe == ANY_TEXT:
            return UnknownBool(self.decider, self.variable, Words(frozenset(("",)), True))
        if self.kind == "list":
            return cast(UnknownBool, compare("!=", length(self), 0))
        return opaque_bool(self.decider, f"bool({self.text})", self.needs)


class UnknownBool(Unknown):
    """An unknown boolean. It is true if the variable's value is in the region."""

    __slots__ = ("region",)

    def __init__(self, decider: BranchDecider, variable: Variable, region: ValueSet) -> None:
        self.decider, self.variable, self.region = decider, variable, region
        self.needs, self.kind, self.step, self.exact, self.sign, self.offset = variable.needs, "any", None, False, 1, 0

    @property
    def text(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The expression as text. It is built when needed, because most unknown booleans are decided and then
        discarded.
        """
        assert self.variable is not None
        return _short(show_region(self.variable, self.region))

    def __bool__(self) -> bool:
        return self.decider.decide(self)

    def __hash__(self) -> int:
        raise Stuck(self)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, (int, float, Decimal)):
            return self if other == 1 else self.denied() if other == 0 else False
        if isinstance(other, UnknownBool):
            if other.variable == self.variable:
                both = meet(self.region, other.region)
                neither = meet(self.region.rest(), other.region.rest())
                either_way = meet(both.rest(), neither.rest()).rest()
                assert self.variable is not None
                return UnknownBool(self.decider, self.variable, either_way)
            return _opaque_comparison("==", self, other)
        return compare("==", self, other)

    def __ne__(self, other: object) -> Any:
        same = self.__eq__(other)
        return same.denied() if isinstance(same, UnknownBool) else not same

    def denied(self) -> "UnknownBool":
        assert self.variable is not None
        return UnknownBool(self.decider, self.variable, self.region.rest())

    def truth(self) -> "UnknownBool":
        return self


def opaque_bool(decider: BranchDecider, text: str, needs: Mapping[Fact, Origin]) -> UnknownBool:
    """Return an unknown boolean that is identified only by its expression."""
    return UnknownBool(decider, Variable(_short(text), EITHER, None, needs, "boolean"), TRUE)


def derive(name: str, parts: Iterable[Any], kind: ValueKind = "any", *, step: int | None = None) -> Unknown:
    """Return an unknown value that a function computes from `parts`. It is identified by its expression."""
    parts = tuple(parts)
    unknown = next(part for part in parts if isinstance(part, Unknown))
    text = f"{name}({', '.join(expression_text(part) for part in parts)})"
    exact = kind in ("time", "duration")
    return Unknown(unknown.decider, text, gathered(parts), kind, exact=exact, step=step)


def length(unknown: Unknown) -> Unknown:
    """Return `len(unknown)`, a non-negative integer."""
    return Unknown(unknown.decider, f"len({unknown.text})", unknown.needs, "number", step=1, lowest=0)


def compare(order: Order, one: Unknown, other: Any) -> Any:
    """Return the result of `one order other`: a plain boolean if the answer is certain, else an unknown one."""
    if isinstance(other, Unknown):
        return _compare_unknowns(order, one, other)
    if other is None:
        if order not in ("==", "!="):
            raise ValueError("None cannot be compared with a value; test for None first")
        return _opaque_equality(order, one.decider, f"{one.text} == None", one.needs)
    if other.__class__ is bool and one.kind == "number":
        other = int(other)
    kind = kind_of(other)
    if one.kind == "any" and not isinstance(one, UnknownBool):
        one = _typed(one, kind)
    if kind == one.kind and kind in LINES:
        return _compare_line(order, one, place_of(other))
    if kind == one.kind == "text":
        if order not in ("==", "!="):
            return opaque_bool(one.decider, f"{one.text} {order} {other!r}", one.needs)
        assert one.variable is not None
        return UnknownBool(one.decider, one.variable, word(other, order == "!="))
    if order not in ("==", "!="):
        raise ValueError(f"cannot compare a {kind} with a {one.kind}")
    if why := unlike(kind, one.kind):
        raise ValueError(why)
    if kind == one.kind:
        return _opaque_equality(order, one.decider, f"{one.text} == {expression_text(other)}", one.needs)
    return order == "!="


def among(one: Unknown, values: Iterable[Any]) -> Any:
    values = tuple(values)
    if any(isinstance(value, Unknown) for value in values):
        return opaque_bool(one.decider, f"{one.text} in {expression_text(values)}", gathered((one, *values)))
    if one.kind == "number":
        values = tuple(int(value) if value.__class__ is bool else value for value in values)
    kinds = {kind_of(value) for value in values if value is not None}
    if isinstance(one, UnknownBool):
        regions: list[ValueSet] = [one.region] if True in values else []
        regions += [one.region.rest()] if False in values else []
        assert one.variable is not None
        return len(regions) == 2 if len(regions) != 1 else UnknownBool(one.decider, one.variable, regions[0])
    if len(kinds) == 1 and one.kind == "any":
        one = _typed(one, cast(ValueKind, next(iter(kinds))))
    if None in values or one.variable is None:
        return opaque_bool(one.decider, f"{one.text} in {expression_text(values)}", one.needs)
    alike = [value for value in values if kind_of(value) == one.kind]
    if why := next(filter(None, (unlike(kind_of(value), one.kind) for value in values)), ""):
        if alike:
            # Some of the values have the type of the unknown value, so the answer depends on that value.
            raise Stuck(one)
        raise ValueError(why)
    if not alike:
        return False
    if one.kind == "text":
        return UnknownBool(one.decider, one.variable, Words(frozenset(alike)))
    places = [(place_of(value) - one.offset) * one.sign for value in alike]
    return UnknownBool(one.decider, one.variable, points(places, one.step))


def add(one: Unknown, other: Any) -> Any:
    """Return `one + other`. Either operand may be the unknown one."""
    kind = result_kind("add", one.kind, kind_of(other))
    if not isinstance(other, Unknown) and one.variable is not None and one.exact and is_exact(other):
        return one.moved(1, place_of(other), kind, f"({one.text} + {expression_text(other)})")
    first, second = sorted((one, other), key=expression_text)
    return derive("add", (first, second), kind)


def subtract(one: Any, other: Any) -> Any:
    """Return `one - other`. At least one operand is unknown."""
    kind = result_kind("subtract", kind_of(one), kind_of(other))
    if not isinstance(other, Unknown) and one.variable is not None and one.exact and is_exact(other):
        return one.moved(1, -place_of(other), kind, f"({one.text} - {expression_text(other)})")
    if not isinstance(one, Unknown) and other.variable is not None and other.exact and is_exact(one):
        return other.moved(-1, place_of(one), kind, f"({expression_text(one)} - {other.text})")
    if isinstance(one, Unknown) and isinstance(other, Unknown) and other.text < one.text:
        return derive("subtract", (other, one), kind).moved(-1, 0, kind, f"({one.text} - {other.text})")
    return derive("subtract", (one, other), kind)


def kind_of(value: Any) -> ValueKind:
    return value.kind if isinstance(value, Unknown) else plain_kind(value)


def expression_text(value: Any) -> str:
    if isinstance(value, Unknown):
        return value.text
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(expression_text(part) for part in cast(list[Any], value))}]"
    return repr(value)


def gathered(parts: Iterable[Any]) -> Mapping[Fact, Origin]:
    """Return the facts that `parts` need, in order and without duplicates."""
    needs: dict[Fact, Origin] = {}
    for part in parts:
        if isinstance(part, Unknown):
            needs.update((fact, origin) for fact, origin in part.needs.items() if len(needs) < NEEDS)
    return needs


def _typed(one: Unknown, kind: ValueKind) -> Unknown:
    """Give an unknown value without a type the type of the value with which it is compared. This makes it a separate
    variable.
    """
    return Unknown(one.decider, f"{one.text} as {kind}", one.needs, kind)


def _compare_line(order: Order, one: Unknown, place: int | Fraction) -> UnknownBool:
    assert one.variable is not None
    at = (place - one.offset) * one.sign
    order = order if one.sign > 0 else FLIPPED[order]
    return UnknownBool(one.decider, one.variable, span_of(order, at, one.step))


def _compare_unknowns(order: Order, one: Unknown, other: Unknown) -> Any:
    if one.kind != other.kind and "any" not in (one.kind, other.kind):
        if why := unlike(one.kind, other.kind):
            raise ValueError(why)
        if order in ("==", "!="):
            return order == "!="
        raise ValueError(f"cannot compare a {one.kind} with a {other.kind}")
    if one.text == other.text:
        return order in ("==", "<=", ">=")
    if one.variable is not None and other.variable is not None and one.kind in LINES:
        if one.variable == other.variable and one.sign == other.sign:
            return ORDERS[order](one.offset, other.offset)
        if one.sign == other.sign == 1 and one.exact and other.exact:
            gap = subtract(_plain(one), _plain(other))
            return _compare_line(order, gap, other.offset - one.offset)
    return _opaque_comparison(order, one, other)


def _plain(one: Unknown) -> Unknown:
    assert one.variable is not None
    plain = one.moved(1, -one.offset, one.kind, one.variable.name)
    # The type may differ from that of the original variable. For example, the difference between two times is a
    # duration.
    plain.kind = "time" if one.kind == "time" else "number"
    return plain


def _opaque_comparison(order: Order, one: Unknown, other: Unknown) -> UnknownBool:
    """Return a comparison in a canonical form: `a > b` becomes `b < a`, and `a != b` becomes `not a == b`."""
    needs = gathered((one, other))
    first, second = one.text, other.text
    if order in ("==", "!="):
        first, second = sorted((first, second))
        return _opaque_equality(order, one.decider, f"{first} == {second}", needs)
    if order in (">", ">="):
        first, second, order = second, first, FLIPPED[order]
    return opaque_bool(one.decider, f"{first} {order} {second}", needs)


def _opaque_equality(order: Order, decider: BranchDecider, text: str, needs: Mapping[Fact, Origin]) -> UnknownBool:
    truth = opaque_bool(decider, text, needs)
    return truth if order == "==" else truth.denied()


def _short(text: str) -> str:
    """Return an expression or, if it is long, its digest, because an expression can double in length at every step."""
    return text if len(text) <= TEXT else f"<{hashlib.sha256(text.encode()).hexdigest()[:16]}>"
