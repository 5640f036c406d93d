"""Ground-truth databases read from files: SQLite with a table for each entity, or JSON records."""

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from bylaw.errors import WorldError
from bylaw.facts.entity import ABSENT, UNSEEN, Entity, Key, NoValue
from bylaw.facts.observation import NOTHING, ItemPath, PathScope, Sighting, sighting_at, sightings
from bylaw.facts.schema import Schema, Stored
from bylaw.facts.value import key_of
from bylaw.facts.world import Snapshot, WorldRecord, agrees

Index = dict[str, dict[Key, WorldRecord]]


class _Records:
    """Records by entity and key. For an entity in `partial`, a missing record means unknown rather than absent."""

    def __init__(self, schema: Schema, index: Index, partial: Set[str] = frozenset()) -> None:
        self._entities, self._index, self._partial = schema.entities, index, partial

    def record(self, entity: str, key: Key) -> WorldRecord | NoValue:
        if entity not in self._index:
            return UNSEEN
        return self._index[entity].get(key, UNSEEN if entity in self._partial else ABSENT)

    def members(self, entity: str, match: Mapping[str, Any]) -> Sequence[Key] | None:
        if entity not in self._index or entity in self._partial:
            return None
        declared = self._entities[entity]
        return [key for key, record in self._index[entity].items() if agrees(declared, record, match)]


class _Placed:
    """Records at the places declared under `world:`. `read` returns a table's rows or, for "", the whole document."""

    def __init__(self, read: Callable[[str], Any], place: str) -> None:
        self._read, self._place = read, place

    def things(self, name: str, places: Sequence[Stored]) -> dict[Key, WorldRecord]:
        index: dict[Key, WorldRecord] = {}
        for stored in sorted(places, key=lambda each: bool(each.list)):
            if stored.list:
                lists: dict[Key, list[Any]] = {}
                for scope, sighting in self._found(stored):
                    if sighting is not None:
                        lists.setdefault(sighting.key, []).append(scope.item)
                index = {key: {**record, stored.list: lists.get(key, [])} for key, record in index.items()}
                continue
            here: dict[Key, WorldRecord] = {}
            for scope, sighting in self._found(stored):
                if sighting is None:
                    if stored.observation.when is not None and not stored.observation.when(scope):
                        continue
                    raise WorldError(f"an item of `{name}` has no key", place=self._place)
                record = _shown(sighting)
                hint = "give each its own key, or collect them with `list: field`"
                _add(here, sighting.key, record, f"two items of `{name}`", self._place, hint)
                index[sighting.key] = {**index.get(sighting.key, {}), **record}
        return index

    def _found(self, stored: Stored) -> Iterator[tuple[PathScope, Sighting | None]]:
        data = self._read(stored.table)
        for path in (stored.of, "" if stored.of else stored.each):
            held = path.rpartition("[*]")[0] or path.rpartition(".*")[0]
            if held and not ItemPath(held)(PathScope(data, data, {})):
                name = stored.observation.entity.name
                raise WorldError(f"`{held}`, the location of `{name}`, does not exist", place=self._place)
        for scope in stored.scopes(data):
            yield scope, sighting_at(stored.observation, scope)


def _add(index: dict[Key, WorldRecord], key: Key, record: WorldRecord, what: str, place: str, hint: str = "") -> None:
    if index.setdefault(key, record) != record:
        shown = ", ".join(map(str, key))
        raise WorldError(f"{what} have the key `{shown}` but differ", place=place, hint=hint)


def _shown(sighting: Sighting, known: WorldRecord | None = None) -> WorldRecord:
    entity = sighting.observation.entity
    shown = {field: value for field in entity.fields if (value := sighting.show(field)) is not NOTHING}
    return {**(known or dict(zip(entity.key, sighting.key, strict=True))), **shown}


def row_of(row: sqlite3.Row, entity: Entity | None = None) -> dict[str, Any]:
    """Return a table row with JSON decoded in the entity's list and object columns. If the entity is None, decode all
    columns.
    """
    made = dict(row)
    for name, value in made.items():
        field = entity.fields.get(name) if entity is not None else None
        may_nest = entity is None or (field is not None and field.type in ("list", "object"))
        if may_nest and isinstance(value, str) and value[:1] in ("{", "["):
            with suppress(ValueError, RecursionError):
                made[name] = json.loads(value)
    return made


def _implied(schema: Schema, tables: Index) -> _Records:
    """Add all nested records to the tables, and everything that a record would show if its look-up returned it."""
    index: Index = {name: dict(records) for name, records in tables.items()}
    partial: set[str] = set()
    for name in tables:
        for sighting, key in _seen(schema, schema.entities[name], tables):
            found = sighting.observation.entity
            is_own = found.name == name and sighting.key == key
            if not is_own and (found.name in tables or found.name in schema.stored or found.origin != "system"):
                continue
            things = index.setdefault(found.name, {})
            things[sighting.key] = _shown(sighting, things.get(sighting.key))
            if not is_own and (found.read is not None or sighting.observation.only):
                partial.add(found.name)
    return _Records(schema, index, partial)


def _seen(schema: Schema, entity: Entity, tables: Index) -> Iterator[tuple[Sighting, Key]]:
    """For each record, yield its key and the result that the entity's look-up would return."""
    if entity.read is None:
        return
    observations = [each for kinds in schema.shows.get(entity.read.tool, {}).values() for each in kinds]
    for key, record in tables[entity.name].items():
        parts = dict(zip(entity.key, key, strict=True))
        args = {name: value for name, value in entity.read.given(parts).items() if value is not None}
        for observation in observations:
            if observation.text is None:
                yield from ((sighting, key) for sighting in sightings(observation, args, record, None, True))


KEPT = 1 << 16
"""The number of rows at which the cache is emptied."""
_ELSEWHERE = "or describe its structure under `world:` in entities.yaml"
_WHOLE = 1 << 63
"""Every integer in SQLite is smaller than this value."""


def open_snapshot(path: Path, schema: Schema) -> Snapshot:
    """Open a snapshot file: SQLite, recognised by its first bytes, or JSON such as `{"Entity": [records]}`."""
    try:
        with path.open("rb") as stream:
            start = stream.read(16)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise WorldError(f"cannot read the database: {why}", place=str(path)) from None
    if start.startswith(b"SQLite format 3"):
        tables = _Tables(path, schema)
        return _snapshot(schema, tables, tables.rows, path)
    document = _document(path)

    def rows(table: str) -> Any:
        if table:
            hint = "set its location with `each: $.path`"
            raise WorldError(f"a JSON file has no tables, so `{table}` cannot be read", place=str(path), hint=hint)
        return document

    return _snapshot(schema, _named(schema, document, path), rows, path)


def _snapshot(schema: Schema, base: "_Tables | _Records", rows: Callable[[str], Any], path: Path) -> Snapshot:
    if not schema.stored:
        return Snapshot(schema, base.record, base.members)
    placed = _Placed(rows, str(path))
    own = _Records(schema, {name: placed.things(name, places) for name, places in schema.stored.items()})

    def of(entity: str) -> _Records | _Tables:
        return own if entity in schema.stored else base

    return Snapshot(
        schema, lambda name, key: of(name).record(name, key), lambda name, match: of(name).members(name, match)
    )


class _Tables:
    def __init__(self, path: Path, schema: Schema) -> None:
        self._schema = schema
        self._path = path
        self._base = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        self._base.row_factory = sqlite3.Row
        self._cache: dict[tuple[str, Key], WorldRecord | NoValue] = {}
        try:
            found = self._base.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
            self._every = {str(row[0]) for row in found}
            asked = [entity for name, entity in sorted(schema.entities.items()) if name not in schema.stored]
            self._tables = {entity.name: table for entity in asked if (table := self._table_of(entity))}
            """The table for each entity."""
            self._names = {entity: self._columns(table) for entity, table in self._tables.items()}
        except sqlite3.Error as error:
            raise WorldError(f"cannot read the database: {error}", place=str(path)) from None
        if not self._tables and not schema.stored:
            things = ", ".join(f"`{name}`" for name in schema.entities)
            hint = f"the pack has {things}, but the database has {self._known()}"
            hint += f"; name each table after an entity, {_ELSEWHERE}"
            raise WorldError("no table has the name of an entity in the pack", place=str(path), hint=hint)
        for entity, names in self._names.items():
            for part in schema.entities[entity].key:
                if part not in names:
                    raise WorldError(f"table `{self._tables[entity]}` has no column `{part}`", place=str(path))

    def _known(self) -> str:
        return ", ".join(f"`{name}`" for name in sorted(self._every)) or "no table"

    def _table_of(self, entity: Entity) -> str:
        """Return the table with the entity's name, or one with a similar name that has the entity's key columns."""
        if entity.name in self._every:
            return entity.name
        names = {_plain(name): name for name in sorted(self._every)}
        likely = (names[name] for name in _names_of(entity) if name in names)
        return next((table for table in likely if self._columns(table).issuperset(entity.key)), "")

    def _columns(self, table: str) -> set[str]:
        return {str(row[1]) for row in self._base.execute(f'PRAGMA table_info("{table}")')}

    def rows(self, table: str) -> list[dict[str, Any]]:
        if table not in self._every:
            hint = f"the database has {self._known()}"
            raise WorldError(f"there is no table `{table}`", place=str(self._path), hint=hint)
        return [row_of(row) for row in self._base.execute(f'SELECT * FROM "{table}"')]

    def record(self, entity: str, key: Key) -> WorldRecord | NoValue:
        if entity not in self._tables:
            return UNSEEN
        known = self._cache.get((entity, key))
        if known is None:
            if len(self._cache) >= KEPT:
                self._cache.clear()
            declared = self._schema.entities[entity]
            row = self._row(declared, key)
            known = self._cache[entity, key] = ABSENT if row is None else row_of(row, declared)
        return known

    def _row(self, entity: Entity, key: Key) -> sqlite3.Row | None:
        narrowed = [_narrowed(entity, name, part) for name, part in zip(entity.key, key, strict=True)]
        where = " AND ".join(each for each, _ in narrowed) or "1"
        values = [value for _, values in narrowed for value in values]
        rows = self._base.execute(f'SELECT * FROM "{self._tables[entity.name]}" WHERE {where}', values).fetchall()
        exact = (row for row in rows if key_of([row[name] for name in entity.key]) == key)
        # If no row matches exactly, use the row that matches in the database's own, looser comparison (`COLLATE
        # NOCASE`).
        return next(exact, rows[0] if rows and all(each for _, each in narrowed) else None)

    def members(self, entity: str, match: Mapping[str, Any]) -> Sequence[Key] | None:
        if entity not in self._tables:
            return None
        declared = self._schema.entities[entity]
        given = [name for name in match if name in self._names[entity]]
        narrowed = [_narrowed(declared, name, match[name]) for name in given]
        where = " AND ".join(each for each, _ in narrowed) or "1"
        keys = ", ".join(f'"{name}"' for name in declared.key) or "1"
        columns = ", ".join(f'"{name}"' for name in dict.fromkeys([*declared.key, *given])) or "1"
        rows = self._base.execute(
            f'SELECT {columns} FROM "{self._tables[entity]}" WHERE {where} ORDER BY {keys}',
            [value for _, values in narrowed for value in values],
        )
        return [
            key_of([row[name] for name in declared.key])
            for row in rows
            if not match or agrees(declared, row_of(row, declared), match)
        ]


def _narrowed(entity: Entity, name: str, wanted: Any) -> tuple[str, Sequence[Any]]:
    """Return an SQL condition that can use an index, with its values. It may also select rows that do not match."""
    kind = "string" if name in entity.key else entity.fields[name].type
    if kind in ("string", "enum"):
        try:
            text = key_of((wanted,))[0] if name in entity.key else wanted
        except ValueError:
            return "0", ()
        # Unpaired surrogates are not printable, and SQLite rejects them. Bytes would look like `b'...'`.
        if isinstance(text, str) and text.isprintable() and not text.startswith(("b'", 'b"')):
            forms = _forms(text)
            return f'"{name}" IN ({", ".join("?" * len(forms))})', forms
    elif kind == "integer" and isinstance(wanted, int) and abs(wanted) < _WHOLE:
        # In SQLite, text sorts after all numbers. A text column may still contain this number, as text.
        return f'("{name}" = ? OR "{name}" >= \'\')', [int(wanted)]
    return "1", ()


def _forms(text: str) -> list[Any]:
    try:
        number = float(text)
    except ValueError:
        return [text]
    whole = int(text) if len(text) <= 20 and text.lstrip("-").isdecimal() else _WHOLE
    return [text, number, *([whole] if abs(whole) < _WHOLE else ())]


def _document(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise WorldError(f"the file is neither SQLite nor JSON: {error}", place=str(path)) from None


def _named(schema: Schema, document: Any, path: Path) -> _Records:
    record = cast(dict[str, Any], document) if isinstance(document, dict) else {}
    named = {each.name: name for each in schema.entities.values() if (name := _name_in(record, each))}
    named |= _by_fields(schema, record, named)
    if not named and not schema.stored:
        hint = f"use these names, {_ELSEWHERE}"
        raise WorldError('JSON worlds look like {"Entity": [records]}', place=str(path), hint=hint)
    own = named.keys() - schema.stored.keys()
    tables = {name: _indexed(schema.entities[name], record[named[name]], path) for name in named if name in own}
    return _implied(schema, tables)


def _name_in(data: Mapping[str, Any], entity: Entity) -> str:
    """Return the name under which a document lists an entity's records. Empty if there is none.

    The name may be the entity's own name or a form of it, such as `orders`, `ORDERS` or `order` for `Order`, if all
    records have the entity's key. All plural forms are tried (`classes`, `stays`, `stories`). If none matches, the name
    may be that of the only object that lists records under their keys, such as `users` for `Customer`.
    """
    if entity.name in data:
        return entity.name
    names = {_plain(name): name for name in data}
    for name in _names_of(entity):
        records = _records_in(entity, data[names[name]]) if name in names else None
        if records is not None and all(part in record for record in records for part in entity.key):
            return names[name]
    keyed = [name for name, body in data.items() if _is_named_by(entity, body)]
    return keyed[0] if len(keyed) == 1 else ""


_ALIKE = 0.6
"""The minimum share of an entity's fields that records under a different name must have."""


def _by_fields(schema: Schema, data: Mapping[str, Any], named: Mapping[str, str]) -> dict[str, str]:
    """Return, for each entity, the name of the records that fit only this entity by their fields.

    Only entities without records, and names of records that belong to no entity, are matched.
    """
    lacking = [
        each
        for each in schema.entities.values()
        if len(each.key) == 1 and each.origin == "system" and each.name not in named and each.name not in schema.stored
    ]
    free = [name for name in data if name not in named.values()]
    fits = [(entity.name, name) for entity in lacking for name in free if _has_fields(entity, data[name])]
    kinds, names = Counter(kind for kind, _ in fits), Counter(name for _, name in fits)
    return {kind: name for kind, name in fits if kinds[kind] == names[name] == 1}


def _has_fields(entity: Entity, body: Any) -> bool:
    records = _records_in(entity, body) or []
    wanted = {each.name for each in entity.fields.values() if each.origin == "system" and each.keys_of is None}
    wanted -= set(entity.key)
    shown = wanted & {name for record in records for name in record}
    has_key = bool(records) and all(part in record for record in records for part in entity.key)
    return has_key and len(shown) > 1 and len(shown) >= _ALIKE * len(wanted)


def _names_of(entity: Entity) -> tuple[str, ...]:
    """Return the names under which an entity's records may be listed, in lower case and without word separators."""
    low = _plain(entity.name)
    return (f"{low}s", f"{low}es", f"{low.removesuffix('y')}ies", low)


def _plain(name: str) -> str:
    """Return a name without word separators and in lower case, so that `OrderLine`, `order_line` and `ORDER-LINE` are
    equal.
    """
    return re.sub(r"[_\W]", "", name).lower()


def _is_named_by(entity: Entity, body: Any) -> bool:
    """Whether every record's key field contains the key under which the record is listed."""
    if not isinstance(body, dict) or not body or len(entity.key) != 1:
        return False
    records = cast(dict[str, Any], body).items()
    return all(
        isinstance(each, dict) and cast(dict[str, Any], each).get(entity.key[0]) == name for name, each in records
    )


def _records_in(entity: Entity, body: Any) -> list[dict[str, Any]] | None:
    """Return the records in a list, or in an object whose names are their ids. None for any other content."""
    if isinstance(body, dict):
        named = cast(dict[str, Any], body).items()
        lone = entity.key[0] if len(entity.key) == 1 else ""
        found: list[Any] = [{lone: name, **each} if lone and isinstance(each, dict) else each for name, each in named]
    else:
        found = cast(list[Any], body) if isinstance(body, list) else [None]
    return found if all(isinstance(each, dict) for each in found) else None


def _indexed(entity: Entity, body: Any, path: Path) -> dict[Key, WorldRecord]:
    records = _records_in(entity, body)
    if records is None:
        raise WorldError(f"`{entity.name}` must be a list of records", place=str(path))
    index: dict[Key, WorldRecord] = {}
    for record in records:
        if lacking := [part for part in entity.key if part not in record]:
            raise WorldError(f"a record of `{entity.name}` has no `{lacking[0]}`", place=str(path))
        key = key_of([record[part] for part in entity.key])
        _add(index, key, record, f"two records of `{entity.name}`", str(path))
    return index
