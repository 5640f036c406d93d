"""Reads the tables of a database given to `bylaw init`, which become the draft's entities."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from bylaw.errors import WorldError
from bylaw.facts.database import row_of
from bylaw.policy.verb import words_of
from bylaw.scan.shape import TAILS, RowKind, SeenValues, bare, is_name, singular, spelled_like

_DEPTH = 3
_ROWS = 2_000
_FITS = 0.5
"""Minimum share of a record's fields that a table must have."""


class Table(Struct, frozen=True):
    """A table of SQLite, or a list or object of records in JSON."""

    entity: str
    key: tuple[str, ...]
    fields: Mapping[str, SeenValues]
    rows: int
    world: Mapping[str, str]
    """Its location for `world:` in entities.yaml."""
    is_key_named: bool = True
    """False if JSON names the records and no field repeats the name: the look-ups then give the key's name."""

    def fit(self, tool: str, record: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[float, int, bool] | None:
        """How well a record from a result fits the table; None if it is not one of its rows."""
        known = [name for name in record if name in self.fields]
        named = [
            part
            for part in self.key
            if spelled_like(part, record, thing=self.entity) or spelled_like(part, arguments, thing=self.entity)
        ]
        if len(known) < _FITS * len(record) or (self.is_key_named and len(named) < len(self.key)):
            return None
        return len(known) / len(record), len(named), {*words_of(self.entity)} <= {*map(singular, words_of(tool))}


def kind_of(tables: Sequence[Table]) -> RowKind:
    """Recognises rows of these tables in results."""

    def kind(tool: str, record: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
        fits = [(fit, table) for table in tables if (fit := table.fit(tool, record, arguments)) is not None]
        best = max(fits, key=lambda each: each[0], default=None)
        return (best[1].entity, best[1].key) if best else ("", ())

    return kind


def read_tables(path: Path) -> list[Table]:
    """Read the tables that have a key. Raises WorldError if the file is neither SQLite nor JSON."""
    try:
        with path.open("rb") as stream:
            is_sqlite = stream.read(16).startswith(b"SQLite format 3")
        found = list(_sqlite_tables(path) if is_sqlite else _json_tables(json.loads(path.read_bytes()), "$", _DEPTH))
    except (OSError, ValueError, RecursionError, sqlite3.Error) as error:
        raise WorldError(f"neither SQLite nor JSON: {error}", place=str(path)) from None
    return list({table.entity: table for table in reversed(found)}.values())[::-1]


def _sqlite_tables(path: Path) -> Iterator[Table]:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as base:
        base.row_factory = sqlite3.Row
        listed = base.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        for name in [str(row[0]) for row in listed]:
            quoted = '"' + name.replace('"', '""') + '"'
            columns = [dict(row) for row in base.execute(f"PRAGMA table_info({quoted})")]
            declared = sorted((each for each in columns if each["pk"]), key=lambda each: int(each["pk"]))
            rows = [row_of(dict(row)) for row in base.execute(f"SELECT * FROM {quoted} LIMIT {_ROWS}")]
            entity = entity_name(name)
            key = tuple(str(each["name"]) for each in declared) or _unique(rows, entity)
            if is_name(entity) and key and all(map(is_name, key)):
                fields = {str(each["name"]): SeenValues() for each in columns}
                yield Table(entity, key, _filled(fields, rows), len(rows), {"table": name})


def _json_tables(data: Any, path: str, depth: int) -> Iterator[Table]:
    if not isinstance(data, dict) or not depth:
        return
    for name, body in cast(dict[str, Any], data).items():
        if not isinstance(body, dict | list) or not (name.isidentifier() and name.isascii()):
            continue
        here, entity = f"{path}.{name}", entity_name(name)
        names = [*map(str, cast(dict[str, Any], body))] if isinstance(body, dict) else None
        rows = list(cast(dict[str, Any], body).values() if isinstance(body, dict) else cast(list[Any], body))[:_ROWS]
        if not rows or not all(map(_is_record, rows)):
            yield from _json_tables(body, here, depth - 1)
            continue
        each = f"{here}.*" if names is not None else f"{here}[*]"
        key = _unique(rows, entity, names)
        if is_name(entity) and (key or names is not None):
            named = key or (f"{'_'.join(words_of(entity))}_id",)
            fields = _filled({part: SeenValues() for part in named}, rows)
            if not key:
                fields = _filled(fields, [{named[0]: name} for name in names or ()])
            world = {"each": each} if key else {"each": each, "key": "$key"}
            yield Table(entity, named, fields, len(rows), world, is_key_named=bool(key))


def _is_record(value: Any) -> bool:
    """Whether it has values of its own rather than only nested records."""
    if not isinstance(value, dict) or not value:
        return False
    return not all(isinstance(part, dict) for part in cast(dict[str, Any], value).values())


def _filled(fields: dict[str, SeenValues], rows: Sequence[Mapping[str, Any]]) -> dict[str, SeenValues]:
    for row in rows:
        for name, value in row.items():
            if is_name(name):
                fields.setdefault(name, SeenValues()).add(value)
    return {name: values for name, values in fields.items() if is_name(name)}


def _unique(rows: Sequence[Mapping[str, Any]], entity: str, names: Sequence[str] | None = None) -> tuple[str, ...]:
    """The fields that identify each row: a single id, or an id with another field; empty if there are none."""
    fields = [name for name in rows[0] if is_name(name)] if rows else []
    if names is not None:
        return next(((each,) for each in fields if [str(row.get(each)) for row in rows] == names[: len(rows)]), ())
    ids = [name for name in fields if words_of(name)[-1:] and words_of(name)[-1] in TAILS]
    ids.sort(key=lambda name: bare(name) not in ((), tuple(words_of(entity))))
    pairs = [(one, other) for one in ids for other in fields if other != one]
    return next((key for key in [*((name,) for name in ids), *pairs] if _names_each(key, rows)), ())


def _names_each(key: tuple[str, ...], rows: Sequence[Mapping[str, Any]]) -> bool:
    values = [tuple(row.get(part) for part in key) for row in rows]
    if any(part is None or part == "" or isinstance(part, dict | list) for each in values for part in each):
        return False
    return len({*map(str, values)}) == len(rows)


def entity_name(table: str) -> str:
    """An entity's name from its table's: `OrderLine` for `order_lines`."""
    *words, last = words_of(table) or [""]
    return "".join(word.capitalize() for word in (*words, singular(last)))
