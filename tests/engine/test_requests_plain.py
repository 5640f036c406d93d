"""Without a model only a plain sentence asks for something, and an amount is one that the user said as one."""

from typing import Any

import pytest

from bylaw import Pack, Shield

PACK = Pack.from_files(
    {
        "pack.yaml": "{format: 1, name: x, document: policy.md}",
        "policy.md": "Only do what the user asks for.\n",
        "tools.yaml": """
tools:
  cancel_booking: {effect: write, description: Cancel a booking, parameters: {booking_id: string}, changes: []}
  delete_file: {effect: write, description: Delete a file, parameters: {name: string}, changes: []}
  pay: {effect: write, description: Pay money, parameters: {to: string, amount: number}, changes: []}
  give: {effect: write, also_called: [pay], parameters: {to: string, amount: string}, changes: []}
  find_bill: {effect: read, parameters: {bill: string}, changes: [], trust: record}
""",
        "guards/g.py": (
            "def asked(call: cancel_booking | delete_file | pay | give, facts):\n"
            '    """Only do what the user asks for."""\n'
            '    return permit() if requested() else deny("no")\n'
        ),
    }
)
K1 = {"booking_id": "K1"}


def answer(words: str, tool: str, arguments: dict[str, Any]) -> str:
    with Shield(PACK).session() as session:
        session.user(words)
        return session.decide(tool, arguments).answer


@pytest.mark.parametrize(
    "words",
    [
        *(f"Don{mark}t cancel booking K1" for mark in "'\u2019\u2018\u02bc\u2032\u00b4\uff07`"),
        "DON\u2019T CANCEL BOOKING K1",
        "Keep booking K1, don\u2019t cancel it.",
        "You shouldn\u2019t cancel booking K1.",
        "I dont want you to cancel booking K1.",
        "Let's not cancel booking K1",
        "No need to cancel booking K1",
        "Under no circumstances cancel booking K1",
        "I'd rather you didn't cancel booking K1",
        "Nobody asked you to cancel booking K1.",
        "Cancel none of them, booking K1 least of all.",
        "Do everything but cancel booking K1.",
        "Ring me instead of cancelling booking K1.",
        "Cancel booking K1 if it rains.",
        "In case I am late, cancel booking K1.",
        "Cancel booking K1 unless I call.",
        "Once I have landed, cancel booking K1.",
        "Maybe cancel booking K1.",
        "Suppose I said: cancel booking K1.",
        "Is it possible to cancel booking K1",
        "Cancel all my bookings, but keep K1",
        "Cancel all my bookings. Keep K1.",
        "Cancel my bookings. Not K1, though.",
        "Cancel every booking, excluding K1",
        "Cancel my bookings with the exception of K1.",
        "Cancel my bookings, apart from K1.",
        "Cancel my bookings and leave K1.",
        "Cancel my other booking, not booking K1",
    ],
)
def test_what_is_denied_left_out_or_conditional_is_no_request(words: str):
    assert answer(words, "cancel_booking", K1) == "ask"


@pytest.mark.parametrize(
    "words", ["Cancel booking K1", "Could you please cancel booking K1?", "I want to cancel booking K1."]
)
def test_a_plain_sentence_is_one(words: str):
    assert answer(words, "cancel_booking", K1) == "allow"


@pytest.mark.parametrize(
    "words", ["Delete every file except a.txt", "Delete all files but a.txt", "Delete the files, save for a.txt"]
)
def test_a_file_that_is_left_out_is_not_deleted(words: str):
    assert answer(words, "delete_file", {"name": "a.txt"}) == "ask"


@pytest.mark.parametrize("tool", ["pay", "give"])
@pytest.mark.parametrize(
    ("words", "amount"),
    [
        ("Pay 500 to AC-22", 501),
        ("Pay 500 to AC-22", 499),
        ("Pay 500 to AC-22", 1000),
        ("Pay 20 to AC-22. My phone is 5551234.", 11000000),
        ("Pay 20 to AC-22. My phone is 5551234.", 5551234),
        ("Pay 20 to AC-22, phone 5551234.", 5551234),
        ("Pay 20 to AC-22 before 2027-11-15", 4000),
        ("Pay 20 to AC-22 before 2027-11-15", 2027),
        ("Pay 20 to AC-22 for 2027", 2027),
        ("Pay 20 to AC-22 for invoice 4711", 4711),
        ("Pay 20 to AC-22 on 3 May", 3),
        ("Pay 20 to AC-22. I am 41 years old and live at 12 Hill Road.", 41),
        ("Pay 20 to AC-22, not 30.", 30),
    ],
)
def test_an_amount_is_none_that_the_user_did_not_say_as_one(tool: str, words: str, amount: int):
    given = amount if tool == "pay" else str(amount)
    assert answer(words, tool, {"to": "AC-22", "amount": given}) == "ask"


@pytest.mark.parametrize(
    "words",
    [
        "Pay 20 to AC-22",
        "Pay AC-22 twenty dollars.",
        "Pay AC-22. I owe him $20.",
        "Pay AC-22. The amount is 20.",
        "Please pay 20.00 to AC-22 on 3 May 2027 for invoice 4711.",
    ],
)
def test_an_amount_that_the_user_said(words: str):
    assert answer(words, "pay", {"to": "AC-22", "amount": 20}) == "allow"


def test_an_amount_of_a_record_counts():
    with Shield(PACK).session() as session:
        session.user("Pay bill B7 to AC-22.")
        assert session.decide("pay", {"to": "AC-22", "amount": 98.7}).answer == "ask"
        assert session.decide("find_bill", {"bill": "B7"}).allowed
        session.result({"bill": "B7", "total": 98.7})
        assert session.decide("pay", {"to": "AC-22", "amount": 98.7}).answer == "allow"
        # Where the user says none, it may have to be worked out; then it is not more than all that was shown.
        assert session.decide("pay", {"to": "AC-22", "amount": 98.8}).answer == "ask"


@pytest.mark.parametrize("words", ["Pay AC-22 the difference.", "Pay AC-22 the difference. My phone is 5551234."])
def test_an_amount_that_is_worked_out_is_not_more_than_was_shown(words: str):
    for amount, expected in ((12.5, "allow"), (98.8, "ask"), (5551234, "ask")):
        with Shield(PACK).session() as session:
            session.user(words)
            assert session.decide("pay", {"to": "AC-22", "amount": amount}).answer == "ask"
            assert session.decide("find_bill", {"bill": "B7"}).allowed
            session.result({"bill": "B7", "total": 98.7})
            assert session.decide("pay", {"to": "AC-22", "amount": amount}).answer == expected


@pytest.mark.parametrize("words", ["Look up B7. If it is paid, cancel booking K1.", "Cancel booking K1 if B7 is paid."])
def test_a_condition_is_one_that_somebody_looked_at(words: str):
    with Shield(PACK).session() as session:
        session.user(words)
        refused = session.decide("cancel_booking", K1)
        assert (refused.answer, "has a condition" in refused.feedback) == ("ask", True)
        assert session.decide("find_bill", {"bill": "B7"}).allowed
        session.result({"bill": "B7", "paid": True})
        assert session.decide("cancel_booking", K1).answer == "allow"


def test_what_was_looked_up_before_is_not_looked_up_for_a_condition():
    with Shield(PACK).session() as session:
        session.user("What about B7?")
        assert session.decide("find_bill", {"bill": "B7"}).allowed
        session.result({"bill": "B7", "paid": True})
        session.user("Cancel booking K1 if B8 is paid.")
        assert session.decide("cancel_booking", K1).answer == "ask"


def test_what_is_denied_of_people_says_who_is_meant():
    assert answer("Cancel booking K1 for all who do not come.", "cancel_booking", K1) == "allow"
    assert answer("Cancel the bookings of all who are not on K1.", "cancel_booking", K1) == "ask"
    assert answer("Who would not cancel booking K1?", "cancel_booking", K1) == "ask"
