"""What is true of a call's facts: hindsight, or a world; and what no database knows, as the conversation tells it."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from bylaw.facts.call_record import CallRecord
from bylaw.facts.entity import ABSENT, EXISTS, UNDECLARED, UNSEEN, Between, Entity, Field, Key, NoValue, OneOf, is_known
from bylaw.facts.ledger import Ledger
from bylaw.facts.path import NOTHING
from bylaw.facts.seen import SeenFacts, matching, pending_value
from bylaw.facts.shown import SeenThing, Shown, beside, is_there, newest_of, shown_before, told_by
from bylaw.facts.value import coerce, key_of
from bylaw.facts.world import World
from bylaw.trace.event import Call, Result

FOREVER = 1 << 60
"""A step after every step."""


class _LookedUp:
    """What a shield looked up itself for one call, just before its turn: true then, and never shown to the agent."""

    def __init__(self, ledger: Ledger, at: CallRecord) -> None:
        self._changes, self._at = ledger.changes, at
        self._own = Ledger(ledger.schema)
        call = at.call
        for place, each in enumerate(call.looked_up):
            step = 2 * place
            made = Call(each.tool, each.arguments, turn=-1 - place, agent=call.agent, time=call.time)
            self._own.observe_all(step, (made, Result(step, each.content, each.failed or None, agent=call.agent)))
        self._then = self._own.record(call, 2 * len(call.looked_up))
        self._seen = SeenFacts(self._own, self._then, {})

    def keys(self, entity: Entity) -> Iterable[Key]:
        """The things that were shown."""
        return self._own.keys(entity)

    def read(self, entity: Entity, key: Key, field: Field) -> Any:
        """What was shown, and no call of the turn may have changed since; else UNSEEN."""
        if self._own.thing(entity.name, key) is None:
            return UNSEEN
        found = self._seen.read(entity, key, field)
        if self._own.latest(entity, key, field.name, self._then) is None and found is not ABSENT:
            return UNSEEN
        at = self._at
        is_so = self._changes.between(entity.name, key, field.name, at.start - 1, at.step) is None
        return found if is_so and (found is ABSENT or is_known(found)) else UNSEEN


class HindsightFacts:
    """The ledger, and what later results show of fields that no write, from the judged one on, declares changed."""

    def __init__(self, ledger: Ledger, at: CallRecord, context: Mapping[str, Any]) -> None:
        self._ledger = ledger
        self._at = at
        self._looked_up = _LookedUp(ledger, at) if at.call.looked_up else None
        self._there: dict[tuple[str, Key], Any] = {}
        """What `_is_there` has found: guards ask for several fields of one thing."""
        self._seen = SeenFacts(ledger, at, context)
        """For what no database knows: true is what was said and shown before the call. An identity that is established
        later was not established then."""

    def read(self, entity: Entity, key: Key, field: Field) -> Any:
        """The value as far as the whole trajectory tells."""
        if field.origin != "system" or entity.origin == "conversation":
            found = self._seen.read(entity, key, field)
            return found if is_known(found) else UNSEEN
        if not entity.key and entity.is_always_there:
            return True
        if len(key) != 1 or key[0].__class__ is not str:
            key = key_of(key)
        if self._looked_up is not None and (found := self._looked_up.read(entity, key, field)) is not UNSEEN:
            return found
        thing = self._ledger.thing(entity.name, key)
        if thing is None:
            return UNSEEN
        asked = (entity.name, key)
        if asked in self._there:
            there = self._there[asked]
        else:
            there = self._there[asked] = self._is_there(thing, entity, key)
        if there is None:
            return UNSEEN
        if field.name == "exists":
            if there is not NOTHING:
                return there
        elif (found := self._told(thing, entity, key, field, was_there=there is not False)) is not NOTHING:
            return found
        elif there is False:
            return ABSENT
        # What writes of the same turn leave open the ledger knows, too.
        return pending_value(self._ledger, thing, entity, key, field, self._at, is_settled=True)

    def _told(self, thing: SeenThing, entity: Entity, key: Key, field: Field, *, was_there: bool = True) -> Any:
        """What was shown of a field, before the call's turn or since; NOTHING where that does not tell."""
        shown = thing.shown(field.name)
        start = self._at.start
        known = shown_before(shown, start)
        if known and was_there:
            newest = known[0] if len(known) == 1 else newest_of(known)
            if self._was_so(entity, key, field.name, newest):
                if len(known) == 1:
                    return coerce(field, newest.value)
                at_once = beside(newest, known)
                return told_by(field, [each for each in at_once if self._was_so(entity, key, field.name, each)])
        later = shown[len(known) :]
        if later and self._stays_so(entity, key, field.name):
            soonest = min(later, key=_as_of)
            if self._is_so_yet(entity, key, field.name, soonest):
                at_once = beside(soonest, later)
                return told_by(field, [each for each in at_once if self._is_so_yet(entity, key, field.name, each)])
        return NOTHING

    def _is_there(self, thing: SeenThing, entity: Entity, key: Key) -> Any:
        """Whether the thing exists; None where that was shown both ways, NOTHING where nothing tells."""
        known, at = shown_before(thing.shown("exists"), self._at.start), self._at
        if not thing.is_ever_absent:
            there = any(self._was_so(entity, key, "exists", each) for each in reversed(known)) or NOTHING
        else:
            changed = self._ledger.changes.between(entity.name, key, "exists", -1, at.step) if known else None
            there = is_there(known, changed, lambda each: self._was_so(entity, key, "exists", each))
        if there is not NOTHING:
            return there
        found = self._told(thing, entity, key, EXISTS, was_there=False)
        return None if isinstance(found, OneOf) else found

    def _was_so(self, entity: Entity, key: Key, field: str, entry: Shown) -> bool:
        """Whether nothing has changed what was shown until the call was made."""
        return self._ledger.changes.last(entity.name, key, field, entry.as_of, self._at.step) is None

    def _stays_so(self, entity: Entity, key: Key, field: str) -> bool:
        """Whether nothing changes the field from the call on."""
        return self._ledger.changes.between(entity.name, key, field, self._at.step - 1, FOREVER) is None

    def _is_so_yet(self, entity: Entity, key: Key, field: str, entry: Shown) -> bool:
        """Whether what was shown later of a field that stays so is true of the call."""
        changes = self._ledger.changes
        step = self._at.step
        changed = changes.between(entity.name, key, field, min(entry.as_of, step) - 1, step)
        return changed is None and not changes.beside(entity.name, key, field, entry.as_of)

    def members(self, entity: Entity, match: Mapping[str, Any]) -> tuple[Sequence[Key], bool]:
        """The things shown anywhere in the trajectory; there may be others."""
        if entity.origin == "conversation":
            return self._seen.members(entity, match)
        shown = self._ledger.keys(entity)
        if self._looked_up is not None:
            shown = dict.fromkeys([*shown, *self._looked_up.keys(entity)])
        # As the conversation tells, also where a world that cannot list them stands before it.
        keys, is_sure = matching(shown, partial(HindsightFacts.read, self), entity, match)
        return keys, is_sure and bool(keys and match.keys() >= set(entity.key))

    def done(self, tool: str, match: Mapping[str, Any]) -> int | Between:
        """Earlier calls that took effect."""
        return self._ledger.done(tool, match, self._at)

    def traced(self, value: Any) -> Mapping[str, Any] | NoValue:
        """Where a value came from, as the conversation tells: no database knows."""
        return self._seen.traced(value)

    def requested(self) -> bool | NoValue:
        """Whether the call keeps to the request, as the conversation tells."""
        return self._seen.requested()


class WorldFacts(HindsightFacts):
    """A world, as of one call; where it does not know, what the conversation tells, as without a world."""

    def __init__(self, world: World, ledger: Ledger, at: CallRecord, context: Mapping[str, Any]) -> None:
        super().__init__(ledger, at, context)
        self._world = world
        self._records: dict[tuple[str, Key], Mapping[str, Any] | NoValue] = {}

    def read(self, entity: Entity, key: Key, field: Field) -> Any:
        """The true value."""
        if field.origin != "system" or entity.origin == "conversation":
            return super().read(entity, key, field)
        if not entity.key and entity.is_always_there:
            return True
        if len(key) != 1 or key[0].__class__ is not str:
            key = key_of(key)
        asked = (entity.name, key)
        record = self._records.get(asked)
        if record is None:
            record = self._records[asked] = self._world.record(*asked)
        if isinstance(record, NoValue):
            if record is UNSEEN:
                return super().read(entity, key, field)
            return record if field.name != "exists" else False
        if field.name == "exists":
            return True
        value = record.get(field.name, field.default)
        return super().read(entity, key, field) if value is UNSEEN or value is UNDECLARED else coerce(field, value)

    def members(self, entity: Entity, match: Mapping[str, Any]) -> tuple[Sequence[Key], bool]:
        """All things that match."""
        keys = self._world.members(entity.name, match) if entity.origin != "conversation" else None
        return super().members(entity, match) if keys is None else (keys, True)


def _as_of(entry: Shown) -> int:
    return entry.as_of
