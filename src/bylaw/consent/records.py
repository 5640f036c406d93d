"""What tool results have shown so far, as consent needs it: which records bear an id, and what tells them from others.

Each result is read once. A record's marks are its words, days, times and numbers; those that no other record of its
kind has are what people call it by.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import chain, islice
from typing import Any, cast

from bylaw.consent.passage import RUN, Passage, value_marks
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
        return frozenset[str]().union(*(value_marks(value)[0] for _, value in self._values))

    def named_marks(self) -> Iterator[tuple[str, str]]:
        """Its days, times and numbers, each with the name of its field."""
        return ((name, mark) for name, value in self._values for mark in value_marks(value)[1])


Entry = tuple[str, Record]
"""The name that a value stands under, and the record that it stands in."""


class _Kind:
    """What has stood under one name."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        """Each with the step at which it first did."""
        self.records: list[Record] = []
        self._marked = 0
        self._by_mark: dict[str, list[Record]] = {}

    def by_mark(self) -> dict[str, list[Record]]:
        """By mark the records that hold it."""
        for record in self.records[self._marked :]:
            for mark in record.marks:
                self._by_mark.setdefault(mark, []).append(record)
        self._marked = len(self.records)
        return self._by_mark


class Records:
    """The records of one conversation; `events` may grow while it is in use. What was shown at the step last read to,
    or later, does not count. Nothing is read until somebody asks."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._before = self._wanted = self._read = 0
        """Up to which step it counts, how many events are wanted for that, and how many were read."""
        self._records: list[Record] = []
        self._by_key: dict[str, list[Entry]] = {}
        self._kinds: dict[str, _Kind] = {}
        self._names: dict[str, tuple[int, set[str]]] = {}
        """By value, the names of the fields that it stands in, in so many of the records that bear it."""
        self._by_run: dict[str, list[str]] = {}
        """By the letters and figures that they begin with, the values: none stands in a text that has not those."""
        self._new: list[str] = []
        """Values that are not there yet."""
        self._standing: dict[Passage, dict[str, int]] = {}
        """By a passage, the values that stand in it, as far as events were read."""
        self._named = 0
        self._fields: dict[str, dict[str, int]] = {}
        """Of so many records, by day, time or number the names of the fields that held it, each with the step at which
        it first did."""
        self._marks: dict[tuple[str, frozenset[str] | None], tuple[int, frozenset[str]]] = {}
        """By value, and the names that it stands under, the marks of so many of the records that bear it."""

    def read(self, before: int) -> None:
        """Count the events before a step, and nothing after it."""
        self._before, self._wanted = before, min(before, len(self._events))

    def _take_in(self) -> None:
        """Read what is wanted and was not read yet."""
        self._standing = {}
        for step in range(self._read, self._wanted):
            event = self._events[step]
            if type(event) is Result and event.captured:
                call = self._events[event.call] if event.call is not None else None
                asked = _pairs(call.arguments) if type(call) is Call and not call.fault else []
                for values in _objects(event.value()):
                    self._add(Record(step, values, [(name, _key(str(part))) for name, part in values], asked))
            elif type(event) is Call and not event.fault:
                asked = _pairs(event.arguments)
                self._add(Record(step, (), list(dict.fromkeys(asked)), asked))
        self._read = self._wanted

    def _add(self, record: Record) -> None:
        self._records.append(record)
        step = record.step
        for name, key in record.keys:
            entries = self._by_key.get(key)
            if entries is None:
                entries = self._by_key[key] = []
                if len(key) > 2:
                    self._new.append(key)
            entries.append((name, record))
            kind = self._kinds.get(name)
            if kind is None:
                kind = self._kinds[name] = _Kind()
            kind.values.setdefault(key, step)
            if not kind.records or kind.records[-1] is not record:
                kind.records.append(record)

    def read_marks(self) -> None:
        """Read what the records are told by, before anybody asks."""
        self.fields_with("")
        for kind in self._kinds.values():
            kind.by_mark()

    def of(self, key: str) -> Sequence[Entry]:
        """Where a value stands in records."""
        if self._read < self._wanted:
            self._take_in()
        entries = self._by_key.get(key, ())
        if not entries or entries[-1][1].step < self._before:
            return entries
        return entries[: bisect_left(entries, self._before, key=_step)]

    def holds(self, code: str) -> bool:
        """Whether a value is this, or a record has all its words."""
        if self.of(code):
            return True
        words = value_marks(code)[0]
        return bool(words) and any(words <= record.marks for record in self._counted())

    def ends(self, figures: str) -> bool:
        """Whether the figures of a value end with these: those of a card, a line, an account."""
        return any(key.endswith(figures) for record in self._counted() for _, key in record.keys)

    def _counted(self) -> Iterator[Record]:
        if self._read < self._wanted:
            self._take_in()
        return (record for record in self._records if record.step < self._before)

    def names_of(self, key: str) -> AbstractSet[str]:
        """The names of the fields that a value stands in."""
        entries = self.of(key)
        if not entries:
            return _NOTHING
        count, names = self._names.get(key, (0, set[str]()))
        if count > len(entries):
            count, names = 0, set[str]()
        if count < len(entries):
            names.update(name for name, _ in entries[count:])
            self._names[key] = (len(entries), names)
        return names

    def _kinds_of(self, names: Iterable[str]) -> list[_Kind]:
        if self._read < self._wanted:
            self._take_in()
        return [kind for name in names if (kind := self._kinds.get(name)) is not None]

    def beside(self, names: frozenset[str], key: str) -> list[str]:
        """Other values of fields of these names: as many as are compared, and one more."""
        named: list[Iterable[str]] = [kind.values for kind in self._kinds_of(sorted(names))]
        if self._before < self._read:
            named = [
                [value for value, first in kind.values.items() if first < self._before]
                for kind in self._kinds_of(sorted(names))
            ]
        # Of so many that one may stand under every name, enough are left.
        found = dict.fromkeys(islice(chain.from_iterable(named), len(named) * (_KIND + 2)))
        found.pop(key, None)
        return list(islice(found, _KIND + 1))

    def has_beside(self, names: Iterable[str], key: str) -> bool:
        """Whether fields of these names have held another value."""
        kinds = self._kinds_of(names)
        if self._before < self._read:
            return bool(self.beside(frozenset(names), key))
        return any(len(kind.values) > 1 or key not in kind.values for kind in kinds)

    def standing_in(self, passage: Passage) -> dict[str, int]:
        """The values that may stand in a passage, each with its place."""
        if self._read < self._wanted:
            self._take_in()
        found = self._standing.get(passage)
        if found is None:
            for key in self._new:
                run = RUN.search(key)
                self._by_run.setdefault(run[0] if run else "", []).append(key)
            self._new.clear()
            known = (key for run in passage.runs & self._by_run.keys() for key in self._by_run[run])
            found = {key: at for key in known if (at := passage.may_tell(key)) >= 0}
            self._standing[passage] = found
        return found

    def marks_of(self, key: str, names: frozenset[str] | None = None) -> frozenset[str]:
        """The marks of all records that bear a value, under one of some names where they are given."""
        entries = self.of(key)
        count, marks = self._marks.get((key, names), _UNREAD)
        if count != len(entries):
            if count > len(entries):
                count, marks = _UNREAD
            found = (record.marks for name, record in entries[count:] if names is None or name in names)
            marks = marks.union(*found)
            self._marks[key, names] = (len(entries), marks)
        return marks

    def marks_beside(self, names: frozenset[str], marks: frozenset[str]) -> set[str]:
        """Those of some marks that records with a field of these names hold."""
        kinds = [kind.by_mark() for kind in self._kinds_of(names)]
        return {mark for kind in kinds for mark in marks & kind.keys() if kind[mark][0].step < self._before}

    def is_shared(self, marks: set[str], names: frozenset[str], key: str) -> bool:
        """Whether another value of fields of these names has all these marks, too; so many are compared that of more
        nobody can say which is meant."""
        kinds = [kind.by_mark() for kind in self._kinds_of(names)]

        def having(mark: str) -> set[Record]:
            held = [islice(kind.get(mark, ()), _KIND + 1) for kind in kinds]
            return {record for some in held for record in some if record.step < self._before}

        fewest = min(map(having, marks), key=len)
        if len(fewest) > _KIND:
            return True
        others = {value for record in fewest for name, value in record.keys if name in names and value != key}
        return any(marks <= self.marks_of(other, names) for other in others)

    def fields_with(self, mark: str) -> set[str]:
        """The names of fields that held a day or a number."""
        if self._read < self._wanted:
            self._take_in()
        for record in self._records[self._named :]:
            for name, each in record.named_marks():
                self._fields.setdefault(each, {}).setdefault(name, record.step)
        self._named = len(self._records)
        return {name for name, step in self._fields.get(mark, {}).items() if step < self._before}


_NOTHING: frozenset[str] = frozenset()
_UNREAD: tuple[int, frozenset[str]] = (0, frozenset())


def _step(entry: Entry) -> int:
    return entry[1].step


def _objects(value: Any) -> Iterator[list[tuple[str, Any]]]:
    """The plain values of every object in a result, at any depth, members of its plain lists among them."""
    pending: list[Any] = [value]
    left = _RECORDS
    while pending and left:
        left -= 1
        part = pending.pop()
        if isinstance(part, dict):
            found: list[tuple[str, Any]] = []
            inner: list[Any] = []
            for name, each in cast("dict[str, Any]", part).items():
                if type(each) is str:
                    if len(each) <= _LONG:
                        found.append((str(name), each))
                elif isinstance(each, list):
                    members = cast("list[Any]", each)
                    found += [(str(name), member) for member in members[:_RECORDS] if _is_plain(member)]
                    inner.append(each)
                elif isinstance(each, dict):
                    inner.append(each)
                elif _is_plain(each):
                    found.append((str(name), each))
            yield found
            pending += inner
        elif isinstance(part, list):
            pending.extend(each for each in cast("list[Any]", part) if type(each) in (dict, list))


def _is_plain(part: Any) -> bool:
    return isinstance(part, (str, int, float)) and type(part) is not bool and len(str(part)) <= _LONG


def _pairs(arguments: dict[str, Any]) -> list[Pair]:
    """The names and keys of all values in a call's arguments."""
    return [(name, _key(str(part))) for name, part in plain_values(arguments)]


def plain_values(arguments: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """All values in a call's arguments, each with its name."""
    return chain.from_iterable(_objects(arguments))


_key = lru_cache(maxsize=16_384)(loose)
