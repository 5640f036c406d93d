"""What tool results have shown so far, as consent needs it: which records bear an id, and what tells them from others.

Each result is read once, and only when a write asks. A record's marks are its words, days, times and numbers; those
that no other record of its kind has are what people call it by.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from bylaw.consent.marks import value_marks
from bylaw.facts.value import loose
from bylaw.text.once import once
from bylaw.trace.event import Call, Event, Result

Pair = tuple[str, str]
"""The name and the key of a value."""
_RECORDS = 400
_LONG = 200
_KIND = 60
"""So many records of a kind are compared; of more, nobody can say which is meant."""


class Record:
    """One object in a tool's result, or the arguments of a look-up; what it holds is read where somebody asks."""

    def __init__(
        self, step: int, values: Sequence[tuple[str, Any]], keys: Sequence[Pair], asked: Sequence[Pair]
    ) -> None:
        self.step = step
        self._values, self.keys, self._asked = values, keys, asked

    @property
    def is_shown(self) -> bool:
        """Whether a tool showed it, and somebody did not only ask for it."""
        return bool(self._values)

    @once
    def fields(self) -> frozenset[Pair]:
        """Names and keys of its values, and of what was asked for to see it."""
        return frozenset((*self.keys, *self._asked))

    @once
    def marks(self) -> frozenset[str]:
        return frozenset(mark for _, value in self._values for mark in value_marks(value))

    def named_marks(self) -> Iterator[tuple[str, str]]:
        """Its days, times and numbers, each with the name of its field."""
        return ((name, mark) for name, value in self._values for mark in value_marks(value) if mark[1] == ":")


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
        self._names: dict[str, dict[str, int]] = {}
        """By value the names that it has stood under, each with the step at which it first did."""
        self._by_name: dict[str, dict[str, int]] = {}
        """The same by name."""
        self._by_mark: dict[str, list[tuple[int, str]]] = {}
        self._unmarked: list[Record] = []
        """Records whose marks nobody has asked for yet."""
        self._marks: dict[frozenset[str] | None, dict[str, tuple[int, frozenset[str]]]] = {}
        """By the names that it stands under, and by value, the marks of so many of the records that bear it."""
        self._kinds: dict[frozenset[str], tuple[int, list[str]]] = {}
        """By names of fields their first values, and how many they had when these were listed."""

    def read(self, before: int) -> None:
        """Take in the events before a step."""
        end = min(before, len(self._events))
        for step in range(self._read, end):
            event = self._events[step]
            if type(event) is Result and event.captured:
                call = self._events[event.call] if event.call is not None else None
                asked = _pairs(call.arguments) if type(call) is Call and not call.fault else []
                for found in _records(event.value()):
                    values = list(_fields(found))
                    record = Record(step, values, [(name, _key(str(part))) for name, part in values], asked)
                    self._unmarked.append(record)
                    self._add(record, record.keys)
            elif type(event) is Call and not event.fault:
                asked = _pairs(event.arguments)
                self._add(Record(step, (), (), asked), dict.fromkeys(asked))
        self._read = max(self._read, end)

    def of(self, key: str, before: int) -> Sequence[Entry]:
        """Where a value stands in records before a step."""
        if before > self._read:
            self.read(before)
        entries = self._by_key.get(key, ())
        if not entries or entries[-1].record.step < before:
            return entries
        return entries[: bisect_left(entries, before, key=_step)]

    def names_of(self, key: str, before: int) -> set[str]:
        """The names of the fields that a value stands in before a step."""
        if before > self._read:
            self.read(before)
        return {name for name, first in self._names.get(key, {}).items() if first < before}

    def beside(self, names: frozenset[str], key: str, before: int) -> list[str]:
        """Other values of fields of these names."""
        self.read(before)
        if before < self._read:
            values = self._values_of(names, before)
        else:
            # More of them would not change which are listed first.
            count = sum(min(len(self._by_name.get(name, ())), 2 * (_KIND + 2)) for name in names)
            known = self._kinds.get(names)
            if known is None or known[0] != count:
                known = self._kinds[names] = (count, self._values_of(names, before))
            values = known[1]
        return [other for other in values if other != key][: _KIND + 1]

    def _values_of(self, names: frozenset[str], before: int) -> list[str]:
        """The first values of fields of these names: as many as are compared, and one that they are compared with."""
        found: dict[str, None] = {}
        for name in sorted(names):
            for value, first in self._by_name.get(name, {}).items():
                if first < before:
                    found[value] = None
                    if len(found) > _KIND + 1:
                        return list(found)
        return list(found)

    def marks_of(self, key: str, before: int, names: frozenset[str] | None = None) -> frozenset[str]:
        """The marks of all records that bear a value before a step, under one of some names where they are given."""
        entries = self.of(key, before)
        known = self._marks.setdefault(names, {})
        count, marks = known.get(key, (0, frozenset[str]()))
        if count != len(entries):
            count, marks = (0, frozenset[str]()) if count > len(entries) else (count, marks)
            new = (each.record.marks for each in entries[count:] if names is None or each.name in names)
            marks = marks.union(*new)
            known[key] = (len(entries), marks)
        return marks

    def marks_of_each(self, keys: Iterable[str], before: int, names: frozenset[str]) -> list[frozenset[str]]:
        """The same of several values."""
        known, by_key = self._marks.setdefault(names, {}), self._by_key
        if before < self._read:
            return [self.marks_of(key, before, names) for key in keys]
        self.read(before)
        return [
            found[1]
            if (found := known.get(key)) is not None and found[0] == len(by_key[key])
            else self.marks_of(key, before, names)
            for key in keys
        ]

    def mark(self) -> None:
        """Read what the records hold that were taken in since."""
        for record in self._unmarked:
            _ = record.marks
            for name, each in record.named_marks():
                self._by_mark.setdefault(each, []).append((record.step, name))
        self._unmarked.clear()

    def fields_with(self, mark: str, before: int) -> set[str]:
        """The names of fields that held a day or a number before a step."""
        self.read(before)
        self.mark()
        return {name for step, name in self._by_mark.get(mark, ()) if step < before}

    def _add(self, record: Record, keys: Iterable[Pair]) -> None:
        for name, key in keys:
            self._by_key.setdefault(key, []).append(Entry(name, key, record))
            names = self._names.setdefault(key, {})
            if name not in names:
                names[name] = record.step
                self._by_name.setdefault(name, {})[key] = record.step


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


def _pairs(arguments: dict[str, Any]) -> list[Pair]:
    """The names and keys of all values in a call's arguments."""
    return [(name, _key(str(part))) for name, part in plain_values(arguments)]


def plain_values(arguments: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """All values in a call's arguments, each with its name."""
    return (pair for record in _records(arguments) for pair in _fields(record))


_key = lru_cache(maxsize=16_384)(loose)
