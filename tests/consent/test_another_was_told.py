"""A call with another value than the one that was told, though something of it was said or seen."""

from typing import Any

import pytest

from bylaw import Shield
from tests.consent.agreed_pack import agreed_pack

PACK = agreed_pack("""
tools:
  get_account: {effect: read, parameters: {account_id: string}}
  close_account: {effect: write, parameters: {account_id: string}, changes: []}
  transfer: {effect: write, parameters: {to: string, amount: string}, changes: []}
  move_visit: {effect: write, parameters: {visit_id: string, time: string}, changes: []}
  book_seats: {effect: write, parameters: {event_id: string, seats: integer}, changes: []}
  change_name: {effect: write, parameters: {booking_id: string, name: string}, changes: []}
  order_items: {effect: write, parameters: {items: {type: array, items: {type: string}}}, changes: []}
""")


def answer(told: str, tool: str, arguments: dict[str, Any]) -> str:
    session = Shield(PACK).session()
    session.decide("get_account", {"account_id": "AC-99"})
    session.result({"account_id": "AC-99", "owner": "Mallory"})
    session.agent(f"{told} Shall I go ahead?")
    session.user("Yes, please.")
    return session.decide(tool, arguments).answer


@pytest.mark.parametrize(
    ("told", "tool", "told_value", "other"),
    [
        ("I would close account AC-22.", "close_account", {"account_id": "AC-22"}, {"account_id": "AC-99"}),
        (
            "I would transfer 250.00 to AC-22.",
            "transfer",
            {"to": "AC-22", "amount": "250.00"},
            {"to": "AC-22", "amount": "0"},
        ),
        (
            "I would move visit V-77 to 14:00.",
            "move_visit",
            {"visit_id": "V-77", "time": "14:00"},
            {"visit_id": "V-77", "time": "10:00"},
        ),
        (
            "I would book 2 seats for EV-100.",
            "book_seats",
            {"event_id": "EV-100", "seats": 2},
            {"event_id": "EV-100", "seats": 0},
        ),
        (
            "I would change the name on booking BK-100 from Anna Lee to Bob Ray.",
            "change_name",
            {"booking_id": "BK-100", "name": "Bob Ray"},
            {"booking_id": "BK-100", "name": "Anna Lee"},
        ),
        ("I would order IT-100.", "order_items", {"items": ["IT-100"]}, {"items": ["IT-100", "IT-100"]}),
    ],
)
def test_only_what_was_told_is_allowed(told: str, tool: str, told_value: dict[str, Any], other: dict[str, Any]) -> None:
    assert answer(told, tool, told_value) == "allow"
    assert answer(told, tool, other) != "allow"


def test_a_time_beside_another_is_not_told() -> None:
    told = "I would move visit V-77 from 10:00 to 14:00."
    assert answer(told, "move_visit", {"visit_id": "V-77", "time": "10:00"}) != "allow"


@pytest.mark.parametrize(("last", "answer"), [("Bob Wolf", "allow"), ("Anna Wolf", "ask")])
def test_of_many_things_seen_another_may_be_called_the_same(last: str, answer: str) -> None:
    session = Shield(PACK).session()
    owners = ["Anna Berg", *(f"Member{at:02} Lee" for at in range(70)), last]
    for at, owner in enumerate(owners):
        session.decide("get_account", {"account_id": f"AC-{at:02}"})
        session.result({"account_id": f"AC-{at:02}", "owner": owner})
    session.agent("I would close the account of Anna. Shall I go ahead?")
    session.user("Yes, please.")
    assert session.decide("close_account", {"account_id": "AC-00"}).answer == answer
