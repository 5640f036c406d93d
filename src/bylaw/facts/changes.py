"""What writes may have changed, by thing and field: where a fact becomes stale."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any, NamedTuple, cast

from bylaw.facts.call_record import CallRecord, has_gap
from bylaw.facts.entity import Key
from bylaw.facts.observation import NOTHING, Finder
from bylaw.facts.schema import Schema
from bylaw.facts.value import alike, alike_key, key_of, loose, loose_key
from bylaw.policy.verb import sounds_harmless
from bylaw.trace.event import Call, Result


class UndeclaredCall:
    """What a call names. A write without declared changes may touch it; so may a tool without declaration."""

    __slots__ = ("_text",)

    def __init__(self, call: Call) -> None:
        # Arguments that were not captured may have named anything.
        self._text = None if call.fault else "\n".join(_texts(call.arguments))

    def may_touch(self, key: Key) -> bool:
        """Whether every part of the key stands somewhere in the arguments; what has no key is never named."""
        text = self._text
        return bool(key) and (text is None or any(self._names(text, each) for each in {loose_key(key), alike_key(key)}))

    def _names(self, text: str, key: Key) -> bool:
        return all(_stands(part, text) for part in key)


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
        # Word by word too: in a sentence or a query blanks keep names apart.
        words = _BREAKS.split(text)
        yield " ".join(map(loose, words))
        yield " ".join(map(alike, words))


def _stands(part: str, text: str) -> bool:
    return part in text and _alone(part).search(text) is not None


@lru_cache(maxsize=1024)
def _alone(part: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(part)}(?!\w)")


class Touch(NamedTuple):
    """A write that may change fields of one thing, or of any of its kind."""

    record: CallRecord
    fields: frozenset[str] | None = None
    """None for all of them."""
    by_result: bool = False
    """It holds only until the answer comes: then the things it names have touches of their own, or all still have."""
    undeclared: UndeclaredCall | None = None
    """Given for a call without declared changes: it may change any thing that it names."""

    def counts(self, key: Key, known_at: int | None) -> bool:
        """Whether, for all that is known just before a step, or now, the write may have changed the thing."""
        record = self.record
        if self.by_result and record.is_answered_at(known_at):
            return False
        if not (record.counts() if known_at is None else record.counts_at(known_at)):
            return False
        return self.undeclared is None or self.undeclared.may_touch(key)


class Changes:
    """The writes of one trajectory, by what they may have changed."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._touches: dict[str, dict[tuple[Key | None, str | None], list[Touch]]] = {}
        """By kind, then by key and field: the key in the form that all keys share that may be the same thing's, None
        for any thing of the kind; None for all fields. In the order of the calls."""
        self._undeclared: list[Touch] = []
        """Calls without declared changes, in their order."""
        self.under_way: dict[int, CallRecord] = {}
        """By step, those of all these that were not answered yet, in their order."""
        self._beside: dict[int, tuple[int, list[CallRecord]]] = {}
        """By the step of a call that was made while others were under way: the start of its turn, and those of that
        turn, or of earlier ones and answered since."""
        self._asked: list[int] = []
        """The steps of these calls."""

    def ask(self, made: CallRecord) -> None:
        """Note a call that is made while others are under way: what it shows may be from before they are done."""
        of_turn = takewhile(lambda each: each.start == made.start, reversed(self.under_way.values()))
        self._beside[made.step] = (made.start, list(of_turn))
        self._asked.append(made.step)

    def write(self, made: CallRecord, find: Finder) -> None:
        """Note a call that may change something, as no refused one does; `find` knows the fields that name others."""
        tool = made.tool
        if tool is None and sounds_harmless(made.call.tool):
            return
        self.under_way[made.step] = made
        if tool is None or tool.is_unsaid:
            self._undeclared.append(Touch(made, undeclared=UndeclaredCall(made.call)))
        for change in self._schema.changes.get(made.call.tool, ()):
            if change.by_result:
                if made.call.fault or change.may_happen(made.call.arguments):
                    self._touch(change.entity, None, Touch(made, change.fields, by_result=True))
                continue
            # Arguments that were not captured, or were redacted, may have named any of the kind.
            for key in (None,) if made.call.fault else change.touched(made.call.arguments, find=find):
                is_hidden = key is not None and any(map(has_gap, key))
                self._touch(change.entity, None if is_hidden else key, Touch(made, change.fields))

    def end(self, made: CallRecord) -> None:
        """Note that the answer to a call has come, whatever it says."""
        if self.under_way.pop(made.step, None) is None:
            return
        for step in self._asked[bisect_right(self._asked, made.step) :]:
            start, beside = self._beside[step]
            if made.start != start:
                beside.append(made)

    def answer(self, made: CallRecord, result: Result, find: Finder) -> None:
        """Note what the answer to a write tells of the things it changed: all of a kind, where it names none."""
        for change in self._schema.changes.get(made.call.tool, ()):
            if not change.by_result:
                continue
            told = result.value() if made.accepted and result.captured else NOTHING
            if change.may_happen(made.call.arguments, result=told):
                for key in [*change.touched(made.call.arguments, told, find)] or (None,):
                    self._touch(change.entity, key, Touch(made, change.fields))

    def last(
        self, entity: str, key: Key, field: str, after: int, before: int, *, known_at: int | None = None
    ) -> int | None:
        """Step of the last call that may have changed the field since the look-up at a step saw it, of those that were
        made before another step; None where none may."""
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
        """Step of the last call between two steps (both excluded) that may change the field; None where none does."""
        last: int | None = None
        for mine in self._lists(entity, key, field):
            # Asked as of an early step, the many that came later are not looked at one by one.
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
        """The calls that may have changed the field only after the look-up at a step saw it, though they were made
        before it: they were still under way.

        One of an earlier turn that nobody has answered yet is taken to be over, or nothing could be known ever again.
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
        """Whether a call, for all that is known at a step, or now, may have changed a field of a thing."""
        for mine in self._lists(entity, key, field):
            place = bisect_left(mine, made.step, key=_step)
            while place < len(mine) and mine[place].record is made:
                if mine[place].counts(key, known_at):
                    return True
                place += 1
        return False

    def is_current(self, entity: str, key: Key, field: str, since: int, at: CallRecord) -> bool:
        """Whether, for all that is known at the judged call, nothing has changed the field since a look-up saw it."""
        return self.last(entity, key, field, since, at.step, known_at=at.step) is None

    def since(self, entity: str, key: Key, field: str, after: int, at: CallRecord) -> list[CallRecord]:
        """The writes after a step and before the judged call that may have changed the field, in order."""
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
            # A result may come after other writes: the order of the calls is kept.
            place = len(touches)
            while place and touches[place - 1].record.step > touch.record.step:
                place -= 1
            touches.insert(place, touch)

    def _lists(self, entity: str, key: Key, field: str) -> Iterator[list[Touch]]:
        """The writes that may change a field of a thing: by its key or by none, by its name or all fields."""
        if self._undeclared:
            yield self._undeclared
        touches = self._touches.get(entity)
        if touches is not None:
            name = alike_key(key)
            for index in ((name, field), (name, None), (None, field), (None, None)):
                if index in touches:
                    yield touches[index]


def _step(touch: Touch) -> int:
    return touch.record.step
