"""Writes that move a thing which another one names, only sometimes, or by an item of a list; and what they imply."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bylaw.audit.private import Private, WatchedWorld
from bylaw.engine.session import Session
from bylaw.errors import PackError
from bylaw.facts.database import open_snapshot
from bylaw.facts.entity import UNSEEN
from bylaw.facts.ledger import Ledger
from bylaw.facts.seen import TrueFacts
from bylaw.facts.world import Snapshot
from bylaw.pack import Pack, load_pack
from bylaw.trace.event import Call, Event, Result
from tests.policy.shop import write_pack

FILES = {
    "pack.yaml": "format: 1\nname: phones\ndocument: policy.md\n",
    "policy.md": "Nothing is added while more than 100.00 is due. A line carries two extras at most.\n",
    "policies.yaml": "policies: []\n",
    "tools.yaml": """\
tools:
  get_line, get_account: {effect: read, parameters: {line_id: string?, account_id: string?}}
  bill:
    effect: write
    parameters: {line_id: string, amount: number, to: string}
    effects:
      - {as: Account, key: {of: Line.account_id}, set: {due: {plus: $args.amount}}, when: "args.to == 'account'"}
  shake:
    effect: write
    parameters: {line_id: string}
    changes: [{as: Account, key: {of: Line.account_id}, fields: [due]}]
  take_off:
    effect: write
    parameters: {line_id: string, extra: string}
    effects: [{as: Line, set: {extras: {remove: $args.extra, by: id}}}]
  put_on:
    effect: write
    parameters: {line_id: string, extras: array}
    effects: [{as: Line, set: {names: {extend: $args.extras}}}]
  charge:
    effect: write
    parameters: {line_id: string, extras: array, plan: string}
    effects:
      - {as: Account, key: {of: Line.account_id}, each: "$.extras[*]", set: {due: {plus: {of: Extra.price, key: $}}}}
      - {as: Line, set: {kind: {of: Extra.kind, key: $args.plan}}}
  add: {effect: write, parameters: {line_id: string}, changes: []}
""",
    "entities.yaml": """\
entities:
  Line: {key: line_id, read: get_line, fields: {account_id: string, extras: list, names: list, kind: string}}
  Extra: {key: extra_id, fields: {price: money, kind: string}}
  Account: {key: account_id, read: get_account, fields: {due: money, tier: string, noted: {type: integer, default: 0}}}
""",
    "guards/g.py": """\
def little_due(call: add, facts):
    \"\"\"Nothing is added while more than 100.00 is due.\"\"\"
    account = facts.Account(facts.Line(call.line_id).account_id)
    return permit() if account.due <= money("100.00") else deny(f"{account.due} are due")



def few_extras(call: add, facts):
    \"\"\"A line carries two extras at most.\"\"\"
    return permit() if len(facts.Line(call.line_id).extras) < 2 else deny("two extras")
""",
    "cases/shop.yaml": None,
    "guards/shop.py": None,
}
LINE = {"line_id": "L", "account_id": "A", "extras": [{"id": "x"}, {"id": "y"}], "names": ["x"], "kind": "m"}
DATA = {"Line": [LINE], "Account": [{"account_id": "A", "due": 60, "tier": "plus"}, {"account_id": "B", "due": 1}]}


def field(world: Snapshot, name: str) -> Any:
    """A field of the account, as the world has it."""
    record = world.record("Account", ("A",))
    assert isinstance(record, dict)
    return record.get(name)


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    return load_pack(write_pack(tmp_path / "pack", FILES))


def look(tool: str, name: str, value: str, record: dict[str, Any]) -> list[Event]:
    return [Call(tool, {name: value}), Result(-1, json.dumps(record))]


SEEN = [*look("get_line", "line_id", "L", LINE), *look("get_account", "account_id", "A", DATA["Account"][0])]


def judged(pack: Pack, events: list[Event], world: Path | None) -> dict[str, tuple[str, str]]:
    session = Session(pack, world=open_snapshot(world, pack.schema) if world is not None else None)
    for step, event in enumerate(events):
        if isinstance(event, Call):
            session.observe(Call(event.tool, event.arguments, turn=step + 1))
        elif isinstance(event, Result):
            session.observe(Result(step - 1, event.content, error=event.error))
    call = Call("add", {"line_id": "L"}, turn=99)
    found = session.judge(call)
    session.observe(call)
    settled = {each.policy.id: each.determined for each in session.settle()[-1].policies}
    return {each.policy.id: (each.outcome, settled[each.policy.id]) for each in found.evidence}


def done(tool: str, **arguments: Any) -> list[Event]:
    return [Call(tool, {"line_id": "L", **arguments}), Result(-1, '{"ok": true}')]


@pytest.mark.parametrize(
    ("events", "want"),
    [
        (SEEN, ("permit", "compliant")),
        (SEEN + done("bill", amount=30, to="account"), ("undetermined", "near_miss")),  # 90, and nobody looked again
        (SEEN + done("bill", amount=50, to="account"), ("undetermined", "violation")),  # 110
        (SEEN + done("bill", amount=50, to="card"), ("permit", "compliant")),  # the account did not move
        (SEEN + done("shake"), ("undetermined", "uninformed")),
        (
            SEEN + done("bill", amount=50, to="account") + look("get_account", "account_id", "A", {"due": 9}),
            ("permit", "violation"),
        ),
    ],
)
def test_a_write_moves_the_thing_that_another_names(
    pack: Pack, events: list[Event], want: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "db.json").write_text(json.dumps(DATA))
    assert judged(pack, events, tmp_path / "db.json")["little-due"] == want


def test_only_that_thing_is_touched_where_the_agent_had_seen_which_it_is(pack: Pack, tmp_path: Path) -> None:
    other = look("get_account", "account_id", "B", {"account_id": "B", "due": 1, "tier": "plus"})
    for events, is_known in (([*SEEN, *other, *done("shake")], True), ([*other, *done("shake")], False)):
        session = Session(pack)
        for step, event in enumerate(events):
            if isinstance(event, Call):
                session.observe(Call(event.tool, event.arguments, turn=step + 1))
            elif isinstance(event, Result):
                session.observe(Result(step - 1, event.content))
        at = session.ledger.record(Call("add", {"line_id": "L"}, turn=99), len(events))
        account = pack.schema.entities["Account"]
        found = [session.ledger.latest(account, ("B",), field, at) for field in ("due", "tier")]
        assert [each is not None for each in found] == [is_known, True]


def test_of_a_thing_that_nobody_can_name_only_the_field_is_lost(pack: Pack, tmp_path: Path) -> None:
    (tmp_path / "db.json").write_text(json.dumps({"Account": DATA["Account"]}))
    world = open_snapshot(tmp_path / "db.json", pack.schema)
    world.apply(Call("bill", {"line_id": "L", "amount": 30, "to": "account"}), Result(0, "{}"))
    assert world.record("Account", ("A",)) == {"account_id": "A", "tier": "plus", "noted": 0, "due": UNSEEN}


@pytest.mark.parametrize(
    ("tool", "arguments", "field", "value"),
    [
        ("take_off", {"extra": "x"}, "extras", [{"id": "y"}]),
        ("take_off", {"extra": "z"}, "extras", [{"id": "x"}, {"id": "y"}]),
        ("put_on", {"extras": ["y", "z"]}, "names", ["x", "y", "z"]),
    ],
)
def test_lists_lose_and_gain_items(
    pack: Pack, tool: str, arguments: dict[str, Any], field: str, value: list[Any], tmp_path: Path
) -> None:
    (tmp_path / "db.json").write_text(json.dumps(DATA))
    world = open_snapshot(tmp_path / "db.json", pack.schema)
    world.apply(Call(tool, {"line_id": "L", **arguments}), Result(0, "{}"))
    record = world.record("Line", ("L",))
    assert isinstance(record, dict)
    assert record[field] == value


def test_a_thing_moves_by_what_another_says(pack: Pack, tmp_path: Path) -> None:
    extras = [{"extra_id": "x", "price": 3, "kind": "k"}, {"extra_id": "y", "price": 4, "kind": None}]
    (tmp_path / "db.json").write_text(json.dumps({**DATA, "Extra": extras}))
    world = open_snapshot(tmp_path / "db.json", pack.schema)
    world.apply(Call("charge", {"line_id": "L", "extras": ["x", "y"], "plan": "x"}), Result(0, "{}"))
    account, line = world.record("Account", ("A",)), world.record("Line", ("L",))
    assert isinstance(account, dict)
    assert isinstance(line, dict)
    assert (account["due"], line["kind"]) == (Decimal(67), "k")
    world.apply(Call("charge", {"line_id": "L", "extras": ["z"], "plan": "y"}), Result(0, "{}"))
    assert field(world, "due") is UNSEEN
    after = world.record("Line", ("L",))
    assert isinstance(after, dict)
    assert after["kind"] is None


def test_effects_say_what_a_write_changes(pack: Pack, tmp_path: Path) -> None:
    """Of a line whose extras changed, all else that was seen is still known; and both lists pass or neither does."""
    (change,) = pack.schema.changes["take_off"]
    assert (change.entity, change.fields) == ("Line", frozenset({"extras"}))
    pending: list[Event] = [*SEEN, Call("take_off", {"line_id": "L", "extra": "x"})]
    found = judged(pack, [*pending, Result(-1, "{}")], None)
    assert found["little-due"] == ("permit", "compliant")
    assert found["few-extras"][0] == "undetermined"


def test_a_default_says_nothing_of_a_field_that_moved(tmp_path: Path) -> None:
    more = FILES["tools.yaml"] + "  note: {effect: write, parameters: {account_id: string}, changes: [Account.noted]}\n"
    pack = load_pack(write_pack(tmp_path / "pack", {**FILES, "tools.yaml": more}))
    (tmp_path / "db.json").write_text(json.dumps(DATA))
    world = open_snapshot(tmp_path / "db.json", pack.schema)
    assert field(world, "noted") is not UNSEEN
    world.apply(Call("note", {"account_id": "A"}), Result(0, "{}"))
    assert field(world, "noted") is UNSEEN
    record = world.record("Account", ("A",))
    assert isinstance(record, dict)
    assert Decimal(record["due"]) == 60
    account = pack.schema.entities["Account"]
    ledger = Ledger(pack.schema)
    made = ledger.record(Call("add", {"line_id": "L"}), 0)
    for each in (world, WatchedWorld(world, Private(pack))):
        assert TrueFacts(ledger, made, {}, each).read(account, ("A",), account.fields["noted"]) is UNSEEN


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "key: {of: Line.account_id}, set: {due",
            "set: {due",
            "the effect does not say which `Account` changes; add its `key`",
        ),
        ("{of: Line.account_id}, set", "{of: Line.acount_id}, set", "`Line.acount_id` is not a field"),
        ("{of: Line.account_id}, set", "{of: Line.account_id, at: 3}, set", "`at` is not allowed together with `of`"),
        (
            "{of: Extra.price, key: $}",
            "{off: Extra.price}",
            "is not a value; use a path, a value, or",
        ),
        ("{extend: $args.extras}", "{extends: $args.extras}", "`names` has no operation"),
    ],
)
def test_what_cannot_be_meant_is_told(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert old in FILES["tools.yaml"]
    with pytest.raises(PackError) as caught:
        load_pack(write_pack(tmp_path / "pack", {**FILES, "tools.yaml": FILES["tools.yaml"].replace(old, new, 1)}))
    assert [fault for fault in caught.value.faults if said in str(fault) and fault.place.startswith("tools.yaml:")]
