"""A framework's thread that another principal goes on with, where the pack allows it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bylaw.errors import UsageError
from bylaw.integrations.follower import Follower
from bylaw.integrations.guard import Followers
from bylaw.integrations.history import Answered, Asked, Heard, Part, Turn
from bylaw.pack import Pack
from bylaw.policy.tool import Postures
from bylaw.shield import Shield
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, Rentals, desk

OTHER = {"signed_in_as": "C2"}
LOOK = [
    Heard("Please keep R1 until 2026-11-20."),
    Turn("", (Asked("a", "get_rental", {"rental_id": "R1"}),)),
    Answered("a", Rentals().get_rental("R1")),
]
PUT = [*LOOK, Turn(PUT_EXTEND, ())]
ALLOWED = Postures(handover=True)


@pytest.fixture
def run(tmp_path: Path) -> Callable[[Any, list[Part]], Follower]:
    """A run of the thread `t` for somebody, with the history so far."""
    followers = Followers(desk(tmp_path, log=tmp_path / "log.db", postures=ALLOWED), lambda run: run)

    def follow(context: Any, parts: list[Part]) -> Follower:
        follower = followers.get("t", context)
        follower.follow(parts)
        return follower

    return follow


def test_a_thread_goes_on_and_asks_the_second_anew(run: Any) -> None:
    agreed = [*PUT, Heard("Yes")]
    run(OTHER, LOOK)
    run(OTHER, agreed)
    mine = run(CUSTOMER, agreed)
    assert mine.session.id == "t"
    decision = mine.decide("w", "extend_rental", EXTEND)
    assert (decision.answer, decision.look_ups) == ("ask", ())
    told = [*agreed, Heard("Keep it, please."), Turn(PUT_EXTEND, ())]
    run(CUSTOMER, told)
    assert run(CUSTOMER, [*told, Heard("Yes")]).decide("w2", "extend_rental", EXTEND).allowed


def test_a_yes_to_the_firsts_question_is_none_of_the_second(run: Any) -> None:
    run(OTHER, LOOK)
    run(OTHER, PUT)
    assert not run(CUSTOMER, [*PUT, Heard("Yes")]).decide("w", "extend_rental", EXTEND).allowed


def test_words_that_the_first_was_not_heard_to_say_are_none_of_the_second(run: Any) -> None:
    run(OTHER, LOOK)
    unheard = [*PUT, Heard("Yes"), Turn("One moment.", ()), Heard("Hello, it is me now.")]
    assert not run(CUSTOMER, unheard).decide("w", "extend_rental", EXTEND).allowed


def test_a_run_that_says_nobodys_name_is_refused_from_then_on(run: Any) -> None:
    run(OTHER, LOOK)
    run(CUSTOMER, PUT)
    with pytest.raises(UsageError, match="does not name the current user"):
        run(None, [*PUT, Heard("Yes")])


def test_so_it_is_for_a_client_of_the_proxy(tmp_path: Path) -> None:
    shield = desk(tmp_path, log=tmp_path / "log.db", postures=ALLOWED)
    followers = Followers(shield, lambda run: run, passes_history=False)
    first = followers.get("t", OTHER).session
    Follower(first).follow(LOOK)
    first.agent(PUT_EXTEND)
    first.user("Yes")
    second = followers.get("t", CUSTOMER).session
    assert second.id == "t"
    assert second.decide("extend_rental", EXTEND).answer == "ask"
    with pytest.raises(UsageError, match="does not name the current user"):
        followers.get("t", {"locale": "de"})
    with pytest.raises(UsageError, match="does not name the current user"):
        followers.get("t", {})


def test_a_customer_called_1_is_not_the_one_called_true(tmp_path: Path) -> None:
    followers = Followers(desk(tmp_path), lambda run: run)
    first = followers.get("t", {"signed_in_as": 1})
    assert followers.get("t", {"signed_in_as": True}) is not first
    assert followers.get("t", {"signed_in_as": 1}) is first


@pytest.mark.parametrize("before", [{}, CUSTOMER])
def test_what_a_host_vouches_for_in_the_next_run_counts_in_it(tmp_path: Path, before: dict[str, str]) -> None:
    files = {
        "pack.yaml": "{format: 1, name: till, document: policy.md}",
        "policy.md": "Only an owner opens the till.",
        "tools.yaml": "tools: {open_till: {effect: write}}",
        "entities.yaml": "entities: {Session: {key: [], fields: {role: {type: enum, values: [owner, clerk], "
        "origin: context}}}}",
        "guards/g.py": "def owner(call: open_till, facts):\n"
        '    """Only an owner opens the till."""\n'
        '    return permit() if facts.Session().role == "owner" else deny("not an owner")\n',
    }
    followers = Followers(Shield(Pack.from_files(files), log=tmp_path / "log.db"), lambda run: run)

    def answer(role: str) -> str:
        session = followers.get("t", {**OTHER, "role": role}).session
        return session.decide("open_till", {}).answer

    # Somebody else's word before leaves them a conversation of their own, linked by its name.
    followers.get("t", before)
    assert [answer("owner"), answer("clerk"), answer("owner")] == ["allow", "deny", "allow"]
