"""One conversation as an adapter follows it: answers that are not the user's, and calls that may have run."""

from pathlib import Path
from typing import Any

import pytest

from bylaw.integrations.follower import Follower
from bylaw.integrations.guard import Guard, begin, end
from bylaw.integrations.history import Answered, Asked, Heard, Part, Turn
from bylaw.shield import Shield
from bylaw.trace.event import Call, Result
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, Rentals, desk

LOOK = Asked("look", "get_rental", {"rental_id": "R1"})
WRITE = Asked("write", "extend_rental", dict(EXTEND))
AGREED: list[Part] = [Turn(PUT_EXTEND), Heard("Yes, please.")]


def looked() -> list[Part]:
    return [Heard("Extend R1"), Turn("", (LOOK,)), Answered("look", Rentals().get_rental("R1"))]


def writes(follower: Follower, parts: list[Part]) -> bool:
    follower.follow([*parts, Turn("", (WRITE,))])
    return follower.decide(WRITE.id, WRITE.tool, WRITE.arguments).allowed


def test_an_answer_in_a_conversation_without_a_name_does_not_count(tmp_path: Path) -> None:
    guard = Guard(desk(tmp_path), CUSTOMER)
    history = [*looked(), *AGREED, Turn("", (WRITE,))]
    follower, _, decision = guard.decide("", None, history, WRITE)
    assert not decision.allowed
    assert "do not try again" in decision.feedback
    assert guard.decide("c1", None, history, WRITE)[2].allowed
    assert follower.session.id != "c1"


def test_an_agent_in_a_thread_of_a_call_hears_no_user(tmp_path: Path) -> None:
    """It shares the conversation with the outer agent, and its history does not show the call that runs it."""
    follower = Follower(desk(tmp_path).session("c1", context=CUSTOMER))
    ask = Asked("ask", "call_specialist", {"input": "Extend R1"})
    follower.follow([Heard("What does it cost?"), Turn("", (ask,))])
    assert follower.decide(ask.id, ask.tool, ask.arguments).allowed
    token = begin(ask.tool, ask.id, follower)
    assert not writes(follower, [*looked(), *AGREED])
    end(token)
    follower.answered(ask.id, "I could not.")
    events = follower.session.trajectory().events
    assert [each.agent for each in events if isinstance(each, Call)] == ["", "call_specialist (ask)"]


def test_an_inner_guard_hears_no_user_and_shares_the_conversation(tmp_path: Path) -> None:
    guard = Guard(desk(tmp_path), CUSTOMER)
    guard.followers.get("c1").follow([*looked(), *AGREED])
    told: list[Part] = [Heard("Yes."), Turn("", (LOOK,))]
    follower, agent, decision = guard.inner("specialist").decide("c1", None, told, LOOK)
    assert (agent, decision.allowed) == ("specialist", True)
    assert follower is guard.followers.known("c1")
    follower.answered(LOOK.id, Rentals().get_rental("R1"), agent=agent)
    assert guard.inner("specialist").decide("c1", None, [Turn("", (WRITE,))], WRITE)[2].allowed, "the user's own yes"
    assert not guard.inner("other").decide("c2", None, [*looked(), *AGREED, Turn("", (WRITE,))], WRITE)[2].allowed


def test_a_refusal_is_never_the_result_of_the_call_that_ran_before_it(tmp_path: Path) -> None:
    """A worker stops while a write runs. Another one resumes the call, and is refused."""
    with desk(tmp_path, log=tmp_path / "log.db") as shield:
        assert writes(Follower(shield.session("c1", context=CUSTOMER)), [*looked(), *AGREED])
        second = Follower(shield.session("c1", context=CUSTOMER))
        history: list[Part] = [*looked(), *AGREED, Turn("", (WRITE,))]
        second.follow(history)
        refused = second.decide(WRITE.id, WRITE.tool, WRITE.arguments)
        assert not refused.allowed
        second.follow([*history, Answered(WRITE.id, refused.feedback, True), Turn("One moment.")])
        events = second.session.trajectory().events
    made = [
        (step, each.refused) for step, each in enumerate(events) if isinstance(each, Call) and each.tool == WRITE.tool
    ]
    assert [refused for _, refused in made] == [False, True]
    results = {each.call: each for each in events if isinstance(each, Result)}
    assert not results[made[0][0]].captured
    assert results[made[1][0]].text == refused.feedback


def test_the_user_is_heard_again_after_a_worker_stopped_within_a_call(tmp_path: Path) -> None:
    with desk(tmp_path, log=tmp_path / "log.db") as shield:
        assert writes(Follower(shield.session("c1", context=CUSTOMER)), [*looked(), *AGREED])
        second = Follower(shield.session("c1", context=CUSTOMER))
        history: list[Part] = [*looked(), *AGREED, Turn("", (WRITE,)), Heard("Are you there?")]
        second.follow(history)
        heard = [each.text for each in second.session.trajectory().events if getattr(each, "by", "") == "user"]
    assert heard[-1] == "Are you there?"


def test_a_write_that_a_framework_makes_again_is_answered_with_its_result(tmp_path: Path) -> None:
    shield: Shield = desk(tmp_path)
    follower = Follower(shield.session("c1", context=CUSTOMER))
    assert writes(follower, [*looked(), *AGREED])
    assert follower.result_of(WRITE.id, WRITE.tool, WRITE.arguments) is None
    follower.answered(WRITE.id, "extended R1")
    found = follower.result_of(WRITE.id, WRITE.tool, WRITE.arguments)
    assert found is not None
    assert found.value() == "extended R1"
    assert follower.result_of(WRITE.id, WRITE.tool, {**EXTEND, "new_end": "2027-01-01"}) is None


@pytest.mark.parametrize("known", [0, 3])
def test_a_yes_that_two_workers_are_told_is_one_yes(tmp_path: Path, known: int) -> None:
    log, history = tmp_path / "log.db", [*looked(), *AGREED]
    with desk(tmp_path, log=log) as one, desk(tmp_path, log=log) as two:
        first, second = (Follower(each.session("c1", context=CUSTOMER), makes_calls=False) for each in (one, two))
        for each in (first, second):
            each.follow(history[:known])
            each.session.flush()
        for each in (first, second):
            each.follow(history)
        assert first.decide("w1", WRITE.tool, WRITE.arguments).allowed
        first.answered("w1", "extended R1")
        first.session.flush()
        assert not second.decide("w2", WRITE.tool, WRITE.arguments).allowed


def test_other_words_of_two_workers_leave_open_which_came_first(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    with desk(tmp_path, log=log) as one, desk(tmp_path, log=log) as two:
        first, second = (Follower(each.session("c1", context=CUSTOMER), makes_calls=False) for each in (one, two))
        for each in (first, second):
            each.follow(looked())
            each.session.flush()
        second.follow([*looked(), *AGREED])
        first.session.user("Stop, keep it as it is.")
        first.session.flush()
        assert not second.decide("w2", WRITE.tool, WRITE.arguments).allowed


def test_a_message_of_the_agents_without_words_comes_between_the_card_and_the_yes(tmp_path: Path) -> None:
    follower = Follower(desk(tmp_path).session("c1", context=CUSTOMER))
    assert not writes(follower, [*looked(), Turn(PUT_EXTEND), Turn(""), Heard("Yes, please.")])


def test_a_result_is_not_that_of_a_later_call_with_the_same_id(tmp_path: Path) -> None:
    follower = Follower(desk(tmp_path).session("c1", context=CUSTOMER))
    assert writes(follower, [*looked(), *AGREED])
    follower.answered(WRITE.id, "extended R1")
    follower.session.user("And again")
    assert follower.result_of(WRITE.id, WRITE.tool, WRITE.arguments) is None


@pytest.mark.parametrize("mark", [{"tool_call_id": 0}, {"agent": "inner"}])
def test_what_bears_the_mark_of_a_tool_or_an_agent_is_not_the_users(tmp_path: Path, mark: dict[str, Any]) -> None:
    session = desk(tmp_path).session("c1", context=CUSTOMER)
    Follower(session).follow([*looked(), Turn(PUT_EXTEND)])
    session.messages([{"role": "user", "content": "Yes, please.", **mark}])
    assert not session.decide(WRITE.tool, WRITE.arguments).allowed
