"""The three places a guard's facts come from: what the agent has seen, hindsight, and a world."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bylaw.facts.entity import ABSENT, UNDECLARED, UNSEEN, Entity, Field, Key, NoValue
from bylaw.facts.ledger import CallRecord, Ledger, Shown
from bylaw.facts.path import NOTHING
from bylaw.facts.value import coerce, key_of
from bylaw.facts.world import World
from bylaw.policy.pattern import compile_pattern

FOREVER = 1 << 60
"""A step after every step."""


class Testimony:
    """What only the user or the host can say, as of one call; the same for every source."""

    def __init__(self, ledger: Ledger, at: CallRecord, context: Mapping[str, Any]) -> None:
        self._ledger = ledger
        self._at = at
        self._context = context

    def read(self, field: Field) -> Any:
        """The value, or UNSEEN."""
        if field.origin == "context":
            return coerce(field, self._context[field.name]) if field.name in self._context else UNSEEN
        for saying in field.sayings:
            value = self._at.call.arguments.get(saying.argument) if saying.argument else None
            if value is not None:
                return coerce(field, value)
        patterns = [(compile_pattern(each.says, each.but_not), each.value) for each in field.sayings if each.says]
        for step, text in reversed(self._ledger.said) if patterns else ():
            if step >= self._at.step:
                continue
            for pattern, value in patterns:
                if match := pattern.search(text):
                    return coerce(field, value if value is not None else match[match.lastindex or 0])
        return UNSEEN


class SeenFacts:
    """What the agent that makes a call has seen before the turn that makes it."""

    def __init__(self, ledger: Ledger, at: CallRecord, context: Mapping[str, Any]) -> None:
        self._ledger = ledger
        self._at = at
        self._testimony = Testimony(ledger, at, context)
        self._read: dict[tuple[str, Key, str], Any] = {}

    def read(self, entity: Entity, key: Key, field: Field) -> Any:
        """The value seen; ABSENT; or UNSEEN where it never was or is stale."""
        # Several guards ask for the same facts of one call, and settling asks again.
        asked = (entity.name, key, field.name)
        found = self._read.get(asked, NOTHING)
        if found is NOTHING:
            found = self._read[asked] = self._look(entity, key, field)
        return found

    def _look(self, entity: Entity, key: Key, field: Field) -> Any:
        if field.origin != "system":
            return self._testimony.read(field)
        key = key_of(key)
        thing = self._ledger.thing(entity.name, key)
        found = self._ledger.latest_of(thing, entity, key, field.name, self._at) if thing is not None else None
        # Whether it exists is in doubt only where some result said that it does not.
        if thing is not None and thing.is_ever_absent and field.name != "exists":
            existence = self._ledger.latest_of(thing, entity, key, "exists", self._at)
            if existence is not None and existence.value is False and (found is None or found.as_of < existence.as_of):
                return ABSENT
        if found is None:
            search = self._ledger.schema.searches.get((entity.name, field.name))
            return (
                UNSEEN if search is None else search(key, _Shown(self._ledger, self._at, entity.name, key, field.name))
            )
        return coerce(field, found.value)

    def shown_at(self, entity: Entity, key: Key, field: Field) -> Shown | None:
        """The sighting that `read` answers from."""
        return self._ledger.latest(entity, key_of(key), field.name, self._at)

    def members(self, entity: Entity, match: Mapping[str, Any]) -> tuple[Sequence[Key], bool]:
        """The things seen whose seen fields equal `match`; there may be others."""
        wanted = [(entity.fields[name], value) for name, value in match.items()]
        keys = [
            key
            for key in list(self._ledger.keys(entity))
            if all(self.read(entity, key, field) == value for field, value in wanted)
        ]
        return keys, False

    def done(self, tool: str, match: Mapping[str, Any]) -> int | NoValue:
        """Earlier calls that took effect, for all that was known just before this one."""
        return self._ledger.done(tool, match, self._at, known_at=self._at.step)


class _Shown(NamedTuple):
    """The results a look-up function may search: shown to the agent, and the field not changed since."""

    ledger: Ledger
    at: CallRecord
    entity: str
    key: Key
    field: str

    def results(self, tool: str, match: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        return [
            {"arguments": made.call.arguments, "value": value, "step": made.delivered}
            for made, value in self.ledger.delivered(tool, self.at)
            if all(made.call.arguments.get(name, NOTHING) == wanted for name, wanted in match.items())
            and self.ledger.changed(self.entity, self.key, self.field, made.step, self.at.step, known_at=self.at.step)
            is None
        ]


class HindsightFacts:
    """The ledger, and what later results show of fields that no write, from the judged one on, declares changed."""

    def __init__(self, ledger: Ledger, at: CallRecord, context: Mapping[str, Any]) -> None:
        self._ledger = ledger
        self._at = at
        self._testimony = Testimony(ledger, at, context)

    def read(self, entity: Entity, key: Key, field: Field) -> Any:
        """The value as far as the whole trajectory tells."""
        if field.origin != "system":
            return self._testimony.read(field)
        key = key_of(key)
        found = self._value(entity, key, field.name)
        if field.name == "exists" or found is not NOTHING:
            return UNSEEN if found is NOTHING else coerce(field, found)
        return ABSENT if self._value(entity, key, "exists") is False else UNSEEN

    def _value(self, entity: Entity, key: Key, field: str) -> Any:
        at, ledger = self._at.step, self._ledger
        shown = ledger.shown(entity, key, field)
        known = [entry for entry in shown if entry.delivered < self._at.start]
        if known:
            newest = max(known, key=_as_of)
            if ledger.changed(entity.name, key, field, newest.as_of, at) is None:
                return newest.value
        later = [entry for entry in shown if entry.delivered >= self._at.start]
        if later:
            soonest = min(later, key=_as_of)
            if ledger.changed(entity.name, key, field, min(soonest.as_of, at) - 1, FOREVER) is None:
                return soonest.value
        return NOTHING

    def members(self, entity: Entity, match: Mapping[str, Any]) -> tuple[Sequence[Key], bool]:
        """The things shown anywhere in the trajectory; there may be others."""
        wanted = [(entity.fields[name], value) for name, value in match.items()]
        keys = [
            key
            for key in list(self._ledger.keys(entity))
            if all(self.read(entity, key, field) == value for field, value in wanted)
        ]
        return keys, False

    def done(self, tool: str, match: Mapping[str, Any]) -> int | NoValue:
        """Earlier calls that took effect."""
        return self._ledger.done(tool, match, self._at)


class WorldFacts:
    """A world, as of one call."""

    def __init__(self, world: World, ledger: Ledger, at: CallRecord, context: Mapping[str, Any]) -> None:
        self._world = world
        self._ledger = ledger
        self._at = at
        self._testimony = Testimony(ledger, at, context)
        self._records: dict[tuple[str, Key], Mapping[str, Any] | NoValue] = {}

    def read(self, entity: Entity, key: Key, field: Field) -> Any:
        """The true value."""
        if field.origin != "system":
            return self._testimony.read(field)
        asked = (entity.name, key_of(key))
        record = self._records.get(asked)
        if record is None:
            record = self._records[asked] = self._world.record(*asked)
        if isinstance(record, NoValue):
            return record if field.name != "exists" else False if record is ABSENT else UNSEEN
        if field.name == "exists":
            return True
        value = record.get(field.name, NOTHING)
        if value is NOTHING:
            return UNSEEN if field.default is UNDECLARED else coerce(field, field.default)
        return coerce(field, value)

    def members(self, entity: Entity, match: Mapping[str, Any]) -> tuple[Sequence[Key], bool]:
        """All things that match."""
        keys = self._world.members(entity.name, match)
        return ([], False) if keys is None else (keys, True)

    def done(self, tool: str, match: Mapping[str, Any]) -> int | NoValue:
        """Earlier calls that took effect."""
        return self._ledger.done(tool, match, self._at)


def _as_of(entry: Shown) -> int:
    return entry.as_of
