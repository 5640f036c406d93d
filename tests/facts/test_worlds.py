"""Worlds: a snapshot that moves with the writes, read from SQLite or JSON, and what becomes of broken ones."""

import json
import sqlite3
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bylaw.engine.statements import read_tools
from bylaw.errors import WorldError
from bylaw.facts.database import _narrowed, open_snapshot  # pyright: ignore[reportPrivateUsage]
from bylaw.facts.entity import ABSENT, EXISTS, UNSEEN
from bylaw.facts.ledger import Ledger
from bylaw.facts.schema import Schema
from bylaw.facts.schema_reader import SchemaReader
from bylaw.facts.source import WorldFacts
from bylaw.facts.value import key_of
from bylaw.facts.world import Snapshot, agrees
from bylaw.policy.yaml import read_yaml
from bylaw.trace.event import Call, Result

TOOLS = """\
tools:
  pay:
    effect: write
    parameters: {account_id: string, amount: string}
    changes: [Account.balance]
    effects:
      - {as: Account, key: $args.account_id, set: {balance: {minus: $args.amount}, payments: {plus: 1}}}
      - {as: Account, key: $args.account_id, set: {notes: {append: $args.amount}}}
  open:
    effect: write
    parameters: {owner: string}
    effects:
      - as: Account
        key: $result.account_id
        set: {owner: $args.owner, balance: "=0.00", payments: 0, notes: {is: $result.notes}, status: =open}
  adopt:
    effect: write
    parameters: {account_id: string, from_id: string}
    effects:
      - {as: Account, key: $args.account_id, set: {owner: {of: Account.owner, key: $args.from_id}}}
  close:
    effect: write
    parameters: {account_id: string}
    effects: [{as: Account, key: $args.account_id, delete: true}]
  close_all:
    effect: write
    parameters: {ids: array}
    effects: [{as: Account, each: "$args.ids[*]", key: $, set: {status: =closed}}]
  rename:
    effect: write
    parameters: {account_id: string, owner: string}
    changes: [Account.owner, Account.status]
  audit:
    effect: write
    parameters: {}
    changes: [Account.status]
  touch:
    effect: write
    parameters: {account_id: string}
"""
ENTITIES = """\
entities:
  Account:
    key: account_id
    fields:
      owner: string
      balance: money
      payments: integer
      notes: list
      status: {type: enum, values: [open, closed]}
      limit: {type: money, default: "100"}
  Person:
    key: [first, last]
    fields: {age: integer}
observations:
  rename: [{as: Account}]
"""
ROWS: dict[str, Any] = {
    "Account": [
        {"account_id": "A1", "owner": "Ann", "balance": "50.00", "payments": 2, "notes": ["x"], "status": "open"},
        {"account_id": "A2", "owner": "Bob", "balance": "7.50", "payments": 0, "notes": [], "status": "open"},
    ],
    "Person": [{"first": "Ann", "last": "Lee", "age": 40}],
}


def schema() -> Schema:
    tools, _ = read_tools(read_yaml(TOOLS, file="tools.yaml"))
    reader = SchemaReader(read_yaml(ENTITIES, file="entities.yaml"), tools, None)
    found = reader.read()
    assert not reader.faults, [str(fault) for fault in reader.faults]
    return found


SCHEMA = schema()


def sqlite_world(path: Path) -> Snapshot:
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE Account (account_id, owner, balance, payments, notes, status)")
    base.execute("CREATE TABLE Person (first, last, age)")
    for row in ROWS["Account"]:
        values = [json.dumps(value) if isinstance(value, list) else value for value in row.values()]
        base.execute("INSERT INTO Account VALUES (?, ?, ?, ?, ?, ?)", values)
    base.execute("INSERT INTO Person VALUES ('Ann', 'Lee', 40)")
    base.commit()
    base.close()
    return open_snapshot(path, SCHEMA)


def json_world(path: Path) -> Snapshot:
    path.write_text(json.dumps(ROWS))
    return open_snapshot(path, SCHEMA)


@pytest.fixture(params=[sqlite_world, json_world])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Snapshot:
    return request.param(tmp_path / "world")


def read(world: Snapshot, field: str, *key: str, kind: str = "Account") -> Any:
    ledger = Ledger(SCHEMA)
    judged = Call("touch", {}, turn=1)
    ledger.observe(0, judged)
    entity = SCHEMA.entities[kind]
    return WorldFacts(world, ledger, ledger.calls[0], {}).read(entity, key, entity.fields.get(field, EXISTS))


def write(world: Snapshot, tool: str, arguments: dict[str, Any], result: str | None = "ok") -> None:
    world.apply(Call(tool, arguments), None if result is None else Result(0, result))


def test_a_record_is_read_by_its_key(world: Snapshot) -> None:
    assert read(world, "balance", "A1") == Decimal("50.00")
    assert read(world, "notes", "A1") == ["x"]
    assert read(world, "age", "Ann", "Lee", kind="Person") == 40
    assert read(world, "exists", "A1") is True


def test_what_is_not_there_does_not_exist(world: Snapshot) -> None:
    assert read(world, "balance", "A9") is ABSENT
    assert read(world, "exists", "A9") is False
    assert read(world, "age", "Ann", "Roe", kind="Person") is ABSENT
    assert read(world, "age", "Ann", "Lee\n", kind="Person") is ABSENT
    assert read(world, "age", "Ann", "\ud800", kind="Person") is ABSENT


def test_a_column_that_is_not_there_has_its_default(world: Snapshot) -> None:
    assert read(world, "limit", "A1") == Decimal(100)


def test_numbers_move(world: Snapshot) -> None:
    write(world, "pay", {"account_id": "A1", "amount": "20.00"})
    write(world, "pay", {"account_id": "A1", "amount": "5.50"})
    assert read(world, "balance", "A1") == Decimal("24.50")
    assert read(world, "payments", "A1") == 4
    assert read(world, "notes", "A1") == ["x", "20.00", "5.50"]
    assert read(world, "owner", "A1") == "Ann"
    assert read(world, "balance", "A2") == Decimal("7.50")


@pytest.mark.parametrize("amount", ["plenty", None, [], {}, "NaN", True])
def test_a_number_moved_by_what_is_no_number_is_no_longer_known(amount: Any, world: Snapshot) -> None:
    write(world, "pay", {"account_id": "A1", "amount": amount})
    assert read(world, "balance", "A1") is UNSEEN
    assert read(world, "payments", "A1") == 3


def test_a_number_that_is_not_known_stays_so_when_it_moves(tmp_path: Path) -> None:
    (tmp_path / "world").write_text('{"Account": [{"account_id": "A1", "owner": "Ann"}]}')
    world = open_snapshot(tmp_path / "world", SCHEMA)
    write(world, "pay", {"account_id": "A1", "amount": "5"})
    assert (read(world, "balance", "A1"), read(world, "payments", "A1")) == (UNSEEN, UNSEEN)
    assert read(world, "notes", "A1") is UNSEEN


def test_new_things_come_from_the_result(world: Snapshot) -> None:
    write(world, "open", {"owner": "Cy"}, '{"account_id": "A3"}')
    assert (read(world, "owner", "A3"), read(world, "balance", "A3"), read(world, "status", "A3")) == ("Cy", 0, "open")
    assert read(world, "notes", "A3") is UNSEEN


def test_a_new_thing_whose_result_was_not_captured_stays_unknown(world: Snapshot) -> None:
    write(world, "open", {"owner": "Cy"}, None)
    assert read(world, "exists", "A3") is False


def test_a_field_comes_from_another_thing(world: Snapshot) -> None:
    write(world, "adopt", {"account_id": "A1", "from_id": "A2"})
    assert read(world, "owner", "A1") == "Bob"
    write(world, "adopt", {"account_id": "A2", "from_id": "A9"})
    assert read(world, "owner", "A2") is UNSEEN


def test_a_deleted_thing_does_not_exist(world: Snapshot) -> None:
    write(world, "close", {"account_id": "A1"})
    assert read(world, "exists", "A1") is False
    assert read(world, "balance", "A1") is ABSENT
    assert world.members("Account", {}) == [("A2",)]


def test_each_moves_several(world: Snapshot) -> None:
    write(world, "close_all", {"ids": ["A1", "A2"]})
    assert (read(world, "status", "A1"), read(world, "status", "A2")) == ("closed", "closed")


def test_without_effects_what_the_result_shows_is_taken_over(world: Snapshot) -> None:
    write(world, "rename", {"account_id": "A1", "owner": "Dee"}, '{"account_id": "A1", "owner": "Dee"}')
    assert read(world, "owner", "A1") == "Dee"
    assert read(world, "status", "A1") is UNSEEN
    assert read(world, "balance", "A1") == Decimal("50.00")
    assert read(world, "status", "A2") == "open"


def test_without_effects_what_is_declared_changed_is_no_longer_known(world: Snapshot) -> None:
    write(world, "rename", {"account_id": "A1", "owner": "Dee"}, None)
    assert (read(world, "owner", "A1"), read(world, "status", "A1")) == (UNSEEN, UNSEEN)
    assert read(world, "exists", "A1") is True


def test_a_write_that_may_have_touched_all_leaves_nothing_of_the_kind_known(world: Snapshot) -> None:
    write(world, "audit", {})
    assert read(world, "status", "A1") is UNSEEN
    assert world.members("Account", {}) is None
    assert read(world, "age", "Ann", "Lee", kind="Person") == 40


def test_an_undeclared_write_makes_all_fields_of_its_thing_unknown(world: Snapshot) -> None:
    write(world, "touch", {"account_id": "A1"})
    assert read(world, "balance", "A1") is UNSEEN
    assert read(world, "exists", "A1") is UNSEEN
    assert read(world, "balance", "A2") == Decimal("7.50")


@pytest.mark.parametrize("tool", ["pay", "close", "close_all", "rename"])
def test_a_write_whose_arguments_were_not_captured_leaves_nothing_of_the_kind_known(tool: str, world: Snapshot) -> None:
    world.apply(Call(tool, {}, fault="arguments not captured"), Result(0, "ok"))
    assert read(world, "status", "A1") is UNSEEN
    assert read(world, "age", "Ann", "Lee", kind="Person") == 40


@pytest.mark.parametrize("named", [" A1", "a1", "'A1'", ["A1"], {"id": "A1"}, '["A1"]'])
@pytest.mark.parametrize("tool", ["pay", "rename", "close"])
def test_a_write_that_may_have_meant_a_thing_leaves_it_unknown(tool: str, named: Any, world: Snapshot) -> None:
    write(world, tool, {"account_id": named, "amount": "1", "owner": "Eve"})
    assert read(world, "status", "A1") is UNSEEN
    assert world.members("Account", {"owner": "Ann"}) is None


def test_a_new_thing_casts_no_doubt_on_others(world: Snapshot) -> None:
    write(world, "open", {"owner": "Ann"}, '{"account_id": "A3"}')
    assert read(world, "balance", "A1") == Decimal("50.00")
    assert read(world, "balance", "A3") == Decimal("0.00")
    write(world, "pay", {"account_id": "a3", "amount": "1"})
    assert read(world, "balance", "A3") is UNSEEN


def test_a_tool_that_nobody_declared_may_have_moved_what_it_names(world: Snapshot) -> None:
    write(world, "pay", {"account_id": "A2", "amount": "1"})
    write(world, "unheard_of", {"ids": ["A2"]})
    assert read(world, "balance", "A2") is UNSEEN
    assert read(world, "balance", "A1") == Decimal("50.00")
    assert world.members("Account", {"owner": "Ann"}) is None
    write(world, "unheard_of", {"note": "see Ann Lee"})
    assert read(world, "age", "Ann", "Lee", kind="Person") is UNSEEN


def test_members_move_with_the_writes(world: Snapshot) -> None:
    assert world.members("Account", {"owner": "Ann"}) == [("A1",)]
    write(world, "adopt", {"account_id": "A2", "from_id": "A1"})
    write(world, "open", {"owner": "Ann"}, '{"account_id": "A3"}')
    assert world.members("Account", {"owner": "Ann"}) == [("A1",), ("A2",), ("A3",)]
    assert world.members("Account", {"owner": "Bob"}) == []


def test_a_fork_knows_nothing_of_the_writes(world: Snapshot) -> None:
    write(world, "close", {"account_id": "A1"})
    assert read(world.fork(), "exists", "A1") is True


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (b"", "neither SQLite nor JSON"),
        (b"not json", "neither SQLite nor JSON"),
        (b"[]", "JSON worlds look like"),
        (b"{}", "JSON worlds look like"),
        (b'{"Order": []}', "JSON worlds look like"),
        (b'{"Account": 5}', "`Account` must be a list of records"),
        (b'{"Account": [5]}', "`Account` must be a list of records"),
        (b'{"Account": [{"owner": "Ann"}]}', "a record of `Account` has no `account_id`"),
        (b"\xff\xfe", "neither SQLite nor JSON"),
        (b"[" * 100_000, "neither SQLite nor JSON"),
        (b"SQLite format 3\0", "not a database"),
        (b"SQLite format 3\0" + b"\x7f" * 5000, "not a database"),
    ],
)
def test_a_broken_world_is_said_to_be_broken(content: bytes, wanted: str, tmp_path: Path) -> None:
    (tmp_path / "world").write_bytes(content)
    with pytest.raises(WorldError, match=wanted) as caught:
        open_snapshot(tmp_path / "world", SCHEMA)
    assert str(tmp_path / "world") in str(caught.value)


def test_a_world_that_is_not_there_or_a_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match="cannot read the world: no such file"):
        open_snapshot(tmp_path / "none", SCHEMA)
    with pytest.raises(WorldError, match="cannot read the world: is a directory"):
        open_snapshot(tmp_path, SCHEMA)


def test_a_database_without_our_tables_is_said(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "world")
    base.execute("CREATE TABLE Other (x)")
    base.commit()
    base.close()
    with pytest.raises(WorldError, match="no table is named like an entity"):
        open_snapshot(tmp_path / "world", SCHEMA)


def test_a_table_without_its_key_is_said(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "world")
    base.execute("CREATE TABLE Account (owner)")
    base.commit()
    base.close()
    with pytest.raises(WorldError, match="table `Account` has no column `account_id`"):
        open_snapshot(tmp_path / "world", SCHEMA)


def test_a_kind_that_the_world_does_not_hold_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "world").write_text('{"Account": []}')
    world = open_snapshot(tmp_path / "world", SCHEMA)
    assert read(world, "age", "Ann", "Lee", kind="Person") is UNSEEN
    assert world.members("Person", {}) is None


def test_a_json_world_may_be_keyed(tmp_path: Path) -> None:
    (tmp_path / "world").write_text(json.dumps({"Account": {"A1": ROWS["Account"][0]}}))
    assert read(open_snapshot(tmp_path / "world", SCHEMA), "owner", "A1") == "Ann"


def test_numbers_as_keys_are_found_in_both(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "world")
    base.execute("CREATE TABLE Account (account_id INTEGER, owner TEXT)")
    base.execute("INSERT INTO Account VALUES (7, 'Ann')")
    base.commit()
    base.close()
    assert read(open_snapshot(tmp_path / "world", SCHEMA), "owner", "7") == "Ann"
    (tmp_path / "json").write_text('{"Account": [{"account_id": 7, "owner": "Ann"}]}')
    assert read(open_snapshot(tmp_path / "json", SCHEMA), "owner", "7") == "Ann"


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


def test_members_that_a_write_moved_are_compared_as_their_fields_are_read(world: Snapshot) -> None:
    write(world, "pay", {"account_id": "A1", "amount": "42.50"})
    assert world.members("Account", {"balance": Decimal("7.5")}) == [("A2",), ("A1",)]
    write(world, "open", {"owner": 7}, '{"account_id": 9}')
    assert world.members("Account", {"owner": "7"}) == [("9",)]
    assert world.members("Account", {"account_id": 9}) == [("9",)]


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
