"""Which rows of a database match: those whose values, as they are read, are the wanted ones."""

import json
import sqlite3
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bylaw.facts.database import _narrowed, open_snapshot  # pyright: ignore[reportPrivateUsage]
from bylaw.facts.schema import Schema
from bylaw.facts.schema_reader import SchemaReader
from bylaw.facts.value import key_of
from bylaw.facts.world import agrees
from bylaw.policy.yaml import read_yaml

from .test_worlds import SCHEMA

MANY = """\
entities:
  Thing:
    key: thing_id
    fields:
      name: string
      day: date
      at: datetime
      total: money
      count: integer
      rate: number
      open: boolean
      kind: {type: enum, values: [big, "7"]}
      tags: list
      limit: {type: money, default: "100"}
"""
COLUMNS = ("thing_id", "name", "day", "at", "total", "count", "rate", "open", "kind", "tags")
THINGS: list[tuple[Any, ...]] = [
    (1, 7, "2024-01-01", "2024-01-01T10:00:00", "10.00", 7, 1.5, 1, 7, '["x"]'),
    ("2", "7", "2024-01-01T09:00:00", "2024-01-01 10:00", 10, "07", "1.50", "yes", "7", "[]"),
    ("03", "07", "soon", None, "$10", 7.0, 2, 0, "big", "not json"),
    (4.0, 7.0, None, "x", 10.5, "1_000", None, None, "BIG", None),
    ("5", "b'x'", "2024-01-02", "2024-01-02", "-", 2**62, "", 2, None, '{"a": 1}'),
    ("6", b"x", "2024-01-02", "2024-01-02", 0, "x", 1e300, "no", "7.0", "[1"),
    ("7", str(2**63 - 1), "", "", "1e3", None, 7, "0", 7.0, '["x"]'),
    ("8", 2**63 - 1, "", "", "1e3", 2**63 - 1, 7, "0", 7.0, '["x"]'),
    ("9", 1e20, "", "", "1e3", 1e20, 7, "0", 7.0, '["x"]'),
    ("10", 1.5, "", "", "1,000", 0, 7, "0", 7.0, '["x"]'),
]
WANTED: list[tuple[str, Any]] = [
    *[("name", text) for text in ("7", "07", "7.0", "1.5", "b'x'", "\ud800", "nan", "inf", "", "ſ", "1" * 400)],
    *[("name", text) for text in (str(2**63 - 1), str(10**20), "100000000000000000001", 7, None, Decimal(7))],
    *[("thing_id", key) for key in ("1", 1, "2", 2, "3", "03", 4, 4.0, "4", 10**5000, None, True, ["1"])],
    *[("day", date(2024, 1, 1)), ("day", "2024-01-01"), ("day", None), ("day", date(2024, 1, 2))],
    *[("at", datetime(2024, 1, 1, 10)), ("at", None), ("at", datetime.fromisoformat("2024-01-01T10:00:00+00:00"))],
    *[("total", Decimal("10.00")), ("total", Decimal("10.5")), ("total", 10), ("total", Decimal(1000))],
    *[("count", n) for n in (7, 7.0, 1000, 2**62, 2**63 - 1, 2**63, 10**20, 10**5000, 0, True, "7", None, Decimal(7))],
    *[("rate", 1.5), ("rate", Decimal("1.5")), ("rate", 2), ("rate", 7), ("rate", None)],
    *[("open", True), ("open", False), ("open", None), ("open", 1), ("open", "yes")],
    *[("kind", "7"), ("kind", "big"), ("kind", 7), ("kind", None)],
    *[
        ("tags", ["x"]),
        ("tags", []),
        ("tags", None),
        ("limit", Decimal(100)),
        ("limit", Decimal(1)),
        ("limit", "limit"),
    ],
]


def many() -> Schema:
    return SchemaReader(read_yaml(MANY, file="entities.yaml"), {}, None).read()


@pytest.mark.parametrize("affinity", ["", "TEXT", "INTEGER", "REAL", "NUMERIC", "TEXT COLLATE NOCASE", "BLOB"])
def test_a_database_lists_the_rows_whose_values_as_read_are_the_wanted_ones(affinity: str, tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "world")
    base.execute(f"CREATE TABLE Thing ({', '.join(f'{name} {affinity}' for name in COLUMNS)})")
    base.executemany(f"INSERT INTO Thing VALUES ({', '.join('?' * len(COLUMNS))})", THINGS)
    base.execute("CREATE INDEX names ON Thing (name)")
    base.commit()
    base.row_factory = sqlite3.Row
    rows = [dict(row) for row in base.execute("SELECT * FROM Thing ORDER BY thing_id")]
    base.close()
    for row in rows:
        if row["tags"] and row["tags"][-1] in "]}":
            row["tags"] = json.loads(row["tags"])
    world = open_snapshot(tmp_path / "world", many())
    entity = many().entities["Thing"]
    for name, wanted in WANTED:
        kept = [key_of([row["thing_id"]]) for row in rows if agrees(entity, row, {name: wanted})]
        assert world.members("Thing", {name: wanted}) == kept, (name, wanted)
        assert world.members("Thing", {"limit": Decimal(100), name: wanted}) == kept
    assert all(isinstance(world.record("Thing", key_of([row["thing_id"]])), dict) for row in rows)


@pytest.mark.parametrize(
    ("match", "found"),
    [
        ({"name": "7"}, ["1", "2", "4"]),
        ({"name": "07"}, ["03"]),
        ({"thing_id": 1}, ["1"]),
        ({"thing_id": "3"}, []),
        ({"day": date(2024, 1, 1)}, ["1", "2"]),
        ({"at": datetime(2024, 1, 1, 10)}, ["1", "2"]),
        ({"total": Decimal("10.00")}, ["1", "2", "03"]),
        ({"count": 7}, ["1", "2", "03"]),
        ({"count": 1000}, []),
        ({"open": True, "day": date(2024, 1, 1)}, ["1", "2"]),
        ({"kind": "7", "total": Decimal("10.00")}, ["1", "2"]),
        ({"name": "b'x'"}, ["5"]),
        ({"name": "nobody"}, []),
        ({"limit": Decimal(100), "rate": 1.5}, ["1", "2"]),
        ({"thing_id": 10**5000}, []),
    ],
)
def test_members_are_compared_as_their_fields_are_read(match: dict[str, Any], found: list[str], tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "sqlite")
    base.execute(f"CREATE TABLE Thing ({', '.join(COLUMNS)})")
    base.executemany(f"INSERT INTO Thing VALUES ({', '.join('?' * len(COLUMNS))})", THINGS[:5])
    base.commit()
    base.close()
    things = [dict(zip(COLUMNS, thing, strict=True)) for thing in THINGS[:5]]
    (tmp_path / "json").write_text(json.dumps({"Thing": things}))
    for world in ("sqlite", "json"):
        listed = open_snapshot(tmp_path / world, many()).members("Thing", match)
        assert listed is not None
        assert sorted(listed) == sorted((key,) for key in found), world


@pytest.mark.parametrize("affinity", ["", "TEXT", "INTEGER", "REAL", "TEXT COLLATE NOCASE"])
@pytest.mark.parametrize(
    "keys", [["A1", "a1", "1", "01", "1", "b'x'", "é", "B7"], [7, 1, 7, 12], [1, "1", 2.5, None, b"x"]]
)
def test_a_table_read_whole_has_the_rows_that_are_found_one_by_one(
    affinity: str, keys: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "world.db"
    base = sqlite3.connect(file)
    base.execute(f"CREATE TABLE Account (account_id {affinity}, owner TEXT)")
    base.executemany("INSERT INTO Account VALUES (?, ?)", [(key, f"row {row}") for row, key in enumerate(keys)])
    base.commit()
    asked = ("A1", "a1", "b7", "1", "1.0", "01", "7", "07", "7.0", "2.5", "None", "b'x'", "é", "Z")
    whole = [open_snapshot(file, SCHEMA).record("Account", (key,)) for key in asked]
    monkeypatch.setattr("bylaw.facts.database.WHOLE", -1)
    assert whole == [open_snapshot(file, SCHEMA).record("Account", (key,)) for key in asked]


def test_texts_and_whole_numbers_are_listed_through_an_index(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "world")
    base.execute("CREATE TABLE Thing (thing_id TEXT PRIMARY KEY, name TEXT, count INTEGER)")
    base.execute("CREATE INDEX names ON Thing (name)")
    base.execute("CREATE INDEX counts ON Thing (count)")
    base.commit()
    thing = many().entities["Thing"]
    for name, wanted in (("name", "7"), ("count", 7), ("thing_id", "7")):
        where, values = _narrowed(thing, name, wanted)
        plan = [row[3] for row in base.execute(f"EXPLAIN QUERY PLAN SELECT * FROM Thing WHERE {where}", values)]
        assert not any(step.startswith("SCAN") for step in plan), plan
    base.close()
