"""A value counts where this deed is told: not as the balance, in another deed's clause, in another unit."""

from typing import Any

import pytest

from bylaw import Shield
from tests.consent.agreed_pack import agreed_pack

PACK = agreed_pack("""
tools:
  list_accounts: {effect: read, parameters: {customer_id: string}}
  send_money: {effect: write, parameters: {account_id: string, to: string, amount: string}, changes: []}
  schedule: {effect: write, parameters: {account_id: string, to: string, amount: string, on: string?}, changes: []}
  close_account: {effect: write, parameters: {account_id: string}, changes: []}
  cancel_order: {effect: write, parameters: {order_id: string}, changes: []}
  refund: {effect: write, parameters: {order_id: string, amount: string}, changes: []}
  book_seats: {effect: write, parameters: {show_id: string, seats: integer}, changes: []}
  lock_account: {effect: write, parameters: {account_id: string}, changes: []}
  subscribe: {effect: write, parameters: {plan_id: string}, changes: []}
  pay:
    effect: write
    parameters:
      {account_id: string, to: string, amount_cents: integer?, amount_thousands: integer?, amount_usd: string?}
    changes: []
""")
ACCOUNTS = [
    {"account_id": "A1", "kind": "main", "balance": "2500.00"},
    {"account_id": "A2", "kind": "savings", "balance": "10.00"},
]
SENT = {"account_id": "A1", "to": "B2", "amount": "2500.00"}


def allowed(put: str, tool: str, arguments: dict[str, Any], *, is_looked_up: bool = True) -> bool:
    """Whether a call runs after the agent put this and the user said yes."""
    session = Shield(PACK).session()
    session.user("Hello, I am C1.")
    if is_looked_up:
        session.decide("list_accounts", {"customer_id": "C1"})
        session.result({"accounts": ACCOUNTS})
    session.agent(put)
    session.user("Yes")
    return session.decide(tool, arguments).allowed


@pytest.mark.parametrize(
    "lead",
    [
        "Your balance is 2500.00.",
        "You have 2500.00 left.",
        "The fee is 2500.00.",
        "Your last payment was 2500.00.",
        "Last month 2500.00 came in.",
        "The most that may go out in a day is 2500.00.",
        "I can see your limit is 2500.00.",
    ],
)
def test_a_sum_that_is_said_to_be_something_else_is_no_amount(lead: str) -> None:
    assert not allowed(f"{lead} Shall I send money from account A1 to B2?", "send_money", SENT)
    assert allowed(f"{lead} Shall I send 2500.00 from account A1 to B2?", "send_money", SENT)


@pytest.mark.parametrize(
    ("label", "is_told"), [("Amount", True), ("Total", True), ("Balance after", False), ("Daily limit", False)]
)
def test_a_row_tells_what_its_label_says(label: str, is_told: bool) -> None:
    put = f"- Account: A1\n- To: B2\n- {label}: 2500.00\nShall I send it?"
    assert allowed(put, "send_money", SENT) is is_told


def test_a_day_of_something_past_is_no_day_to_do_it() -> None:
    planned = {"account_id": "A1", "to": "B2", "amount": "50.00", "on": "2026-05-03"}
    told = "Shall I schedule 50.00 from account A1 to B2"
    assert not allowed(f"Your last payment was on 2026-05-03. {told}?", "schedule", planned)
    assert allowed(f"{told} on 2026-05-03?", "schedule", planned)


def test_what_one_has_is_not_how_many_are_booked() -> None:
    seats = {"show_id": "S-7", "seats": 2}
    assert not allowed("You have 2 tickets for other shows. Shall I book seats for S-7?", "book_seats", seats)
    assert allowed("Shall I book 2 seats for S-7?", "book_seats", seats)


@pytest.mark.parametrize(
    "put",
    [
        "Shall I close your savings account and move everything to A1?",
        "Shall I close your account, then transfer what is left to A1?",
        "Account A1 stays open. Shall I close the account?",
        "Money will go to account A1. Shall I close the account?",
        "Your main account is A1. Shall I close your savings account?",
        "You are signed in with account A1. Shall I close your savings account?",
    ],
)
@pytest.mark.parametrize("is_looked_up", [True, False])
def test_a_thing_in_another_clause_is_not_what_is_closed(put: str, is_looked_up: bool) -> None:
    assert not allowed(put, "close_account", {"account_id": "A1"}, is_looked_up=is_looked_up)


def test_an_order_that_is_made_anew_is_not_the_one_that_is_cancelled() -> None:
    order = {"order_id": "O-77"}
    assert allowed("Shall I cancel order O-77?", "cancel_order", order)
    assert not allowed("Shall I cancel the order and reorder as O-77?", "cancel_order", order)


def test_what_a_sum_was_for_is_not_what_is_paid_back() -> None:
    back = {"order_id": "O-77", "amount": "50.00"}
    assert not allowed("The shipping was 50.00. Shall I refund order O-77?", "refund", back)
    assert allowed("Shall I refund 50.00 for order O-77?", "refund", back)


@pytest.mark.parametrize("gift", ["them a note", "thanks", "a thank-you", "a card"])
def test_a_sum_that_came_is_not_sent(gift: str) -> None:
    sent = SENT | {"amount": "50.00"}
    assert not allowed(f"B2 has sent you 50.00 to account A1. Shall I send {gift}?", "send_money", sent)
    assert not allowed("You last paid B2. Shall I send 50.00 from account A1?", "send_money", sent)


@pytest.mark.parametrize(
    ("put", "tool", "arguments"),
    [
        ("Shall I unlock account A1?", "lock_account", {"account_id": "A1"}),
        ("Shall I unsubscribe you from plan PL-11?", "subscribe", {"plan_id": "PL-11"}),
    ],
)
def test_to_undo_is_not_to_do(put: str, tool: str, arguments: dict[str, Any]) -> None:
    assert not allowed(put, tool, arguments)
    assert allowed(put.replace(" un", " "), tool, arguments)


@pytest.mark.parametrize(
    ("given", "told", "is_told"),
    [
        ({"amount_usd": "50.00"}, "50.00 EUR", False),
        ({"amount_usd": "50.00"}, "50.00 dollars", True),
        ({"amount_thousands": 50}, "50.00 EUR", False),
        ({"amount_cents": 50}, "50.00 EUR", False),
        ({"amount_cents": 50}, "50.00", False),
    ],
)
def test_a_unit_in_the_name_of_an_argument_is_read(given: dict[str, Any], told: str, is_told: bool) -> None:
    call = {"account_id": "A1", "to": "B2", **given}
    assert allowed(f"Shall I pay {told} from account A1 to B2?", "pay", call) is is_told
