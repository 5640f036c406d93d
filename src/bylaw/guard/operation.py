"""Arithmetic, comparisons and built-ins on values. All limit the size of values and accept Unknowns. In a calculation
with money, a float is converted to the decimal that Python prints for it. So 19.99 in JSON stays 19.99 and does not
become the nearest binary number. A date compared with a time means the start of the day. Times are compared in UTC, and
a time without an offset is in UTC.
"""

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, NoReturn

from bylaw.facts.unknown import (
    Stuck,
    Unknown,
    UnknownBool,
    among,
    compare,
    derive,
    expression_text,
    gathered,
    kind_of,
    opaque_bool,
)
from bylaw.facts.value import Amount, amount_in, currency_of, shared_currency
from bylaw.facts.variable import DAY, ORDERS, Order, is_of_times, result_kind, unlike
from bylaw.guard.language import LARGEST, LONGEST, SMALLEST, TICKS
from bylaw.policy.tool import Misfit
from bylaw.text.number import figure

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,  # pyright: ignore[reportUnknownMemberType]
    "divide_floor": operator.floordiv,  # pyright: ignore[reportUnknownMemberType]
    "remainder": operator.mod,
}
MONEY = Context(prec=50)
"""Bylaw's own decimal context. Only its flags ever change."""
MONEY_ARITHMETIC: dict[str, Callable[[Any, Any], Decimal]] = {
    "add": MONEY.add,
    "subtract": MONEY.subtract,
    "multiply": MONEY.multiply,
    "divide": MONEY.divide,
    "divide_floor": MONEY.divide_int,
    "remainder": MONEY.remainder,
}
AMOUNTS = frozenset((Decimal, Amount))
FIGURES = frozenset((int, float)) | AMOUNTS
NUMBERS = FIGURES | {bool}
PLAIN: frozenset[type] = frozenset((int, float, Decimal, bool, str, date, timedelta))
TIMES = frozenset((date, datetime))
_DAY = re.compile(r"\s*\d{4}-\d\d-\d\d", re.ASCII)
TRUTHS = frozenset(("true", "false", "yes", "no", "1", "0"))
"""Strings that may mean booleans."""


class Failure(Exception):
    """Raised if the guard cannot give an answer. The path then fails with this message."""


class Absent(Exception):
    """Raised if a required value may not exist. The path then ends in a denial."""


def fail(message: str) -> NoReturn:
    raise Failure(message)


def name_of(value: Any) -> str:
    """Return the name of a value's type for messages."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "a boolean"
    return {"text": "text", "any": type(value).__name__}.get(kind_of(value), f"a {kind_of(value)}")


def admit(value: Any, zone: tzinfo | None = None) -> Any:
    """Convert a value for the guard language. Every value that enters a guard, or is computed in a guard, is converted
    here.

    The value's size is limited, and its times are converted to the pack's time zone or UTC.
    """
    cls = value.__class__
    if cls is str or cls is list or cls is dict or cls is tuple:
        if len(value) > LONGEST:
            kind, unit = ("string", "characters") if cls is str else ("list", "items")
            fail(f"a {kind} of {len(value)} {unit} is longer than the limit of {LONGEST}")
        return value
    if cls is bool or value is None or cls is date or cls is timedelta:
        return value
    if cls is int or cls is float or cls is Decimal or cls is Amount:
        # This is false for a float NaN. For a Decimal NaN, it raises an error.
        if -LARGEST <= value <= LARGEST:
            # Exact decimals such as 10**-999999999 would exhaust the memory.
            if cls in AMOUNTS and value.adjusted() < -SMALLEST:
                fail(f"an amount is smaller than 10**-{SMALLEST}")
            return value
        fail("a number is beyond plus or minus 10**18")
    if cls is datetime:
        return value if value.tzinfo is None else value.astimezone(zone or UTC).replace(tzinfo=None)
    if isinstance(value, Unknown):
        return value
    fail(value.why if cls is Misfit else f"a value of type {cls.__name__} cannot be used in a guard")


def weight(value: Any) -> int:
    """Count the values in a list or record at every depth. Fails if there are too many."""
    parts: list[Any] = [value]
    count = 0
    while parts:
        part = parts.pop()
        count += 1
        if count > LONGEST:
            fail(f"a list contains more than {LONGEST} values")
        if part.__class__ is list or part.__class__ is tuple:
            parts.extend(part)
        elif part.__class__ is dict:
            parts.extend(part.values())
    return count


def alike(one: Any, other: Any) -> tuple[Any, Any]:
    """Convert two known values of different types so that they can be compared, if comparing them makes sense."""
    left, right = one.__class__, other.__class__
    if left is float and right in AMOUNTS:
        return Decimal(repr(one)), other
    if left in AMOUNTS and right is float:
        return one, Decimal(repr(other))
    if left is date and right is datetime:
        return datetime(one.year, one.month, one.day), other
    if left is datetime and right is date:
        return one, datetime(other.year, other.month, other.day)
    return one, other


def not_alike(one: Any, other: Any) -> str:
    """Return why two similar values, such as "5" and 5, are never equal. Empty if they are comparable."""
    left, right = one.__class__, other.__class__
    if left is not str:
        one, other, left, right = other, one, right, left
    if left is not str:
        return ""
    if right is bool:
        return f"the text `{one[:40]}` is not a boolean; compare it with text" if is_truth_word(one) else ""
    return unlike("text", "number" if right in FIGURES else "time" if right in TIMES else "any")


@lru_cache(maxsize=4096)
def may_be_read_otherwise(constant: Any) -> bool:
    """Whether a constant is a number, a date or a boolean, or a string that may mean one."""
    if constant.__class__ is not str:
        return True
    return is_truth_word(constant) or figure(constant) is not None or _DAY.match(constant) is not None


def is_truth_word(text: str) -> bool:
    """Whether a string may mean true or false."""
    return text.strip().lower() in TRUTHS


def parts_not_alike(one: Any, other: Any) -> str:
    """Compare lists and records item by item with `not_alike`."""
    pairs = [(one, other)]
    while pairs:
        left, right = pairs.pop()
        if left.__class__ in (list, tuple) and right.__class__ in (list, tuple):
            pairs.extend(zip(left, right, strict=False))
        elif left.__class__ is dict and right.__class__ is dict:
            pairs.extend((left[name], right[name]) for name in left.keys() & right.keys())
        elif why := not_alike(left, right):
            return why
    return ""


def _comparison(order: Order) -> "Callable[[Operations, Any, Any], Any]":
    """Return the function for a comparison operator. It is fast for two ordinary values of the same type."""
    plainly = ORDERS[order]

    def compared(self: "Operations", one: Any, other: Any) -> Any:
        if one.__class__ is other.__class__ and one.__class__ in PLAIN:
            return plainly(one, other)
        if one.__class__ is Unknown:
            self.spend(1)
            return compare(order, self.placed(one, other), self.placed(other, one))
        return self.ordered(order, one, other)

    return compared


def _arithmetic(name: str) -> "Callable[[Operations, Any, Any], Any]":
    return lambda self, one, other: self.arithmetic(name, one, other)


class Operations:
    """The operations that compiled code calls. `ticks` is the remaining budget of the path."""

    __slots__ = ("ticks", "zone")

    def __init__(self, zone: tzinfo | None = None) -> None:
        self.ticks: int = TICKS
        self.zone = zone
        """The time zone in which guards see all times. None means UTC."""

    def instant(self, moment: datetime) -> datetime:
        """Convert a local time to UTC, so that durations are correct across clock changes."""
        return moment if self.zone is None else moment.replace(tzinfo=self.zone).astimezone(UTC).replace(tzinfo=None)

    def on_clocks(self, instant: datetime) -> datetime:
        return instant if self.zone is None else admit(instant.replace(tzinfo=UTC), self.zone)

    def placed(self, value: Any, beside: Any) -> Any:
        """Convert a value for comparison with an unknown time, which is in UTC.

        Dates stay dates, because an unknown date is compared by calendar day.
        """
        if self.zone is None or not isinstance(beside, Unknown) or beside.step == DAY:
            return value
        if value.__class__ is date:
            value = datetime(value.year, value.month, value.day)
        if value.__class__ is datetime:
            return self.instant(value)
        if isinstance(value, Unknown) and value.step == DAY and value.offset:
            return derive("day", (value,), value.kind, step=DAY)
        return value

    def spend(self, ticks: int) -> None:
        self.ticks -= ticks
        if self.ticks < 0:
            fail(f"takes more than {TICKS} steps")

    def ordered(self, order: Order, one: Any, other: Any) -> Any:
        if isinstance(one, Unknown) or isinstance(other, Unknown):
            self.spend(1)
            one, other = self.placed(one, other), self.placed(other, one)
        elif one.__class__ is not other.__class__:
            one, other = alike(one, other)
            if order in ("==", "!=") and (why := not_alike(one, other)):
                # Without this, a message could say "The fee is 25.00, not 25.00."
                fail(why)
        elif one.__class__ is Amount:
            shared_currency(one, other)
        elif one.__class__ is list or one.__class__ is dict or one.__class__ is tuple:
            self.spend(1 + weight(one) // 8)
            if order in ("==", "!=") and one != other and (why := parts_not_alike(one, other)):
                fail(why)
        if one.__class__ is datetime and other.__class__ is datetime:
            # When clocks are set back, one hour occurs twice, and only UTC shows which time is earlier.
            one, other = self.instant(one), self.instant(other)
        return ORDERS[order](one, other)

    equal, differ = _comparison("=="), _comparison("!=")
    less, at_most, more, at_least = _comparison("<"), _comparison("<="), _comparison(">"), _comparison(">=")

    def chain(self, orders: Sequence[str], first: Any, *later: Callable[[], Any]) -> Any:
        """Return `a < b <= c`. Each operand is evaluated at most once, and only if the comparisons before it hold."""
        result: Any = True
        for order, next_value in zip(orders, later, strict=True):
            second = next_value()
            result = getattr(self, order)(first, second)
            if not result:
                return result
            first = second
        return result

    def among(self, value: Any, constants: tuple[Any, ...]) -> Any:
        if isinstance(value, Unknown):
            return among(value, constants)
        return value in constants or self._is_none_of(value, filter(may_be_read_otherwise, constants))

    def not_among(self, value: Any, constants: tuple[Any, ...]) -> Any:
        return negated(self.among(value, constants))

    def within(self, value: Any, container: Any) -> Any:
        if isinstance(container, Unknown):
            text = f"{expression_text(value)} in {container.text}"
            return opaque_bool(container.decider, text, gathered((value, container)))
        if container.__class__ is str:
            if isinstance(value, Unknown):
                return opaque_bool(value.decider, f"{value.text} in {container!r}", value.needs)
            return (
                value in container if value.__class__ is str else fail(f"{name_of(value)} cannot be part of a string")
            )
        if container.__class__ not in (list, tuple, dict):
            fail(f"`in` needs a list, a record or a string, not {name_of(container)}")
        self.spend(1 + len(container) // 8)
        if isinstance(value, Unknown):
            return among(value, [self.placed(item, value) for item in container])
        if any(isinstance(item, Unknown) for item in container):
            parts = (value, *container)
            if any(not isinstance(item, Unknown) and self._is(value, item) for item in container):
                return True
            self._is_none_of(value, [item for item in container if not isinstance(item, Unknown)])
            decider = next(item.decider for item in container if isinstance(item, Unknown))
            return opaque_bool(decider, f"{expression_text(value)} in {expression_text(container)}", gathered(parts))
        if value in container if value.__class__ is str else any(self._is(value, item) for item in container):
            return True
        return self._is_none_of(value, container)

    def _is(self, one: Any, other: Any) -> Any:
        """Whether a value equals a list item. The list may also contain items of other types."""
        return not not_alike(one, other) and self.equal(one, other)

    def _is_none_of(self, value: Any, items: Iterable[Any]) -> bool:
        """Return False, or fail if an item may be the same value in another format, such as `"4711"` for 4711."""
        for item in items:
            if item.__class__ is not value.__class__ and (why := not_alike(value, item)):
                fail(why)
        return False

    def without(self, value: Any, container: Any) -> Any:
        return negated(self.within(value, container))

    def arithmetic(self, name: str, one: Any, other: Any) -> Any:
        left, right = one.__class__, other.__class__
        if left in NUMBERS and right in NUMBERS:
            if left not in AMOUNTS and right not in AMOUNTS:
                return admit(ARITHMETIC[name](one, other))
            one, other = alike(one, other)
            made = MONEY_ARITHMETIC[name](_whole(one), _whole(other))
            currency = shared_currency(one, other)
            is_ratio = name.startswith("divide") and currency_of(other) is not None
            return admit(made if is_ratio else amount_in(made, currency))
        if isinstance(one, Unknown) or isinstance(other, Unknown):
            self.spend(1)
            return self.unknown_arithmetic(name, one, other)
        kinds = (kind_of(one), kind_of(other))
        if is_of_times(name, kinds) and AMOUNTS.isdisjoint((left, right)):
            one, other = _moments(one, other)
            if self.zone is None:
                return ARITHMETIC[name](one, other)
            made = ARITHMETIC[name](
                *(self.instant(each) if each.__class__ is datetime else each for each in (one, other))
            )
            return self.on_clocks(made) if made.__class__ is datetime else made
        hint = "; for a day and a time of day, write time(day, clock)" if "text" in kinds else ""
        return fail(f"cannot {name.replace('_', ' ')} {name_of(one)} and {name_of(other)}{hint}")

    def unknown_arithmetic(self, name: str, one: Any, other: Any) -> Any:
        if name in ("add", "subtract"):
            if self.zone is not None and _is_of_both(one, other):
                parts = sorted((one, other), key=expression_text) if name == "add" else (one, other)
                return derive(name, parts, result_kind(name, kind_of(one), kind_of(other)))
            return ARITHMETIC[name](self.placed(one, other), self.placed(other, one))
        if name != "multiply" and isinstance(other, Unknown):
            # The guard fails if the divisor is zero.
            raise Stuck(other)
        if name != "multiply" and not other:
            raise ZeroDivisionError
        kinds = (kind_of(one), kind_of(other))
        first, second = sorted((one, other), key=expression_text) if name == "multiply" else (one, other)
        if "any" in kinds:
            return derive(name, (first, second))
        if kinds == ("number", "number") or (kinds == ("duration", "duration") and name in ("divide", "divide_floor")):
            return derive(name, (first, second), "number")
        if is_of_times(name, kinds):
            return derive(name, (first, second), "duration")
        return fail(f"cannot {name.replace('_', ' ')} {name_of(one)} and {name_of(other)}")

    add, subtract = _arithmetic("add"), _arithmetic("subtract")
    multiply, divide = _arithmetic("multiply"), _arithmetic("divide")
    divide_floor, remainder = _arithmetic("divide_floor"), _arithmetic("remainder")

    def negative(self, value: Any) -> Any:
        if value.__class__ in AMOUNTS:
            return amount_in(MONEY.minus(value), currency_of(value))
        if value.__class__ in NUMBERS or value.__class__ is timedelta or isinstance(value, Unknown):
            return -value
        return fail(f"cannot negate {name_of(value)}")


def negated(truth: Any) -> Any:
    return truth.denied() if isinstance(truth, UnknownBool) else not truth


def _whole(value: Any) -> Any:
    return int(value) if value.__class__ is bool else value


def _is_of_both(one: Any, other: Any) -> bool:
    """Whether an operation in which one operand is unknown mixes calendar days with elapsed time."""
    unknown, known = (one, other) if isinstance(one, Unknown) else (other, one)
    if unknown.step != DAY:
        return unknown.kind == "duration" and known.__class__ is date
    if known.__class__ is timedelta:
        return unknown.kind == "time" and bool(known.seconds or known.microseconds)
    return known.__class__ is datetime


def _moments(one: Any, other: Any) -> tuple[Any, Any]:
    """Convert a date to the start of its day if the other operand is a time, or a duration that includes part of a
    day.
    """
    one, other = alike(one, other)
    for part, shift in ((one, other), (other, one)):
        if part.__class__ is date and shift.__class__ is timedelta and (shift.seconds or shift.microseconds):
            moment = datetime(part.year, part.month, part.day)
            return (moment, shift) if part is one else (shift, moment)
    return one, other
