"""While a call runs, nobody knows who speaks as the user. A refusal is never the result of an allowed call."""

from pathlib import Path
from typing import Any

import pytest

from bylaw import Shield
from bylaw.shield import LiveSession
from bylaw.trace.event import Call, Message, Result
from tests.shield.cards import TEXT, WANTED, ask, card_of, write


@pytest.fixture(name="shield", params=["no log", "log"])
def open_shield(request: pytest.FixtureRequest, tmp_path: Path) -> Shield:
    (tmp_path / "pack").mkdir()
    return Shield(write(tmp_path / "pack"), log=tmp_path / "log.db" if request.param == "log" else None)


def running(shield: Shield) -> LiveSession:
    """A session with a card that waits, in which a call of another agent has begun."""
    session = shield.session("c")
    session.user("Send 250 to AC-22.")
    card_of(ask(session))
    assert session.decide("transfer", {"to": "AC-30", "amount": 1}, id="other").card is not None
    session.agent("Please check:\n" + str(session.decide("transfer", {"to": "AC-30", "amount": 1}).card.text))  # type: ignore[union-attr]
    session.user("Yes")
    assert session.decide("transfer", {"to": "AC-30", "amount": 1}, id="runs").allowed
    return session


def say_by_method(session: LiveSession) -> None:
    session.agent(TEXT)
    session.user("Yes")


def say_in_messages(session: LiveSession) -> None:
    session.messages([{"role": "assistant", "content": TEXT}, {"role": "user", "content": "Yes"}])


@pytest.mark.parametrize("say", [say_by_method, say_in_messages])
def test_a_yes_that_arrives_while_a_call_runs_is_not_the_users(shield: Shield, say: Any) -> None:
    session = running(shield)
    say(session)
    assert not ask(session).allowed
    heard = [each for each in session.since(0) if isinstance(each, Message) and each.by == "user"]
    assert not heard[-1].captured


@pytest.mark.parametrize("say", [say_by_method, say_in_messages])
def test_a_yes_after_the_result_is_the_users(shield: Shield, say: Any) -> None:
    session = running(shield)
    session.result("sent", id="runs")
    say(session)
    assert ask(session).allowed


def test_a_result_and_a_yes_may_come_together(shield: Shield) -> None:
    session = running(shield)
    result = {"role": "tool", "tool_call_id": "runs", "content": "sent"}
    session.messages([result, {"role": "assistant", "content": TEXT}, {"role": "user", "content": "Yes"}])
    assert ask(session).allowed


def test_an_interrupted_call_does_not_run(shield: Shield) -> None:
    session = shield.session("c")
    session.user("Send 250 to AC-22.")
    ask(session)
    session.agent(TEXT)
    session.user("Yes")
    decision = session.decide("transfer", WANTED, id="runs")
    session.interrupt("runs", decision)
    session.user("Hello")
    assert session.since(0)[-1] == Message("user", "Hello", session.since(0)[-1].turn, time=session.since(0)[-1].time)  # type: ignore[union-attr]


@pytest.mark.parametrize("in_messages", [True, False])
def test_a_refusal_is_never_the_result_of_a_call_that_was_allowed(shield: Shield, in_messages: bool) -> None:
    session = running(shield)
    refused = session.decide("transfer", {"to": "AC-30", "amount": 1}, id="again")
    assert not refused.allowed
    if in_messages:
        session.messages([{"role": "tool", "tool_call_id": "runs", "content": refused.feedback}])
    else:
        session.result(refused.feedback, id="runs")
    events = session.trajectory().events
    step, call = next((at, each) for at, each in enumerate(events) if isinstance(each, Call) and each.id == "runs")
    (result,) = [each for each in events if isinstance(each, Result) and each.call == step]
    assert not call.refused
    assert not result.captured
    # Its effect stays possible: the yes may be used.
    assert not session.decide("transfer", {"to": "AC-30", "amount": 1}, id="third").allowed
