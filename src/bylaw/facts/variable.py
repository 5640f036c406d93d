"""Variables: what has one value per path, of what kind its values are, where they lie, and how that reads."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from bylaw.facts.entity import Fact, Origin
from bylaw.facts.value_set import FALSE, TRUE, ValueSet, Words

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


def name_of_fact(entity: str, key: Any, field: str) -> str:
    """A fact's name as a variable: its key is written so that `1` and `"1"` differ."""
    if key == ():
        return f"{entity}.{field}"
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


def is_exact(value: Any) -> bool:
    """Whether adding `value` loses nothing: floats round."""
    return isinstance(value, (int, Decimal, date, timedelta)) and not isinstance(value, bool)


def sum_kind(one: ValueKind, other: ValueKind) -> ValueKind:
    """What kind `one + other` is."""
    match one, other:
        case ("number", "number") | ("duration", "duration"):
            return one
        case ("time", "duration") | ("duration", "time"):
            return "time"
        case ("any", _) | (_, "any"):
            return "any"
        case _:
            raise TypeError(f"cannot add a {one} and a {other}")


def difference_kind(one: ValueKind, other: ValueKind) -> ValueKind:
    """What kind `one - other` is."""
    match one, other:
        case ("number", "number") | ("duration", "duration"):
            return one
        case ("time", "time"):
            return "duration"
        case ("time", "duration"):
            return "time"
        case ("any", _) | (_, "any"):
            return "any"
        case _:
            raise TypeError(f"cannot subtract a {other} from a {one}")
