"""Who may answer what a call waits for, whatever the framework."""

from pathlib import Path
from typing import Any

import pytest

from bylaw.errors import UsageError
from bylaw.integrations.follower import Follower
from bylaw.integrations.guard import Prompt, approve, confirm, decide, prompts
from bylaw.integrations.history import Asked
from bylaw.shield import Shield
from bylaw.shield.history import read_history
from tests.integrations.pausing import APPROVED, check_approval
from tests.integrations.rental import CUSTOMER, EXTEND, Rentals, desk, desk_with_numbers

WRITE = Asked("w", "extend_rental", EXTEND)


def follower_of(shield: Shield, context: Any = CUSTOMER) -> Follower:
    """A conversation in which the rental was looked up."""
    session = shield.session("c1", context=context)
    session.user("Extend R1")
    session.decide("get_rental", {"rental_id": "R1"}, id="a")
    session.result(Rentals().get_rental("R1"), id="a")
    session.agent("I have it.")
    session.user("Go on.")
    return Follower(session)


def test_a_person_who_may_stand_in_overrides_and_the_log_says_who(tmp_path: Path) -> None:
    desk(tmp_path)
    pack = tmp_path / "desk" / "pack.yaml"
    pack.write_text(pack.read_text() + "shield: {approval: {stands_in: [confirm]}}\n")
    with Shield(tmp_path / "desk", log=tmp_path / "log.sqlite") as shield:
        follower = follower_of(shield)
        follower.session.unheard()
        asked: list[Prompt] = []

        def put(prompt: Prompt) -> dict[str, Any]:
            asked.append(prompt)
            return {"id": prompt.id, **APPROVED}

        assert decide(follower, WRITE, put).allowed
        assert [each.whom for each in asked] == ["person"]
        follower.end()
        check_approval(shield)
        assert shield.log is not None
        history = read_history(shield.log.conversation("default", "c1"))
        assert history is not None
        assert history.decisions[-1].overrides == ("confirm",)
        assert "override by ann" in [each.because for each in history.decisions[-1].grounds]


def test_neither_answers_for_the_other(tmp_path: Path) -> None:
    with desk(tmp_path, log=tmp_path / "log.sqlite") as shield:
        follower = follower_of(shield, None)
        card, waiting = prompts(follower.decide("w", "extend_rental", EXTEND))
        with pytest.raises(UsageError, match="no one else can answer for them"):
            approve(follower.session, card, True, by="ann")
        confirm(follower.session, card, True)
        (approval,) = prompts(follower.decide("w", "extend_rental", EXTEND))
        for prompt in (waiting, approval):
            with pytest.raises(UsageError, match="waits for a reviewer"):
                confirm(follower.session, prompt, True)
        with pytest.raises(UsageError, match="needs the name"):
            approve(follower.session, approval, True, by="")


def test_a_call_with_other_arguments_has_a_question_of_its_own(tmp_path: Path) -> None:
    follower = follower_of(desk(tmp_path))
    first = prompts(follower.decide("w", "extend_rental", EXTEND))
    other = Asked("w", "extend_rental", {**EXTEND, "new_end": "2027-01-01"})
    asked: list[Prompt] = []

    def put(prompt: Prompt) -> dict[str, Any]:
        if asked:
            raise KeyboardInterrupt
        asked.append(prompt)
        return {"id": first[0].id, "confirm": True}

    with pytest.raises(KeyboardInterrupt):
        decide(follower, other, put)
    assert asked[0].arguments == other.arguments


@pytest.mark.parametrize("by", [{}, {"by": " "}, {"by": None}])
def test_an_approval_without_a_name_is_asked_for_again(tmp_path: Path, by: dict[str, Any]) -> None:
    with desk(tmp_path, log=tmp_path / "log.sqlite") as shield:
        follower = follower_of(shield, None)
        asked: list[Prompt] = []

        def put(prompt: Prompt) -> dict[str, Any]:
            asked.append(prompt)
            if prompt.whom == "user":
                return {"id": prompt.id, "confirm": True}
            return {"id": prompt.id, "approve": True, **(by if len(asked) < 3 else {"by": "ann"})}

        assert decide(follower, WRITE, put).allowed
        assert [each.whom for each in asked] == ["user", "person", "person"]
        assert asked[1] == asked[2]


def spelled(amount: Any) -> Asked:
    return Asked(f"call {amount!r}", "refund", {"rental_id": "R1", "amount": amount})


@pytest.mark.parametrize("amount", [60.0, "60", "60.00", " 60", "6e1"])
def test_a_no_to_a_card_is_one_to_every_spelling_and_a_yes_is_not(tmp_path: Path, amount: Any) -> None:
    for said in (False, True):
        follower = follower_of(desk_with_numbers(tmp_path / str(said)))
        follower.session.user("It broke down, pay 60 back.")
        asked: list[Any] = []

        def put(prompt: Prompt, said: bool = said, asked: list[Any] = asked) -> dict[str, Any]:
            asked.append(prompt.arguments["amount"])
            return {"id": prompt.id, "confirm": said if len(asked) == 1 else False}

        assert decide(follower, spelled(60), put).allowed is said
        assert not decide(follower, spelled(amount), put).allowed
        assert asked == ([60, amount] if said else [60])
        if said:
            continue
        decide(follower, spelled(61), put)
        assert asked[-1] == 61
        follower.session.user("Do pay it back after all.")
        decide(follower, spelled(amount), put)
        assert asked[-1] == amount


def test_a_shield_that_fails_lets_nothing_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follower = follower_of(desk(tmp_path))

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr("bylaw.shield.LiveSession.catch_up", fail)
    decision = decide(follower, WRITE, lambda prompt: {"id": prompt.id, "confirm": True})
    assert not decision.allowed
    assert "out of order" in decision.feedback
