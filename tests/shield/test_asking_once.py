"""Look-ups first, then the card, and nothing about consent before that; a call that may have run is said to."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bylaw import Pack, Shield
from bylaw.shield import LiveSession

PACK = Pack.from_files(
    {
        "pack.yaml": "format: 1\nname: car\nversion: '1'\ndocument: policy.md\n",
        "policy.md": "A refund is never more than what is left.\nBefore every change, wait for a yes.\n",
        "tools.yaml": """
tools:
  get_rental: {effect: read, parameters: {rental_id: string}}
  refund:
    effect: write
    title: pay money back
    parameters: {rental_id: string, amount: string}
    effects: [{as: Rental, key: $args.rental_id, set: {refunded: {plus: $args.amount}}}]
""",
        "entities.yaml": (
            "entities:\n  Rental: {key: rental_id, read: get_rental, fields: {paid: money, refunded: money}}\n"
        ),
        "policies.yaml": "policies:\n  - {id: confirm, kind: rule, spans: ['Before every change']}\n",
        "rules.yaml": (
            "predicates:\n  change: {effect: write}\n  agreed: {consented: told}\n"
            "rules:\n  - {id: confirm, formula: ALWAYS (change IMPLIES agreed)}\n"
        ),
        "guards/car.py": (
            "def refund_limit(call: refund, facts):\n"
            '    """A refund is never more than what is left."""\n'
            "    rental = facts.Rental(call.rental_id)\n"
            "    left = rental.paid - rental.refunded\n"
            '    return deny("too much") if money(call.amount) > left else permit()\n'
        ),
    }
)
REFUND = {"rental_id": "R1", "amount": "50.00"}


@pytest.fixture(name="session", params=["no log", "log"])
def open_session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LiveSession]:
    with Shield(PACK, log=tmp_path / "log.db" if request.param == "log" else None) as shield:
        session = shield.session("c")
        session.user("Please pay me 50 back on R1")
        yield session


def look_up(session: LiveSession, **fields: Any) -> None:
    session.decide("get_rental", {"rental_id": "R1"})
    session.result({"rental_id": "R1", "paid": "60.00", "refunded": "0.00", **fields})


def test_missing_look_ups_are_named_and_consent_is_not(session: LiveSession) -> None:
    decision = session.decide("refund", REFUND)
    assert (decision.answer, decision.card) == ("look_up", None)
    assert "Look up: get_rental(rental_id=R1)." in decision.feedback
    for word in ("yes", "confirm", "asked", "Before every change"):
        assert word not in decision.feedback


def test_the_first_call_after_the_look_ups_gets_the_card(session: LiveSession) -> None:
    look_up(session)
    decision = session.decide("refund", REFUND)
    assert decision.answer == "ask"
    assert decision.card is not None
    assert decision.feedback.startswith("Not done yet: ask first (refund).")
    session.agent(decision.card.text)
    session.user("Yes")
    assert session.decide("refund", REFUND).allowed


def test_a_denied_call_gets_no_card_and_no_word_of_consent(session: LiveSession) -> None:
    look_up(session, refunded="20.00")
    decision = session.decide("refund", REFUND)
    assert (decision.answer, decision.card) == ("deny", None)
    assert decision.feedback.startswith("Not done yet: not allowed (refund).")
    assert "Before every change" not in decision.feedback


def test_a_call_that_nobody_can_allow_gets_no_card() -> None:
    session = Shield(PACK).session("c")
    session.user("Please pay me 50 back on R1")
    look_up(session, refunded=None)
    decision = session.decide("refund", REFUND)
    assert decision.card is None
    assert "Please confirm" not in decision.feedback


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("Yes, but only 40 of it.", "the user's yes came with a condition"),
        ("Will it take long?", "neither a clear yes nor a clear no"),
        ("да", "in an unsupported language"),
    ],
)
def test_the_agent_is_told_why_an_answer_does_not_count_and_gets_the_card_again(
    session: LiveSession, answer: str, why: str
) -> None:
    look_up(session)
    card = session.decide("refund", REFUND).card
    assert card is not None
    session.agent(card.text)
    session.user(answer)
    again = session.decide("refund", REFUND)
    assert (again.answer, why in again.feedback) == ("ask", True)
    assert again.feedback.endswith(card.text)


def test_a_yes_that_comes_after_another_message_is_said_to_be_late(session: LiveSession) -> None:
    look_up(session)
    card = session.decide("refund", REFUND).card
    assert card is not None
    session.agent(card.text)
    session.user("What is that for?")
    session.agent("It is what you paid for the second day.")
    session.user("Yes")
    again = session.decide("refund", REFUND)
    assert not again.allowed
    assert "another message came between the card and the answer" in again.feedback


def test_after_two_answers_in_vain_the_agent_is_told_the_way_out(session: LiveSession) -> None:
    look_up(session)
    for _ in range(2):
        card = session.decide("refund", REFUND).card
        assert card is not None
        session.agent(card.text)
        session.user("Maybe, who knows?")
    last = session.decide("refund", REFUND)
    assert "Please confirm" not in last.feedback
    for way in ("button", "hand the user over to a person", "cannot be confirmed here"):
        assert way in last.feedback
    assert last.card is not None
    session.confirm(last.card, True, by="button")
    assert session.decide("refund", REFUND).allowed


def test_a_call_that_was_made_is_put_again_only_for_a_second_time(session: LiveSession) -> None:
    small = {**REFUND, "amount": "5.00"}
    look_up(session)
    card = session.decide("refund", small).card
    assert card is not None
    session.agent(card.text)
    session.user("Yes")
    assert session.decide("refund", small).allowed
    session.result("paid")
    look_up(session)
    again = session.decide("refund", small)
    assert again.feedback.startswith("Done (refund)")
    assert "Only if the user wants this done a second time: show the user the text below" in again.feedback


def test_a_call_that_may_have_run_is_said_to_have(session: LiveSession) -> None:
    look_up(session)
    card = session.decide("refund", REFUND).card
    assert card is not None
    session.agent(card.text)
    session.user("Yes")
    assert session.decide("refund", REFUND, id="lost").allowed
    again = session.decide("refund", REFUND, id="again")
    assert (again.allowed, again.earlier) == (False, "perhaps")
    assert again.feedback.startswith("May have been done (refund)")


@pytest.mark.parametrize("said", ["", "And what about my refund?"])
def test_a_card_for_a_call_that_may_have_run_says_so(said: str, session: LiveSession) -> None:
    small = {**REFUND, "amount": "5.00"}
    look_up(session)
    card = session.decide("refund", small).card
    assert card is not None
    session.agent(card.text)
    session.user("Yes")
    assert session.decide("refund", small, id="lost").allowed
    session.result(None, id="lost", captured=False)
    if said:
        session.user(said)
    look_up(session)
    again = session.decide("refund", small, id="again")
    assert again.earlier == "perhaps"
    assert again.card is not None
    assert "This may already have been done." in again.card.text
    session.agent(again.card.text)
    session.user("Yes")
    assert session.decide("refund", small, id="third").allowed
    session.result("paid", id="third")
    session.user("And 5 more, please.")
    look_up(session)
    more = session.decide("refund", small, id="fourth")
    assert more.card is not None
    assert more.earlier == "", "the last one was surely made, and the user has asked for another"
