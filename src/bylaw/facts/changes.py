"""Tracks which fields writes may have changed. The values known for these fields are stale."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from operator import attrgetter
from typing import Any, NamedTuple, cast

from bylaw.facts.call_record import CallRecord, has_gap
from bylaw.facts.entity import Key
from bylaw.facts.observation import NOTHING, Finder
from bylaw.facts.schema import Schema
from bylaw.facts.value import alike, alike_key, key_of, loose, loose_key
from bylaw.policy.verb import sounds_harmless
from bylaw.trace.event import Call, Result


class UndeclaredCall:
    """A call that does not declare its changes. It may have changed any entity that it names."""

    __slots__ = ("_text",)

    def __init__(self, call: Call) -> None:
        # An argument that was not captured may have named any entity.
        self._text = None if call.fault else "\n".join(_texts(call.arguments))

    def may_touch(self, key: Key) -> bool:
        """Whether every part of the key occurs in the arguments. False for an entity without a key."""
        text = self._text
        return bool(key) and (text is None or any(self._names(text, each) for each in {loose_key(key), alike_key(key)}))

    def _names(self, text: str, key: Key) -> bool:
        return all(part in text and _alone(part).search(text) is not None for part in key)


_BREAKS = re.compile(r"[\s,;:()]+")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in cast("Mapping[str, Any]", value).items():
            yield loose(name)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in cast("Sequence[Any]", value):
            yield from _texts(item)
    elif value is not None:
        (text,) = key_of((value,))
        yield loose(text)
        # Search for each word too, because in a sentence or a query, names are separated by spaces.
        words = _BREAKS.split(text)
        yield " ".join(map(loose, words))
        yield " ".join(map(alike, words))


@lru_cache(maxsize=1024)
def _alone(part: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(part)}(?!\w)")


class Touch(NamedTuple):
    """A write that may change fields of one entity or, without a key, of any entity of a kind."""

    record: CallRecord
    fields: frozenset[str] | None = None
    """The fields that may have changed. None means all fields."""
    by_result: bool = False
    """Whether the touch ends when a result arrives, because the result names the entities that were changed."""
    undeclared: UndeclaredCall | None = None
    """Set for a call that does not declare its changes, so that it may change any entity that it names."""

    def counts(self, key: Key, known_at: int | None) -> bool:
        """Whether the write may have changed the entity, according to what was known just before `known_at` (None:
        now).
        """
        record = self.record
        if self.by_result and record.is_answered_at(known_at):
            return False
        if not (record.counts() if known_at is None else record.counts_at(known_at)):
            return False
        return self.undeclared is None or self.undeclared.may_touch(key)


_step = attrgetter("record.step")


class Changes:
    """The writes in one trajectory, indexed by the facts that they may have changed."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._touches: dict[str, dict[tuple[Key | None, str | None], list[Touch]]] = {}
        """Touches by entity, normalised key (None for any entity) and field (None for all fields), in the order of the
        calls.
        """
        self._undeclared: list[Touch] = []
        self.under_way: dict[int, CallRecord] = {}
        """Calls without a result, in order, keyed by Python id."""
        self._beside: dict[int, tuple[int, list[CallRecord]]] = {}
        """Maps the step of each call that ran concurrently with others to the start of its turn and to those calls."""
        self._asked: list[int] = []

    def ask(self, made: CallRecord) -> None:
        """Record a call that was made while others were running, because its result may not show their effects yet."""
        of_turn = takewhile(lambda each: each.start == made.start, reversed(self.under_way.values()))
        self._beside[made.step] = (made.start, list(of_turn))
        self._asked.append(made.step)

    def write(self, made: CallRecord, find: Finder) -> None:
        """Record a call that may change something. `find` reads fields of other entities."""
        tool = made.tool
        if tool is None and sounds_harmless(made.call.tool):
            return
        self.under_way[id(made)] = made
        if tool is None or tool.is_unsaid:
            self._undeclared.append(Touch(made, undeclared=UndeclaredCall(made.call)))
        for change in self._schema.changes.get(made.call.tool, ()):
            if change.by_result:
                if made.call.fault or change.may_happen(made.call.arguments):
                    self._touch(change.entity, None, Touch(made, change.fields, by_result=True))
                continue
            # An argument that was not captured, or was redacted, may have named any entity of that kind.
            for key in (None,) if made.call.fault else change.touched(made.call.arguments, find=find):
                is_hidden = key is not None and any(map(has_gap, key))
                self._touch(change.entity, None if is_hidden else key, Touch(made, change.fields))

    def end(self, made: CallRecord) -> None:
        """Record that the result of a call has arrived, whatever the result says."""
        if self.under_way.pop(id(made), None) is None:
            return
        for step in self._asked[bisect_right(self._asked, made.step) :]:
            start, beside = self._beside[step]
            if made.start != start:
                beside.append(made)

    def answer(self, made: CallRecord, result: Result, find: Finder) -> None:
        """Record which entities a write has changed according to its result. If it names none, any of that kind may
        have changed.
        """
        for change in self._schema.changes.get(made.call.tool, ()):
            if not change.by_result:
                continue
            told = result.value() if made.accepted and result.captured else NOTHING
            if change.may_happen(made.call.arguments, told):
                for key in [*change.touched(made.call.arguments, told, find)] or (None,):
                    self._touch(change.entity, key, Touch(made, change.fields))

    def last(
        self, entity: str, key: Key, field: str, after: int, before: int, *, known_at: int | None = None
    ) -> int | None:
        """Return the step of the last call that may have changed the field after a look-up showed it. None if there is
        none.
        """
        if entity not in self._touches and not self._undeclared:
            return None
        last = self.between(entity, key, field, after, before, known_at=known_at)
        if last is None and after in self._beside:
            beside = self.beside(entity, key, field, after, known_at=known_at)
            return beside[-1].step if beside else None
        return last

    def between(
        self, entity: str, key: Key, field: str, after: int, before: int, *, known_at: int | None = None
    ) -> int | None:
        """Return the step of the last call, strictly between two steps, that may have changed the field. None if there
        is none.
        """
        last: int | None = None
        for mine in self._lists(entity, key, field):
            # Skip the calls after the range by bisection, because there may be many.
            place = len(mine) if mine[-1].record.step < before else bisect_left(mine, before, key=_step)
            while place:
                place -= 1
                touch = mine[place]
                step = touch.record.step
                if step <= after:
                    break
                if touch.counts(key, known_at):
                    last = step if last is None else max(last, step)
                    break
        return last

    def beside(self, entity: str, key: Key, field: str, asked: int, *, known_at: int | None = None) -> list[CallRecord]:
        """Return the calls that were made before a look-up but, because they were still running, may have changed the
        field afterwards.

        An unanswered call from an earlier turn counts as finished. Otherwise, the fields that it may change would stay
        unknown forever.
        """
        start, others = self._beside.get(asked, (0, ()))
        found = [
            made
            for made in others
            if (made.start == start or made.is_answered_at(known_at))
            and self._may_touch(made, entity, key, field, known_at)
        ]
        return sorted(found, key=lambda made: made.step) if len(found) > 1 else found

    def _may_touch(self, made: CallRecord, entity: str, key: Key, field: str, known_at: int | None) -> bool:
        for mine in self._lists(entity, key, field):
            place = bisect_left(mine, made.step, key=_step)
            while place < len(mine) and mine[place].record.step == made.step:
                if mine[place].record is made and mine[place].counts(key, known_at):
                    return True
                place += 1
        return False

    def is_current(self, entity: str, key: Key, field: str, since: int, at: CallRecord) -> bool:
        """Whether the field is unchanged since a look-up showed it, according to what was known at the judged call."""
        return self.last(entity, key, field, since, at.step, known_at=at.step) is None

    def since(self, entity: str, key: Key, field: str, after: int, at: CallRecord) -> list[CallRecord]:
        """Return, in order, the writes after a step and before the judged call that may have changed the field."""
        found = [
            touch.record
            for mine in self._lists(entity, key, field)
            for touch in mine[bisect_right(mine, after, key=_step) : bisect_left(mine, at.step, key=_step)]
            if touch.counts(key, at.step)
        ]
        return sorted(dict.fromkeys(found), key=lambda record: record.step)

    def _touch(self, entity: str, key: Key | None, touch: Touch) -> None:
        kind, name = self._touches.setdefault(entity, {}), None if key is None else alike_key(key)
        for field in (None,) if touch.fields is None else touch.fields:
            touches = kind.setdefault((name, field), [])
            # The order of the calls is kept, even if a result arrives after later writes.
            place = len(touches)
            while place and touches[place - 1].record.step > touch.record.step:
                place -= 1
            touches.insert(place, touch)

    def _lists(self, entity: str, key: Key, field: str) -> Iterator[list[Touch]]:
        if self._undeclared:
            yield self._undeclared
        touches = self._touches.get(entity)
        if touches is not None:
            name = alike_key(key)
            for index in ((name, field), (name, None), (None, field), (None, None)):
                if index in touches:
                    yield touches[index]
