"""Worlds read from files: an SQLite database with a table for each kind of thing, or JSON records."""

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from bylaw.errors import WorldError
from bylaw.facts.entity import ABSENT, UNSEEN, Entity, Key, NoValue
from bylaw.facts.observation import Sighting, sightings, thing_at
from bylaw.facts.path import NOTHING, PathScope, compile_each
from bylaw.facts.schema import Schema, Stored
from bylaw.facts.value import key_of
from bylaw.facts.world import Lister, Reader, Snapshot, WorldRecord, agrees


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


Index = dict[str, dict[Key, WorldRecord]]


class Implied(Struct, frozen=True):
    """Things by kind and key, as the records of a database show them."""

    index: Index
    partial: frozenset[str]
    """Kinds of which there may be more than the records show: one that is not among them is not known."""


def implied(schema: Schema, tables: Index) -> Implied:
    """The tables, each record with what its own observation shows, and the things that stand inside records."""
    index: Index = {name: dict(records) for name, records in tables.items()}
    partial: set[str] = set()
    for name in tables:
        entity = schema.entities[name]
        for sighting, key in _seen(schema, entity, tables):
            found = sighting.observation.entity
            is_own = found.name == name and sighting.key == key
            if not is_own and (found.name in tables or found.name in schema.stored or found.origin != "system"):
                continue
            shown = {field: value for field in found.fields if (value := sighting.show(field)) is not NOTHING}
            things = index.setdefault(found.name, {})
            known = things.get(sighting.key) or dict(zip(found.key, sighting.key, strict=True))
            things[sighting.key] = {**known, **shown}
            if not is_own and (found.read is not None or sighting.observation.only):
                partial.add(found.name)
    return Implied(index, frozenset(partial))


def _seen(schema: Schema, entity: Entity, tables: Index) -> Iterator[tuple[Sighting, Key]]:
    """What the tool that reads an entity would show of each of its records, with the record's key."""
    if entity.read is None:
        return
    observations = [each for kinds in schema.shows.get(entity.read.tool, {}).values() for each in kinds]
    for key, record in tables[entity.name].items():
        parts = dict(zip(entity.key, key, strict=True))
        args = {argument: parts[part] for argument, part in entity.read.arguments.items() if part in parts}
        for observation in observations:
            if observation.text is None:
                yield from ((sighting, key) for sighting in sightings(observation, args, record, None, True))


KEPT = 1 << 16
"""How many rows are remembered before they are forgotten together."""
WHOLE = 1 << 12
"""A table with no more rows than these is read at once."""
_ELSEWHERE = "or say where things stand in it, under `world:` in entities.yaml"
_WHOLE = 1 << 63
"""From here on, SQLite keeps no whole numbers."""


def open_snapshot(path: Path, schema: Schema) -> Snapshot:
    """The world in a file: SQLite by its first bytes, else JSON `{"Entity": [records]}`."""
    try:
        with path.open("rb") as stream:
            start = stream.read(16)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise WorldError(f"cannot read the world: {why}", place=str(path)) from None
    if start.startswith(b"SQLite format 3"):
        tables = _Tables(path, schema)
        return _snapshot(schema, tables, tables.rows, path)
    records = _Records(path, schema)
    return _snapshot(schema, records, records.rows, path)


def _snapshot(schema: Schema, found: "_Tables | _Records", rows: Callable[[str], Any], path: Path) -> Snapshot:
    if not schema.stored:
        return Snapshot(schema, found.record, found.members)
    mapped = Mapped(schema.stored, rows, found.record, found.members, str(path))
    return Snapshot(schema, mapped.record, mapped.members)


class _Tables:
    """Rows of an SQLite database, each read once."""

    def __init__(self, path: Path, schema: Schema) -> None:
        self._schema = schema
        self._path = path
        self._base = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        self._base.row_factory = sqlite3.Row
        self._cache: dict[tuple[str, Key], WorldRecord | NoValue] = {}
        self._unread: set[str] = set()
        """Tables small enough to be read whole, and not read yet: asking for a row takes as long as reading many."""
        self._whole: dict[str, dict[Key, sqlite3.Row]] = {}
        """By kind, the rows of those that were."""
        try:
            found = self._base.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
            self._every = {str(row[0]) for row in found}
            asked = [entity for name, entity in sorted(schema.entities.items()) if name not in schema.stored]
            self._tables = {entity.name: table for entity in asked if (table := self._table_of(entity))}
            """By kind of thing."""
            self._names = {entity: self._columns(table) for entity, table in self._tables.items()}
            self._unread = {entity for entity, table in self._tables.items() if self._count(table) <= WHOLE}
        except sqlite3.Error as error:
            raise WorldError(f"cannot read the world: {error}", place=str(path)) from None
        if not self._tables and not schema.stored:
            things = ", ".join(f"`{name}`" for name in schema.entities)
            hint = f"the pack has {things}, the database {self._known()}; name a table like a thing, {_ELSEWHERE}"
            raise WorldError("no table is named like an entity of the pack", place=str(path), hint=hint)
        for entity, names in self._names.items():
            for part in schema.entities[entity].key:
                if part not in names:
                    raise WorldError(f"table `{self._tables[entity]}` has no column `{part}`", place=str(path))

    def _known(self) -> str:
        """The tables that there are, in words."""
        return ", ".join(f"`{name}`" for name in sorted(self._every)) or "no table"

    def _table_of(self, entity: Entity) -> str:
        """The table that its rows stand in: of its own name, or of one like it that has the columns of its key."""
        if entity.name in self._every:
            return entity.name
        names = {_plain(name): name for name in sorted(self._every)}
        likely = (names[name] for name in _names_of(entity) if name in names)
        return next((table for table in likely if self._columns(table).issuperset(entity.key)), "")

    def _columns(self, table: str) -> set[str]:
        return {str(row[1]) for row in self._base.execute(f'PRAGMA table_info("{table}")')}

    def _count(self, table: str) -> int:
        """How many rows a table has, counted only as far as it matters."""
        return self._base.execute(f'SELECT count(*) FROM (SELECT 1 FROM "{table}" LIMIT {WHOLE + 1})').fetchone()[0]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Every row of a table."""
        if table not in self._every:
            hint = f"the database has {self._known()}"
            raise WorldError(f"there is no table `{table}`", place=str(self._path), hint=hint)
        return [row_of(dict(row)) for row in self._base.execute(f'SELECT * FROM "{table}"')]

    def record(self, entity: str, key: Key) -> WorldRecord | NoValue:
        """The row with that key."""
        if entity not in self._tables:
            return UNSEEN
        known = self._cache.get((entity, key))
        if known is None:
            if len(self._cache) >= KEPT:
                self._cache.clear()
            declared = self._schema.entities[entity]
            if entity in self._unread:
                self._read_whole(declared)
            row = self._whole.get(entity, {}).get(key)
            if row is None:
                row = self._row(declared, key)
            known = self._cache[entity, key] = ABSENT if row is None else _record(_nested(declared), dict(row))
        return known

    def _read_whole(self, entity: Entity) -> None:
        self._unread.discard(entity.name)
        # A row that cannot be read is found again, and told, by whoever asks for it.
        with suppress(sqlite3.Error):
            rows = self._base.execute(f'SELECT * FROM "{self._tables[entity.name]}"').fetchall()
            keys = list(zip(*([row[name] for row in rows] for name in entity.key), strict=True))
            kinds = {part.__class__ for key in keys for part in key}
            # Where `7` and `"7"` stand side by side, or nothing, the database has the say which is meant.
            if kinds in ({str}, {int}):
                listed = keys if str in kinds else map(key_of, keys)
                # Of several with one key the first counts.
                self._whole[entity.name] = dict(reversed(list(zip(listed, rows, strict=True))))

    def _row(self, entity: Entity, key: Key) -> sqlite3.Row | None:
        narrowed = [_narrowed(entity, name, part) for name, part in zip(entity.key, key, strict=True)]
        where = " AND ".join(each for each, _ in narrowed) or "1"
        values = [value for _, values in narrowed for value in values]
        rows = self._base.execute(f'SELECT * FROM "{self._tables[entity.name]}" WHERE {where}', values).fetchall()
        exact = (row for row in rows if key_of([row[name] for name in entity.key]) == key)
        # Where none is, a column that the database itself compares loosely (`COLLATE NOCASE`) has the say.
        return next(exact, rows[0] if rows and all(each for _, each in narrowed) else None)

    def members(self, entity: str, match: Mapping[str, Any]) -> Sequence[Key] | None:
        """Keys of the rows that match."""
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
            if not match or agrees(declared, _record(_nested(declared), dict(row)), match)
        ]


def _narrowed(entity: Entity, name: str, wanted: Any) -> tuple[str, Sequence[Any]]:
    """A condition, with its values, that an index can answer and that no row misses which agrees; others may pass."""
    kind = "string" if name in entity.key else entity.fields[name].type
    if kind in ("string", "enum"):
        try:
            text = key_of((wanted,))[0] if name in entity.key else wanted
        except ValueError:
            return "0", ()
        # A lone surrogate, which SQLite does not take, is not printable; bytes are read as `b'...'`.
        if isinstance(text, str) and text.isprintable() and not text.startswith(("b'", 'b"')):
            forms = _forms(text)
            return f'"{name}" IN ({", ".join("?" * len(forms))})', forms
    elif kind == "integer" and isinstance(wanted, int) and abs(wanted) < _WHOLE:
        # Texts come after all numbers: one of them may be read as this number too.
        return f'("{name}" = ? OR "{name}" >= \'\')', [int(wanted)]
    return "1", ()


def _forms(text: str) -> list[Any]:
    """What a column may hold that is read as this text."""
    try:
        number = float(text)
    except ValueError:
        return [text]
    whole = int(text) if len(text) <= 20 and text.lstrip("-").isdecimal() else _WHOLE
    return [text, number, *([whole] if abs(whole) < _WHOLE else ())]


def _nested(entity: Entity) -> list[str]:
    """The fields that hold more than one value: columns keep them as JSON."""
    return [name for name, field in entity.fields.items() if field.type in ("list", "object")]


def _record(nested: Sequence[str], row: dict[str, Any]) -> WorldRecord:
    for name in nested:
        if isinstance(row.get(name), str):
            with suppress(ValueError, RecursionError):
                row[name] = json.loads(row[name])
    return row


class _Records:
    """Records of a JSON document, indexed by key."""

    def __init__(self, path: Path, schema: Schema) -> None:
        try:
            data = json.loads(path.read_bytes())
        except (ValueError, RecursionError) as error:
            raise WorldError(f"neither SQLite nor JSON: {error}", place=str(path)) from None
        self._data: Any = data
        self._path = path
        self._entities = schema.entities
        record = cast(dict[str, Any], data) if isinstance(data, dict) else {}
        named = {entity.name: name for entity in schema.entities.values() if (name := _name_in(record, entity))}
        if not named and not schema.stored:
            raise WorldError(
                'JSON worlds look like {"Entity": [records]}', place=str(path), hint=f"name them so, {_ELSEWHERE}"
            )
        found = implied(
            schema,
            {
                name: _indexed(schema.entities[name], record[named[name]], path)
                for name in named
                if name not in schema.stored
            },
        )
        self._index = found.index
        self._partial = found.partial

    def rows(self, table: str) -> Any:
        """The whole document."""
        if table:
            raise WorldError(
                f"JSON has no table `{table}`", place=str(self._path), hint="say where with `each: $.path`"
            )
        return self._data

    def record(self, entity: str, key: Key) -> WorldRecord | NoValue:
        """The record with that key."""
        if entity not in self._index:
            return UNSEEN
        return self._index[entity].get(key, UNSEEN if entity in self._partial else ABSENT)

    def members(self, entity: str, match: Mapping[str, Any]) -> Sequence[Key] | None:
        """Keys of the records that match."""
        if entity not in self._index or entity in self._partial:
            return None
        declared = self._entities[entity]
        return [key for key, record in self._index[entity].items() if agrees(declared, record, match)]


def _name_in(data: Mapping[str, Any], entity: Entity) -> str:
    """The name that its records stand under: its own, or `orders`, `ORDERS`, `order` for `Order` if all have its key.

    Every way to make a plural is tried (`classes`, `stays`, `stories`): a record has the thing's key or it is not one.
    Under no such name, it is the one object whose records are named by that very key (`users` for `Customer`).
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


def _names_of(entity: Entity) -> tuple[str, ...]:
    """What its records may be called together, without regard to how the words are put together."""
    low = _plain(entity.name)
    return (f"{low}s", f"{low}es", f"{low.removesuffix('y')}ies", low)


def _plain(name: str) -> str:
    """A name however its words are put together: `OrderLine`, `order_line`, `ORDER-LINE`."""
    return re.sub(r"[_\W]", "", name).lower()


def _is_named_by(entity: Entity, body: Any) -> bool:
    """Whether every record says under the entity's own key the name that it stands under."""
    if not isinstance(body, dict) or not body or len(entity.key) != 1:
        return False
    records = cast(dict[str, Any], body).items()
    return all(
        isinstance(each, dict) and cast(dict[str, Any], each).get(entity.key[0]) == name for name, each in records
    )


def _records_in(entity: Entity, body: Any) -> list[dict[str, Any]] | None:
    """The records of a list, or of an object by their keys; None where it holds anything else."""
    if isinstance(body, dict):
        named = cast(dict[str, Any], body).items()
        lone = entity.key[0] if len(entity.key) == 1 else ""
        found: list[Any] = [{lone: name, **each} if lone and isinstance(each, dict) else each for name, each in named]
    else:
        found = cast(list[Any], body) if isinstance(body, list) else [None]
    return found if all(isinstance(each, dict) for each in found) else None


def _indexed(entity: Entity, body: Any, path: Path) -> dict[Key, WorldRecord]:
    """The records of one kind, given as a list or by key."""
    records = _records_in(entity, body)
    if records is None:
        raise WorldError(f"`{entity.name}` must be a list of records", place=str(path))
    index: dict[Key, WorldRecord] = {}
    for record in records:
        if lacking := [part for part in entity.key if part not in record]:
            raise WorldError(f"a record of `{entity.name}` has no `{lacking[0]}`", place=str(path))
        key = key_of([record[part] for part in entity.key])
        if index.setdefault(key, record) != record:
            shown = ", ".join(map(str, key))
            raise WorldError(f"two records of `{entity.name}` have the key `{shown}`, and differ", place=str(path))
    return index
