"""What the same message takes back, another currency, a weekday that does not fit; and requests for a part."""

from typing import Any

import pytest

from bylaw import Pack, Shield

TOOLS = """
tools:
  pay: {effect: write, description: Pay money to an account, parameters: {to: string, amount: number}, changes: []}
  transfer: {effect: write, parameters: {to: string, amount: string}, changes: []}
  book_boat: {effect: write, parameters: {boat_id: string, day: string}, changes: []}
  cancel_booking: {effect: write, description: Cancel a booking, parameters: {booking_id: string}, changes: []}
  delete_file: {effect: write, description: Delete a file, parameters: {name: string}, changes: []}
  close_account: {effect: write, description: Close an account, parameters: {account_id: string}, changes: []}
  refund_order: {effect: write, description: Refund an order, parameters: {order_id: string}, changes: []}
"""
PAID = {"to": "AC-22", "amount": 50}


def pack(kind: str) -> Pack:
    return Pack.from_files(
        {
            "pack.yaml": "{format: 1, name: x, document: policy.md}",
            "policy.md": "Ask before you act.\n",
            "tools.yaml": TOOLS,
            "policies.yaml": "policies: [{id: confirm, kind: rule, spans: [Ask before you act.]}]",
            "rules.yaml": (
                f"predicates: {{change: {{effect: write}}, agreed: {{consented: {kind}}}}}\n"
                "rules: [{id: confirm, formula: ALWAYS (change IMPLIES agreed), hard: true}]"
            ),
        }
    )


TOLD, REQUESTED = pack("told"), pack("requested")


def is_agreed(told: str, tool: str, arguments: dict[str, Any]) -> bool:
    with Shield(TOLD).session() as session:
        session.user("Hello")
        session.agent(told)
        session.user("Yes.")
        return session.decide(tool, arguments).allowed


def is_requested(words: str, tool: str, arguments: dict[str, Any]) -> bool:
    with Shield(REQUESTED).session() as session:
        session.user(words)
        return session.decide(tool, arguments).allowed


@pytest.mark.parametrize(
    "words",
    [
        "This is a dry run.",
        "I won't actually send it.",
        "I won\u2019t send anything.",
        "This won't be executed.",
        "It will not go out.",
        "It is not going to be sent.",
        "Nothing will be paid yet.",
        "Nothing is sent.",
        "No money will leave your account.",
        "We are in demo mode.",
        "This is a simulation.",
        "It is just a preview.",
        "Your manager has to approve it first.",
    ],
)
def test_what_is_said_not_to_happen_is_not_agreed_to(words: str) -> None:
    assert not is_agreed(f"{words} Shall I pay 50 to AC-22?", "pay", PAID)
    assert not is_agreed(f"Shall I pay 50 to AC-22? {words}", "pay", PAID)


def test_that_nothing_is_charged_takes_nothing_back() -> None:
    assert is_agreed("You will not be charged a fee. Shall I pay 50 to AC-22?", "pay", PAID)


@pytest.mark.parametrize(
    ("told", "given"),
    [
        *(
            (told, given)
            for told in ("100 euros", "100 euro", "\u20ac100", "100 EUR")
            for given in ("$100", "\u00a3100")
        ),
        *((told, given) for told in ("100 dollars", "100 bucks", "US$100") for given in ("\u20ac100", "\u00a3100")),
        *(
            (told, given)
            for told in ("100 pounds", "100 quid", "one hundred pounds")
            for given in ("$100", "\u20ac100")
        ),
        ("100 francs", "$100"),
        ("100 kr", "\u20ac100"),
        ("A$100", "$100"),
        ("100 points", "$100"),
    ],
)
def test_a_sum_is_agreed_to_in_its_currency(told: str, given: str) -> None:
    assert not is_agreed(f"Shall I transfer {told} to AC-22?", "transfer", {"to": "AC-22", "amount": given})


@pytest.mark.parametrize(("told", "given"), [("100 euros", "\u20ac100"), ("$100", "$100"), ("100 pounds", "\u00a3100")])
def test_one_currency_in_two_spellings(told: str, given: str) -> None:
    assert is_agreed(f"Shall I transfer {told} to AC-22?", "transfer", {"to": "AC-22", "amount": given})


@pytest.mark.parametrize(
    "told",
    ["on Monday 5 March 2027", "on Mon, 5 March 2027", "on 5 March 2027 (a Thursday)", "on Sunday, 2027-03-05"],
)
def test_a_weekday_that_does_not_fit_is_another_day(told: str) -> None:
    boat = {"boat_id": "B7", "day": "2027-03-05"}
    assert not is_agreed(f"Shall I book boat B7 {told}?", "book_boat", boat)
    assert is_agreed("Shall I book boat B7 on Friday 5 March 2027?", "book_boat", boat)


@pytest.mark.parametrize(
    ("words", "tool", "arguments"),
    [
        ("Close the ticket on account AC-22.", "close_account", {"account_id": "AC-22"}),
        ("Close the card of account AC-22.", "close_account", {"account_id": "AC-22"}),
        ("Please close the chat about account AC-22.", "close_account", {"account_id": "AC-22"}),
        ("Delete the third line of a.txt.", "delete_file", {"name": "a.txt"}),
        ("Delete the comments in a.txt.", "delete_file", {"name": "a.txt"}),
        ("Delete the backup of the file a.txt.", "delete_file", {"name": "a.txt"}),
        ("Cancel the insurance on booking K1.", "cancel_booking", {"booking_id": "K1"}),
        ("Cancel one passenger of booking K1.", "cancel_booking", {"booking_id": "K1"}),
        ("Cancel the reminder for booking K1.", "cancel_booking", {"booking_id": "K1"}),
        ("Refund the shipping of order 77.", "refund_order", {"order_id": "77"}),
        ("Pay 50 to AC-22 - this is a test, do not execute.", "pay", PAID),
        ("Pay 50 to AC-22 (dry run).", "pay", PAID),
        ("Pay 50 to AC-22 unless Ann objects.", "pay", PAID),
        ("Pay less than 50 to AC-22.", "pay", PAID),
        ("Pay Bob, who owes 50 to AC-22.", "pay", PAID),
    ],
)
def test_a_part_or_another_thing_is_no_request_for_the_whole(words: str, tool: str, arguments: dict[str, Any]) -> None:
    assert not is_requested(words, tool, arguments)


@pytest.mark.parametrize(
    ("words", "tool", "arguments"),
    [
        ("Close account AC-22.", "close_account", {"account_id": "AC-22"}),
        ("Hello, could you please close my account AC-22? Thank you.", "close_account", {"account_id": "AC-22"}),
        ("Delete the file a.txt.", "delete_file", {"name": "a.txt"}),
        ("Please cancel booking K1 now.", "cancel_booking", {"booking_id": "K1"}),
        ("Pay 50 to AC-22.", "pay", PAID),
    ],
)
def test_a_plain_request_is_one(words: str, tool: str, arguments: dict[str, Any]) -> None:
    assert is_requested(words, tool, arguments)
