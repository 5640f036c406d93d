"""The kinds of values that guards compare and count with, and what their sums and differences are."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

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
