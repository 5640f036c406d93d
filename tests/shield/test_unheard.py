"""Where nobody tells what the user says: a person stands in where the pack lets one, and nobody is asked for ever."""

from pathlib import Path
from typing import Any

from bylaw.policy.tool import ApprovalTerms, Postures
from bylaw.record.verify import verify
from bylaw.shield import LiveSession, Shield
from bylaw.shield.history import read_history
from bylaw.trace.event import Call
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, REFUND, Rentals, desk
from tests.shield.scenes import looked_up

STANDS_IN = Postures(approval=ApprovalTerms(stands_in=("confirm",)))


def session(shield: Shield, name: str = "c") -> LiveSession:
    """A host that tells of calls and of nothing that is said."""
    found = shield.session(name, context=CUSTOMER)
    found.unheard()
    looked_up(found, "get_rental", {"rental_id": "R1"}, Rentals().rental)
    found.unheard()
    return found


def open_desk(folder: Path, **given: Any) -> Shield:
    return desk(folder, log=folder / "log.sqlite", **given)


def test_a_person_stands_in_where_the_pack_lets_one_and_the_log_says_so(tmp_path: Path) -> None:
    with open_desk(tmp_path, postures=STANDS_IN) as shield:
        assert shield.log is not None
        talk = session(shield)
        asked = talk.decide("extend_rental", EXTEND)
        assert (asked.answer, asked.allowed) == ("ask", False)
        assert asked.approval
        assert "Ask the user" not in asked.feedback
        assert f"The request is `{asked.approval}`" in asked.feedback
        shield.log.approve(asked.approval, by="lena")
        talk.unheard()
        allowed = talk.decide("extend_rental", EXTEND)
        assert (allowed.allowed, allowed.overrides) == (True, ("confirm",))
        talk.result("extended")
        talk.unheard()
        # Once only: it was no yes of the user's that might cover more.
        assert not talk.decide("extend_rental", EXTEND).allowed
        history = read_history(shield.log.conversation("default", "c"))
        assert history is not None
        (call, *_) = [each for each in history.events if isinstance(each, Call) and each.tool == "extend_rental"][1:]
        assert call.approved is not None
        assert (call.approved.by, call.approved.policies) == ("lena", ("confirm",))
        (ground,) = [each for each in history.decisions[2].grounds if each.policy == "confirm"]
        assert ground.because == "override by lena"
        assert verify(shield.log.journal.store, "default").faults == ()


def test_where_nobody_may_stand_in_the_agent_is_not_told_to_ask_for_ever(tmp_path: Path) -> None:
    with open_desk(tmp_path) as shield:
        assert shield.log is not None
        asked = session(shield).decide("extend_rental", EXTEND)
        assert (asked.answer, asked.approval) == ("ask", "")
        assert "does not reach this check, so do not try again" in asked.feedback
        assert "Ask the user" not in asked.feedback
        assert shield.log.approvals("default") == []


def test_who_hears_the_user_asks_the_user(tmp_path: Path) -> None:
    with open_desk(tmp_path, postures=STANDS_IN) as shield:
        talk = session(shield)
        talk.user("Refund 20.00 for R1. The car was dirty.")
        refused = talk.decide("refund", REFUND)
        assert not refused.allowed
        assert refused.approval == ""
        talk.agent(PUT_EXTEND)
        talk.user("Yes, please.")
        assert talk.decide("extend_rental", EXTEND).allowed


def test_an_override_answers_no_other_policy(tmp_path: Path) -> None:
    with open_desk(tmp_path, postures=STANDS_IN) as shield:
        assert shield.log is not None
        talk = session(shield)
        # Why the customer wants the money back is for the customer to say.
        asked = talk.decide("refund", REFUND)
        if asked.approval:
            shield.log.approve(asked.approval, by="lena")
        talk.unheard()
        assert not talk.decide("refund", REFUND).allowed
