"""A database of another shape than the entities, read by what the pack says of where things stand."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from bylaw.errors import WorldError
from bylaw.facts.entity import ABSENT, Entity, Key, NoValue
from bylaw.facts.observation import thing_at
from bylaw.facts.path import NOTHING, PathScope, compile_each
from bylaw.facts.stored import Stored
from bylaw.facts.world import Lister, Reader, WorldRecord, agrees


class Mapped:
    """A world whose things are looked for as the pack says, all at once; kinds of which it says nothing as before."""

    def __init__(
        self,
        stored: Mapping[str, Sequence[Stored]],
        read: Callable[[str], Any],
        reader: Reader,
        lister: Lister,
        place: str,
    ) -> None:
        self._stored = stored
        self._read = read
        """The rows of a table by its name, or the whole document for the empty one."""
        self._reader = reader
        self._lister = lister
        self._place = place
        self._index = {name: self._things(name) for name in stored}

    def record(self, entity: str, key: Key) -> WorldRecord | NoValue:
        """The thing with that key."""
        if entity not in self._stored:
            return self._reader(entity, key)
        return self._index[entity].get(key, ABSENT)

    def members(self, entity: str, match: Mapping[str, Any]) -> Sequence[Key] | None:
        """Keys of the things that match."""
        if entity not in self._stored:
            return self._lister(entity, match)
        declared = self._stored[entity][0].observation.entity
        return [key for key, record in self._index[entity].items() if agrees(declared, record, match)]

    def _things(self, name: str) -> dict[Key, WorldRecord]:
        index: dict[Key, WorldRecord] = {}
        for stored in sorted(self._stored[name], key=lambda each: bool(each.list)):
            if stored.list:
                lists = self._lists(stored)
                index = {key: {**record, stored.list: lists.get(key, [])} for key, record in index.items()}
                continue
            here: dict[Key, WorldRecord] = {}
            for key, record in self._found(stored, stored.observation.entity):
                self._must_agree(name, key, here.setdefault(key, record), record)
                index[key] = {**index.get(key, {}), **record}
        return index

    def _must_agree(self, name: str, key: Key, one: WorldRecord, other: WorldRecord) -> None:
        if one != other:
            shown = ", ".join(map(str, key))
            hint = "give each a key of its own, or gather them with `list: field`"
            raise WorldError(f"two items of `{name}` have the key `{shown}`, and differ", place=self._place, hint=hint)

    def _lists(self, stored: Stored) -> dict[Key, list[Any]]:
        """The items of each key; one that names none belongs to nothing."""
        found: dict[Key, list[Any]] = {}
        for scope in self._scopes(stored):
            if (sighting := thing_at(stored.observation, scope)) is not None:
                found.setdefault(sighting.key, []).append(scope.item)
        return found

    def _scopes(self, stored: Stored) -> Iterator[PathScope]:
        data = self._read(stored.table)
        for path in (stored.of, "" if stored.of else stored.each):
            held = path.rpartition("[*]")[0] or path.rpartition(".*")[0]
            if held and not compile_each(held)(PathScope(data, data, {})):
                name = stored.observation.entity.name
                raise WorldError(f"there is nothing at `{held}`, where `{name}` should be", place=self._place)
        return stored.scopes(data)

    def _found(self, stored: Stored, entity: Entity) -> Iterator[tuple[Key, WorldRecord]]:
        for scope in self._scopes(stored):
            sighting = thing_at(stored.observation, scope)
            if sighting is None:
                if stored.observation.when is not None and not stored.observation.when(scope):
                    continue
                raise WorldError(f"an item of `{entity.name}` has no key", place=self._place)
            shown = {field: sighting.show(field) for field in entity.fields}
            named = dict(zip(entity.key, sighting.key, strict=True))
            yield sighting.key, {**named, **{field: value for field, value in shown.items() if value is not NOTHING}}


def row_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a table, with the JSON that stands in its texts."""
    made = dict(row)
    for name, value in made.items():
        if isinstance(value, str) and value[:1] in ("{", "["):
            with suppress(ValueError, RecursionError):
                made[name] = json.loads(value)
    return made
