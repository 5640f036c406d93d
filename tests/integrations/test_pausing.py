"""Who may answer what a call waits for, whatever the framework."""

from pathlib import Path
from typing import Any

import pytest

from bylaw.errors import UsageError
from bylaw.integrations.follower import Follower
from bylaw.integrations.parts import Asked
from bylaw.integrations.pausing import Prompt, approve, confirm, decide, prompts
from bylaw.shield import Shield
from bylaw.shield.history import read_history
from tests.integrations.pausing import APPROVED, check_approval
from tests.integrations.rental import CUSTOMER, EXTEND, Rentals, desk

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
        (card,) = prompts(follower.decide("w", "extend_rental", EXTEND))
        with pytest.raises(UsageError, match="nobody else can say yes for them"):
            approve(follower.session, card, True, by="ann")
        confirm(follower.session, card, True)
        (approval,) = prompts(follower.decide("w", "extend_rental", EXTEND))
        with pytest.raises(UsageError, match="waits for a person"):
            confirm(follower.session, approval, True)
        with pytest.raises(UsageError, match="needs a name"):
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


def test_a_shield_that_fails_lets_nothing_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follower = follower_of(desk(tmp_path))

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr("bylaw.shield.LiveSession.catch_up", fail)
    decision = decide(follower, WRITE, lambda prompt: {"id": prompt.id, "confirm": True})
    assert not decision.allowed
    assert "out of order" in decision.feedback
