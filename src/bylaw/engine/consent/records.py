"""What tool results have shown so far, as consent needs it: the records that bear an id, the values of a field.

Nothing is read beforehand: a result is decoded where an id that is asked for stands in it, and at most once.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from bylaw.facts.provenance import fold, text_of
from bylaw.trace.event import Call, Event, Result

_NODES = 50_000
_LONG = 100


class Entry:
    """One record that bears an id, and the others it was listed with."""

    def __init__(self, step: int, fields: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> None:
        self.step = step
        self.fields = fields
        self.others = others

    @cached_property
    def values(self) -> frozenset[tuple[str, str]]:
        """Its plain values at any depth, folded, each with the name of its field."""
        return frozenset((name, fold(str(value))) for name, value in scalars(self.fields))


class Records:
    """The records of one conversation; `events` may grow while it is in use."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._results: list[tuple[int, str]] = []
        self._seen = 0
        self._data: dict[int, list[Entry]] = {}
        self._bearing: dict[int, dict[str, list[Entry]]] = {}
        """By the step of a result, the records in it by each text they hold."""
        self._entries: dict[tuple[str, int], list[Entry]] = {}
        self._named: dict[str, tuple[int, dict[str, int]]] = {}
        """By a field's name, how many events were read for it, and the step at which each of its values first stood."""

    def entries(self, value: str, before: int) -> list[Entry]:
        """The records that bear `value` as a field or are listed under it, the newest first."""
        found = self._entries.get((value, before))
        if found is None:
            found = self._entries[value, before] = [
                entry
                for step, text in reversed(self._shown(before))
                if value in text
                for entry in self._by_text(step).get(value, ())
            ]
        return found

    def shows(self, value: str, before: int) -> bool:
        """Whether any result holds `value` as a text of its own."""
        quoted = (f'"{value}"', f"'{value}'")
        return any(form in text for _, text in self._shown(before) for form in quoted)

    def _by_text(self, step: int) -> dict[str, list[Entry]]:
        found = self._bearing.get(step)
        if found is None:
            found = self._bearing[step] = {}
            for entry in self._records(step):
                for text in entry.fields.values():
                    if isinstance(text, str):
                        bearing = found.setdefault(text, [])
                        if not bearing or bearing[-1] is not entry:
                            bearing.append(entry)
        return found

    def values(self, name: str, before: int) -> list[str]:
        """Every value, folded, that a field or an argument of this name had."""
        read, found = self._named.get(name, (0, {}))
        until = min(before, len(self._events))
        if read < until:
            quoted = f'"{name}"'
            for step, text in self._shown(before):
                if step >= read and quoted in text:
                    for entry in self._records(step):
                        for part in _plain(entry.fields.get(name)):
                            found.setdefault(fold(str(part)), step)
            for step in range(read, until):
                event = self._events[step]
                if isinstance(event, Call) and not event.fault:
                    for key, part in scalars(event.arguments):
                        if key == name:
                            value = fold(str(part))
                            found[value] = min(step, found.get(value, step))
            self._named[name] = until, found
        return [value for value, step in found.items() if step < before]

    def _shown(self, before: int) -> list[tuple[int, str]]:
        for step in range(self._seen, min(before, len(self._events))):
            event = self._events[step]
            if isinstance(event, Result) and event.captured:
                self._results.append((step, text_of(event)))
        self._seen = max(self._seen, min(before, len(self._events)))
        return [shown for shown in self._results if shown[0] < before]

    def _records(self, step: int) -> list[Entry]:
        found = self._data.get(step)
        if found is None:
            event = self._events[step]
            assert isinstance(event, Result)
            found = self._data[step] = list(_entries(step, event.value()))
        return found


def _entries(step: int, data: Any) -> Iterator[Entry]:
    """Every record in the data of a result. One that is listed under an id bears it too."""
    pending: list[tuple[Any, Sequence[Mapping[str, Any]]]] = [(data, ())]
    left = _NODES
    while pending and left:
        left -= 1
        value, others = pending.pop()
        if isinstance(value, list):
            items = cast("list[Any]", value)
            records = [cast("Mapping[str, Any]", item) for item in items if isinstance(item, dict)]
            pending.extend((item, records) for item in items)
        elif isinstance(value, dict):
            record = cast("dict[str, Any]", value)
            yield Entry(step, record, others)
            inner = [
                {"": name, **cast("dict[str, Any]", part)} for name, part in record.items() if isinstance(part, dict)
            ]
            pending.extend((part, inner) for part in inner)
            pending.extend((part, ()) for part in record.values() if not isinstance(part, dict))


def _plain(value: Any) -> list[Any]:
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str | int | float) and len(str(item)) <= _LONG]


def scalars(record: Mapping[str, Any]) -> Iterator[tuple[str, str | int | float]]:
    """The plain values in a record at any depth, each with the name of its field."""
    pending: list[tuple[str, Any]] = list(record.items())
    left = _NODES
    while pending and left:
        left -= 1
        name, value = pending.pop()
        if isinstance(value, dict):
            pending.extend(cast("dict[str, Any]", value).items())
        elif isinstance(value, list):
            pending.extend((name, item) for item in cast("list[Any]", value))
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            yield name, value
