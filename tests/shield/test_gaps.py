"""Part of a conversation was not heard: what rests on it is open, and what comes after it stands by itself."""

from pathlib import Path

import pytest

from bylaw.shield import LiveSession
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, PUT_REFUND, REFUND, desk


@pytest.fixture
def session(tmp_path: Path) -> LiveSession:
    session = desk(tmp_path).session(context=CUSTOMER)
    session.user("The car was dirty. Please look.")
    session.decide("get_rental", {"rental_id": "R1"})
    session.result({"rental_id": "R1", "customer_id": "C1", "ends_on": "2026-11-18", "paid": "400", "refunded": "0"})
    return session


def test_a_yes_from_before_a_gap_is_asked_for_again(session: LiveSession) -> None:
    session.agent(PUT_EXTEND)
    session.user("Yes, please.")
    session.unheard()
    assert session.decide("extend_rental", EXTEND).answer == "ask"


def test_what_is_put_and_answered_after_a_gap_counts(session: LiveSession) -> None:
    session.unheard()
    session.agent(PUT_EXTEND)
    session.user("Yes, please.")
    assert session.decide("extend_rental", EXTEND).allowed


def test_an_answer_after_a_gap_to_nobody_knows_what_is_open(session: LiveSession) -> None:
    session.agent(PUT_EXTEND)
    session.unheard()
    session.user("Yes, please.")
    assert session.decide("extend_rental", EXTEND).answer == "ask"


def test_a_no_after_a_gap_is_a_no(session: LiveSession) -> None:
    session.unheard()
    session.agent(PUT_EXTEND)
    session.user("No, stop.")
    assert session.decide("extend_rental", EXTEND).answer == "deny"


def test_after_a_gap_nothing_counts_but_the_last_exchange(session: LiveSession) -> None:
    session.unheard()
    for put, said in ((PUT_EXTEND, "Hm"), (PUT_REFUND, "Yes.")):
        session.agent(put)
        session.user(said)
    assert session.decide("extend_rental", EXTEND).answer == "ask"


def test_what_the_user_gave_as_a_reason_before_a_gap_is_asked_for_again(session: LiveSession) -> None:
    session.unheard()
    session.agent(PUT_REFUND)
    session.user("Yes, please.")
    decision = session.decide("refund", REFUND)
    assert decision.answer == "ask"
    assert [each.text for each in decision.questions] == ["Why does the customer want the money back?"]


def test_a_fact_that_was_looked_up_before_a_gap_is_still_known(session: LiveSession) -> None:
    session.unheard()
    assert session.decide("extend_rental", EXTEND).look_ups == ()
