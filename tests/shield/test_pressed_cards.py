"""Cards that the host has the user press, and the user's words beside them: the later one holds."""

import pytest

from bylaw import Shield
from bylaw.errors import UsageError
from tests.shield.cards import TEXT, WANTED, Clock, ask, begun, card_of, open_shield, still

__all__ = ["open_shield", "still"]


def test_the_host_reports_the_answer(shield: Shield) -> None:
    session, card = begun(shield)
    session.confirm(card, True, by="button")
    assert ask(session).allowed
    session.result({"done": True})
    assert not ask(session).allowed


def test_a_no_that_the_host_reports_refuses_the_call(shield: Shield) -> None:
    session, card = begun(shield)
    session.confirm(card.id, False)
    decision = ask(session)
    assert (decision.answer, decision.allowed, decision.card) == ("deny", False, None)


def test_a_card_is_good_for_its_arguments_alone(shield: Shield) -> None:
    session, card = begun(shield)
    session.confirm(card, True)
    assert not ask(session, {"to": "AC-22", "amount": 251}).allowed
    assert not ask(session, {"to": "AC-22", "amount": 250, "note": "x"}).allowed
    assert ask(session, {"amount": 250, "to": "AC-22"}).allowed


def test_a_card_that_waits_is_put_again_not_another(shield: Shield) -> None:
    session, card = begun(shield)
    assert card_of(ask(session)) == card


def test_cards_expire(shield: Shield, clock: Clock) -> None:
    session, card = begun(shield)
    session.confirm(card, True)
    clock.now += 3601
    assert card_of(ask(session)).id != card.id
    session.agent(TEXT)
    session.user("Yes.")
    clock.now += 3601
    assert not ask(session).allowed
    with pytest.raises(UsageError, match="has expired"):
        session.confirm(card, False)


def test_wrong_used_and_contradicted_cards_are_refused(shield: Shield) -> None:
    session, card = begun(shield)
    with pytest.raises(UsageError, match="this conversation has no card `c/99`"):
        session.confirm("c/99", True)
    session.confirm(card, True)
    length = session.length
    session.confirm(card, True)
    assert session.length == length
    assert ask(session).allowed
    with pytest.raises(UsageError, match=r"card `c/1` was used by the call at step \d"):
        session.confirm(card, True)
    other = card_of(ask(session, {"to": "AC-30", "amount": 5}))
    session.confirm(other, False)
    with pytest.raises(UsageError, match=r"the answer to .* was no"):
        session.confirm(other, True)


def test_a_yes_may_be_taken_back_before_it_is_used(shield: Shield) -> None:
    session, card = begun(shield)
    session.confirm(card, True)
    session.confirm(card, False)
    assert not ask(session).allowed


def test_a_no_after_the_tool_failed_is_heard(shield: Shield) -> None:
    session, card = begun(shield)
    session.confirm(card, True)
    assert ask(session).allowed
    session.result("busy", error=True)
    session.confirm(card, False)
    assert not ask(session).allowed


def test_an_answer_that_is_older_than_the_users_words_is_refused(shield: Shield) -> None:
    session, card = begun(shield)
    assert card.expires is not None
    session.user("No, forget it.", time=card.expires - 1)
    with pytest.raises(UsageError, match="was answered before the user's last message"):
        session.confirm(card, True, at=card.expires - 5)
    assert not ask(session).allowed


@pytest.mark.parametrize("said", ["No", "No, thanks.", "Never mind"])
def test_a_press_does_not_undo_a_no_that_the_user_wrote(shield: Shield, said: str, clock: Clock) -> None:
    session, card = begun(shield)
    session.agent(card.text)
    session.user(said)
    clock.now += 5
    with pytest.raises(UsageError, match="the user said no after"):
        session.confirm(card, True, at=clock.now, after=session.position)
    assert not ask(session).allowed


OTHERS = ["Not like this", "I refuse", "Cancel that", "Undo", "What is the fee?", "I pressed the wrong button", ""]


@pytest.mark.parametrize("said", OTHERS)
def test_any_other_message_cancels_a_later_press(shield: Shield, said: str) -> None:
    session, card = begun(shield)
    session.user(said)
    with pytest.raises(UsageError, match="the user wrote something else after"):
        session.confirm(card, True, by="button")
    assert not ask(session).allowed


@pytest.mark.parametrize("said", ["Yes", "Thank you!", "Hello"])
def test_a_yes_or_a_courtesy_cancels_no_press(shield: Shield, said: str) -> None:
    session, card = begun(shield)
    session.user(said)
    session.confirm(card, True, by="button")
    assert ask(session).allowed


def test_a_press_counts_after_another_message_that_the_user_had_seen(shield: Shield, clock: Clock) -> None:
    session, card = begun(shield)
    session.user("What is the fee?")
    session.agent("There is none.")
    clock.now += 5
    session.confirm(card, True, at=clock.now, after=session.position)
    assert ask(session).allowed


@pytest.mark.parametrize(
    ("at", "after", "why"),
    [
        (5, None, "wrote something else"),
        (None, 3, "wrote something else"),
        (5, 1, "before the user's last message"),
        (5, 9, "the conversation has only 3 messages"),
        (99, 3, "in the future"),
        (-5, 3, "before the user's last message"),
    ],
)
def test_a_late_press_with_a_missing_future_or_contradictory_time_or_position_does_not_count(
    shield: Shield, clock: Clock, at: float | None, after: int | None, why: str
) -> None:
    session, card = begun(shield)
    session.user("What is the fee?")
    session.agent("There is none.")
    began, clock.now = clock.now, clock.now + 10
    with pytest.raises(UsageError, match=why):
        session.confirm(card, True, at=None if at is None else began + at, after=after)
    assert not ask(session).allowed


def test_who_wants_it_after_all_gets_a_card_that_can_be_pressed(shield: Shield) -> None:
    session, card = begun(shield)
    session.agent(card.text)
    session.user("No")
    assert ask(session).card is None
    session.user("I want the transfer after all.")
    session.confirm(card_of(ask(session)), True)
    assert ask(session).allowed


def test_after_a_no_in_words_the_card_is_another_and_a_late_press_on_the_first_is_none(shield: Shield) -> None:
    session, card = begun(shield)
    session.user("No, don't!")
    session.user("I want the transfer after all.")
    other = card_of(ask(session))
    assert other.id != card.id
    with pytest.raises(UsageError, match="the user said no after"):
        session.confirm(card, True)
    assert not ask(session).allowed
    session.confirm(other, True)
    assert ask(session).allowed


def test_after_a_question_the_next_call_gets_a_card_that_can_be_pressed(shield: Shield) -> None:
    session, card = begun(shield)
    session.user("What is the fee?")
    other = card_of(ask(session))
    assert other.id != card.id
    session.confirm(other, True)
    assert ask(session).allowed


def test_a_no_is_to_every_call_that_shows_the_same(shield: Shield) -> None:
    session, card = begun(shield)
    session.agent(card.text)
    session.user("Yes")
    session.confirm(card, False)
    assert not ask(session, {**WANTED, "note": None}).allowed


@pytest.mark.parametrize("by_host", [True, False], ids=["button", "words"])
def test_another_spelling_of_what_the_user_declined_is_told_as_declined(shield: Shield, by_host: bool) -> None:
    session, card = begun(shield)
    if by_host:
        session.confirm(card, False)
    else:
        session.agent(card.text)
        session.user("No.")
    again = ask(session, {"to": "ac 22", "amount": 250})
    assert again.card is None
    assert "the user said no to this call" in again.feedback
    assert "not asked" not in again.feedback


def test_a_later_no_to_another_spelling_takes_a_yes_back(shield: Shield) -> None:
    session, card = begun(shield)
    other = card_of(ask(session, {"to": "ac 22", "amount": 250}))
    session.confirm(card, True)
    session.confirm(other, False)
    assert not ask(session).allowed


def test_a_card_is_used_by_another_spelling_of_its_call(shield: Shield) -> None:
    session, card = begun(shield)
    other = card_of(ask(session, {"to": "ac 22", "amount": 250}))
    session.confirm(other, True)
    assert ask(session, {"to": "ac 22", "amount": 250}).allowed
    session.result("sent")
    with pytest.raises(UsageError, match="was used by an equivalent call"):
        session.confirm(card, True)
    assert not ask(session).allowed
