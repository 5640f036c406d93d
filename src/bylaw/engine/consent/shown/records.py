"""What tool results have shown so far, as consent needs it: the records that bear an id, the values of a field.

Nothing is read beforehand: a result is decoded where an id that is asked for stands in it, and at most once. The last
results are searched as they are; older ones are found by the texts that stand in them between quotes.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from bylaw.engine.consent.said.utterance import Utterance
from bylaw.engine.consent.shown.entry import Entry, entries_in, scalars
from bylaw.engine.consent.shown.field_values import FieldValues
from bylaw.facts.folded_text import fold_name
from bylaw.facts.result_field import result_text
from bylaw.trace.event import Call, Event, Result

_LONG = 100
_NEAR = 16
"""So many of the last results, up to twice as many, are searched as they are."""
_LATELY = 64
"""So many of the last results say which values a field may have."""


class Records:
    """The records of one conversation; `events` may grow while it is in use."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._steps: list[int] = []
        self._texts: list[str] = []
        """The results, by their steps and as texts."""
        self._seen = 0
        self._indexed = 0
        self._quoted: dict[str, list[int]] = {}
        """By a text between quotes, the places of the older results in which it stands."""
        self._data: dict[int, list[Entry]] = {}
        self._fields: dict[str, FieldValues] = {}
        self._latest: dict[str, tuple[int, dict[str, int]]] = {}
        """By name, the step up to which events were read for it, and the last two values."""

    def entries(self, value: str, before: int) -> Iterator[Entry]:
        """The records that bear `value` as a field or are listed under it, the newest first."""
        for place in self._holding(value, before):
            if value in self._texts[place]:
                for entry in self._records(self._steps[place]):
                    if value in entry.fields.values():
                        yield entry

    def holders(self, value: str, before: int) -> Iterator[Entry]:
        """The records that hold `value` at any depth, the newest first."""
        quoted = (f'"{value}"', f"'{value}'")
        for place in self._holding(value, before):
            if any(form in self._texts[place] for form in quoted):
                yield from (entry for entry in self._records(self._steps[place]) if value in entry.parts)

    def shows(self, value: str, before: int) -> bool:
        """Whether any result holds `value` as a text of its own."""
        quoted = (f'"{value}"', f"'{value}'")
        return any(form in self._texts[place] for place in self._holding(value, before) for form in quoted)

    def has_other(self, name: str, own: str, before: int) -> bool:
        """Whether a field or an argument of this name lately had another value than one."""
        since = self._lately(before)
        return any(value != own and step >= since for value, step in self._last_two(name, since, before).items())

    def other_in(self, name: str, own: str, said: Utterance, before: int) -> bool:
        """Whether an utterance names another value that a field or an argument of this name lately had."""
        return self._values(name, before).other_in(said, own, self._lately(before), before)

    def rivals(self, entry: Entry, before: int) -> Iterator[Mapping[str, Any]]:
        """Other things of a record's kind, by the field that holds its id, that were shown lately; the newest first."""
        name = entry.id_field
        if name is None:
            return
        own = fold_name(str(entry.fields.get(name, "")))
        if name == "":
            yield from (other for other in entry.others if fold_name(str(other.get(name, ""))) != own)
            return
        end, quoted = self._end(before), f'"{name}"'
        for place in range(end - 1, bisect_left(self._steps, self._lately(before)) - 1, -1):
            if quoted in self._texts[place]:
                for each in self._records(self._steps[place]):
                    if name in each.fields and fold_name(str(each.fields[name])) != own:
                        yield each.fields

    def asked_with(self, entry: Entry) -> list[str]:
        """The texts in the arguments of the call whose result showed a record."""
        result = self._events[entry.step]
        call = self._events[result.call] if isinstance(result, Result) and result.call is not None else None
        if not isinstance(call, Call) or call.fault:
            return []
        return [value for _, value in scalars(call.arguments) if isinstance(value, str)]

    def _lately(self, before: int) -> int:
        """The step from which on values count: some results back, so that no question costs a long conversation."""
        place = self._end(before) - _LATELY
        return self._steps[place] if place > 0 else 0

    def _values(self, name: str, before: int) -> FieldValues:
        """The values that a field or an argument of this name had, at least of late before a step."""
        since = self._lately(before)
        found = self._fields.get(name)
        if found is None or not found.start <= since <= found.read:
            # Nothing was read of some of what lies between.
            found = self._fields[name] = FieldValues(since)
        until = min(before, len(self._events))
        if found.read < until:
            for step, part in self._had(name, found.read, until):
                found.add(part, step)
            found.read = until
        return found

    def _last_two(self, name: str, since: int, before: int) -> dict[str, int]:
        """The two values, folded, that a field or an argument of this name had last, each with its last step."""
        read, known = self._latest.get(name, (since, {}))
        if before < read:
            read, known = since, {}
        found: dict[str, int] = {}
        for step, part in self._had(name, max(read, since), before):
            found.setdefault(fold_name(str(part)), step)
            if len(found) == 2:
                break
        for value, step in known.items():
            if len(found) < 2:
                found.setdefault(value, step)
        self._latest[name] = (min(before, len(self._events)), found)
        return found

    def _holding(self, value: str, before: int) -> Iterator[int]:
        """Places of results before a step, the newest first, of all in which `value` may stand between quotes."""
        end = self._end(before)
        yield from range(end - 1, self._indexed - 1, -1)
        end = min(end, self._indexed)
        if '"' in value or "'" in value:
            yield from range(end - 1, -1, -1)
        elif end:
            places = self._quoted.get(value, ())
            for index in range(bisect_left(places, end) - 1, -1, -1):
                yield places[index]

    def _end(self, before: int) -> int:
        """How many results there are before a step."""
        self.take_in(before)
        return bisect_left(self._steps, before)

    def take_in(self, before: int) -> None:
        """Take in the results before a step."""
        end = min(before, len(self._events))
        if end <= self._seen:
            return
        for step in range(self._seen, end):
            event = self._events[step]
            if type(event) is Result and event.captured:
                self._steps.append(step)
                self._texts.append(result_text(event))
        self._seen = end
        if len(self._steps) - self._indexed > 2 * _NEAR:
            end = len(self._steps) - _NEAR
            for place in range(self._indexed, end):
                text = self._texts[place]
                for part in {*text.split('"')[1:-1], *text.split("'")[1:-1]}:
                    self._quoted.setdefault(part, []).append(place)
            self._indexed = end

    def _had(self, name: str, start: int, before: int) -> Iterator[tuple[int, Any]]:
        """The plain values of fields and arguments of a name between two steps, with their steps; the newest first."""
        place, quoted = self._end(before), f'"{name}"'
        for step in range(min(before, len(self._events)) - 1, start - 1, -1):
            event = self._events[step]
            if type(event) is Call and not event.fault:
                yield from ((step, part) for key, part in scalars(event.arguments) if key == name)
            elif type(event) is Result and event.captured:
                place -= 1
                if quoted in self._texts[place]:
                    for entry in self._records(step):
                        yield from ((step, part) for part in _plain(entry.fields.get(name)))

    def _records(self, step: int) -> list[Entry]:
        found = self._data.get(step)
        if found is None:
            event = self._events[step]
            assert isinstance(event, Result)
            found = self._data[step] = entries_in(step, event.value())
        return found


def _plain(value: Any) -> list[Any]:
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str | int | float) and len(str(item)) <= _LONG]
