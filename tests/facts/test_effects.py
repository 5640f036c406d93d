"""What writes make of a world, with conditions and arithmetic."""

import json
from pathlib import Path
from typing import Any

import pytest

from bylaw.errors import PackError
from bylaw.facts.database import open_snapshot
from bylaw.facts.entity import ABSENT, UNSEEN, Field
from bylaw.facts.observation import NOTHING
from bylaw.facts.schema import effect_on, moved
from bylaw.trace.event import Call, Result
from tests.policy.shop import FILES, load

EFFECTS = """\
    effects:
      - as: Order
        key: $args.order_id
        when: money(args.amount) <= old.total and not old.gift
        set:
          total: {to: "old.total - money(args.amount) * 2 / 2"}
          state: {to: "'sent' if money(args.amount) == old.total else old.state"}
"""
ORDER = {"order_id": "A", "paid": True, "gift": False, "owner": "x", "state": "open", "total": "20.00"}


def pack(root: Path, effects: str = EFFECTS) -> Any:
    return load(root, {"tools.yaml": FILES["tools.yaml"] + effects})


def after(tmp_path: Path, amount: Any, *, effects: str = EFFECTS, result: Any = None, **changed: Any) -> Any:
    file = tmp_path / "world.json"
    file.write_text(json.dumps({"Order": [ORDER | changed]}))
    world = open_snapshot(file, pack(tmp_path / "pack", effects).schema)
    call = Call("refund", {"order_id": "A", "amount": amount})
    world.apply(call, None if result is None else Result(None, json.dumps(result), tool="refund"))
    return world.record("Order", ("A",))


def test_values_are_computed_and_conditions_decide(tmp_path: Path) -> None:
    assert after(tmp_path, "5") == ORDER | {"total": 15}
    assert after(tmp_path, "20.00") == ORDER | {"total": 0, "state": "sent"}
    assert after(tmp_path, "20.01") == ORDER
    assert after(tmp_path, "5", gift=True) == ORDER | {"gift": True}


def test_what_cannot_be_computed_is_no_longer_known(tmp_path: Path) -> None:
    known = {**ORDER, "total": UNSEEN, "state": UNSEEN}
    assert after(tmp_path, "five") == known
    assert after(tmp_path, "5", total=None) == known


def test_the_result_may_be_asked_where_it_was_captured(tmp_path: Path) -> None:
    effects = "    effects: [{as: Order, key: $args.order_id, when: result.ok, delete: true}]\n"
    assert after(tmp_path, "5", effects=effects, result={"ok": True}) is ABSENT
    assert after(tmp_path, "5", effects=effects, result={"ok": False}) == ORDER
    assert after(tmp_path, "5", effects=effects) not in (ABSENT, ORDER)


def test_a_pending_write_leaves_what_its_expression_makes(tmp_path: Path) -> None:
    schema = pack(tmp_path).schema
    order = schema.entities["Order"]
    effects = (
        "    effects: [{as: Order, key: $args.order_id, when: args.amount != '0', set: {total: {to: old.total + 1}}}]\n"
    )
    simple = pack(tmp_path / "b", effects).schema

    def total(schema: Any, amount: str) -> Any:
        arguments = {"order_id": "A", "amount": amount}
        return effect_on(schema.effects["refund"], arguments, order, ("A",), order.fields["total"], 20)

    assert (total(simple, "1"), total(simple, "0")) == (21, 20)
    # Whether an order is a gift is not known of a field alone.
    assert total(schema, "1") is NOTHING


@pytest.mark.parametrize(
    ("expression", "fault"),
    [("old.total +", "not Python"), ("total + 1", "there is no name `total`"), ("now()", "there is no built-in `now`")],
)
def test_faults_have_their_place(tmp_path: Path, expression: str, fault: str) -> None:
    effects = f'    effects:\n      - {{as: Order, key: $args.order_id, set: {{total: {{to: "{expression}"}}}}}}\n'
    with pytest.raises(PackError) as caught:
        pack(tmp_path, effects)
    assert fault in str(caught.value.faults[0])
    before, _, _ = (tmp_path / "tools.yaml").read_text(encoding="utf-8").partition("effects:")
    line = before.count("\n") + 1
    assert str(caught.value.faults[0]).startswith(f"tools.yaml:{line}: ")


@pytest.mark.parametrize(
    ("said", "key", "is_fault"),
    [
        ("changes: []", "$args.order_id", True),
        ("changes: [Order.state]", "$args.order_id", False),
        ("changes: []", "$result.order_id", False),
    ],
)
def test_what_effects_move_changes_must_list(tmp_path: Path, said: str, key: str, is_fault: bool) -> None:
    tools = (
        FILES["tools.yaml"] + f"    {said}\n    effects:\n      - {{as: Order, key: {key}, set: {{state: =sent}}}}\n"
    )
    if not is_fault:
        load(tmp_path, {"tools.yaml": tools})
        return
    with pytest.raises(PackError) as caught:
        load(tmp_path, {"tools.yaml": tools})
    assert "`effects` change `Order`, which `changes` does not list" in str(caught.value.faults[0])


def test_an_effect_on_a_field_that_is_lost_does_not_start_from_its_default() -> None:
    noted = Field("noted", "integer", default=0)
    assert moved(noted, NOTHING, "plus", 5) == 5
    assert moved(noted, UNSEEN, "plus", 5) is NOTHING
