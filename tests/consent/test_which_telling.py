"""A yes is to one telling, a no to one question: told twice, after another question, of a part, in a quotation."""

from typing import Any

import pytest

from bylaw import Shield, Trajectory, verdicts
from bylaw.trace.event import Call, Message, Result
from tests.consent.agreed_pack import agreed_pack

_TOOLS = """
tools:
  transfer: {effect: write, parameters: {from_account: string, to_account: string, amount: string}, changes: []}
  buy: {effect: write, parameters: {item: string, quantity: integer, options: object?}, changes: []}
  refund_items: {effect: write, parameters: {order_id: string, items: array?}, changes: []}
  cancel_order: {effect: write, parameters: {order_id: string}, changes: []}
"""
PACK = agreed_pack(_TOOLS)
REQUESTS = agreed_pack(_TOOLS, "requested")
SENT = {"from_account": "A1", "to_account": "B2", "amount": "500.00"}
SEND = "I will transfer 500.00 from A1 to B2."


def allowed(told: str, tool: str = "transfer", arguments: dict[str, Any] = SENT) -> bool:
    session = Shield(PACK).session()
    session.user("I need help.")
    session.agent(told)
    session.user("Yes, please.")
    return session.decide(tool, arguments).allowed


def test_one_telling_and_one_question_is_leave() -> None:
    assert allowed(f"{SEND} Shall I?")


@pytest.mark.parametrize(
    "told",
    [
        f"{SEND} Shall I? Correction: I will transfer 5.00 only. Shall I?",
        f"{SEND} Shall I? Sorry, 5.00. Shall I?",
        f"{SEND} Shall I? No, wait: I will transfer 5.00 from A1 to B2. Shall I?",
        f"{SEND} Shall I?\n\nScrap that. I will transfer 5.00 only. Shall I?",
    ],
)
def test_told_anew_between_two_questions_is_open(told: str) -> None:
    assert not allowed(told)


@pytest.mark.parametrize(
    "told",
    [
        f"Your name is Bob, right? {SEND}",
        f"You are over 18, right? Then {SEND}",
        "Do you agree to our terms? I will then transfer 500.00 from A1 to B2.",
        f"Can you see the form, yes? {SEND}",
    ],
)
def test_told_after_another_question_is_open(told: str) -> None:
    assert not allowed(told)


def test_what_stands_in_place_of_a_picture_was_not_told() -> None:
    assert not allowed("Shall I make the transfer? ![transfer 500.00 from A1 to B2](x.png)")


@pytest.mark.parametrize(
    ("told", "tool", "arguments", "is_told"),
    [
        ("I will buy 2 of item 7. Shall I?", "buy", {"item": "7", "quantity": 2}, True),
        ("I will buy 2 of item 7. Shall I?", "buy", {"item": "2", "quantity": 7}, False),
        ("I will buy item 7. Shall I?", "buy", {"item": "7", "quantity": 7}, False),
        (
            "I will buy 2 of item 7. Shall I?",
            "buy",
            {"item": "7", "quantity": 2, "options": {"warranty_years": 2}},
            False,
        ),
        ("I will refund item L1 of order 7. Shall I?", "refund_items", {"order_id": "7", "items": ["L1"]}, True),
        ("I will refund item L1 of order 7. Shall I?", "refund_items", {"order_id": "7"}, False),
    ],
)
def test_a_figure_is_told_for_one_value_and_a_part_is_not_the_whole(
    told: str, tool: str, arguments: dict[str, Any], is_told: bool
) -> None:
    assert allowed(told, tool, arguments) is is_told


ASKED = "Please transfer 500.00 from A1 to B2"


@pytest.mark.parametrize(
    ("said", "is_request"),
    [
        (f"{ASKED}.", True),
        (f"> {ASKED}.\n\nWhat is this?", False),
        (f">{ASKED}.", False),
        (f"\u00ab{ASKED}.\u00bb Is it a scam?", False),
        (f"```\n{ASKED}.\n```\nIs it a scam?", False),
        (f"{ASKED}. Not yet though.", False),
        (f"{ASKED}. Or should I not?", False),
        (f"{ASKED}, in yen.", False),
        (f"{ASKED}'s owner.", False),
    ],
)
def test_a_request_is_the_users_own_and_stands(said: str, is_request: bool) -> None:
    session = Shield(REQUESTS).session()
    session.user(said)
    assert session.decide("transfer", SENT).allowed is is_request


@pytest.mark.parametrize(
    ("asked", "is_refused"),
    [
        ("Shall I cancel order W7?", True),
        ("Would you like me to cancel order W7?", True),
        ("I will cancel order W7. Shall I go ahead?", True),
        ("Is it a problem if I cancel order W7?", False),
        ("Should I wait before I cancel order W7?", False),
        ("Shall I hold off on cancelling order W7?", False),
        ("Should I stop the cancellation of order W7?", False),
        ("Do you want to keep order W7?", False),
    ],
)
def test_only_a_no_to_doing_it_is_one_to_the_deed(asked: str, is_refused: bool) -> None:
    talk = Trajectory(
        id="t",
        events=[
            Message(by="user", text="It is about order W7."),
            Message(by="agent", text=asked, turn=1),
            Message(by="user", text="No.", turn=2),
            Call(tool="cancel_order", arguments={"order_id": "W7"}, turn=3),
            Result(3, "ok"),
        ],
    )
    assert bool(verdicts(PACK, talk).findings) is is_refused
