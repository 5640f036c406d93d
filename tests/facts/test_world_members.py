"""Which rows of a database match: those whose values, as they are read, are the wanted ones."""

import sqlite3
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from bylaw.facts.database import _narrowed  # pyright: ignore[reportPrivateUsage]
from bylaw.facts.schema import Schema
from bylaw.facts.schema_reader import SchemaReader
from bylaw.policy.yaml import read_yaml

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
