"""One yes is good for one call: what need not be told makes no other call of it, and what matters is told."""

from typing import Any

import pytest

from bylaw import Pack, Shield
from tests.consent.agreed_pack import agreed_pack

_TOOLS = """
tools:
  transfer: {effect: write, parameters: {to: string, amount: string, note: string?, key: string?}, changes: []}
  renew: {effect: write, description: Renew the plan., parameters: {plan_id: string, months: integer}, changes: []}
  set_limit: {effect: write, parameters: {card_id: string, limit: integer, enabled: boolean?}, changes: []}
  set_options: {effect: write, parameters: {card_id: string, options: object, to: string?}, changes: []}
  order_items: {effect: write, parameters: {items: {type: array, items: {type: string}}}, changes: []}
  move: {effect: write, parameters: {order_id: string, street: string, country: string}, changes: []}
  book: {effect: write, parameters: {trip_id: string, total_bags: integer, nonfree_bags: integer}, changes: []}
"""
TOOLS = _TOOLS.replace("string?", "{type: string, optional: true}").replace(
    "boolean?", "{type: boolean, optional: true}"
)
SENT = "I would transfer 250.00 to AC-22. Shall I go ahead?"


def pack(consented: str = "told") -> Pack:
    return agreed_pack(TOOLS, consented)


def made(told: str, tool: str, *calls: dict[str, Any], given: Pack | None = None) -> list[bool]:
    """Which of these calls run after one yes, each with a result that says that it was done."""
    session, ran = Shield(given or pack()).session(), list[bool]()
    session.agent(told)
    session.user("Yes.")
    for arguments in calls:
        ran.append(session.decide(tool, arguments).allowed)
        if ran[-1]:
            session.result("done")
    return ran


def test_a_remark_makes_no_second_call_of_it() -> None:
    sent = {"to": "AC-22", "amount": "250.00"}
    assert made(SENT, "transfer", sent, {**sent, "note": "rent"}, {**sent, "note": "more"}) == [True, False, False]


def test_nor_does_what_a_pack_says_need_not_be_told() -> None:
    spared = "card, need_not_be_told: [key]"
    session, sent = Shield(pack(spared)).session(), {"to": "AC-22", "amount": "250.00"}
    session.user("Send 250.00 to AC-22.")
    card = session.decide("transfer", {**sent, "key": "k0"}).card
    assert card is not None
    session.agent(card.text)
    session.user("Yes")
    ran: list[bool] = []
    for number in range(3):
        ran.append(session.decide("transfer", {**sent, "key": f"k{number}"}).allowed)
        if ran[-1]:
            session.result("done")
    assert ran == [True, False, False]


def test_another_call_of_the_same_tool_that_was_told_too_runs() -> None:
    told = "- I would transfer 250.00 to AC-22.\n- I would transfer 80.00 to AC-33.\nShall I make both transfers?"
    first, second = {"to": "AC-22", "amount": "250.00"}, {"to": "AC-33", "amount": "80.00"}
    assert made(told, "transfer", first, second) == [True, True]


def test_more_values_than_anybody_reads_are_not_told() -> None:
    told = "I would set the options of card CD-11. Shall I go ahead?"
    options = {f"x{number}": False for number in range(300)}
    assert made(told, "set_options", {"options": options, "card_id": "CD-11", "to": "EV-66"}) == [False]


@pytest.mark.parametrize(
    ("told", "tool", "arguments", "runs"),
    [
        (
            "I would renew plan PL-11 for 12 months. Shall I go ahead?",
            "renew",
            {"plan_id": "PL-11", "months": 12},
            True,
        ),
        (
            "I would renew plan PL-11 for 12 months. Shall I go ahead?",
            "renew",
            {"plan_id": "PL-11", "months": 1},
            False,
        ),
        (
            "I would renew plan PL-11 for 12 months. Shall I go ahead?",
            "renew",
            {"plan_id": "PL-11", "months": 0},
            False,
        ),
        (
            "I would set the limit of card CD-11. Shall I go ahead?",
            "set_limit",
            {"card_id": "CD-11", "limit": 0},
            False,
        ),
        (
            "I would set the limit of card CD-11. Shall I go ahead?",
            "set_limit",
            {"card_id": "CD-11", "limit": 1},
            False,
        ),
        (
            "I would set the limit of card CD-11 to 700. Shall I go ahead?",
            "set_limit",
            {"card_id": "CD-11", "limit": 700, "enabled": False},
            False,
        ),
        (
            "I would book trip TR-11 with 2 bags in total, nonfree 0. Shall I go ahead?",
            "book",
            {"trip_id": "TR-11", "total_bags": 2, "nonfree_bags": 0},
            True,
        ),
        (
            "I would book trip TR-11 with 2 bags. Shall I go ahead?",
            "book",
            {"trip_id": "TR-11", "total_bags": 2, "nonfree_bags": 0},
            False,
        ),
    ],
)
def test_none_one_and_off_are_told_like_any_other_value(
    told: str, tool: str, arguments: dict[str, Any], runs: bool
) -> None:
    assert made(told, tool, arguments) == [runs]


@pytest.mark.parametrize("country", ["NO", "ON", "N", "off"])
def test_a_text_that_looks_like_a_flag_is_told_as_a_text(country: str) -> None:
    moved = {"order_id": "R-1001", "street": "12 Main Street", "country": country}
    told = "I would move order R-1001 to 12 Main Street, country SE. Shall I go ahead?"
    assert made(told, "move", moved | {"country": "SE"}) == [True]
    assert made(told, "move", moved) == [False]


@pytest.mark.parametrize("items", [["lamp", "lamp"], ["lamp", "Lamp"], ["lamp", " lamp", "LAMP"]])
def test_one_thing_by_several_spellings_is_several(items: list[str]) -> None:
    told = "I would order the items: lamp. Shall I go ahead?"
    assert made(told, "order_items", {"items": ["lamp"]}) == [True]
    assert made(told, "order_items", {"items": items}) == [False]


@pytest.mark.parametrize(
    ("told", "tool", "arguments", "runs"),
    [
        ("Shall I refund 108.00 EUR for order R-1001?", "refund", {"amount": "108.00"}, True),
        ("Shall I refund 108.00 dollars for order R-1001?", "refund", {"amount": "108.00"}, True),
        ("Shall I refund 108.00 EUR for order R-1001?", "refund", {"amount": "108.00", "currency": "USD"}, False),
        ("Shall I refund 108.00 cents for order R-1001?", "refund", {"amount": "108.00"}, False),
        ("I would insure order R-1001 for a premium of 7.20. Shall I go ahead?", "insure", {"premium": "7.20"}, True),
        ("I would insure order R-1001 for a premium of 7.20. Shall I go ahead?", "insure", {"premium": 7.2}, True),
        ("I would insure order R-1001 for a premium of 7.20. Shall I go ahead?", "insure", {"premium": "9.20"}, False),
    ],
)
def test_a_sum_is_told_with_its_currency_and_by_whatever_name(
    told: str, tool: str, arguments: dict[str, Any], runs: bool
) -> None:
    tools = (
        "tools:\n  refund: {effect: write, parameters: {order_id: string, amount: string,"
        " currency: {type: string, optional: true}}, changes: []}\n"
        "  insure: {effect: write, parameters: {order_id: string, premium: {}}, changes: []}\n"
    )
    given = agreed_pack(tools)
    assert made(told, tool, {"order_id": "R-1001", **arguments}, given=given) == [runs]
