"""What writes may have changed, by thing and field: where a fact becomes stale."""

from bylaw.facts.call_record import CallRecord, Touch
from bylaw.facts.entity import Key
from bylaw.facts.path import Finder
from bylaw.facts.schema import Schema
from bylaw.facts.undeclared import UndeclaredCall
from bylaw.facts.value import loose_key
from bylaw.policy.verb import sounds_harmless
from bylaw.trace.event import Result


class Changes:
    """The writes of one trajectory, by what they may have changed."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._touches: dict[tuple[str, Key | None], list[Touch]] = {}
        """By kind and key, the key in the form that all keys share that may be the same thing's."""
        self._strangers: list[tuple[CallRecord, UndeclaredCall]] = []
        """Calls of tools that nobody declared."""

    def write(self, made: CallRecord, find: Finder) -> None:
        """Note a call that may change something; `find` knows the fields that name other things."""
        if made.tool is None:
            if not sounds_harmless(made.call.tool):
                self._strangers.append((made, UndeclaredCall(made.call)))
            return
        for change in self._schema.changes[made.call.tool]:
            if change.by_result:
                if made.call.fault or change.may_happen(made.call.arguments):
                    self._touch(change.entity, None, Touch(made, change.fields, by_result=True))
                continue
            # Arguments that were not captured may have named any of the kind.
            for key in (None,) if made.call.fault else change.touched(made.call.arguments, find=find):
                self._touch(change.entity, key, Touch(made, change.fields))

    def answer(self, made: CallRecord, result: Result, find: Finder) -> None:
        """Note what the result of an accepted write tells of the things it changed."""
        for change in self._schema.changes.get(made.call.tool, ()):
            if change.by_result:
                for key in change.touched(made.call.arguments, result.value(), find):
                    self._touch(change.entity, key, Touch(made, change.fields))

    def last(
        self, entity: str, key: Key, field: str, after: int, before: int, *, known_at: int | None = None
    ) -> int | None:
        """Step of the last call between two steps (both excluded) that may change the field; None where none does."""
        last: int | None = None
        if self._strangers:
            last = self._by_stranger(key, after, before, known_at)
        if not self._touches:
            return last
        for index in ((entity, loose_key(key)), (entity, None)):
            for touch in reversed(self._touches.get(index, _NONE)):
                step = touch.record.step
                if step <= after:
                    break
                if step < before and (touch.fields is None or field in touch.fields) and touch.counts(known_at):
                    last = step if last is None else max(last, step)
                    break
        return last

    def is_current(self, entity: str, key: Key, field: str, since: int, at: CallRecord) -> bool:
        """Whether, for all that is known at the judged call, nothing has changed the field since a step."""
        return self.last(entity, key, field, since, at.step, known_at=at.step) is None

    def since(self, entity: str, key: Key, field: str, after: int, at: CallRecord) -> list[CallRecord]:
        """The writes after a step and before the judged call that may have changed the field, in order."""
        if self._strangers and self._by_stranger(key, after, at.step, at.step) is not None:
            return [record for record, _ in self._strangers if after < record.step < at.step]
        found = [
            touch.record
            for index in ((entity, loose_key(key)), (entity, None))
            for touch in self._touches.get(index, _NONE)
            if after < touch.record.step < at.step
            and (touch.fields is None or field in touch.fields)
            and touch.counts(at.step)
        ]
        return sorted(dict.fromkeys(found), key=lambda record: record.step)

    def _by_stranger(self, key: Key, after: int, before: int, known_at: int | None) -> int | None:
        """Step of the last call between two steps of a tool that nobody declared and that names the thing."""
        for made, stranger in reversed(self._strangers):
            may_count = made.counts() if known_at is None else made.counts_at(known_at)
            if may_count and after < made.step < before and stranger.may_touch(key):
                return made.step
        return None

    def _touch(self, entity: str, key: Key | None, touch: Touch) -> None:
        touches = self._touches.setdefault((entity, None if key is None else loose_key(key)), [])
        # A result may come after other writes: the order of the calls is kept.
        place = len(touches)
        while place and touches[place - 1].record.step > touch.record.step:
            place -= 1
        touches.insert(place, touch)


_NONE: list[Touch] = []
