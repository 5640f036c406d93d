"""What cannot turn a yes: thanks, sighs, words of the call; parts of a sum, a day that is left, another tool."""

from typing import Any

import pytest

from bylaw import Shield
from bylaw.consent.answer import said
from tests.consent.agreed_pack import agreed_pack

PUT = "i would move room 12 to may. shall i go ahead?"


@pytest.mark.parametrize(
    "answer",
    [
        "Ooh yes please",
        "class, yes",
        "Yes please, sorry!",
        "Yes, both of them. Thank you for being so quick!",
        "That would be lovely, yes",
    ],
)
def test_thanks_and_sighs_beside_a_yes_leave_it_plain(answer: str) -> None:
    assert said(answer, PUT) == "yes"


@pytest.mark.parametrize(
    "answer",
    [
        "Yes. My husband is against it.",
        "Yes. That was a joke.",
        "Yes. We are opposed.",
        "Yes. It was withdrawn.",
        "Yes. When does that stop?",
        "bit steep but yes",
        "yes argue",
        "word",
        "want",
        "bet",
        "go",
        "Why not, yes",
        "Yes please. How long will it take?",
        "Absolutely. Your website is a nightmare, honestly.",
        "Please do. They were wonderful.",
        "Yes, I'm so glad. Let me know when it's done.",
        "Yes. My savings account is better.",
        "Yes. I have to ask my wife.",
        "Yes. It was the blue one.",
        "Yes. My lawyer has to see it.",
        "Yes. I was told it is cheaper.",
        "Yes. We are going to think.",
        "Yes. Does it cost anything?",
        "Yes. Can you add a bag?",
        "Yes, I was here.",
        "Yes, I'd like a full refund.",
        "Yes. Room 14 is nicer.",
        "Correct the room please.",
        "Great.. thanks for explaining",
        "Perfect, thank you for checking.",
    ],
)
def test_whatever_else_is_said_beside_a_yes_leaves_it_open(answer: str) -> None:
    assert said(answer, PUT) in ("other", "plain")


PACK = agreed_pack("""
tools:
  get_visit: {effect: read, parameters: {visit_id: string}}
  move_visit: {effect: write, parameters: {visit_id: string, time: string}, changes: []}
  book_seats: {effect: write, parameters: {event_id: string, total: number}, changes: []}
  order_lens: {effect: write, parameters: {patient_id: string, lens: string, price: number}, changes: []}
  change_hall: {effect: write, parameters: {hall_id: string, end: string}, changes: []}
  renew_loan: {effect: write, parameters: {loan_id: string, due: string}, changes: []}
  cancel_hall: {effect: write, parameters: {hall_id: string}, changes: []}
  pay_bill: {effect: write, parameters: {bill_id: string, amount: number, card: string}, changes: []}
""")


def allowed(told: str, tool: str, arguments: dict[str, Any], answer: str = "Yes, please.") -> bool:
    session = Shield(PACK).session()
    session.agent(told)
    session.user(answer)
    return session.decide(tool, arguments).allowed


def test_what_a_sum_is_made_of_does_not_stand_beside_it() -> None:
    told = "I would book the seats for EV-10: 92.00 plus a fee of 2.50, so 94.50 in total. Shall I book them?"
    assert allowed(told, "book_seats", {"event_id": "EV-10", "total": 94.5})
    assert not allowed(told, "book_seats", {"event_id": "EV-10", "total": 92})
    balance = "You have 500.00. I would book the seats for EV-10, 250.00. Shall I book them?"
    assert not allowed(balance, "book_seats", {"event_id": "EV-10", "total": 500})


def test_two_times_are_told_apart_by_no_preposition() -> None:
    for told in ("I would move visit VI-1 from 13:00 to 14:15.", "I would move visit VI-1 to 14:15; it ends by 13:00."):
        for time in ("13:00", "14:15"):
            assert not allowed(f"{told} Shall I move it?", "move_visit", {"visit_id": "VI-1", "time": time})


def test_the_words_of_a_name_stand_one_after_the_other() -> None:
    told = "I would order the varifocal standard for 310.00. Shall I order it?"
    order = {"patient_id": "P-7", "lens": "varifocal standard", "price": 310}
    assert allowed(told, "order_lens", order)
    assert not allowed(told.replace("varifocal standard", "varifocal in standard"), "order_lens", order)
    assert not allowed(told, "order_lens", order | {"lens": "standard varifocal"})
    assert not allowed(told, "order_lens", order | {"lens": "varifocal deluxe"})
    assert not allowed("I would order it for P-8, a standard varifocal, 310.00. Shall I?", "order_lens", order)


def test_a_tool_for_other_things_makes_no_deed_unclear() -> None:
    for before, is_clear in (("The renewal of your loan", True), ("To cancel it", False)):
        told = f"{before} can wait. HB-702 until 21:00, then. OK?"
        assert allowed(told, "change_hall", {"hall_id": "HB-702", "end": "21:00"}) is is_clear


def test_an_offer_without_a_question_is_answered_by_a_yes() -> None:
    assert allowed("I can pay bill BI-9, 24.00 from the card ending 7002, right now.", "pay_bill", BILL)
    assert not allowed("Bill BI-9 was 24.00 from the card ending 7002.", "pay_bill", BILL)


BILL = {"bill_id": "BI-9", "amount": 24, "card": "7002"}
