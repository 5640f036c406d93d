"""What an attacker of the auditor tried: each would have made a verdict wrong, or hang on other conversations."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bylaw.engine.session import Session
from bylaw.facts.database import open_snapshot
from bylaw.facts.world import World
from bylaw.pack import Pack, load_pack
from bylaw.policy.pattern import LONGEST
from bylaw.shield import Shield
from bylaw.trace import Call, Event, Result

NIGHT = 1714532400.0
"""Three o'clock."""


def written(
    root: Path, *, tools: str, guard: str, on: str, entities: str = "{}", more: dict[str, str] | None = None
) -> Pack:
    """A pack of one guard `g`, with what else it needs."""
    files = {
        "pack.yaml": "format: 1\nname: attacked\ndocument: policy.md\n",
        "policy.md": "# P\n\nBe good.\n",
        "tools.yaml": f"tools:\n{tools}",
        "entities.yaml": f"entities: {entities}",
        "policies.yaml": f"policies:\n  - {{id: g, kind: guard, tools: [{on}], spans: [{{quote: Be good.}}]}}\n",
        "guards/g.py": f"def g(call, facts):\n{guard}",
        **(more or {}),
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return load_pack(root)


def verdicts(pack: Pack, events: Sequence[Event], *, world: World | None = None, **options: Any) -> list[str]:
    session = Session(pack, world=world, **options)
    for event in events:
        if isinstance(event, Call) and event.by == "agent":
            session.judge(event)
        session.observe(event)
    return [verdict.strict for verdict in session.settle()]


def last(pack: Pack, events: Sequence[Event], world: World | None = None) -> str:
    """The last call's verdict."""
    return verdicts(pack, events, world=world)[-1]


AUTHORIZED = '    if done("authorize", order_id=call.order_id) == 0:\n        return deny("no")\n    return permit()\n'
PAYING = "  authorize: {effect: write, parameters: {order_id: string}, changes: []}\n" + (
    "  refund: {effect: write, parameters: {order_id: string}, changes: []}\n"
)


def paying(refused: str, *, turn: int) -> list[Event]:
    first, second = Call("authorize", {"order_id": "A"}, turn=1), Call("refund", {"order_id": "A"}, turn=turn)
    if turn == 1:
        return [first, second, Result(0, refused), Result(1, "ok")]
    return [first, Result(0, refused), second, Result(2, "ok")]


def test_what_was_done_in_the_same_turn_is_looked_at_again_when_it_is_known(tmp_path: Path) -> None:
    pack = written(tmp_path, tools=PAYING, guard=AUTHORIZED, on="refund")
    assert last(pack, paying("Error: nope", turn=1)) == "inconclusive", "it may have been executed"
    declared = written(
        tmp_path / "d", tools=PAYING.replace("{effect", "{refused: '^Error', effect"), guard=AUTHORIZED, on="refund"
    )
    assert last(declared, paying("Error: nope", turn=1)) == "violation"
    assert last(pack, paying("ok", turn=1)) == "compliant"
    assert last(pack, paying("ok", turn=1)[:2]) == "inconclusive"


@pytest.mark.parametrize("blank", ["", " ", "  ", "\t", " \n"])
def test_a_failure_leaves_it_open_however_its_record_is_laid_out(blank: str, tmp_path: Path) -> None:
    pack = written(tmp_path, tools=PAYING, guard=AUTHORIZED, on="refund")
    refused = f'{{"status"{blank}:{blank}false}}'
    assert last(pack, paying(refused, turn=2)) == "inconclusive"


def test_a_failure_in_one_conversation_is_not_remembered_in_another(tmp_path: Path) -> None:
    pack = written(
        tmp_path,
        tools="  list_orders: {effect: read, parameters: {customer_id: string}}\n"
        "  refund: {effect: write, parameters: {customer_id: string}, changes: []}\n",
        entities="\n  Order:\n    key: order_id\n"
        "    fields: {status: {type: enum, values: [open, closed]}, n: integer}\n"
        'observations:\n  list_orders: [{as: Order, each: "$[*]", key: $.id}]\n',
        guard='    if any(o.n > 3 for o in facts.Order.seen(status="open")):\n        return deny("open")\n'
        "    return permit()\n",
        on="refund",
    )

    def talk(status: str) -> list[Event]:
        shown = json.dumps([{"id": "1", "status": status, "n": 9}])
        asked = {"customer_id": "C"}
        return [Call("list_orders", asked, turn=1), Result(0, shown), Call("refund", asked, turn=2), Result(2, "ok")]

    assert last(pack, talk("weird")) == "inconclusive"
    assert last(pack, talk("open")) == "violation"


TIERS = "  get_order: {effect: read, parameters: {order_id: string}}\n" + (
    "  cancel: {effect: write, parameters: {order_id: string, tier: {type: string, enum: [gold, banned]}}}\n"
)


def test_an_argument_that_its_tool_does_not_declare_is_none_in_the_world_either(tmp_path: Path) -> None:
    pack = written(
        tmp_path,
        tools=TIERS,
        entities="\n  Order: {key: order_id, read: get_order, fields: {status: string}}\n"
        "observations:\n  get_order: [{as: Order, key: $args.order_id}]\n",
        guard='    if facts.Order(call.order_id).status == "vip":\n        return permit()\n'
        '    if call.tier == "banned":\n        return deny("banned")\n    return permit()\n',
        on="cancel",
    )
    (tmp_path / "world.json").write_text(json.dumps({"Order": [{"order_id": "1", "status": "plain"}]}))
    world = open_snapshot(tmp_path / "world.json", pack.schema)

    def talk(tier: str) -> list[Event]:
        look, cancel = (
            Call("get_order", {"order_id": "1"}, turn=1),
            Call("cancel", {"order_id": "1", "tier": tier}, turn=2),
        )
        return [look, Result(0, '{"status": "vip"}'), cancel, Result(2, "ok")]

    assert last(pack, talk("banned"), world) == "violation"
    assert last(pack, talk("Banned"), world) == "inconclusive"


def test_a_time_that_is_none_is_no_time(tmp_path: Path) -> None:
    pack = written(tmp_path, tools=PAYING, guard=AUTHORIZED, on="refund")
    for time in (float("nan"), float("inf"), 1e20):
        assert verdicts(pack, [Call("refund", {"order_id": "A"}, turn=1, time=time)])[-1] == "violation"


RULES = """
predicates:
  sends: {tool: send}
  change: {effect: write}
  denied: {returned: "wrong pin"}
  night: {guard: g}
rules:
  - {id: once, formula: "FOR EACH account_id: ALWAYS (sends IMPLIES NOT YESTERDAY ONCE sends)"}
  - {id: stop, formula: "ALWAYS (ONCE denied IMPLIES NOT change)"}
  - {id: by-day, formula: "ALWAYS NOT night"}
"""


@pytest.fixture
def ruled(tmp_path: Path) -> Pack:
    policies = "policies:\n  - {id: g, kind: guard, tools: [send], spans: [{quote: Be good.}]}\n"
    policies += "".join(
        f"  - {{id: {name}, kind: rule, spans: [{{quote: Be good.}}]}}\n" for name in ("once", "stop", "by-day")
    )
    return written(
        tmp_path,
        tools="  look: {effect: read, parameters: {account_id: string}}\n"
        "  send: {effect: write, parameters: {account_id: string}, changes: []}\n",
        guard='    if now().hour < 8:\n        return deny("night")\n    return permit()\n',
        on="send",
        more={"rules.yaml": RULES, "policies.yaml": policies},
    )


def broken(pack: Pack, events: Sequence[Event]) -> list[str]:
    session = Session(pack)
    session.observe_all(events)
    return [finding.rule.name for finding in session.findings(ended=True)]


def send(account: Any, turn: int, *, time: float = NIGHT + 36_000) -> Call:
    return Call("send", {"account_id": account}, turn=turn, time=time)


@pytest.mark.parametrize(
    ("one", "other"), [("A1", "A1"), ("A1", "a1"), ("A1", " A1"), (7, 7.0), (7, "7"), (7.0, 7.0), (True, True)]
)
def test_a_rule_for_each_thing_takes_for_one_what_a_tool_may_take_for_one(ruled: Pack, one: Any, other: Any) -> None:
    assert broken(ruled, [send(one, 1), Result(0, "ok"), send(other, 2)]) == ["once"]
    assert broken(ruled, [send(one, 1), Result(0, "ok"), send("B2", 2)]) == []


@pytest.mark.parametrize("other", ["AC11", "AC_11", "ac 11", "AC\u201111", "AC/11"])
def test_a_rule_for_each_thing_is_open_where_a_tool_may_take_two_values_for_one(ruled: Pack, other: str) -> None:
    session = Session(ruled)
    session.observe_all([send("AC-11", 1), Result(0, "ok"), send(other, 2), Result(2, "ok")])
    assert session.findings(ended=True) == []
    assert session.open_rules == {"once"}
    with Shield(ruled).session("c") as live:
        assert live.decide("send", {"account_id": "AC-11"}, time=NIGHT + 36_000).allowed
        live.result("ok")
        assert not live.decide("send", {"account_id": other}, time=NIGHT + 36_001).allowed
        assert live.decide("send", {"account_id": "AC-12"}, time=NIGHT + 36_002).allowed


def test_a_short_result_beside_a_long_one_is_read(ruled: Pack) -> None:
    looks: list[Event] = [Call("look", {"account_id": each}, turn=1) for each in "12"]
    events = [*looks, Result(0, "x" * (LONGEST + 1)), Result(1, "wrong pin"), send("A", 2)]
    assert broken(ruled, events) == ["stop"]


def test_what_stands_beyond_what_is_searched_is_not_known(ruled: Pack) -> None:
    for padding, answer in ((" ", "deny"), ("x " * LONGEST, "ask")):
        with Shield(ruled).session("c") as live:
            live.decide("look", {"account_id": "A"}, time=NIGHT + 36_000)
            live.result(f"{padding}wrong pin")
            decided = live.decide("send", {"account_id": "A"}, time=NIGHT + 36_001)
            assert (decided.allowed, decided.answer) == (False, answer)
    with Shield(ruled).session("c") as live:
        live.decide("look", {"account_id": "A"}, time=NIGHT + 36_000)
        live.result("right pin" + " " * LONGEST)
        assert live.decide("send", {"account_id": "A"}, time=NIGHT + 36_001).allowed


def test_a_rule_that_asks_a_guard_asks_it_at_the_time_of_the_call(ruled: Pack) -> None:
    assert broken(ruled, [send("A", 1, time=NIGHT)]) == ["by-day"]
    assert broken(ruled, [send("A", 1)]) == []


LOOKING = "  get_order: {effect: read, parameters: {order_id: string}}\n" + (
    "  ship: {effect: write, parameters: {order_id: string}, changes: []}\n"
)


@pytest.fixture
def paid_only(tmp_path: Path) -> Pack:
    return written(
        tmp_path,
        tools=LOOKING,
        entities="\n  Order: {key: order_id, read: get_order, fields: {paid: boolean}}\n"
        "observations:\n  get_order: [{as: Order, key: $args.order_id}]\n",
        guard='    if facts.Order(call.order_id).paid:\n        return permit()\n    return deny("unpaid")\n',
        on="ship",
    )


@pytest.mark.parametrize(
    ("looked_up", "result", "wanted"),
    [
        ("1", Result(0, "", captured=False), "inconclusive"),
        ("2", Result(0, "", captured=False), "near_miss"),
        ("1", Result(0, "no answer"), "inconclusive"),
        ("1", Result(0, '{"state": "paid"}'), "inconclusive"),
        ("2", Result(0, "no answer"), "near_miss"),
        ("1", Result(0, "Error: try again later"), "near_miss"),
        ("1", Result(0, '{"paid": true}'), "compliant"),
    ],
)
def test_a_look_up_whose_result_nobody_recorded_blames_nobody(
    paid_only: Pack, tmp_path: Path, looked_up: str, result: Result, wanted: str
) -> None:
    (tmp_path / "world.json").write_text(json.dumps({"Order": [{"order_id": "1", "paid": True}]}))
    world = open_snapshot(tmp_path / "world.json", paid_only.schema)
    look, ship = Call("get_order", {"order_id": looked_up}, turn=1), Call("ship", {"order_id": "1"}, turn=2)
    assert last(paid_only, [look, result, ship], world) == wanted


def test_a_look_up_whose_result_nobody_recorded_excuses_no_violation(paid_only: Pack, tmp_path: Path) -> None:
    (tmp_path / "world.json").write_text(json.dumps({"Order": [{"order_id": "1", "paid": False}]}))
    world = open_snapshot(tmp_path / "world.json", paid_only.schema)
    look, ship = Call("get_order", {"order_id": "1"}, turn=1), Call("ship", {"order_id": "1"}, turn=2)
    assert last(paid_only, [look, Result(0, "", captured=False), ship], world) == "violation"


def test_a_call_after_another_answer_of_the_same_type_is_another_call(paid_only: Pack) -> None:
    look, ship = Call("get_order", {"order_id": "1"}, turn=1), Call("ship", {"order_id": "1"}, turn=2)
    for paid, wanted in (("true", "compliant"), ("false", "violation"), ("true", "compliant")):
        assert last(paid_only, [look, Result(0, f'{{"paid": {paid}}}'), ship]) == wanted
