"""A yes counts only while its card or sentence is valid: neither a copy nor a false time extends it."""

import pytest

from bylaw import Pack, Shield
from bylaw.shield import LiveSession
from tests.shield.cards import FILES, WANTED

START = 1_700_000_000.0
DAY = 86_400.0


def opened(agreed: str) -> LiveSession:
    files = {name: text.replace("consented: card", f"consented: {agreed}") for name, text in FILES.items()}
    files["pack.yaml"] += "shield: {posture: enforce}\n"
    session = Shield(Pack.from_files(files), clock=lambda: START).session("c")
    session.user("Send 250 to AC-22.", time=START)
    return session


@pytest.mark.parametrize(("shown", "answered", "called", "is_allowed"), [
    (0.0, 1.0, 2.0, True),
    (3000.0, 3500.0, 3599.0, True),
    (3000.0, 3500.0, 3600.0, False),
    (3000.0, 3700.0, 3701.0, False),
    (10 * DAY, 10 * DAY + 1, 10 * DAY + 2, False),
])  # fmt: skip
def test_a_copy_of_a_card_expires_with_the_card(
    shown: float, answered: float, called: float, *, is_allowed: bool
) -> None:
    session = opened("card")
    card = session.decide("transfer", WANTED, time=START).card
    assert card is not None
    session.agent(card.text, time=START + shown)
    session.user("yes", time=START + answered)
    assert session.decide("transfer", WANTED, time=START + called).allowed is is_allowed


def test_a_card_that_is_issued_again_can_be_answered_again() -> None:
    session = opened("card")
    session.decide("transfer", WANTED, time=START)
    card = session.decide("transfer", WANTED, time=START + DAY).card
    assert card is not None
    session.agent(card.text, time=START + DAY)
    session.user("yes", time=START + DAY)
    assert session.decide("transfer", WANTED, time=START + DAY).allowed


@pytest.mark.parametrize("agreed", ["told", "card"])
@pytest.mark.parametrize(("ahead", "is_allowed"), [(0.0, True), (59.0, True), (61.0, False), (1e9, False)])
def test_an_answer_dated_in_the_future_does_not_count(agreed: str, ahead: float, *, is_allowed: bool) -> None:
    session = opened(agreed)
    card = session.decide("transfer", WANTED, time=START).card
    assert card is not None
    session.agent(card.text if agreed == "card" else "Shall I transfer 250 to AC-22?", time=START)
    session.user("yes", time=START + ahead)
    assert session.decide("transfer", WANTED, time=START).allowed is is_allowed


def test_a_press_dated_in_the_future_does_not_count() -> None:
    session = opened("card")
    card = session.decide("transfer", WANTED, time=START).card
    assert card is not None
    session.confirm(card, True, at=START + 600)
    assert not session.decide("transfer", WANTED, time=START).allowed
    assert session.decide("transfer", WANTED, time=START + 600).allowed


def test_a_card_from_a_decision_dated_in_the_future_does_not_count() -> None:
    session = opened("card")
    card = session.decide("transfer", WANTED, time=START + 300 * DAY).card
    assert card is not None
    session.confirm(card, True, at=START)
    assert not session.decide("transfer", WANTED, time=START + DAY).allowed


def test_a_yes_reported_after_a_later_no_is_void() -> None:
    session = opened("card")
    card = session.decide("transfer", WANTED, time=START).card
    assert card is not None
    session.agent(card.text, time=START + 1)
    session.confirm(card, False, at=START + 20)
    session.user("yes", time=START + 10)
    assert not session.decide("transfer", WANTED, time=START + 21).allowed
