"""What tool results have shown so far, as consent needs it: which records bear an id, and what tells them from others.

Each result is read once, and only when a write asks. A record's marks are its words, days, times and numbers; those
that no other record of its kind has are what people call it by.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

from msgspec import Struct

from bylaw.consent.marks import value_marks
from bylaw.facts.value import loose
from bylaw.trace.event import Call, Event, Result

_RECORDS = 400
_LONG = 200
_KIND = 60
"""So many records of a kind are compared; of more, nobody can say which is meant."""


class Record(Struct, frozen=True, eq=False):
    """One object in a tool's result, or the arguments of a look-up."""

    step: int
    fields: frozenset[tuple[str, str]]
    """Names and keys of its values, and of what was asked for to see it."""
    marks: frozenset[str]


class Entry(NamedTuple):
    """A value that stands in a record under a name."""

    name: str
    key: str
    record: Record


class Records:
    """The records of one conversation; `events` may grow while it is in use."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._read = 0
        self._by_key: dict[str, list[Entry]] = {}
        self._by_name: dict[str, dict[str, list[Entry]]] = {}
        self._names: dict[str, dict[str, int]] = {}
        """By value the names that it has stood under, each with the step at which it first did."""
        self._by_mark: dict[str, list[tuple[int, str]]] = {}

    def read(self, before: int) -> None:
        """Take in the events before a step."""
        end = min(before, len(self._events))
        for step in range(self._read, end):
            event = self._events[step]
            if type(event) is Result and event.captured:
                call = self._events[event.call] if event.call is not None else None
                self._take_in(step, event.value(), call.arguments if type(call) is Call and not call.fault else {})
            elif type(event) is Call and not event.fault:
                fields = frozenset((name, loose(str(part))) for name, part in _scalars(event.arguments))
                asked = Record(step, fields, frozenset())
                for name, key in fields:
                    self._add(Entry(name, key, asked))
        self._read = max(self._read, end)

    def of(self, key: str, before: int) -> Sequence[Entry]:
        """Where a value stands in records before a step."""
        return _up_to(self._by_key.get(key, []), before)

    def names_of(self, key: str, before: int) -> set[str]:
        """The names of the fields that a value stands in before a step."""
        return {name for name, first in self._names.get(key, {}).items() if first < before}

    def beside(self, names: set[str], key: str, before: int) -> dict[str, list[Sequence[Entry]]]:
        """Other values of fields of these names, each with where it stands."""
        found: dict[str, list[Sequence[Entry]]] = {}
        for name in sorted(names):
            for other, entries in self._by_name.get(name, {}).items():
                if other != key and entries[0].record.step < before:
                    found.setdefault(other, []).append(_up_to(entries, before))
                    if len(found) > _KIND:
                        return found
        return found

    def fields_with(self, mark: str, before: int) -> set[str]:
        """The names of fields that held a day or a number before a step."""
        return {name for step, name in self._by_mark.get(mark, ()) if step < before}

    def _take_in(self, step: int, value: Any, asked: dict[str, Any]) -> None:
        wanted = {(name, loose(str(part))) for name, part in _scalars(asked)}
        for found in _records(value):
            fields = list(_fields(found))
            marks = frozenset(mark for _, part in fields for mark in value_marks(part))
            keys = [(name, loose(str(part))) for name, part in fields]
            record = Record(step, frozenset(keys) | wanted, marks)
            for (name, part), (_, key) in zip(fields, keys, strict=True):
                self._add(Entry(name, key, record))
                for mark in value_marks(part):
                    if mark[1] == ":":
                        self._by_mark.setdefault(mark, []).append((step, name))

    def _add(self, entry: Entry) -> None:
        self._by_key.setdefault(entry.key, []).append(entry)
        self._by_name.setdefault(entry.name, {}).setdefault(entry.key, []).append(entry)
        self._names.setdefault(entry.key, {}).setdefault(entry.name, entry.record.step)


def _up_to(entries: list[Entry], before: int) -> Sequence[Entry]:
    """Those of a list in the order of steps that stand before one."""
    if not entries or entries[-1].record.step < before:
        return entries
    return entries[: bisect_left(entries, before, key=_step)]


def _step(entry: Entry) -> int:
    return entry.record.step


def _records(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a result, at any depth."""
    pending: list[Any] = [value]
    left = _RECORDS
    while pending and left:
        left -= 1
        part = pending.pop()
        if isinstance(part, dict):
            record = cast("dict[str, Any]", part)
            yield record
            pending.extend(each for each in record.values() if type(each) in (dict, list))
        elif isinstance(part, list):
            pending.extend(each for each in cast("list[Any]", part) if type(each) in (dict, list))


def _fields(record: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The plain values of a record, members of its plain lists among them."""
    for name, value in record.items():
        parts = cast("list[Any]", value) if isinstance(value, list) else [value]
        for part in parts[:_RECORDS]:
            if isinstance(part, str | int | float) and not isinstance(part, bool) and len(str(part)) <= _LONG:
                yield str(name), part


def _scalars(value: Any) -> Iterator[tuple[str, Any]]:
    for record in _records(value):
        yield from _fields(record)
