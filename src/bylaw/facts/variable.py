"""Variables: their types, their possible values, and how both are displayed.

A variable has one value per path. Its possible values are either a set of single values or a set of spans on a number
line.
"""

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from bylaw.facts.entity import Fact, Origin

Order = Literal["==", "!=", "<", "<=", ">", ">="]
ORDERS: Mapping[Order, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
FLIPPED: Mapping[Order, Order] = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""For each comparison, the equivalent one with the operands swapped."""
Number = int | float | Fraction
"""A point on a number line: an exact number, or plus or minus infinity."""


class Words(Struct, frozen=True, gc=False):
    """A set of single values: either finitely many values, or all values except finitely many."""

    values: frozenset[Any]
    all_but: bool = False

    def meet(self, other: "Words") -> "Words":
        if self.all_but:
            if other.all_but:
                return Words(self.values | other.values, True)
            return Words(other.values - self.values)
        return Words(self.values - other.values if other.all_but else self.values & other.values)

    def rest(self) -> "Words":
        return Words(self.values, not self.all_but)

    def is_empty(self) -> bool:
        return not self.values and not self.all_but

    def size(self) -> int:
        return len(self.values)


class Cut(NamedTuple):
    """A boundary on a number line, just before or just after `at`."""

    at: Number
    after: bool = False


LOWEST = Cut(-math.inf)
HIGHEST = Cut(math.inf)


class Spans(Struct, frozen=True, gc=False):
    """Disjoint spans on a number line, in ascending order. Each span lies between two cuts."""

    spans: tuple[tuple[Cut, Cut], ...]

    def meet(self, other: "Spans") -> "Spans":
        """Return the intersection of two sets of spans, computed in one pass."""
        found: list[tuple[Cut, Cut]] = []
        ours, theirs = iter(self.spans), iter(other.spans)
        one, another = next(ours, None), next(theirs, None)
        while one is not None and another is not None:
            start, end = max(one[0], another[0]), min(one[1], another[1])
            if start < end:
                found.append((start, end))
            if one[1] < another[1]:
                one = next(ours, None)
            else:
                another = next(theirs, None)
        return Spans(tuple(found))

    def rest(self) -> "Spans":
        edges = [LOWEST, *(cut for span in self.spans for cut in span), HIGHEST]
        pairs = zip(edges[::2], edges[1::2], strict=True)
        return Spans(tuple((low, high) for low, high in pairs if low < high))

    def is_empty(self) -> bool:
        return not self.spans

    def size(self) -> int:
        return len(self.spans)


ValueSet = Words | Spans

_KEPT = 4096
"""The size of the caches. They help because guards often ask the same questions about several calls in a row."""
SMALL = 16
"""The maximum size of cached sets. Larger sets are not cached, because a call may list thousands of values."""
EVERYWHERE = Spans(((LOWEST, HIGHEST),))
TRUE = Words(frozenset((True,)))
FALSE = Words(frozenset((False,)))
EITHER = Words(frozenset((True, False)))


@lru_cache(maxsize=_KEPT)
def word(value: str, all_but: bool) -> Words:
    """Return the set of this one string or, with `all_but`, of all other strings."""
    return Words(frozenset((value,)), all_but)


@lru_cache(maxsize=_KEPT)
def span_of(order: Order, at: Number, step: int | None) -> Spans:
    """Return the set of all x for which `x order at` holds. With `step`, x is on a grid, else on the whole line."""
    before, after = _settle(Cut(at), step), _settle(Cut(at, True), step)
    match order:
        case "==":
            pairs = ((before, after),)
        case "!=":
            pairs = ((LOWEST, before), (after, HIGHEST))
        case "<":
            pairs = ((LOWEST, before),)
        case "<=":
            pairs = ((LOWEST, after),)
        case ">":
            pairs = ((after, HIGHEST),)
        case ">=":
            pairs = ((before, HIGHEST),)
    return Spans(tuple((low, high) for low, high in pairs if low < high))


def points(places: Iterable[Number], step: int | None) -> Spans:
    """Return the set of all x for which `x in places` holds."""
    spans = {span for place in places for span in span_of("==", place, step).spans}
    return Spans(tuple(sorted(spans)))


Parted = tuple[ValueSet, ValueSet, bool | None]


def parted(possible: ValueSet, region: ValueSet) -> Parted:
    """Return the possible values inside the region, those outside it, and whether the value is inside, or None if
    uncertain.
    """
    is_small = possible.size() <= SMALL and region.size() <= SMALL
    return _kept_parted(possible, region) if is_small else _parted(possible, region)


def _parted(possible: ValueSet, region: ValueSet) -> Parted:
    yes, no = meet(possible, region), meet(possible, region.rest())
    return yes, no, True if no.is_empty() else False if yes.is_empty() else None


_kept_parted = lru_cache(maxsize=_KEPT)(_parted)


def meet(one: Any, other: Any) -> ValueSet:
    """Return the intersection of two sets of the same type."""
    return one.meet(other)


def _settle(cut: Cut, step: int | None) -> Cut:
    """Move a cut to just before the next value on a grid of `step`, so that two equal sets have equal cuts."""
    if step is None or cut.at in (math.inf, -math.inf):
        return cut
    if cut.at.__class__ is int:
        number, over = divmod(cut.at, step)
        return Cut((number + 1 if over or cut.after else number) * step)
    place = Fraction(cut.at) / step
    below = math.floor(place)
    number = below if place == below and not cut.after else below + 1
    return Cut(number * step)


ValueKind = Literal["number", "time", "duration", "text", "list", "record", "any"]
"""The type of an unknown value, which decides with what it can be compared. `any` if no type is declared, as for an
item of an unknown record.
"""
LINES = ("number", "time", "duration")
KINDS: Mapping[type, ValueKind] = {
    str: "text",
    bool: "any",
    int: "number",
    float: "number",
    Decimal: "number",
    date: "time",
    datetime: "time",
    timedelta: "duration",
}
DAY = 86_400_000_000
"""The number of microseconds in a day, the unit of the time line."""


class Variable(NamedTuple):
    """A fact, or an expression that is identified by its text. It has one value per path."""

    name: str
    universe: ValueSet
    step: int | None
    needs: Mapping[Fact, Origin]
    """The unknown facts on which the value depends, in the order in which they first appear."""
    kind: str
    thing: tuple[str, Any] | None = None
    """For the field `exists`: the entity that may or may not exist."""


@lru_cache(maxsize=_KEPT)
def words_of(values: tuple[str, ...]) -> Words:
    return Words(frozenset(values))


ANY_TEXT = Words(frozenset(), True)


def name_of_fact(entity: str, key: Any, field: str) -> str:
    """Return the name of the variable for a fact. Keys are written in a way that distinguishes `1` from `"1"`."""
    if key == ():
        return f"{entity}.{field}"
    if key.__class__ is tuple and len(key) == 1:
        return f"{entity}[{key[0]!r}].{field}"
    shown = ", ".join(map(repr, key)) if isinstance(key, tuple) else key  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return f"{entity}[{shown}].{field}"


def place_of(value: Any) -> int | Fraction:
    """Return the position of a known value on its number line. A float counts as the decimal number that Python prints
    for it.
    """
    match value:
        case int():
            return value
        case float():
            return Fraction(repr(value))
        case Decimal():
            return Fraction(value)
        case datetime():
            return (value.toordinal() * 86_400 + value.hour * 3600 + value.minute * 60 + value.second) * 1_000_000 + (
                value.microsecond
            )
        case date():
            return value.toordinal() * DAY
        case timedelta():
            return (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
        case _:
            raise TypeError(f"values of type {type(value).__name__} cannot be ordered")


def value_at(place: Any, kind: str) -> str:
    if kind == "time":
        at = datetime.min + timedelta(microseconds=int(place) - DAY)
        return str(at.date()) if int(place) % DAY == 0 else at.isoformat(sep=" ")
    if kind == "duration":
        return str(timedelta(microseconds=int(place)))
    return str(place) if Fraction(place).denominator == 1 else str(float(place))


def show_region(variable: Variable, region: ValueSet) -> str:
    """Return a region as text, such as `Request.reason = weather` or `Patient[P1].age >= 18`."""
    name = variable.name
    if isinstance(region, Words):
        if variable.kind == "boolean":
            return name if region in (TRUE, FALSE.rest()) else f"not {name}"
        shown = sorted(str(value) for value in region.values)
        if region.all_but:
            return f"{name} not {' or '.join(shown)}" if shown else f"any {name}"
        return f"{name} = {' or '.join(shown)}" if shown else f"no {name}"
    return f"{name} " + (" or ".join(_show_span(span, variable) for span in region.spans) or "impossible")


def _show_span(span: tuple[Any, Any], variable: Variable) -> str:
    low, high = span
    parts: list[str] = []
    infinite = (float("-inf"), float("inf"))
    if low.at == high.at or (variable.step and high.at not in infinite and low.at + variable.step == high.at):
        return f"= {value_at(low.at, variable.kind)}"
    if low.at not in infinite:
        parts.append(f"{'>' if low.after else '>='} {value_at(low.at, variable.kind)}")
    if high.at not in infinite:
        parts.append(f"{'<=' if high.after else '<'} {value_at(high.at, variable.kind)}")
    return " and ".join(parts) or "anything"


def plain_kind(value: Any) -> ValueKind:
    kind = KINDS.get(value.__class__)
    if kind is not None:
        return kind
    match value:
        case list() | tuple():
            return "list"
        case dict():
            return "record"
        case _:
            for plain, kind in KINDS.items():
                if isinstance(value, plain):
                    return kind
            return "any"


_TEXTLIKE: Mapping[ValueKind, str] = {"number": "money", "time": "date"}
"""Types whose values may be written as text, each with the built-in function that converts such text."""


def unlike(one: ValueKind, other: ValueKind) -> str:
    """Return why values of two types cannot be compared. Empty if they can be."""
    kind = other if one == "text" else one
    if "text" not in (one, other) or kind not in _TEXTLIKE:
        return ""
    name = {"time": "date"}.get(kind, kind)
    return f"cannot compare text with a {name}; write {_TEXTLIKE[kind]}(...) around the text"


def is_exact(value: Any) -> bool:
    """Whether `value` can be added exactly. A float cannot, because of rounding."""
    return isinstance(value, (int, Decimal, date, timedelta)) and not isinstance(value, bool)


_RESULTS: Mapping[tuple[str, ValueKind, ValueKind], ValueKind] = {
    **{(name, "number", "number"): "number" for name in ("add", "subtract")},
    **{(name, "time", "duration"): "time" for name in ("add", "subtract")},
    **{(name, "duration", "duration"): "duration" for name in ("add", "subtract", "remainder")},
    **{(name, "duration", "duration"): "number" for name in ("divide", "divide_floor")},
    **{(name, "duration", "number"): "duration" for name in ("multiply", "divide", "divide_floor")},
    ("add", "duration", "time"): "time",
    ("subtract", "time", "time"): "duration",
    ("multiply", "number", "duration"): "duration",
}
"""The type of the result, by operation and types of the operands."""


def is_of_times(name: str, kinds: tuple[ValueKind, ValueKind]) -> bool:
    """Whether the operation is defined for times and durations, or for a duration and a number."""
    return kinds != ("number", "number") and (name, *kinds) in _RESULTS


def result_kind(name: str, one: ValueKind, other: ValueKind) -> ValueKind:
    """Return the type of a sum or difference. Raises TypeError if the operation is not defined for these types."""
    if "any" in (one, other):
        return "any"
    found = _RESULTS.get((name, one, other))
    if found is None:
        raise TypeError(f"cannot {name} a {one} and a {other}")
    return found
