"""What tool results have shown so far, as consent needs it: which records bear an id, and what tells them from others.

A result is opened where somebody asks for what may stand in its text, and then once. A record's marks are its words,
days, times and numbers; those that no other record of its kind has are what people call it by.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, cast

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
_UNLISTED = 40
"""So many results are searched by their text; of more, what they hold is listed."""
_LETTER = re.compile(r"[a-df-z]")
"""What no number has: all but numbers stand in JSON as they are read."""


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
        return frozenset[str]().union(*(value_marks(value)[0] for _, value in self._values))

    def named_marks(self) -> Iterator[tuple[str, str]]:
        """Its days, times and numbers, each with the name of its field."""
        return ((name, mark) for name, value in self._values for mark in value_marks(value)[1])


Entry = tuple[str, Record]
"""The name that a value stands under, and the record that it stands in."""


class _Source:
    """A result with the call that it answers, or a call."""

    def __init__(self, step: int, result: Result | None, call: Call | None) -> None:
        self.step = step
        self._result, self._call = result, call

    def may_hold(self, word: str) -> bool:
        """Whether a name or a key, without blanks and in lower case, may stand in it."""
        return not self._text or word in self._text or _LETTER.search(word) is None

    @once
    def _text(self) -> str:
        """JSON in lower case and without blanks; empty where a value may be written in another way than it is read."""
        text = self._result.content if self._result is not None and self._result.is_json() else ""
        if not isinstance(text, str) or not text.isascii() or "\\" in text:
            return ""
        return text.replace(" ", "").lower()

    @once
    def records(self) -> list[Record]:
        asked = _pairs(self._call.arguments) if self._call is not None and not self._call.fault else []
        if self._result is None:
            return [Record(self.step, (), list(dict.fromkeys(asked)), asked)]
        shown = map(_fields, _records(self._result.value()))
        return [
            Record(self.step, values, [(name, _key(str(part))) for name, part in values], asked) for values in shown
        ]

    @once
    def by_key(self) -> dict[str, list[Entry]]:
        found: dict[str, list[Entry]] = {}
        for record in self.records:
            for name, key in record.keys:
                found.setdefault(key, []).append((name, record))
        return found

    @once
    def by_name(self) -> dict[str, dict[str, int]]:
        """By name the keys under it, each with the step."""
        found: dict[str, dict[str, int]] = {}
        for record in self.records:
            for name, key in record.keys:
                found.setdefault(name, {})[key] = self.step
        return found


class Records:
    """The records of one conversation; `events` may grow while it is in use."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._read = 0
        self._sources: list[_Source] = []
        self._listed = self._marked = 0
        """How many of them are listed below whole, and how many by their marks."""
        self._by_key: dict[str, list[Entry]] = {}
        self._by_name: dict[str, dict[str, int]] = {}
        """By name the values that have stood under it, each with the step at which it first did."""
        self._searched: dict[tuple[str, bool], int] = {}
        """By a key, or by a name, how many sources were searched for it."""
        self._by_mark: dict[str, list[tuple[int, str]]] = {}
        self._marks: dict[frozenset[str] | None, dict[str, tuple[int, frozenset[str]]]] = {}
        """By the names that it stands under, and by value, the marks of so many of the records that bear it."""
        self._kinds: dict[frozenset[str], tuple[int, list[str]]] = {}
        """By names of fields their first values, and how many they had when these were listed."""

    def read(self, before: int) -> None:
        """Take in the events before a step."""
        events, end = self._events, min(before, len(self._events))
        for step in range(self._read, end):
            event = events[step]
            if type(event) is Result and event.captured:
                call = events[event.call] if event.call is not None else None
                self._sources.append(_Source(step, event, call if type(call) is Call else None))
            elif type(event) is Call and not event.fault:
                self._sources.append(_Source(step, None, event))
        self._read = max(self._read, end)
        if len(self._sources) - self._listed > _UNLISTED:
            self._list()

    def _list(self) -> None:
        for place, source in enumerate(self._sources[self._listed :], self._listed):
            for key, entries in source.by_key.items():
                if self._searched.get((key, False), 0) <= place:
                    self._by_key.setdefault(key, []).extend(entries)
            for name, values in source.by_name.items():
                _add_new(self._by_name.setdefault(name, {}), values)
        self._listed = len(self._sources)

    def _unsearched(self, word: str, *, is_name: bool) -> list[_Source]:
        """The sources that may hold a key or a name, of those that were neither listed nor searched for it."""
        start = max(self._listed, self._searched.get((word, is_name), 0))
        self._searched[word, is_name] = len(self._sources)
        written = word.lower().replace(" ", "") if is_name else word
        return [source for source in self._sources[start:] if source.may_hold(written)]

    def _named(self, name: str) -> dict[str, int]:
        """The values under a name in all that was read."""
        if self._listed < len(self._sources):
            for source in self._unsearched(name, is_name=True):
                if name in source.by_name:
                    _add_new(self._by_name.setdefault(name, {}), source.by_name[name])
        return self._by_name.get(name, {})

    def of(self, key: str, before: int) -> Sequence[Entry]:
        """Where a value stands in records before a step."""
        if before > self._read:
            self.read(before)
        if self._listed < len(self._sources):
            for source in self._unsearched(key, is_name=False):
                if key in source.by_key:
                    self._by_key.setdefault(key, []).extend(source.by_key[key])
        entries = self._by_key.get(key, ())
        if not entries or entries[-1][1].step < before:
            return entries
        return entries[: bisect_left(entries, before, key=_step)]

    def holds(self, code: str, before: int) -> bool:
        """Whether a value before a step is this, or a record has all its words."""
        if self.of(code, before):
            return True
        words = value_marks(code)[0]
        return bool(words) and any(words <= record.marks for record in self._before(before))

    def ends(self, figures: str, before: int) -> bool:
        """Whether the figures of a value before a step end with these: those of a card, a line, an account."""
        return any(key.endswith(figures) for record in self._before(before) for _, key in record.keys)

    def _before(self, step: int) -> Iterator[Record]:
        self.read(step)
        return (record for source in self._sources if source.step < step for record in source.records)

    def names_of(self, key: str, before: int) -> set[str]:
        """The names of the fields that a value stands in before a step."""
        return {name for name, _ in self.of(key, before)}

    def beside(self, names: frozenset[str], key: str, before: int) -> list[str]:
        """Other values of fields of these names."""
        if before > self._read:
            self.read(before)
        if before < self._read:
            values = self._values_of(names, before)
        else:
            count = 0
            for name in names:
                # More of them would not change which are listed first.
                count += min(len(self._named(name)), 2 * (_KIND + 2))
            known = self._kinds.get(names)
            if known is None or known[0] != count:
                known = self._kinds[names] = (count, self._values_of(names, before))
            values = known[1]
        return [other for other in values if other != key][: _KIND + 1]

    def _values_of(self, names: frozenset[str], before: int) -> list[str]:
        """The first values of fields of these names: as many as are compared, and one that they are compared with."""
        found: dict[str, None] = {}
        for name in sorted(names):
            for value, first in self._named(name).items():
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
            new = (record.marks for name, record in entries[count:] if names is None or name in names)
            marks = marks.union(*new)
            known[key] = (len(entries), marks)
        return marks

    def marks_of_each(self, keys: Iterable[str], before: int, names: frozenset[str]) -> list[frozenset[str]]:
        """The same of several values."""
        if before > self._read:
            self.read(before)
        known, by_key = self._marks.setdefault(names, {}), self._by_key
        if before < self._read:
            return [self.marks_of(key, before, names) for key in keys]
        if self._listed < len(self._sources):
            self._list()
        return [
            found[1]
            if (found := known.get(key)) is not None and found[0] == len(by_key[key])
            else self.marks_of(key, before, names)
            for key in keys
        ]

    def read_ahead(self, before: int) -> None:
        """Take in the events before a step, and all that they hold."""
        self.read(before)
        for source in self._sources[self._listed :]:
            for record in source.records:
                _ = record.marks
        self._list()
        self._mark()

    def _mark(self) -> None:
        for source in self._sources[self._marked :]:
            for record in source.records:
                for name, each in record.named_marks():
                    self._by_mark.setdefault(each, []).append((record.step, name))
        self._marked = len(self._sources)

    def fields_with(self, mark: str, before: int) -> set[str]:
        """The names of fields that held a day or a number before a step."""
        if before > self._read:
            self.read(before)
        if self._marked < len(self._sources):
            self._mark()
        return {name for step, name in self._by_mark.get(mark, ()) if step < before}


def _add_new(known: dict[str, int], values: dict[str, int]) -> None:
    for value, step in values.items():
        known.setdefault(value, step)


def _step(entry: Entry) -> int:
    return entry[1].step


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


def _fields(record: dict[str, Any]) -> list[tuple[str, Any]]:
    """The plain values of a record, members of its plain lists among them."""
    found: list[tuple[str, Any]] = []
    for name, value in record.items():
        if type(value) is str:
            if len(value) <= _LONG:
                found.append((str(name), value))
        elif isinstance(value, list):
            found += [(str(name), part) for part in cast("list[Any]", value)[:_RECORDS] if _is_plain(part)]
        elif _is_plain(value):
            found.append((str(name), value))
    return found


def _is_plain(part: Any) -> bool:
    return isinstance(part, (str, int, float)) and type(part) is not bool and len(str(part)) <= _LONG


def _pairs(arguments: dict[str, Any]) -> list[Pair]:
    """The names and keys of all values in a call's arguments."""
    return [(name, _key(str(part))) for name, part in plain_values(arguments)]


def plain_values(arguments: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """All values in a call's arguments, each with its name."""
    return (pair for record in _records(arguments) for pair in _fields(record))


_key = lru_cache(maxsize=16_384)(loose)
