"""Questions, deeds, figures and answers that are near to a yes for a call, and are none."""

from typing import Any

import pytest

from bylaw import Shield
from tests.consent.agreed_pack import agreed_pack

PACK = agreed_pack("""
tools:
  send_money: {effect: write, parameters: {account_id: string, to: string, amount: string}, changes: []}
  refund: {effect: write, parameters: {order_id: string, amount: string}, changes: []}
  cancel_booking: {effect: write, parameters: {booking_id: string}, changes: []}
  update_policy: {effect: write, parameters: {policy_id: string, insurance: boolean}, changes: []}
  set_price: {effect: write, parameters: {item_id: string, price: string}, changes: []}
  pay_customer: {effect: write, parameters: {customer_id: string, amount: string}, changes: []}
  extend_loan: {effect: write, parameters: {loan_id: string, until: string}, changes: []}
  change_plan: {effect: write, parameters: {line_id: string, plan: string}, changes: []}
  run_query: {effect: write, parameters: {sql: string}, changes: []}
""")
SENT = {"account_id": "A-11", "to": "B-22", "amount": "50.00"}
BACK = {"order_id": "O-77", "amount": "50.00"}


def allowed(put: str, tool: str, arguments: dict[str, Any], answer: str = "Yes") -> bool:
    """Whether a call runs after the agent put this and the user answered."""
    session = Shield(PACK).session()
    session.user("Hello.")
    session.agent(put)
    session.user(answer)
    return session.decide(tool, arguments).allowed


@pytest.mark.parametrize(
    "asked",
    [
        "Shall I send you a summary?",
        "Shall I send a confirmation first?",
        "Would you like to change it?",
        "Shall I put it off?",
        "Are these your accounts?",
        "Is that you?",
        "Do you know B-22?",
        "Do you agree to our terms?",
        "Does this help?",
        "Was that all?",
        "Shall I do number 2?",
    ],
)
def test_a_yes_to_another_question_is_none_to_this(asked: str) -> None:
    assert not allowed(f"I can send 50.00 from account A-11 to B-22. {asked}", "send_money", SENT)


@pytest.mark.parametrize(
    "asked", ["Shall I?", "Shall I go ahead?", "Is that all right?", "OK?", "Shall I do that now?"]
)
def test_a_question_that_only_goes_ahead_is_about_what_was_told(asked: str) -> None:
    assert allowed(f"I would send 50.00 from account A-11 to B-22. {asked}", "send_money", SENT)


@pytest.mark.parametrize(
    ("put", "tool", "arguments"),
    [
        ("Shall I remove the insurance of policy PO-1?", "update_policy", {"policy_id": "PO-1", "insurance": True}),
        (
            "Policy PO-1.\nInsurance: disabled\nShall I update policy PO-1?",
            "update_policy",
            {"policy_id": "PO-1", "insurance": True},
        ),
        ("Shall I charge customer C-11 50.00?", "pay_customer", {"customer_id": "C-11", "amount": "50.00"}),
        ("Shall I add 5.00 to the price of item I-11?", "set_price", {"item_id": "I-11", "price": "5.00"}),
        ("Shall I extend loan L-11 from 3 May 2030?", "extend_loan", {"loan_id": "L-11", "until": "2030-05-03"}),
        ("Shall I extend loan L-11 before 3 May 2030?", "extend_loan", {"loan_id": "L-11", "until": "2030-05-03"}),
        ("Shall I change the gold plan of line L-11?", "change_plan", {"line_id": "L-11", "plan": "gold"}),
        ("Shall I stop here with booking BK-11?", "cancel_booking", {"booking_id": "BK-11"}),
    ],
)
def test_the_opposite_or_the_old_is_not_what_was_put(put: str, tool: str, arguments: dict[str, Any]) -> None:
    assert not allowed(put, tool, arguments)


@pytest.mark.parametrize(
    "put",
    [
        "Order O-77, fee 50.00. Refund?",
        "Order O-77, balance 50.00. Shall I refund it?",
        "Shall I refund order O-77 with a charge of 50.00?",
        "Shall I refund order O-77 save 50.00?",
        "Shall I refund 50.00 for order O-77? I mean forty.",
        "Shall I refund 50.00 for order O-77? A fee will be deducted.",
        "Once we receive the item, I'll refund 50.00 for order O-77. OK?",
        "I refunded 50.00 for order O-77. OK?",
        "Shall I refund 50.00 for order O-77? Wait.",
        "Shall I refund 50.00 for order O-77? Actually no.",
        "I can refund 50.00 for order O-77. Unfortunately that is no longer possible.",
    ],
)
def test_a_sum_that_is_called_otherwise_or_taken_back_is_not_paid(put: str) -> None:
    assert not allowed(put, "refund", BACK)
    assert allowed("Shall I refund 50.00 for order O-77?", "refund", BACK)


@pytest.mark.parametrize("answer", ["That's fine as it is", "All good now, thanks", "Deal with it", "It is fine as is"])
def test_what_leaves_it_as_it_is_is_no_yes(answer: str) -> None:
    assert not allowed("Shall I cancel booking BK-11?", "cancel_booking", {"booking_id": "BK-11"}, answer)
    assert allowed("Shall I cancel booking BK-11?", "cancel_booking", {"booking_id": "BK-11"}, "Yes, thanks")


def test_a_text_is_told_from_end_to_end() -> None:
    told = 'Shall I run the query "DELETE FROM orders WHERE id = 10"?'
    assert not allowed(told, "run_query", {"sql": "DELETE FROM orders"})
    assert not allowed(told, "run_query", {"sql": "DELETE FROM orders WHERE id != 10"})


def test_an_agent_that_denies_it_after_the_yes_is_not_doing_what_was_agreed() -> None:
    session = Shield(PACK).session()
    session.user("Hello.")
    session.agent("Shall I refund 50.00 for order O-77?")
    session.user("Yes")
    session.agent("I won't refund order O-77 after all.")
    assert not session.decide("refund", BACK).allowed


def test_a_text_without_words_is_told_by_nothing() -> None:
    assert not allowed("Shall I run the query?", "run_query", {"sql": "! ! ! ! ! !"})


def test_long_questions_are_read_at_once() -> None:
    put = "Shall I go ahead " + "and proceed, please now " * 4_000 + "x?"
    assert not allowed(put, "refund", BACK)
