"""Variables: what has one value per path, of what kind its values are, where they lie, and how that reads.

What is still possible for one is a set of words, or a set of spans of a number line."""

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
"""The same, read from right to left."""
Number = int | float | Fraction
"""A place on a line: exact, or plus or minus infinity."""


class Words(Struct, frozen=True, gc=False):
    """Finitely many values, or all but finitely many."""

    values: frozenset[Any]
    all_but: bool = False

    def meet(self, other: "Words") -> "Words":
        """What is in both."""
        if self.all_but:
            if other.all_but:
                return Words(self.values | other.values, True)
            return Words(other.values - self.values)
        return Words(self.values - other.values if other.all_but else self.values & other.values)

    def rest(self) -> "Words":
        """What is not in it."""
        return Words(self.values, not self.all_but)

    def is_empty(self) -> bool:
        """Whether nothing is in it."""
        return not self.values and not self.all_but

    def size(self) -> int:
        """How much it takes to write it down."""
        return len(self.values)


class Cut(NamedTuple):
    """A place between values: just before `at`, or just after it."""

    at: Number
    after: bool = False


LOWEST = Cut(-math.inf)
HIGHEST = Cut(math.inf)


class Spans(Struct, frozen=True, gc=False):
    """Disjoint spans of a line in rising order, each from a cut up to a later cut."""

    spans: tuple[tuple[Cut, Cut], ...]

    def meet(self, other: "Spans") -> "Spans":
        """What is in both, found in one walk along the line."""
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
        """What is not in it."""
        edges = [LOWEST, *(cut for span in self.spans for cut in span), HIGHEST]
        pairs = zip(edges[::2], edges[1::2], strict=True)
        return Spans(tuple((low, high) for low, high in pairs if low < high))

    def is_empty(self) -> bool:
        """Whether nothing is in it."""
        return not self.spans

    def size(self) -> int:
        """How much it takes to write it down."""
        return len(self.spans)


ValueSet = Words | Spans

_KEPT = 4096
"""Guards ask the same of one call after the other: so many answers are kept."""
SMALL = 16
"""Sets of more values or spans are not kept: a call may list thousands."""
EVERYWHERE = Spans(((LOWEST, HIGHEST),))
TRUE = Words(frozenset((True,)))
FALSE = Words(frozenset((False,)))
EITHER = Words(frozenset((True, False)))


@lru_cache(maxsize=_KEPT)
def word(value: str, all_but: bool) -> Words:
    """One text, or all others."""
    return Words(frozenset((value,)), all_but)


@lru_cache(maxsize=_KEPT)
def span_of(order: Order, at: Number, step: int | None) -> Spans:
    """Where `x order at` holds; `step` is the distance of the values that occur, None where they are dense."""
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
    """Where `x in places` holds."""
    spans = {span for place in places for span in span_of("==", place, step).spans}
    return Spans(tuple(sorted(spans)))


Parted = tuple[ValueSet, ValueSet, bool | None]


def parted(possible: ValueSet, region: ValueSet) -> Parted:
    """Of what is possible: what lies in the region, what does not, and whether all of it does, if that is sure."""
    is_small = possible.size() <= SMALL and region.size() <= SMALL
    return _kept_parted(possible, region) if is_small else _parted(possible, region)


def _parted(possible: ValueSet, region: ValueSet) -> Parted:
    yes, no = meet(possible, region), meet(possible, region.rest())
    return yes, no, True if no.is_empty() else False if yes.is_empty() else None


_kept_parted = lru_cache(maxsize=_KEPT)(_parted)


def meet(one: ValueSet, other: ValueSet) -> ValueSet:
    """What is in both; they are of one kind because they speak of one value."""
    if isinstance(one, Words):
        assert isinstance(other, Words)
        return one.meet(other)
    assert isinstance(other, Spans)
    return one.meet(other)


def _settle(cut: Cut, step: int | None) -> Cut:
    """The same cut among values `step` apart: always just before one of them, so that equal sets look equal."""
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
"""What an Unknown is comparable with; `any` for what we cannot tell, such as an item of an unknown record."""
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
"""The kinds of plain values by their class, all of them good as keys."""
DAY = 86_400_000_000
"""Microseconds: the distance of two dates on the line of times."""


class Variable(NamedTuple):
    """Something that has one value per path: a fact, or an expression remembered by its text."""

    name: str
    universe: ValueSet
    step: int | None
    needs: Mapping[Fact, Origin]
    """The facts that are not known, in the order they were met."""
    kind: str
    thing: tuple[str, Any] | None = None
    """For `exists`: whose existence this is."""


@lru_cache(maxsize=_KEPT)
def words_of(values: tuple[str, ...]) -> Words:
    """The words that a field may take."""
    return Words(frozenset(values))


ANY_TEXT = Words(frozenset(), True)


def name_of_fact(entity: str, key: Any, field: str) -> str:
    """A fact's name as a variable: its key is written so that `1` and `"1"` differ."""
    if key == ():
        return f"{entity}.{field}"
    if key.__class__ is tuple and len(key) == 1:
        return f"{entity}[{key[0]!r}].{field}"
    shown = ", ".join(map(repr, key)) if isinstance(key, tuple) else key  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return f"{entity}[{shown}].{field}"


def place_of(value: Any) -> int | Fraction:
    """Where a known value stands on its line; a float stands where the decimal it prints as does."""
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
            raise TypeError(f"a {type(value).__name__} has no order")


def value_at(place: Any, kind: str) -> str:
    """A place of a line as a person writes it."""
    if kind == "time":
        at = datetime.min + timedelta(microseconds=int(place) - DAY)
        return str(at.date()) if int(place) % DAY == 0 else at.isoformat(sep=" ")
    if kind == "duration":
        return str(timedelta(microseconds=int(place)))
    return str(place) if Fraction(place).denominator == 1 else str(float(place))


def show_region(variable: Variable, region: ValueSet) -> str:
    """A region in words: `Request.reason = weather`, `Patient[P1].age >= 18`."""
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
    """The kind of a known value."""
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
"""What a text may be to a person and to Python never is, and what makes it so."""


def unlike(one: ValueKind, other: ValueKind) -> str:
    """Why values of two kinds cannot be held against each other, or nothing."""
    kind = other if one == "text" else one
    if "text" not in (one, other) or kind not in _TEXTLIKE:
        return ""
    name = {"time": "date"}.get(kind, kind)
    return f"a text and a {name} do not go together; write {_TEXTLIKE[kind]}(...) around the text"


def is_exact(value: Any) -> bool:
    """Whether adding `value` loses nothing: floats round."""
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
"""The kind of a result, by operation and the kinds of both sides."""


def is_of_times(name: str, kinds: tuple[ValueKind, ValueKind]) -> bool:
    """Whether an operation on times and durations, or a duration and a number, has a meaning."""
    return kinds != ("number", "number") and (name, *kinds) in _RESULTS


def result_kind(name: str, one: ValueKind, other: ValueKind) -> ValueKind:
    """The kind of a sum or difference; raises TypeError if there is none."""
    if "any" in (one, other):
        return "any"
    found = _RESULTS.get((name, one, other))
    if found is None:
        raise TypeError(f"cannot {name} a {one} and a {other}")
    return found
