"""A write whose arguments are not those that its tool declares does not run: nobody knows what the tool would do."""

from typing import Any

import pytest

from bylaw import Shield
from bylaw.policy.tool import Tool, misfit
from tests.engine.test_conversation import FILES
from tests.shield.scenes import looked_up, shop

TOOLS = FILES["tools.yaml"].replace(
    "{order_id: string}, changes", '{order_id: string, amount: "number?", nights: "integer?"}, changes'
)


def decided(**more: Any) -> tuple[str, str]:
    with Shield(shop(tools_yaml=TOOLS)).session() as session:
        looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7", "returned": True})
        decision = session.decide("refund", {"order_id": "7", **more})
        return decision.answer, decision.feedback


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"override": True}, "refund has no argument `override`; it takes `order_id`, `amount`, `nights`"),
        ({"amount": 5, "Amount": 500}, "refund has no argument `Amount`"),
        ({"nights": True}, "argument `nights` is true or false, but the tool requires a number"),
        ({"amount": False}, "argument `amount` is true or false"),
        ({"nights": 1.5}, "argument `nights` is not a whole number"),
        ({"nights": "1.5"}, "argument `nights` is not a whole number"),
        ({"nights": "1e-999999"}, "argument `nights` is not a whole number"),
        ({"amount": "all of it"}, "argument `amount` is not a number"),
        ({"amount": float("nan")}, "argument `amount` is not a number"),
        ({"order_id": True}, "argument `order_id` is true or false, but the tool requires text"),
    ],
)
def test_what_a_tool_does_not_declare_is_refused_and_named(more: dict[str, Any], why: str) -> None:
    answer, feedback = decided(**more)
    assert answer == "deny"
    assert why in feedback


@pytest.mark.parametrize(
    "more",
    [{}, {"amount": 5}, {"amount": "5.00"}, {"amount": None}, {"nights": 2.0}, {"nights": "2"}],
)
def test_what_a_tool_declares_runs(more: dict[str, Any]) -> None:
    assert decided(**more) == ("allow", "")


def test_where_a_tool_declares_no_parameters_or_only_reads_nothing_is_asked_of_them() -> None:
    assert misfit(Tool("refund", "write"), {"order_id": 7, "override": True}) == ""
    assert misfit(Tool("get_order", "read", parameters={"order_id": {"type": "string"}}), {"other": True}) == ""


@pytest.mark.parametrize(
    "declared",
    [{"type": "string", "enum": ["a"]}, {"type": "string", "anyOf": [{"enum": ["a"]}]}],
)
def test_a_text_that_is_none_of_the_declared_words_does_not_fit(declared: dict[str, Any]) -> None:
    tool = Tool("refund", "write", parameters={"kind": declared, "note": {"type": "string"}})
    assert misfit(tool, {"kind": "a", "note": "anything"}) == ""
    assert "kind" in misfit(tool, {"kind": "b", "note": "anything"})


PASSENGERS: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "bags": {"type": "integer"}, "seat": {"enum": ["aisle", "window"]}},
        "required": ["name"],
    },
}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([{"name": "Ann", "bags": 1.5}], "`passengers[0].bags` is not a whole number"),
        ([{"name": "Ann"}, {"name": 7}], "`passengers[1].name` is a number, but the tool requires text"),
        ([{"name": "Ann"}, "Bob"], "`passengers[1]` is text, but the tool requires an object"),
        ([{"bags": 1}], "`passengers[0].name` is missing"),
        ([{"name": "Ann", "vip": True}], ""),
        ([{"name": "Ann", "seat": "cockpit"}], "`passengers[0].seat` is not one of its declared values"),
        ([["Ann"]], "`passengers[0]` is a list, but the tool requires an object"),
        ([{"name": "Ann", "bags": "2"}], ""),
        ([{"name": "Ann", "bags": None}], ""),
        ([], ""),
    ],
)
def test_what_lies_in_lists_and_objects_is_held_to_what_is_declared_of_it(given: Any, why: str) -> None:
    tool = Tool("book", "write", parameters={"passengers": PASSENGERS})
    assert why in misfit(tool, {"passengers": given})
    assert bool(misfit(tool, {"passengers": given})) is bool(why)


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ({}, ""),
        ({"additionalProperties": True}, ""),
        ({"additionalProperties": False}, "`trip.legs[0].vip` is not a field of the object; it has `to`"),
        ({"additionalProperties": {"type": "boolean"}}, ""),
        ({"additionalProperties": {"type": "string"}}, "`trip.legs[0].vip` is true or false"),
        ({"additionalProperties": False, "patternProperties": {"^v": {}}}, ""),
    ],
)
def test_an_object_may_hold_more_than_is_declared_unless_it_says_otherwise(says: dict[str, Any], why: str) -> None:
    leg = {"type": "object", "properties": {"to": {"type": "string"}}, **says}
    trip = {"type": "object", "properties": {"legs": {"type": "array", "items": leg}}}
    tool = Tool("book", "write", parameters={"trip": trip})
    found = misfit(tool, {"trip": {"legs": [{"to": "JFK", "vip": True}], "note": "x"}})
    assert found.startswith(f"argument {why}") if why else found == ""
    wrong = misfit(tool, {"trip": {"legs": [{"to": 7, "vip": "x"}]}})
    assert wrong.startswith("argument `trip.legs[0]."), "what is declared is held to, whatever lies beside it"


def test_arguments_beside_those_declared_are_taken_where_the_schema_says_so() -> None:
    declared = {"order_id": {"type": "string"}}
    given = {"order_id": "7", "note": "broken"}
    assert "has no argument `note`" in misfit(Tool("refund", "write", parameters=declared), given)
    assert misfit(Tool("refund", "write", parameters=declared, others=True), given) == ""
    texts = Tool("refund", "write", parameters=declared, others={"type": "string"})
    assert misfit(texts, given) == ""
    assert "`note` is a number" in misfit(texts, {**given, "note": 5})
    schema = "{type: object, properties: {order_id: {type: string}}, required: [order_id], additionalProperties: true}"
    pack = shop(tools_yaml=FILES["tools.yaml"].replace("{order_id: string}, changes", f"{schema}, changes"))
    with Shield(pack).session() as session:
        looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7", "returned": True})
        assert session.decide("refund", given).allowed
