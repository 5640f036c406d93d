"""Entries that several names share, and what the look-up of a thing shows without an entry."""

from pathlib import Path

import pytest

from bylaw.engine.session import Session
from bylaw.facts.entity import ABSENT
from bylaw.pack import Pack
from bylaw.trace.event import Call, Result
from tests.policy.shop import FILES, edited, faults, load

OBSERVATIONS = FILES["entities.yaml"][FILES["entities.yaml"].index("observations:") :]


def shown(pack: Pack, tool: str, result: str) -> object:
    """What is known of O1.paid after one look-up."""
    session = Session(pack)
    given = {"order_id": "O1", "owner": "ann"}
    session.observe(Call(tool, {name: given[name] for name in pack.schema.tools[tool].parameters}))
    session.observe(Result(0, result, tool=tool))
    order = pack.schema.entities["Order"]
    seen = session.judge(Call("ship", {"order_id": "O1"}, turn=9)).seen
    return seen.read(order, ("O1",), order.fields["paid"])


def test_several_tools_share_an_entry(tmp_path: Path) -> None:
    shared = edited("tools.yaml", "  refund:\n    effect: write\n", "  refund, return_it:\n    effect: write\n")
    pack = load(tmp_path, shared)
    assert pack.schema.tools["return_it"].parameters == pack.schema.tools["refund"].parameters
    assert pack.schema.tools["return_it"].name == "return_it"


def test_several_tools_share_what_they_show(tmp_path: Path) -> None:
    entities = FILES["entities.yaml"].replace(OBSERVATIONS, "observations:\n  get_order, find_orders: {as: Order}\n")
    pack = load(tmp_path, {"entities.yaml": entities})
    for tool in ("get_order", "find_orders"):
        assert shown(pack, tool, '{"order_id": "O1", "paid": true}') is True


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("refund, ship", "BY402 tools.yaml:12: `ship` is given twice"),
        ("refund,", "BY402 tools.yaml:12: `refund,` has an extra comma"),
        ("refund, return_it: {effect: delete}\n  other", "BY406 tools.yaml:12: effect of `refund` must be"),
    ],
)
def test_a_slip_in_a_shared_entry_has_its_place(key: str, said: str, tmp_path: Path) -> None:
    found = faults(tmp_path, edited("tools.yaml", "  refund:\n", f"  {key}:\n"))
    assert any(fault.startswith(said) for fault in found), found


@pytest.mark.parametrize(
    ("result", "paid"),
    [
        ('{"order_id": "O1", "paid": true}', True),
        ('{"paid": false}', False),
        ("Error: order O1 not found", ABSENT),
        ('{"error": "There is no such order."}', ABSENT),
    ],
)
def test_the_look_up_of_a_thing_shows_it_without_an_entry(result: str, paid: object, tmp_path: Path) -> None:
    pack = load(tmp_path, {"entities.yaml": FILES["entities.yaml"].replace(OBSERVATIONS, "")})
    assert shown(pack, "get_order", result) == paid


def test_a_look_up_whose_entry_says_otherwise_shows_what_it_says(tmp_path: Path) -> None:
    entry = "observations:\n  get_order: {as: Order, only: true, fields: {gift: $.gift}}\n"
    pack = load(tmp_path, {"entities.yaml": FILES["entities.yaml"].replace(OBSERVATIONS, entry)})
    assert shown(pack, "get_order", '{"order_id": "O1", "paid": true}') != True  # noqa: E712
