"""What tool results have shown so far, as consent needs it: the records that bear an id, the values of a field.

Nothing is read beforehand: a result is decoded where an id that is asked for stands in it, and at most once. The last
results are searched as they are; older ones are found by the texts that stand in them between quotes.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from bylaw.engine.consent.once import once
from bylaw.engine.consent.utterance import Utterance
from bylaw.facts.folded_text import fold_name, runs_of
from bylaw.facts.result_field import result_text
from bylaw.policy.verb import words_of
from bylaw.trace.event import Call, Event, Result

_NODES = 50_000
_LONG = 100
_NEAR = 16
"""So many of the last results, up to twice as many, are searched as they are."""
_LATELY = 64
"""So many of the last results say which values a field may have."""
_FEW = 8
"""So many values of a field are looked for one by one."""


class Entry:
    """One record that bears an id, and the others it was listed with."""

    def __init__(self, step: int, fields: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> None:
        self.step = step
        self.fields = fields
        self.others = others

    def has(self, name: str, value: str) -> bool:
        """Whether a field of this name, at any depth, has a value, folded."""
        return value in self._values.get(name, ())

    def is_one_of_several(self, value: str) -> bool:
        """Whether fields of the same name, at any depth, have other values too."""
        own = fold_name(value)
        return all(len(values) > 1 for values in self._values.values() if own in values)

    @once
    def _values(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for name, value in scalars(self.fields):
            found.setdefault(name, set()).add(fold_name(str(value)))
        return found

    @once
    def parts(self) -> list[str | int | float]:
        """Its plain values at any depth."""
        return [value for _, value in scalars(self.fields)]

    @once
    def id_field(self) -> str | None:
        """The name of the field that holds its own id, the first that is named so."""
        ids = (name for name in self.fields if name in ("", "id") or words_of(name)[-1:] == ["id"])
        return next(ids, None)


class FieldValues:
    """The values, folded, that a field or an argument of one name has had lately."""

    def __init__(self, start: int = 0) -> None:
        self.start = start
        """The step before which nothing was read for it."""
        self.read = start
        """The step up to which events were."""
        self._steps: dict[str, list[int]] = {}
        """The steps at which each value stood."""
        self._by_run: dict[str, list[str]] = {}

    def add(self, value: Any, step: int) -> None:
        """Take in a value that stood at a step."""
        text = fold_name(str(value))
        steps = self._steps.get(text)
        if steps is None:
            runs = runs_of(text)
            mark = max(runs, key=lambda run: (run.isdigit(), len(run)), default="")
            self._by_run.setdefault(mark, []).append(text)
            steps = self._steps[text] = []
        insort(steps, step)

    def has_other(self, own: str, since: int, before: int) -> bool:
        """Whether there was any other value between two steps."""
        return any(text != own and _is_between(steps, since, before) for text, steps in self._steps.items())

    def other_in(self, said: Utterance, own: str, since: int, before: int) -> bool:
        """Whether an utterance names another value that stood between two steps."""
        return any(
            text != own and _is_between(self._steps[text], since, before) and said.names(text)
            for text in self._perhaps_in(said)
        )

    def _perhaps_in(self, said: Utterance) -> Iterator[str]:
        if len(self._steps) <= _FEW:
            yield from self._steps
            return
        for run in ("", *said.runs):
            yield from self._by_run.get(run, ())


def _is_between(steps: list[int], since: int, before: int) -> bool:
    at = bisect_left(steps, since)
    return at < len(steps) and steps[at] < before


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
        self._bearing: dict[int, dict[str, list[Entry]]] = {}
        """By the step of a result, the records in it by each text they hold."""
        self._fields: dict[str, FieldValues] = {}
        self._arguments: dict[int, Sequence[tuple[str, str | int | float]]] = {}

    def entries(self, value: str, before: int) -> Iterator[Entry]:
        """The records that bear `value` as a field or are listed under it, the newest first."""
        for place in self._holding(value, before):
            if value in self._texts[place]:
                yield from self._by_text(self._steps[place]).get(value, ())

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
        return self._values(name, before).has_other(own, self._lately(before), before)

    def other_in(self, name: str, own: str, said: Utterance, before: int) -> bool:
        """Whether an utterance names another value that a field or an argument of this name lately had."""
        return self._values(name, before).other_in(said, own, self._lately(before), before)

    def rivals(self, entry: Entry, before: int) -> list[Mapping[str, Any]]:
        """Other things of a record's kind, by the field that holds its id, that were shown lately."""
        name = entry.id_field
        if name is None:
            return []
        own = fold_name(str(entry.fields.get(name, "")))
        if name == "":
            return [other for other in entry.others if fold_name(str(other.get(name, ""))) != own]
        start, quoted = bisect_left(self._steps, self._lately(before)), f'"{name}"'
        return [
            each.fields
            for place in range(start, bisect_left(self._steps, before))
            if quoted in self._texts[place]
            for each in self._records(self._steps[place])
            if name in each.fields and fold_name(str(each.fields[name])) != own
        ]

    def _lately(self, before: int) -> int:
        """The step from which on values count: some results back, so that no question costs a long conversation."""
        self.take_in(before)
        place = bisect_left(self._steps, before) - _LATELY
        return self._steps[place] if place > 0 else 0

    def _values(self, name: str, before: int) -> FieldValues:
        """The values that a field or an argument of this name had, at least of late before a step."""
        since = self._lately(before)
        found = self._fields.get(name)
        if found is None or since < found.start:
            found = self._fields[name] = FieldValues(since)
        until = min(before, len(self._events))
        if found.read < until:
            start = max(found.read, since)
            quoted = f'"{name}"'
            for place in range(bisect_left(self._steps, start), bisect_left(self._steps, before)):
                if quoted in self._texts[place]:
                    step = self._steps[place]
                    for entry in self._records(step):
                        for part in _plain(entry.fields.get(name)):
                            found.add(part, step)
            for step in range(start, until):
                for key, part in self._given(step):
                    if key == name:
                        found.add(part, step)
            found.read = until
        return found

    def _holding(self, value: str, before: int) -> Iterator[int]:
        """Places of results before a step, the newest first, of all in which `value` may stand between quotes."""
        self.take_in(before)
        end = bisect_left(self._steps, before)
        yield from range(end - 1, self._indexed - 1, -1)
        end = min(end, self._indexed)
        if '"' in value or "'" in value:
            yield from range(end - 1, -1, -1)
        elif end:
            places = self._quoted.get(value, ())
            for index in range(bisect_left(places, end) - 1, -1, -1):
                yield places[index]

    def take_in(self, before: int) -> None:
        """Take in the results before a step."""
        end = min(before, len(self._events))
        for step in range(self._seen, end):
            event = self._events[step]
            if isinstance(event, Result) and event.captured:
                self._steps.append(step)
                self._texts.append(result_text(event))
        self._seen = max(self._seen, end)
        if len(self._steps) - self._indexed > 2 * _NEAR:
            end = len(self._steps) - _NEAR
            for place in range(self._indexed, end):
                text = self._texts[place]
                for part in {*text.split('"')[1:-1], *text.split("'")[1:-1]}:
                    self._quoted.setdefault(part, []).append(place)
            self._indexed = end

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

    def _given(self, step: int) -> Sequence[tuple[str, str | int | float]]:
        """The plain values in the arguments of a call; none where the event is no call, or they were not captured."""
        found = self._arguments.get(step)
        if found is None:
            event = self._events[step]
            found = scalars(event.arguments) if isinstance(event, Call) and not event.fault else ()
            self._arguments[step] = found
        return found

    def _records(self, step: int) -> list[Entry]:
        found = self._data.get(step)
        if found is None:
            event = self._events[step]
            assert isinstance(event, Result)
            found = self._data[step] = _entries(step, event.value())
        return found


def _entries(step: int, data: Any) -> list[Entry]:
    """Every record in the data of a result. One that is listed under an id bears it too."""
    found: list[Entry] = []
    pending: list[tuple[Any, Sequence[Mapping[str, Any]]]] = [(data, ())]
    left = _NODES
    while pending and left:
        left -= 1
        value, others = pending.pop()
        if isinstance(value, list):
            items = cast("list[Any]", value)
            records: list[Mapping[str, Any]] = [item for item in items if isinstance(item, dict)]
            pending += [(item, records) for item in items if isinstance(item, dict | list)]
        elif isinstance(value, dict):
            record = cast("dict[str, Any]", value)
            found.append(Entry(step, record, others))
            inner: list[dict[str, Any]] = []
            for name, part in record.items():
                if isinstance(part, dict):
                    inner.append({"": name, **cast("dict[str, Any]", part)})
                elif isinstance(part, list):
                    pending.append((cast("list[Any]", part), ()))
            pending += [(part, inner) for part in inner]
    return found


def _plain(value: Any) -> list[Any]:
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str | int | float) and len(str(item)) <= _LONG]


def scalars(record: Mapping[str, Any]) -> list[tuple[str, str | int | float]]:
    """The plain values in a record at any depth, each with the name of its field."""
    found: list[tuple[str, str | int | float]] = []
    pending: list[tuple[str, Any]] = list(record.items())
    left = _NODES
    while pending and left:
        left -= 1
        pair = pending.pop()
        value = pair[1]
        if isinstance(value, str):
            found.append(pair)
        elif isinstance(value, dict):
            pending += cast("dict[str, Any]", value).items()
        elif isinstance(value, list):
            pending += [(pair[0], item) for item in cast("list[Any]", value)]
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.append((pair[0], value))
    return found
