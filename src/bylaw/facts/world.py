"""The ground-truth database: a snapshot of the true data, to which each write that ran is applied."""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Protocol

from bylaw.facts.changes import UndeclaredCall
from bylaw.facts.entity import ABSENT, UNDECLARED, UNSEEN, Entity, Key, NoValue
from bylaw.facts.observation import NOTHING, sightings
from bylaw.facts.schema import Change, Schema, moved, names_in, typed
from bylaw.facts.value import coerce, key_of, loose_key
from bylaw.policy.verb import sounds_harmless
from bylaw.trace.event import Call, Result

WorldRecord = Mapping[str, Any]
_NONE: frozenset[str] = frozenset()


class World(Protocol):
    """The ground-truth database during one trajectory."""

    def fork(self) -> "World":
        """Return the database in its initial state, for another trajectory."""
        ...

    def record(self, entity: str, key: Key) -> WorldRecord | NoValue:
        """Return an entity's raw fields, or ABSENT or UNSEEN. A field changed to an unknown value is UNSEEN."""
        ...

    def members(self, entity: str, match: Mapping[str, Any]) -> Sequence[Key] | None:
        """Return the keys of all entities whose typed fields equal `match`. None if the database cannot list them."""
        ...

    def apply(self, call: Call, result: Result | None) -> None: ...

    def unsettle(self, call: Call) -> None:
        """Mark everything as unknown that a call may have changed, because it is unknown whether the call ran."""
        ...


Reader = Callable[[str, Key], WorldRecord | NoValue]
Lister = Callable[[str, Mapping[str, Any]], Sequence[Key] | None]


class Snapshot:
    """A ground-truth database that is read through a function and combined with the writes in one trajectory.

    A write applies its declared effects. If it declares none, the values in its result are used, and everything else
    that it may change becomes unknown.
    """

    def __init__(self, schema: Schema, reader: Reader, lister: Lister | None = None) -> None:
        self._schema = schema
        self._reader = reader
        self._lister = lister
        self._overlay: dict[tuple[str, Key], WorldRecord | NoValue] = {}
        self._forgotten: dict[str, frozenset[str] | None] = {}
        """For each entity, the fields that a write may have changed in any record. None means all fields."""
        self._blurred: set[tuple[str, Key]] = set()
        """Keys that writes have used but that no record has. A record with a similar key may have changed."""
        self._undeclared: list[UndeclaredCall] = []
        self._perhaps_more: set[str] = set()
        """Entities that may have unlisted records, because a write may have created one or changed one that it does not
        name.
        """

    def fork(self) -> "Snapshot":
        return Snapshot(self._schema, self._reader, self._lister)

    def record(self, entity: str, key: Key) -> WorldRecord | NoValue:
        laid = self._overlay.get((entity, key))
        if laid is not None:
            return laid
        if not (self._forgotten or self._blurred or self._undeclared):
            return self._reader(entity, key)
        if self._is_lost(entity, key):
            return UNSEEN
        found, lost = self._reader(entity, key), self._forgotten.get(entity)
        return found if not lost or isinstance(found, NoValue) else _forgetting(found, lost)

    def _is_lost(self, entity: str, key: Key) -> bool:
        return (
            self._forgotten.get(entity, _NONE) is None
            or (bool(self._blurred) and (entity, loose_key(key)) in self._blurred)
            or any(call.may_touch(key) for call in self._undeclared)
        )

    def members(self, entity: str, match: Mapping[str, Any]) -> Sequence[Key] | None:
        """Return the keys of all matching entities, including those that the trajectory's writes created or changed."""
        lost = self._forgotten.get(entity, _NONE)
        if self._lister is None or lost is None or lost & match.keys() or entity in self._perhaps_more:
            return None
        listed = self._lister(entity, match)
        if listed is None or self._undeclared:
            return None
        laid = [key for (kind, key) in self._overlay if kind == entity]
        keys = list(dict.fromkeys([*listed, *laid]))
        if any(key not in laid and self._is_lost(entity, key) for key in keys):
            return None
        found = {key: self._matches(entity, key, match) for key in laid}
        return None if None in found.values() else [key for key in keys if found.get(key, True)]

    def _matches(self, entity: str, key: Key, match: Mapping[str, Any]) -> bool | None:
        record = self.record(entity, key)
        if isinstance(record, NoValue):
            return None if record is UNSEEN else False
        known = {name: value for name, value in match.items() if record.get(name) is not UNSEEN}
        if not agrees(self._schema.entities[entity], record, known):
            return False
        return True if len(known) == len(match) else None

    def apply(self, call: Call, result: Result | None) -> None:
        value = result.value() if result is not None and result.captured else NOTHING
        told = self._write(call, value, is_sure=True)
        if value is NOTHING or told is None:
            return
        for kind, observations in self._schema.shows.get(call.tool, {}).items():
            for observation in observations if kind not in told else ():
                for sighting in sightings(observation, call.arguments, value, None, True):
                    fields = {n: v for n in observation.entity.fields if (v := sighting.show(n)) is not NOTHING}
                    self._lay(observation.entity.name, sighting.key, fields)

    def unsettle(self, call: Call) -> None:
        """Mark the values as unknown that a write may have changed, because it is unknown whether the write ran."""
        self._write(call, NOTHING, is_sure=False)

    def _write(self, call: Call, value: Any, *, is_sure: bool) -> Set[str] | None:
        """Apply a write. Return the entities that its effects name. None if the effects are unknown."""
        tool = self._schema.tools.get(call.tool)
        if tool is None and sounds_harmless(call.tool):
            return None
        if tool is None or tool.is_unsaid:
            self._note_undeclared(UndeclaredCall(call))
        changes, effects = self._schema.changes.get(call.tool, ()), self._schema.effects.get(call.tool, ())
        if call.fault:
            # An argument that was not captured may have named any entity of that kind.
            for change in changes:
                self._forget(change.entity, None, change.fields)
            for effect in effects:
                self._forget(effect.entity, None, None)
            return None
        for effect in effects:
            self._affect(effect, call, value, is_sure=is_sure)
        # The effects list every change to the entities that they name. Other entities change as the result shows.
        told = {effect.entity for effect in effects}
        for change in changes:
            for key in change.touched(call.arguments, value, self._find) if change.entity not in told else ():
                self._lose(change.entity, key, change.fields)
        return told

    def _lose(self, entity: str, key: Key | None, fields: frozenset[str] | None) -> None:
        if key is not None:
            self._blur(entity, key)
        self._forget(entity, key, fields)

    def _note_undeclared(self, call: UndeclaredCall) -> None:
        self._undeclared.append(call)
        for laid in self._overlay:
            if call.may_touch(laid[1]):
                self._overlay[laid] = UNSEEN

    def _blur(self, entity: str, key: Key) -> None:
        """Record a write to a key that no record has. A record with a similar key becomes unknown."""
        if (entity, key) in self._overlay or not isinstance(self.record(entity, key), NoValue):
            return
        rough = loose_key(key)
        self._blurred.add((entity, rough))
        for kind, laid in self._overlay:
            if kind == entity and loose_key(laid) == rough:
                self._overlay[kind, laid] = UNSEEN

    def _affect(self, effect: Change, call: Call, value: Any, *, is_sure: bool) -> None:
        scopes = effect.scopes(call.arguments, value, self._find)
        if not scopes and not is_sure:
            # The items may be listed in the result.
            self._lose(effect.entity, None, effect.fields)
        for scope in scopes:
            key = effect.key_in(scope)
            if key is None or (NOTHING in key and effect.is_through):
                self._forget(effect.entity, None, None if key is None else effect.fields)
                continue
            if NOTHING in key:
                self._perhaps_more.add(effect.entity)
                continue
            before = self.record(effect.entity, key)
            known: WorldRecord = {} if isinstance(before, NoValue) else before
            entity = self._schema.entities[effect.entity]
            old = typed(entity, known) if effect.when is not None or effect.to else {}
            applies = effect.applies(scope, old)
            if applies is False:
                continue
            self._blur(effect.entity, key)
            if applies is None or not is_sure:
                self._forget(effect.entity, key, effect.fields)
            elif effect.delete:
                self._overlay[(effect.entity, key)] = ABSENT
            else:
                after = {
                    name: moved(entity.fields[name], known.get(name, NOTHING), how, get(scope))
                    for name, (how, get) in effect.set.items()
                }
                after.update({name: compute(names_in(scope, old)) for name, compute in effect.to.items()})
                self._lay(effect.entity, key, {**dict(zip(entity.key, key, strict=True)), **after})

    def _find(self, entity: str, key: Key, field: str) -> Any:
        """Return a field of another entity, such as the start of the slot to which an appointment is moved."""
        record = self.record(entity, key)
        value = UNSEEN if isinstance(record, NoValue) else record.get(field, UNSEEN)
        return NOTHING if value is UNSEEN else value

    def _lay(self, entity: str, key: Key, fields: WorldRecord) -> None:
        before = self.record(entity, key)
        known: WorldRecord = {} if isinstance(before, NoValue) else before
        laid = {name: UNSEEN if value is NOTHING else value for name, value in fields.items()}
        self._overlay[(entity, key)] = {**known, **laid}

    def _forget(self, entity: str, key: Key | None, fields: frozenset[str] | None) -> None:
        if key is None:
            known = self._forgotten.get(entity, _NONE)
            if fields is None or known is None or "exists" in fields:
                self._forgotten[entity] = None
            else:
                self._forgotten[entity] = known | fields
            for kind, laid in list(self._overlay):
                if kind == entity:
                    self._forget(entity, laid, fields)
            return
        before = self.record(entity, key)
        if isinstance(before, NoValue) or fields is None:
            self._overlay[(entity, key)] = UNSEEN
        else:
            self._overlay[(entity, key)] = _forgetting(before, fields)


def _forgetting(record: WorldRecord, fields: frozenset[str]) -> WorldRecord:
    return {**record, **dict.fromkeys(fields, UNSEEN)}


def agrees(entity: Entity, record: WorldRecord, match: Mapping[str, Any]) -> bool:
    """Whether a record has these values. The record has typed fields and keys that are strings."""
    try:
        for name, wanted in match.items():
            field = entity.fields[name]
            raw = record.get(name, field.default)
            if raw is UNDECLARED:
                return False
            is_key = name in entity.key
            if key_of((raw,)) != key_of((wanted,)) if is_key else coerce(field, raw) != wanted:
                return False
    except (ValueError, TypeError, ArithmeticError):
        return False
    return True
