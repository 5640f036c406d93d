"""Worlds: a snapshot that moves with the writes, whether it was read from SQLite or JSON."""

import json
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bylaw.facts.database import open_snapshot  # pyright: ignore[reportPrivateUsage]
from bylaw.facts.entity import ABSENT, EXISTS, UNSEEN
from bylaw.facts.ledger import Ledger
from bylaw.facts.schema import Schema
from bylaw.facts.schema_reader import SchemaReader
from bylaw.facts.seen import TrueFacts
from bylaw.facts.world import Snapshot
from bylaw.pack.statements import read_tools
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
  move:
    effect: write
    parameters: {source: string, target: string}
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
    return TrueFacts(ledger, ledger.calls[0], {}, world).read(entity, key, entity.fields.get(field, EXISTS))


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


def test_a_write_that_may_have_touched_all_leaves_the_field_of_none_known(world: Snapshot) -> None:
    write(world, "audit", {})
    assert (read(world, "status", "A1"), read(world, "status", "A2")) == (UNSEEN, UNSEEN)
    assert read(world, "balance", "A1") == Decimal("50.00")
    assert world.members("Account", {}) == [("A1",), ("A2",)]
    assert world.members("Account", {"status": "open"}) is None
    assert read(world, "age", "Ann", "Lee", kind="Person") == 40


def test_an_undeclared_write_makes_all_fields_of_its_thing_unknown(world: Snapshot) -> None:
    write(world, "touch", {"account_id": "A1"})
    assert read(world, "balance", "A1") is UNSEEN
    assert read(world, "exists", "A1") is UNSEEN
    assert read(world, "balance", "A2") == Decimal("7.50")


@pytest.mark.parametrize("call", [Call("move", {"source": "x"}), Call("move", {}), Call("touch", {"account_id": "A7"})])
def test_a_write_that_does_not_say_what_it_changes_may_have_moved_what_has_no_key(call: Call) -> None:
    tools, _ = read_tools(read_yaml(TOOLS, file="tools.yaml"))
    till = "entities: {Till: {key: [], fields: {cash: money}}}\ncontext: {me: string}\n"
    reader = SchemaReader(read_yaml(till, file="entities.yaml"), tools, None)
    found = reader.read()
    world = Snapshot(found, lambda entity, key: {"cash": "5.00"} if (entity, key) == ("Till", ()) else ABSENT)
    done, perhaps, said = world.fork(), world.fork(), world.fork()
    done.apply(call, Result(0, "ok"))
    perhaps.unsettle(call)
    said.apply(Call("close", {"account_id": "A1"}), Result(0, "ok"))
    assert done.record("Till", ()) is UNSEEN
    assert perhaps.record("Till", ()) is UNSEEN
    assert said.record("Till", ()) == {"cash": "5.00"}
    assert not any(change.entity == "context" for changes in found.changes.values() for change in changes)


@pytest.mark.parametrize("call", [Call("move", {"source": "A1", "target": "A9"}), Call("move", {"target": "a1"})])
def test_a_write_that_does_not_say_what_it_changes_may_have_moved_what_it_names(call: Call, world: Snapshot) -> None:
    other = world.fork()
    world.apply(call, Result(0, "ok"))
    other.unsettle(call)
    for each in (world, other):
        assert read(each, "balance", "A1") is UNSEEN
        assert each.members("Account", {}) is None
        assert read(each, "balance", "A2") == Decimal("7.50")


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


def test_members_that_a_write_moved_are_compared_as_their_fields_are_read(world: Snapshot) -> None:
    write(world, "pay", {"account_id": "A1", "amount": "42.50"})
    assert world.members("Account", {"balance": Decimal("7.5")}) == [("A2",), ("A1",)]
    write(world, "open", {"owner": 7}, '{"account_id": 9}')
    assert world.members("Account", {"owner": "7"}) == [("9",)]
    assert world.members("Account", {"account_id": 9}) == [("9",)]


def test_what_effects_do_not_name_still_moves_by_the_result(tmp_path: Path) -> None:
    tools = """\
tools:
  swap:
    effect: write
    parameters: {order_id: string, card_id: string}
    changes: [Order.*, {as: Card, key: $args.card_id, fields: [balance]}]
    effects: [{as: Card, key: $args.card_id, set: {balance: {minus: $result.paid}}}]
"""
    entities = """\
entities:
  Order: {key: order_id, fields: {status: string, note: string}}
  Card: {key: card_id, fields: {balance: money}}
observations:
  swap: {as: Order}
"""
    declared, _ = read_tools(read_yaml(tools, file="tools.yaml"))
    made = SchemaReader(read_yaml(entities, file="entities.yaml"), declared, None).read()
    data = {"Order": [{"order_id": "O1", "status": "open", "note": "x"}], "Card": [{"card_id": "C1", "balance": "9"}]}
    (tmp_path / "world.json").write_text(json.dumps(data))
    world = open_snapshot(tmp_path / "world.json", made)
    write(world, "swap", {"order_id": "O1", "card_id": "C1"}, '{"order_id": "O1", "status": "swapped", "paid": "4"}')
    assert world.record("Order", ("O1",)) == {"order_id": "O1", "status": "swapped", "note": UNSEEN}
    assert world.record("Card", ("C1",)) == {"card_id": "C1", "balance": Decimal(5)}


def test_after_a_write_that_was_perhaps_done_what_it_moves_is_not_known(world: Snapshot) -> None:
    world.unsettle(Call("pay", {"account_id": "A1", "amount": "10"}, turn=0))
    assert read(world, "balance", "A1") is UNSEEN
    assert read(world, "owner", "A1") == "Ann"
    assert read(world, "balance", "A2") == Decimal("7.50")


def test_a_thing_that_was_perhaps_deleted_is_there_or_not(world: Snapshot) -> None:
    assert world.members("Account", {"status": "open"}) == [("A1",), ("A2",)]
    world.unsettle(Call("close", {"account_id": "A1"}, turn=0))
    assert read(world, "exists", "A1") is UNSEEN
    assert world.members("Account", {"status": "open"}) is None


def test_a_thing_that_was_perhaps_made_may_be_in_a_list(world: Snapshot) -> None:
    world.unsettle(Call("open", {"owner": "Ann"}, turn=0))
    assert read(world, "owner", "A1") == "Ann"
    assert world.members("Account", {"owner": "Ann"}) is None


def test_a_list_by_what_was_perhaps_changed_is_not_known(world: Snapshot) -> None:
    world.unsettle(Call("close_all", {"ids": ["A1"]}, turn=0))
    assert world.members("Account", {"status": "open"}) is None
    assert world.members("Account", {"owner": "Bob"}) == [("A2",)]
    assert world.members("Account", {"owner": "Bob", "status": "open"}) == [("A2",)]


def test_a_list_by_what_a_write_made_unknown_is_not_known(world: Snapshot) -> None:
    world.apply(Call("rename", {"account_id": "A1", "owner": "Cleo"}, turn=0), Result(0, '"done"'))
    assert world.members("Account", {"owner": "Cleo"}) is None
