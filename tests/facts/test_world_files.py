"""Files that a world is read from: broken ones are said to be so, and what a sound one does not hold is not known."""

import json
import sqlite3
from pathlib import Path

import pytest

from bylaw.errors import WorldError
from bylaw.facts.database import open_snapshot  # pyright: ignore[reportPrivateUsage]
from bylaw.facts.entity import UNSEEN
from bylaw.facts.schema_reader import SchemaReader
from bylaw.facts.world import Snapshot
from bylaw.policy.yaml import read_yaml

from .test_worlds import ROWS, SCHEMA, read


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
        (
            b'{"Account": [{"account_id": "A", "x": 1}, {"account_id": "A"}]}',
            "two records of `Account` have the key `A`",
        ),
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
    with pytest.raises(WorldError, match="cannot read the database: no such file"):
        open_snapshot(tmp_path / "none", SCHEMA)
    with pytest.raises(WorldError, match="cannot read the database: is a directory"):
        open_snapshot(tmp_path, SCHEMA)


def test_a_database_without_our_tables_is_said(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "world")
    base.execute("CREATE TABLE Other (x)")
    base.commit()
    base.close()
    with pytest.raises(WorldError, match="no table has the name of an entity") as caught:
        open_snapshot(tmp_path / "world", SCHEMA)
    assert "the pack has `Account`, `Person`, but the database has `Other`" in str(caught.value)


@pytest.mark.parametrize("table", ["accounts", "ACCOUNT", "Accounts", "account"])
def test_a_table_may_be_named_like_many_of_a_thing(tmp_path: Path, table: str) -> None:
    base = sqlite3.connect(tmp_path / "world")
    base.execute(f"CREATE TABLE {table} (account_id, owner)")
    base.execute(f"INSERT INTO {table} VALUES ('A1', 'Ann')")
    base.commit()
    base.close()
    world = open_snapshot(tmp_path / "world", SCHEMA)
    assert read(world, "owner", "A1") == "Ann"
    assert world.members("Account", {"owner": "Ann"}) == [("A1",)]


def test_a_table_of_another_kind_of_thing_is_not_taken_for_it(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "world")
    base.execute("CREATE TABLE accounts (id, owner)")
    base.execute("CREATE TABLE Person (first, last, age)")
    base.commit()
    base.close()
    assert read(open_snapshot(tmp_path / "world", SCHEMA), "owner", "A1") is UNSEEN


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


PEOPLE = {"A1": {"owner": "Ann", "balance": "10.00", "state": "open"}}


def _fits(entities: str, document: dict[str, object], tmp_path: Path) -> Snapshot:
    reader = SchemaReader(read_yaml(entities, file="entities.yaml"), {}, None)
    schema = reader.read()
    assert not reader.faults
    (tmp_path / "world").write_text(json.dumps(document))
    return open_snapshot(tmp_path / "world", schema)


HELD = """
entities:
  Account: {key: account_id, fields: {owner: string, balance: string, state: string}}
  Person: {key: n}
"""


def test_records_under_another_name_are_found_by_their_fields(tmp_path: Path) -> None:
    world = _fits(HELD, {"contracts": PEOPLE, "Person": []}, tmp_path)
    assert read(world, "owner", "A1") == "Ann"


def test_records_that_two_names_may_mean_are_not_taken(tmp_path: Path) -> None:
    world = _fits(HELD, {"contracts": PEOPLE, "others": PEOPLE, "Person": []}, tmp_path)
    assert read(world, "owner", "A1") is UNSEEN


def test_records_that_lack_most_fields_are_not_taken(tmp_path: Path) -> None:
    world = _fits(HELD, {"contracts": {"A1": {"owner": "Ann", "since": "2020"}}, "Person": []}, tmp_path)
    assert read(world, "owner", "A1") is UNSEEN
