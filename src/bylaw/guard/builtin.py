"""The built-ins of the guard language, for records, lists, strings and loops. All limit the size of values and accept
Unknowns.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from bylaw.facts.unknown import Stuck, Unknown, derive, expression_text, gathered, kind_of, length, opaque_bool
from bylaw.facts.value import Amount, amount_in, currency_of, read_amount, shared_currency
from bylaw.facts.variable import DAY
from bylaw.guard.language import DATE_METHODS, DATE_PARTS, LONGEST, TEXT_METHODS
from bylaw.guard.operation import (
    AMOUNTS,
    MONEY,
    NUMBERS,
    TIMES,
    Absent,
    Operations,
    admit,
    fail,
    name_of,
    not_alike,
    weight,
)

_CLOCK = re.compile(r"\d{1,2}:\d\d", re.ASCII)


def one_currency(items: Iterable[Any]) -> str | None:
    """Return the common currency of these amounts.

    An amount without a currency matches any currency. Two different currencies are an error.
    """
    named = [item for item in items if item.__class__ is Amount]
    for one, other in pairwise(named):
        shared_currency(one, other)
    return currency_of(named[0]) if named else None


class BuiltIns(Operations):
    """The operations that compiled guards call, apart from operators."""

    __slots__ = ()

    def listed(self, value: Any) -> Any:
        """Return a list or record literal, with a limit on its size at every depth."""
        self.spend(1 + weight(value) // 8)
        return value

    def part(self, value: Any, name: str) -> Any:
        if value.__class__ is dict:
            return admit(value[name], self.zone) if name in value else fail(f"there is no key `{name}`; use get()")
        if isinstance(value, Unknown):
            return derive(f"{name} of", (value,))
        if name in DATE_PARTS and value.__class__ in (date, datetime, timedelta) and hasattr(value, name):
            return getattr(value, name)
        return fail(f"{name_of(value)} has no `{name}`")

    def item(self, value: Any, index: Any) -> Any:
        """Return `value[index]`. If the index into a mapping is unknown, each key is tried."""
        if isinstance(index, Unknown):
            if value.__class__ is not dict:
                raise Stuck(index)
            for word in value:
                if index == word:
                    return admit(value[word], self.zone)
            raise Stuck(index)
        if isinstance(value, Unknown):
            if index.__class__ is int and value.kind in ("list", "text"):
                self.require(length(value) >= (index + 1 if index >= 0 else -index))
            return derive("item", (value, index))
        if value.__class__ is dict and index.__class__ in (str, int, bool):
            return admit(value[index], self.zone) if index in value else fail(f"there is no key `{index}`; use get()")
        if value.__class__ in (list, tuple, str) and index.__class__ is int:
            if -len(value) <= index < len(value):
                return admit(value[index], self.zone)
            return fail(f"the list has {len(value)} items, so `[{index}]` does not exist; test the length first")
        return fail(f"cannot index {name_of(value)} by {name_of(index)}")

    def require(self, truth: Any) -> None:
        """End the path with a denial if `truth` is false."""
        if not truth:
            raise Absent("an unknown list may be too short")

    def section(self, value: Any, start: Any, end: Any) -> Any:
        for part in (value, start, end):
            if isinstance(part, Unknown):
                raise Stuck(part)
        if value.__class__ not in (list, tuple, str) or {start.__class__, end.__class__} - {int, type(None)}:
            fail(f"cannot take a slice of {name_of(value)}")
        self.spend(1 + len(value) // 64)
        return admit(value[start:end])

    def method(self, value: Any, name: str, *arguments: Any) -> Any:
        """Call an allowed method of a string or date."""
        self.spend(1)
        for part in (value, *arguments):
            if isinstance(part, Unknown):
                raise Stuck(part)
        if value.__class__ is str and name in TEXT_METHODS and all(part.__class__ is str for part in arguments):
            if len(value) > LONGEST:
                admit(value)
            if name == "split" and arguments == ("",):
                fail("cannot split at an empty string")
            self.spend(1 + len(value) // 64)
            return admit(getattr(value, name)(*arguments))
        if value.__class__ in TIMES and name in DATE_METHODS:
            return getattr(value, name)()
        return fail(
            f"{name_of(value)} has no method `{name}` for {', '.join(map(name_of, arguments)) or 'no arguments'}"
        )

    def present(self, part: Any, name: str) -> Any:
        """Return a field of a record. Fails if it is `null`."""
        return part

    def truth(self, part: Any) -> Any:
        """Return a field of a record as a condition. Fails on text that may mean a boolean."""
        return part

    def turns(self, values: Any, weight: int) -> Iterator[Any]:
        """Yield the items of a loop. Each item uses up some of the budget."""
        if values.__class__ not in (list, tuple, range):
            if isinstance(values, Unknown):
                raise Stuck(values)
            fail(f"cannot loop over {name_of(values)}")
        if len(values) > LONGEST:
            admit(list(values))
        for value in values:
            self.ticks -= weight
            if self.ticks < 0:
                self.spend(0)
            yield value if value.__class__ is dict else self.present(admit(value, self.zone), "item")

    def turns_or_none(self, values: Any, weight: int) -> Iterator[Any]:
        """Like `turns`, but allows None in the list."""
        if values.__class__ not in (list, tuple) or None not in values:
            yield from self.turns(values, weight)
            return
        self.spend(weight * len(values))
        yield from (admit(value, self.zone) for value in admit(values, self.zone))

    def do_zip(self, *lists: Any) -> Any:
        """Run Python's `zip`, which stops at the end of the shortest list."""
        for values in lists:
            if not isinstance(values, Unknown):
                self.many("zip", values)
        if any(isinstance(values, Unknown) for values in lists):
            return derive("zip", lists, "list")
        return list(zip(*lists, strict=False))

    def do_enumerate(self, values: Any) -> Any:
        if isinstance(values, Unknown):
            return derive("enumerate", (values,), "list")
        items: list[Any] = list(self.many("enumerate", values))
        return list(enumerate(items))

    def gather(
        self, name: str, values: Any, body: Callable[[Any], Iterable[Any]], text: str, free: tuple[Any, ...]
    ) -> Any:
        self.spend(1)
        if isinstance(values, Unknown):
            parts = (values, *free)
            return self.opaque(name, f"{text} over {expression_text(parts)}", parts)
        if name == "any":
            return any(body(values))
        if name == "all":
            return all(body(values))
        items = list(body(values))
        if name == "distinct":
            return self.distinct(items)
        return getattr(self, f"do_{name}")(items)

    def distinct(self, items: Sequence[Any]) -> int:
        """Count distinct items. Fails if two items may be the same value in different formats."""
        kinds = {item.__class__: item for item in items if item.__class__ is not str}
        text = next((item for item in items if item.__class__ is str), None)
        for item in kinds.values() if text is not None else ():
            if why := not_alike(text, item):
                fail(why)
        return len(set(items))

    def opaque(self, name: str, text: str, parts: Sequence[Any]) -> Unknown:
        """Return the result of a built-in whose list argument is unknown."""
        decider = next(part.decider for part in parts if isinstance(part, Unknown))
        needs = gathered(parts)
        match name:
            case "any" | "all":
                return opaque_bool(decider, text, needs)
            case "len" | "count" | "distinct":
                return Unknown(decider, text, needs, "number", step=1, lowest=0)
            case "sum":
                return Unknown(decider, text, needs, "number", exact=False)
            case "sorted":
                return Unknown(decider, text, needs, "list")
            case _:
                if name in ("min", "max"):
                    self.require(opaque_bool(decider, f"there is a {text}", needs))
                return Unknown(decider, text, needs)

    def plain_any(self, values: Iterable[Any]) -> Any:
        return any(values)

    def many(self, name: str, values: Any) -> Any:
        """Return the items of a list. If the list is unknown, return the built-in's result instead."""
        self.spend(1)
        if isinstance(values, Unknown):
            return self.opaque(name, f"{name}({values.text})", (values,))
        if values.__class__ not in (list, tuple):
            fail(f"{name}() requires a list, not {name_of(values)}")
        self.spend(len(values) // 4)
        return admit(values)

    def do_len(self, values: Any) -> Any:
        self.spend(1)
        if isinstance(values, Unknown):
            return length(values)
        if values.__class__ in (str, list, tuple, dict):
            return len(values)
        return fail(f"{name_of(values)} has no length")

    def do_any(self, values: Any) -> Any:
        items = self.many("any", values)
        return items if isinstance(items, Unknown) else any(map(self.is_true, items))

    def do_all(self, values: Any) -> Any:
        items = self.many("all", values)
        return items if isinstance(items, Unknown) else all(map(self.is_true, items))

    def is_true(self, item: Any) -> Any:
        return self.truth(self.present(item, "item"))

    def do_count(self, values: Any) -> Any:
        items = self.many("count", values)
        if isinstance(items, Unknown):
            return items
        if any(isinstance(item, Unknown) for item in items):
            return self.opaque("count", f"count({expression_text(items)})", items)
        return sum(1 for item in items if self.is_true(item))

    def do_sum(self, values: Any) -> Any:
        items = self.many("sum", values)
        if isinstance(items, Unknown):
            return items
        total: Any = 0
        for index, item in enumerate(items):
            total = item if index == 0 and kind_of(item) == "duration" else self.add(total, item)
        return total

    def do_sorted(self, values: Any) -> Any:
        items = self.many("sorted", values)
        if isinstance(items, Unknown):
            return items
        if any(isinstance(item, Unknown) for item in items):
            return self.opaque("sorted", f"sorted({expression_text(items)})", items)
        self.spend(len(items))
        one_currency(items)
        return sorted(items, key=cmp_to_key(self.rank))

    def rank(self, one: Any, other: Any) -> int:
        return -1 if self.less(one, other) else 1 if self.less(other, one) else 0

    def do_min(self, *values: Any) -> Any:
        return self.extreme("min", self.less, values)

    def do_max(self, *values: Any) -> Any:
        return self.extreme("max", self.more, values)

    def extreme(self, name: str, better: Callable[[Any, Any], Any], values: Sequence[Any]) -> Any:
        if len(values) == 1 and isinstance(values[0], Unknown):
            self.require(length(values[0]) > 0)
            return derive(name, values)
        items = self.many(name, values[0]) if len(values) == 1 else values
        if not items:
            fail(f"{name} of an empty list; test the length first")
        if any(isinstance(item, Unknown) for item in items):
            kinds = {kind_of(item) for item in items}
            return derive(name, items, kind_of(items[0]) if len(kinds) == 1 else "any")
        best = items[0]
        for item in items[1:]:
            best = item if better(item, best) else best
        currency = one_currency(items)
        return best if currency is None or best.__class__ is Amount else amount_in(Decimal(str(best)), currency)

    def do_abs(self, value: Any) -> Any:
        if isinstance(value, Unknown):
            return derive("abs", (value,), value.kind)
        if value.__class__ in AMOUNTS:
            return amount_in(MONEY.abs(value), currency_of(value))
        return abs(value) if value.__class__ in NUMBERS or value.__class__ is timedelta else fail("abs needs a number")

    def do_round(self, value: Any, digits: Any = None) -> Any:
        if isinstance(value, Unknown) or isinstance(digits, Unknown):
            return derive("round", (value, digits), "number")
        if value.__class__ not in NUMBERS or (digits is not None and digits.__class__ is not int):
            fail("round() requires a number and a whole number of digits")
        if digits is not None and not -20 <= digits <= 20:
            fail("round() keeps at most 20 digits")
        if value.__class__ in AMOUNTS:
            rounded = value.quantize(Decimal(1).scaleb(-(digits or 0)), rounding=ROUND_HALF_EVEN, context=MONEY)
            currency = currency_of(value)
            return int(rounded) if digits is None and currency is None else amount_in(rounded, currency)
        return round(value, digits)

    def do_date(self, value: Any) -> Any:
        """Return the date that a date, a time or an ISO string states. The UTC offset is ignored."""
        if isinstance(value, Unknown):
            whole = value.kind == "time" and value.step == DAY and value.offset % DAY == 0
            return value if whole else derive("date", (value,), "time", step=DAY)
        if value.__class__ is date:
            return value
        if value.__class__ is str:
            # In UTC, `2026-03-03T00:30+14:00` is on the previous day, but tools use the date as it is written.
            return self._moment(value).date()
        return self.do_time(value).date()

    def do_time(self, value: Any, clock: Any = None) -> Any:
        """Return a time or ISO string as an instant, the start of a date, or a date with a time such as `10:00`."""
        if clock is not None:
            return self.on_day(value, clock)
        if isinstance(value, Unknown):
            is_time = value.kind == "time" and (self.zone is None or value.step != DAY)
            return value if is_time else derive("time", (value,), "time", step=1)
        if value.__class__ is datetime:
            return admit(value, self.zone)
        if value.__class__ is date:
            return datetime(value.year, value.month, value.day)
        return admit(self._moment(value), self.zone)

    def on_day(self, day: Any, clock: Any) -> Any:
        if isinstance(day, Unknown) or isinstance(clock, Unknown):
            return derive("time", (day, clock), "time", step=1)
        day = self.do_date(day)
        try:
            if clock.__class__ is str and _CLOCK.fullmatch(clock):
                return datetime.combine(day, time.fromisoformat(clock.zfill(5)))
        except ValueError:
            pass
        shown = f"`{clock[:40]}`" if clock.__class__ is str else name_of(clock)
        return fail(f"{shown} is not a time of day; write HH:MM")

    def _moment(self, value: Any) -> datetime:
        if value.__class__ is str and 10 <= len(value) <= 40 and value[4] == value[7] == "-":
            try:
                return datetime.fromisoformat(value)
            except ValueError:
                pass
        shown = f"`{value[:40]}`" if value.__class__ is str else name_of(value)
        return fail(f"{shown} is not a date; write YYYY-MM-DD or an ISO time")

    def do_days(self, count: Any) -> Any:
        return self.duration("days", count)

    def do_hours(self, count: Any) -> Any:
        return self.duration("hours", count)

    def duration(self, unit: str, count: Any) -> Any:
        if isinstance(count, Unknown):
            return derive(unit, (count,), "duration")
        if count.__class__ not in (int, float):
            fail(f"{unit}() requires a number, not {name_of(count)}")
        return timedelta(**{unit: count})

    def do_money(self, value: Any) -> Any:
        """Return an amount of money from a string, a number or another amount."""
        if isinstance(value, Unknown):
            return value if value.kind == "number" else derive("money", (value,), "number")
        if value.__class__ in AMOUNTS:
            return value
        if value.__class__ in (int, float):
            return admit(Decimal(repr(value)) if value.__class__ is float else Decimal(value))
        if value.__class__ is str and len(value) <= 60:
            try:
                return admit(read_amount(value))
            except InvalidOperation:
                pass
            except ValueError as error:
                return fail(str(error))
        shown = f" `{value[:40]}`" if value.__class__ is str else ""
        return fail(f"{name_of(value)}{shown} is not an amount of money")

    def do_lower(self, value: Any) -> Any:
        if isinstance(value, Unknown):
            return derive("lower", (value,), "text")
        return self.method(value, "lower")

    def do_strip(self, value: Any) -> Any:
        if isinstance(value, Unknown):
            return derive("strip", (value,), "text")
        return self.method(value, "strip")

    def get_or_none(self, value: Any, key: Any, default: Any = None) -> Any:
        """Return a field of a record, which may be None."""
        if value.__class__ is dict and value.get(key, value) is None:
            return None
        return self.do_get(value, key, default)

    def do_get(self, value: Any, key: Any, default: Any = None) -> Any:
        """Return a field of a record or an item of a list, or the default if there is none."""
        if isinstance(key, Unknown):
            if value.__class__ is not dict:
                raise Stuck(key)
            return next((admit(value[word], self.zone) for word in value if key == word), default)
        if isinstance(value, Unknown):
            return derive("get", (value, key, default))
        if value is None:
            return default
        if value.__class__ is dict and key.__class__ in (str, int):
            if key not in value and any(str(name) == str(key) for name in value):
                fail(f"the key `{key}` is {name_of(key)} here, but has another type in the record")
            return self.present(admit(value[key], self.zone), str(key)) if key in value else default
        if value.__class__ in (list, tuple) and key.__class__ is int:
            return self.present(admit(value[key], self.zone), "item") if -len(value) <= key < len(value) else default
        return fail(f"get() requires a record or a list, not {name_of(value)}")
