"""What must come of a pause in every framework that has one: `class TestPauses(EveryPause): worker = Worker`."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bylaw.shield import LiveSession, Shield
from bylaw.trace.event import Call, Message
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, REFUND, Rentals, desk

CONFIRMED = {"confirm": True, "by": "button"}
APPROVED = {"approve": True, "by": "ann"}
"""Answers, to be completed by the id of what they answer."""


def check_card(session: LiveSession) -> None:
    """One card, one answer of the user's, and the same call made again, which spends it."""
    events = session.trajectory().events
    calls = [each for each in events if isinstance(each, Call) and each.tool.endswith("extend_rental")]
    assert [each.refused for each in calls] == [True, False]
    assert len({each.id.partition("#")[0] for each in calls}) == 1
    assert calls[0].card is not None
    said = [each.confirmation for each in events if isinstance(each, Message) and each.confirmation is not None]
    assert [(each.card, each.yes, each.by) for each in said] == [(calls[0].card.id, True, "button")]
    again = session.decide(calls[0].tool, calls[0].arguments)
    assert not again.allowed, "one yes is one write"


def check_approval(shield: Shield, conversation: str = "c1") -> None:
    """One approval, used, with the name of who gave it; and no answer of the user's to any card."""
    assert shield.log is not None
    (approval,) = shield.log.approvals("default")
    assert approval.status == "used"
    assert approval.answer is not None
    assert approval.answer.by == "ann"
    events = shield.session(conversation).trajectory().events
    assert not any(isinstance(each, Message) and each.confirmation is not None for each in events)
    last = [each for each in events if isinstance(each, Call)][-1]
    assert last.approved is not None
    assert last.approved.by == "ann"


class Asking:
    """Whom the lines of a guide ask, and that they say yes."""

    def __init__(self) -> None:
        self.whom: list[str] = []

    def names(self) -> dict[str, Any]:
        """As the guide calls them."""
        return {"show_card": partial(self._ask, "user"), "ask_manager": partial(self._ask, "person")}

    def _ask(self, whom: str, text: str) -> bool:
        assert "2026-11-20" in text
        self.whom.append(whom)
        return True


def script(who: str, said: str, first: str) -> str | list[tuple[str, dict[str, Any]]]:
    """What the agent makes of what it heard last, from the user or a tool; `first` is what the user said first."""
    write: list[tuple[str, dict[str, Any]]] = [("extend_rental", EXTEND)]
    if who == "get_rental":
        return PUT_EXTEND if first == "Tell me first." else write
    if who != "user":
        return f"End: {said}"
    if said == "Both.":
        return [*write, ("refund", REFUND)]
    return write if said == "Yes, please." else [("get_rental", {"rental_id": "R1"})]


class Worker:
    """An agent of a framework with `pauses`, in conversation `c1`; workers share a log and what the framework keeps."""

    stays: bool = True
    """Whether a call that comes back unanswered waits again; else the agent is told, and makes it again."""

    def __init__(self, folder: Path, *, log: Any = None, context: Any = CUSTOMER, **given: Any) -> None:
        self.folder, self.context, self.given = folder, context, given
        self.rentals: Rentals = given.get("rentals") or Rentals()
        self.log = log
        self.shield = desk(folder, log=log)

    def another(self) -> Any:
        """A worker that goes on elsewhere with what this one has left."""
        raise NotImplementedError

    def say(self, text: str) -> str:
        """A run of the agent; what it says in the end, if it comes to that."""
        raise NotImplementedError

    def prompts(self) -> list[Any]:
        """What waits now."""
        raise NotImplementedError

    def resume(self, answers: Sequence[Any]) -> str:
        """Go on with an answer to each prompt; None where the framework is told yes, and nothing else."""
        raise NotImplementedError

    @property
    def session(self) -> LiveSession:
        raise NotImplementedError

    def answer(self, given: Any) -> str:
        """Go on with the answer to the one thing that waits."""
        (prompt,) = self.prompts()
        return self.resume([None if given is None else {"id": prompt["id"], **given}])

    def go_on(self) -> None:
        """Have the agent make the call again, where it does not wait."""
        assert self.prompts() == []
        self.say("Go on.")


class EveryPause:
    """The tests that all frameworks share."""

    worker: Any

    @pytest.mark.parametrize("where", ["here", "here, with a log", "elsewhere, with a log"])
    def test_the_users_answer_to_a_card_is_a_confirmation(self, tmp_path: Path, where: str) -> None:
        worker = self.worker(tmp_path, log=tmp_path / "log.sqlite" if "log" in where else None)
        worker.say("Extend R1")
        (prompt,) = worker.prompts()
        assert (prompt["whom"], prompt["tool"], prompt["arguments"]) == ("user", "extend_rental", EXTEND)
        assert "2026-11-20" in prompt["text"]
        assert worker.rentals.ran == []
        worker = worker.another() if "elsewhere" in where else worker
        assert "extended" in worker.answer(CONFIRMED)
        assert worker.prompts() == []
        assert worker.rentals.ran == ["extend R1"]
        check_card(worker.session)

    def test_without_a_log_another_worker_asks_once_more(self, tmp_path: Path) -> None:
        first = self.worker(tmp_path)
        first.say("Extend R1")
        other = first.another()
        other.answer(CONFIRMED)
        assert other.rentals.ran == []
        if not other.prompts():
            other.go_on()
        assert [each["whom"] for each in other.prompts()] == ["user"]
        other.answer(CONFIRMED)
        assert other.rentals.ran == ["extend R1"]

    def test_without_a_log_a_worker_for_each_request_does_not_ask_for_ever(self, tmp_path: Path) -> None:
        worker = self.worker(tmp_path)
        worker.say("Extend R1")
        for _ in range(4):
            worker = worker.another()
            if worker.prompts():
                worker.answer(CONFIRMED)
        assert worker.prompts() == []
        assert len(worker.rentals.ran) <= 1

    @pytest.mark.parametrize("elsewhere", [False, True])
    def test_a_persons_answer_is_an_approval(self, tmp_path: Path, elsewhere: bool) -> None:
        worker = self.worker(tmp_path, log=tmp_path / "log.sqlite", context=None)
        worker.say("Tell me first.")
        worker.say("Yes, please.")
        (prompt,) = worker.prompts()
        assert prompt["whom"] == "person"
        assert "Which customer is signed in?" in prompt["text"]
        worker = worker.another() if elsewhere else worker
        assert "extended" in worker.answer(APPROVED)
        assert worker.rentals.ran == ["extend R1"]
        check_approval(worker.shield, worker.session.id)

    def test_neither_answer_counts_as_the_other(self, tmp_path: Path) -> None:
        worker = self.worker(tmp_path, log=tmp_path / "one.sqlite")
        worker.say("Extend R1")
        assert "Please confirm: extend rental" in worker.answer(APPROVED)
        assert worker.rentals.ran == []
        worker = self.worker(tmp_path, log=tmp_path / "other.sqlite", context=None)
        worker.say("Extend R1")
        worker.answer(CONFIRMED)
        assert [each["whom"] for each in worker.prompts()] == ["person"]
        worker.answer(CONFIRMED)
        assert worker.rentals.ran == []
        filed = [each.status for each in worker.shield.log.approvals("default")]
        assert filed.count("waiting") == 1
        assert set(filed) <= {"waiting", "expired"}

    def test_where_both_are_needed_each_is_asked_once(self, tmp_path: Path) -> None:
        worker = self.worker(tmp_path, log=tmp_path / "log.sqlite", context=None)
        worker.say("Extend R1")
        asked = [worker.prompts()]
        worker.answer(CONFIRMED)
        asked.append(worker.prompts())
        worker.answer(APPROVED)
        asked.append(worker.prompts())
        assert [[each["whom"] for each in prompts] for prompts in asked] == [["user"], ["person"], []]
        assert worker.rentals.ran == ["extend R1"]

    def test_what_the_framework_calls_approved_is_nobodys_yes(self, tmp_path: Path) -> None:
        worker = self.worker(tmp_path)
        worker.say("Extend R1")
        before = worker.prompts()
        worker.answer(None)
        assert worker.rentals.ran == []
        assert worker.prompts() == (before if worker.stays else [])

    def test_what_answers_another_prompt_is_no_answer(self, tmp_path: Path) -> None:
        worker = self.worker(tmp_path)
        worker.say("Extend R1")
        before = worker.prompts()
        worker.resume([{"confirm": True, "id": "c1/99"}])
        if not worker.stays:
            worker.go_on()
        assert [each["text"] for each in worker.prompts()] == [each["text"] for each in before]
        assert worker.rentals.ran == []
        worker.answer(CONFIRMED)
        assert worker.rentals.ran == ["extend R1"]

    @pytest.mark.parametrize("answer", [{"confirm": False}, {}])
    def test_what_is_no_yes_lets_nothing_run_and_nobody_is_asked_again(self, tmp_path: Path, answer: Any) -> None:
        worker = self.worker(tmp_path)
        worker.say("Extend R1")
        assert "extend_rental" in worker.answer(answer)
        assert worker.prompts() == []
        assert worker.rentals.ran == []

    def test_one_answer_is_one_write_in_two_workers(self, tmp_path: Path) -> None:
        worker = self.worker(tmp_path, log=tmp_path / "log.sqlite")
        worker.say("Extend R1")
        other = worker.another()
        worker.answer(CONFIRMED)
        other.answer(CONFIRMED)
        assert worker.rentals.ran == ["extend R1"]

    def test_a_person_who_rejects_is_heard(self, tmp_path: Path) -> None:
        worker = self.worker(tmp_path, log=tmp_path / "log.sqlite", context=None)
        worker.say("Tell me first.")
        worker.say("Yes, please.")
        assert "not before Monday" in worker.answer({"approve": False, "by": "ann", "note": "not before Monday"})
        assert worker.rentals.ran == []

    def test_an_approval_that_was_given_elsewhere_is_found(self, tmp_path: Path) -> None:
        worker = self.worker(tmp_path, log=tmp_path / "log.sqlite", context=None)
        worker.say("Tell me first.")
        worker.say("Yes, please.")
        worker.shield.log.approve(worker.prompts()[0]["id"], by="ann")
        worker.answer({})
        assert worker.rentals.ran == ["extend R1"]

    def test_several_calls_of_a_turn_are_asked_about_one_by_one(self, tmp_path: Path) -> None:
        worker = self.worker(tmp_path)
        worker.say("It was dirty.")
        worker.answer({"confirm": False})
        worker.say("Both.")
        asked = worker.prompts()
        assert {each["tool"] for each in asked} == {"extend_rental", "refund"}
        worker.resume([{"id": each["id"], "confirm": each["tool"] == "refund"} for each in asked])
        assert worker.rentals.ran == ["refund 20.00"]
