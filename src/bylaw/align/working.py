"""The working of a decision: what guards held the facts they read against, in words.

A guard says `starts_at - now() >= hours(24)`. A thought that only names the start leaves a small model to work out in
one step which side of 24 hours it lies on; one that says `24 hours from now is 2025-03-13 09:00: later` has done it.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from msgspec import Struct

from bylaw.facts.entity import Fact, FactSource
from bylaw.facts.unknown import Unknown
from bylaw.guard import Guard
from bylaw.guard.evaluate import run_path
from bylaw.guard.operation import alike
from bylaw.guard.run import GuardRun, Split
from bylaw.guard.scope import Spec

_NUMBERS = (int, float, Decimal)


class Note(Struct, frozen=True):
    """One comparison that a guard made."""

    fact: Fact | None
    """The fact that was held against something; None where the caller or the call says it, and no tool."""
    words: str
    name: str = ""
    """What the caller or the call says, and its value."""
    value: str = ""

    def said(self) -> str:
        """What the caller or the call says, with what it was held against."""
        return f"{self.name} {self.value}" + (f" ({self.words})" if self.words else "")


def notes_of(
    guard: Guard, arguments: Mapping[str, Any], source: FactSource, *, tool: str, now: datetime | None
) -> tuple[Note, ...]:
    """What a guard compares on the way to its answer, as far as that is known."""
    run = _Noting(arguments, source, tool=tool, now=now)
    run.begin(coverage=set())
    with suppress(Split):
        run_path(guard, guard.covering, run)
    run.close()
    return tuple(dict.fromkeys(run.notes))


class _Gap(Struct, frozen=True):
    """A difference, and what it was made of."""

    value: Any
    of: Any
    less: Any


class _Noting(GuardRun):
    """A run that writes down what is compared."""

    __slots__ = ("facts", "gaps", "last", "notes")

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.notes: list[Note] = []
        self.facts: list[tuple[Any, Fact]] = []
        """Values as they were read. A value that is compared is known by its identity."""
        self.gaps: list[_Gap] = []
        self.last: Fact | None = None
        """What the guard read last."""

    def read(self, spec: Spec, key: Any) -> Any:
        value = super().read(spec, key)
        if isinstance(value, Unknown) or key.__class__ is not tuple:
            return value
        if spec.is_system:
            self.last = Fact(spec.entity_name, key, spec.field_name)
            self.facts.append((value, self.last))
        elif spec.origin == "user" and self.is_noting:
            said = {True: "yes", False: "no"}.get(value, str(value).replace("_", " "))
            self.notes.append(Note(None, "", spec.field_name.replace("_", " "), said))
        return value

    def subtract(self, one: Any, other: Any) -> Any:
        value = super().subtract(one, other)
        self.gaps.append(_Gap(value, one, other))
        return value

    def less(self, one: Any, other: Any) -> Any:
        self.compared(one, other)
        return super().less(one, other)

    def at_most(self, one: Any, other: Any) -> Any:
        self.compared(one, other)
        return super().at_most(one, other)

    def more(self, one: Any, other: Any) -> Any:
        self.compared(one, other)
        return super().more(one, other)

    def at_least(self, one: Any, other: Any) -> Any:
        self.compared(one, other)
        return super().at_least(one, other)

    def equal(self, one: Any, other: Any) -> Any:
        self.matched(one, other)
        return super().equal(one, other)

    def differ(self, one: Any, other: Any) -> Any:
        self.matched(one, other)
        return super().differ(one, other)

    def within(self, value: Any, container: Any) -> Any:
        answer = super().within(value, container)
        fact = self.fact_of(container) if container.__class__ is list and value.__class__ is str else None
        if fact is not None and self.is_noting:
            self.note(fact, f"{value.replace('_', ' ')}: {'' if answer else 'not '}among them")
        return answer

    # Notes.

    def compared(self, one: Any, other: Any) -> None:
        """One value against another, both known and on the way that the guard really takes."""
        if not self.is_noting or isinstance(one, Unknown) or isinstance(other, Unknown):
            return
        one, other = (each if each.__class__ is not bool else int(each) for each in (one, other))
        if self.moment(one, other) or self.moment(other, one):
            return
        if not (_is_weighable(one) and _is_weighable(other)):
            return
        for value, against in ((one, other), (other, one)):
            if (fact := self.fact_of(value)) is not None:
                self.note(fact, self.held(value, against))
                return
        if not self.left_over(one, other) and not self.left_over(other, one):
            self.asked_for(one, other)

    def moment(self, gap: Any, span: Any) -> bool:
        """`fact - now() >= hours(24)`: the fact against the moment it comes down to."""
        if gap.__class__ is not timedelta or span.__class__ is not timedelta or self.time is None:
            return False
        found = next((each for each in reversed(self.gaps) if each.value is gap), None)
        if found is None:
            return False
        for value, since, sign in ((found.of, found.less, 1), (found.less, found.of, -1)):
            fact = self.fact_of(value)
            if fact is None or not self.is_now(since):
                continue
            threshold = since + sign * span
            when = "from now" if sign > 0 else "ago"
            self.note(fact, f"{_span(span)} {when} is {_written(threshold)}: {_order(*alike(value, threshold))}")
            return True
        return False

    def left_over(self, value: Any, rest: Any) -> bool:
        """`amount <= paid - refunded`: an amount against what is left."""
        found = next((each for each in reversed(self.gaps) if each.value is rest), None)
        fact = self.fact_of(found.less) if found is not None else None
        if fact is None:
            return False
        self.note(fact, f"leaves {_written(rest)}, and {_written(value)} is {_order(*alike(value, rest))}")
        return True

    def asked_for(self, one: Any, other: Any) -> None:
        """An argument of the call against a limit, which may hang on what was read last."""
        for value, against in ((one, other), (other, one)):
            name = self.argument_of(value)
            if name and self.last is not None:
                self.note(self.last, f"{name} {_written(value)} against {self.held(value, against)}")
            elif name:
                self.notes.append(Note(None, self.held(value, against), name, _written(value)))
            if name:
                return

    def matched(self, one: Any, other: Any) -> None:
        """Two names of things, or an amount against another: the same, or not."""
        if not self.is_noting or isinstance(one, Unknown) or isinstance(other, Unknown):
            return
        if _is_weighable(one) and _is_weighable(other) and one.__class__ is not bool:
            if (fact := self.fact_of(one)) is not None:
                self.note(fact, self.held(one, other))
        elif one.__class__ is str and other.__class__ is str and (fact := self.fact_of(one)) is not None:
            self.note(fact, f"{other}: {'the same' if one == other else 'another'}")

    def held(self, value: Any, against: Any) -> str:
        today = "today " if self.is_now(against) else ""
        return f"{today}{_written(against)}: {_order(*alike(value, against))}"

    def note(self, fact: Fact, words: str) -> None:
        self.notes.append(Note(fact, words))

    # Where a value came from.

    def fact_of(self, value: Any) -> Fact | None:
        return next((fact for known, fact in reversed(self.facts) if known is value), None)

    def argument_of(self, value: Any) -> str:
        """The argument of the call that an amount was made from."""
        for name, given in self.arguments.items():
            try:
                if isinstance(value, Decimal) and not isinstance(given, bool) and Decimal(str(given)) == value:
                    return name.replace("_", " ")
            except ArithmeticError:
                continue
        return ""

    def is_now(self, value: Any) -> bool:
        if self.time is None:
            return False
        now = self.do_now()
        return value == now if value.__class__ is datetime else value.__class__ is date and value == now.date()


def _is_weighable(value: Any) -> bool:
    return isinstance(value, (*_NUMBERS, date)) and not isinstance(value, bool)


def _order(one: Any, other: Any) -> str:
    if one == other:
        return "the same" if isinstance(one, date) else "equal"
    if isinstance(one, date):
        return "earlier" if one < other else "later"
    return "less" if one < other else "more"


def _written(value: Any) -> str:
    match value:
        case datetime():
            return f"{value:%Y-%m-%d %H:%M}"
        case Decimal():
            return f"{'-' if value < 0 else ''}${abs(value):,.2f}"
        case _:
            return str(value)


def _span(span: timedelta) -> str:
    """A span as policies say it: days where it is whole days of two or more, else hours or minutes."""
    minutes = round(abs(span).total_seconds() / 60)
    for size, unit in ((1440, "day"), (60, "hour"), (1, "minute")):
        count, rest = divmod(minutes, size)
        if not rest and (count > 2 or size < 1440):
            return f"{count} {unit}" + ("" if count == 1 else "s")
    return f"{minutes} minutes"
