"""A write whose arguments are not those that its tool declares does not run: nobody knows what the tool would do."""

from typing import Any

import pytest

from bylaw import Shield
from bylaw.policy.tool import Tool
from bylaw.shield.fitting import misfit
from tests.engine.test_conversation import FILES
from tests.shield.test_decisions import looked_up, shop

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
        ({"nights": True}, "argument `nights` is true or false, and the tool takes a number"),
        ({"amount": False}, "argument `amount` is true or false"),
        ({"nights": 1.5}, "argument `nights` is no whole number"),
        ({"nights": "1.5"}, "argument `nights` is no whole number"),
        ({"nights": "1e-999999"}, "argument `nights` is no whole number"),
        ({"amount": "all of it"}, "argument `amount` is no number"),
        ({"amount": float("nan")}, "argument `amount` is no number"),
        ({"order_id": True}, "argument `order_id` is true or false, and the tool takes a text"),
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
