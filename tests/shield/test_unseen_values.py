"""What is allowed unseen stays allowed, whatever a look-up would have shown."""

import json
from pathlib import Path
from typing import Any

import pytest

from bylaw import Conversation, Pack, Shield
from bylaw.shield.decision import Answer
from tests.packs import made

FILES = {
    "pack.yaml": "format: 1\nname: shop\ndocument: policy.md\nshield: {posture: enforce, unguarded: allow}\n",
    "policy.md": "Refund an order only after it was returned.\n\nShip an order once an hour.\n",
    "tools.yaml": """\
tools:
  get_order: {effect: read, parameters: {order_id: string}}
  list_orders: {effect: read, parameters: {customer_id: string}}
  ship: {effect: write, parameters: {order_id: string}, changes: [Order.returned]}
  refund: {effect: write, parameters: {order_id: string}, changes: []}
""",
    "entities.yaml": """\
entities:
  Order: {key: order_id, read: get_order, fields: {customer_id: string, returned: boolean}}
observations:
  get_order: [{as: Order, absent: "no order"}]
  list_orders: [{each: "$.orders[*]", as: Order}]
""",
    "guards/orders.py": '''\
def returned_first(call: refund, facts):
    """Refund an order only after it was returned."""
    return permit() if facts.Order(call.order_id).returned else deny("the order was not returned")
''',
}
ORDER = {"order_id": "A1", "customer_id": "C1"}


def with_field(field: str, body: str) -> Pack:
    """The shop, where a guard over another field of an order decides on refunds."""
    guard = FILES["guards/orders.py"].partition("    return")[0] + "    o = facts.Order(call.order_id)\n"
    guard += "".join(f"    {line}\n" for line in body.splitlines())
    entities = FILES["entities.yaml"].replace("returned: boolean", f"returned: boolean, f: {field}")
    return made({**FILES, "entities.yaml": entities, "guards/orders.py": guard})


def outcome(pack: Pack, shown: dict[str, Any] | None) -> str:
    """What the guards say of a refund, after a list that names the order and, if given, what a look-up shows of it."""
    conversation = Conversation(pack)
    conversation.call("list_orders", {"customer_id": "C1"})
    conversation.result({"orders": [ORDER]})
    if shown is not None:
        conversation.call("get_order", {"order_id": "A1"})
        conversation.result({**ORDER, **shown})
    return conversation.call("refund", {"order_id": "A1"}).outcome


WORDS = "{type: enum?, values: [a, b]}"
NULLS = [
    (WORDS, "if o.f in ['a', 'b']:\n    return permit()\nreturn deny('x')"),
    (WORDS, "if o.f != 'a' and o.f != 'b':\n    return deny('x')\nreturn permit()"),
    (WORDS, "if {'a': 1, 'b': 2}[o.f] > 0:\n    return permit()\nreturn deny('x')"),
    ("{values: [a, b], default: null}", "if o.f == 'a' or o.f == 'b':\n    return permit()\nreturn deny('x')"),
    (
        "[a, b]",
        "if o.f == 'a' or o.f == 'b':\n    return permit()\nif o.f == None:\n    return deny('x')\nreturn permit()",
    ),
    ("boolean?", "if o.f == True or o.f == False:\n    return permit()\nreturn deny('x')"),
    ("integer?", "if o.f < 5:\n    return permit()\nreturn permit()"),
    ("list?", "if len(o.f) >= 0:\n    return permit()\nreturn deny('x')"),
]


@pytest.mark.parametrize(("field", "body"), NULLS)
def test_an_unseen_field_that_may_be_null_is_taken_as_null_too(field: str, body: str) -> None:
    pack = with_field(field, body)
    assert outcome(pack, {"f": None}) in ("deny", "failed")
    assert outcome(pack, None) == "undetermined"


def test_a_null_that_makes_no_difference_leaves_the_guard_decided() -> None:
    either = with_field("boolean?", "if o.f:\n    return permit()\nif not o.f:\n    return permit()\nreturn deny('x')")
    asked = with_field(
        "integer?",
        "if o.f == None:\n    return permit()\nif o.f < 5 or o.f >= 5:\n    return permit()\nreturn deny('x')",
    )
    assert outcome(either, None) == outcome(asked, None) == "permit"


def test_a_call_that_a_null_would_forbid_is_looked_up_first() -> None:
    pack = with_field(WORDS, NULLS[0][1])
    with Shield(pack) as shield, shield.session("one") as session:
        session.decide("list_orders", {"customer_id": "C1"})
        session.result({"orders": [ORDER]})
        assert session.decide("refund", {"order_id": "A1"}).answer == "look_up"
        session.decide("get_order", {"order_id": "A1"})
        session.result({**ORDER, "f": None})
        assert session.decide("refund", {"order_id": "A1"}).answer == "deny"


@pytest.mark.parametrize(("said", "answer"), [({}, "ask"), ({"channel": None}, "deny"), ({"channel": "web"}, "allow")])
def test_a_context_that_may_be_null_is_asked_for(said: dict[str, Any], answer: Answer) -> None:
    entities = FILES["entities.yaml"] + "context:\n  channel: {type: enum?, values: [web, phone]}\n"
    guard = FILES["guards/orders.py"].partition("    return")[0]
    guard += "    return permit() if facts.context.channel in ['web', 'phone'] else deny('no channel')\n"
    pack = made({**FILES, "entities.yaml": entities, "guards/orders.py": guard})
    with Shield(pack) as shield, shield.session("one", context=said) as session:
        assert session.decide("refund", {"order_id": "A1"}).answer == answer


@pytest.mark.parametrize("item", ["max(o.f)", "min(o.f)", "o.f[0]", "o.f[-1]", "max(x for x in o.f)"])
def test_an_unseen_list_may_be_empty(item: str) -> None:
    pack = with_field("list", f"if {item} > 1:\n    return permit()\nreturn permit()")
    assert outcome(pack, {"f": []}) == "failed"
    assert outcome(pack, None) == "undetermined"


def test_a_list_whose_length_was_tested_is_not_empty() -> None:
    pack = with_field(
        "list", "if len(o.f) > 0 and (max(o.f) > 1 or o.f[0] <= 1):\n    return permit()\nreturn permit()"
    )
    assert outcome(pack, None) == "permit"


def after_write(tools: str, arguments: dict[str, Any], result: Any) -> str:
    """The decision on a refund of A1, after a look-up of it and then a shipment."""
    pack = made({**FILES, "tools.yaml": tools})
    with Shield(pack) as shield, shield.session("one") as session:
        session.decide("get_order", {"order_id": "A1"})
        session.result({**ORDER, "returned": True})
        assert session.decide("ship", arguments).allowed
        session.result(result)
        return session.decide("refund", {"order_id": "A1"}).answer


BY_RESULT = "changes: [{as: Order, key: $result.id, fields: [returned]}]"
EACH = "changes: [{as: Order, each: '$result.ids[*]', key: $, fields: [returned]}]"


@pytest.mark.parametrize(
    ("changes", "result"),
    [
        *(
            (BY_RESULT, each)
            for each in ("Error: timeout", "HTTP 500", {"error": "x"}, {"success": False}, "timeout", {})
        ),
        *((BY_RESULT, {"id": each}) for each in ("", "  ", None, False, ["A1"])),
        (BY_RESULT, '{"id": "B1", "id": "A1"}'),
        *((EACH, each) for each in ("Error: timeout", {"error": "x"}, {"ids": None}, {"list": ["A1"]})),
    ],
)
def test_a_write_whose_result_names_nothing_may_have_changed_anything(changes: str, result: Any) -> None:
    tools = FILES["tools.yaml"].replace("changes: [Order.returned]", changes)
    assert after_write(tools, {"order_id": "B1"}, result) == "look_up"


@pytest.mark.parametrize(("changes", "result"), [(BY_RESULT, {"id": "B1"}), (EACH, {"ids": ["B1", "B2"]})])
def test_a_write_whose_result_names_another_thing_changes_that_one_alone(changes: str, result: Any) -> None:
    tools = FILES["tools.yaml"].replace("changes: [Order.returned]", changes)
    assert after_write(tools, {"order_id": "B1"}, result) == "allow"


NUMBERED = FILES["tools.yaml"].replace("order_id: string", "order_id: number")


@pytest.mark.parametrize("spelling", ["10", "1e1", "10.", "\u0661\u0660", "1.0e1", "010", "+10"])
def test_one_number_in_another_spelling_is_one_thing(spelling: str, tmp_path: Path) -> None:
    limit = "limits:\n  - {id: few, tool: ship, most: 1, within: 1h, per: call.order_id}\n"
    policies = "policies:\n  - {id: few, kind: rule, spans: [Ship an order once an hour.]}\n"
    pack = made({**FILES, "tools.yaml": NUMBERED, "rules.yaml": limit, "policies.yaml": policies})
    with Shield(pack, log=str(tmp_path / "log.db")) as shield, shield.session("one") as session:
        session.decide("get_order", {"order_id": 10})
        session.result({"order_id": 10, "customer_id": "C1", "returned": True})
        assert session.decide("ship", {"order_id": spelling}).allowed
        session.result("ok")
        assert not session.decide("refund", {"order_id": 10}).allowed
        assert not session.decide("ship", {"order_id": 10}).allowed


@pytest.mark.parametrize("spelling", ["1e1", "10.", "1.000", "\u0661\u0660"])
def test_a_whole_number_is_written_in_plain_digits(spelling: str) -> None:
    tools = NUMBERED.replace("order_id: number", "order_id: integer")
    with Shield(made({**FILES, "tools.yaml": tools})) as shield, shield.session("one") as session:
        decision = session.decide("ship", {"order_id": spelling})
        assert decision.answer == "deny"
        assert "not a whole number in plain digits" in decision.feedback
        assert session.decide("ship", {"order_id": "10"}).allowed


@pytest.mark.parametrize(
    "named", ['"order_id": "B2", "order_id": "B3"', '"order_id": ["B2"]', '"order_id": {"id": "B2"}']
)
def test_a_record_whose_id_names_several_things_shows_none(named: str) -> None:
    with Shield(made(FILES)) as shield, shield.session("one") as session:
        session.decide("get_order", {"order_id": "A1"})
        session.result(f'{{{named}, "customer_id": "C1", "returned": true}}')
        assert not session.decide("refund", {"order_id": "A1"}).allowed


def test_a_look_up_that_names_two_things_shows_neither_unless_its_result_says_which() -> None:
    for shown in ({"returned": True}, {"order_id": "A1", "returned": True}):
        asked = {"name": "get_order", "arguments": '{"order_id": "B2", "order_id": "A1"}'}
        call = {"id": "1", "type": "function", "function": asked}
        with Shield(made(FILES)) as shield, shield.session("one") as session:
            session.messages([
                {"role": "assistant", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "1", "content": json.dumps(shown)},
            ])  # fmt: skip
            assert session.decide("refund", {"order_id": "A1"}).allowed is ("order_id" in shown)
