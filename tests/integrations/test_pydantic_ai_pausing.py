"""Pydantic AI's deferred calls for every `ask`: one prompt for one write, whoever answers it, here or elsewhere."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="needs the extra `pydantic-ai`")

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool, ToolApproved
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.toolsets import ExternalToolset

from bylaw.integrations.pydantic_ai import ShieldCapability
from tests.integrations.guide import run_section
from tests.integrations.pausing import APPROVED, CONFIRMED, Asking, check_approval, check_card
from tests.integrations.pydantic_ai_desk import scripted
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, REFUND, Rentals, desk

LOOK, WRITE = [("get_rental", {"rental_id": "R1"})], [("extend_rental", EXTEND)]


def script(who: str, said: str, messages: list[Any]) -> Any:
    if who == "user":
        return [*WRITE, ("refund", REFUND)] if said == "Both." else WRITE if said == "Yes, please." else LOOK
    if who == "get_rental":
        return PUT_EXTEND if messages[0].parts[0].content == "Tell me first." else WRITE
    return f"End: {said}"


class Desk:
    """A worker; several share the log, and the messages as they are kept."""

    def __init__(
        self, folder: Path, *, log: Any = None, rentals: Any = None, messages: Any = None, **given: Any
    ) -> None:
        self.rentals, self.messages = rentals or Rentals(), messages
        self.shield = desk(folder, log=log)
        pauses = given.get("pauses", True)
        self.guard = ShieldCapability(self.shield, context=given.get("context", CUSTOMER), pauses=pauses)
        extend = given.get("tool") or self.rentals.extend_rental
        self.agent: Any = Agent(
            scripted(script),
            tools=[self.rentals.get_rental, self.rentals.refund, *([extend] if extend != "external" else [])],
            capabilities=[self.guard],
            output_type=[str, DeferredToolRequests],
            toolsets=given.get("toolsets"),
        )
        self.output: Any = None

    def run(self, *text: str, **given: Any) -> Any:
        history = ModelMessagesTypeAdapter.validate_json(self.messages) if self.messages else None
        run = self.agent.run(*text, message_history=history, conversation_id="c1", **given)
        result = asyncio.run(run)
        self.messages, self.output = result.all_messages_json(), result.output
        return self.output

    def prompts(self) -> list[Any]:
        if not isinstance(self.output, DeferredToolRequests):
            return []
        return [self.output.metadata.get(each.tool_call_id) for each in self.output.approvals]

    def answer(self, given: Any, approved: Any = True) -> Any:
        """Resume with the answer to what waits."""
        (call,) = self.output.approvals
        id = call.tool_call_id
        metadata = {id: {"id": self.output.metadata[id]["id"], **given}} if given is not None else {}
        return self.run(deferred_tool_results=DeferredToolResults(approvals={id: approved}, metadata=metadata))

    def another(self, folder: Path, **given: Any) -> "Desk":
        other = Desk(folder, rentals=self.rentals, messages=self.messages, **given)
        other.output = self.output
        return other

    @property
    def session(self) -> Any:
        follower = self.guard.follower("c1")
        assert follower is not None
        return follower.session


@pytest.mark.parametrize("where", ["here", "here, with a log", "elsewhere, with a log"])
def test_the_users_answer_to_a_card_is_a_confirmation(tmp_path: Path, where: str) -> None:
    log = tmp_path / "log.sqlite" if "log" in where else None
    worker = Desk(tmp_path, log=log)
    worker.run("Extend R1")
    (prompt,) = worker.prompts()
    assert (prompt["whom"], prompt["tool"], prompt["arguments"]) == ("user", "extend_rental", EXTEND)
    assert worker.rentals.ran == []
    worker = worker.another(tmp_path, log=log) if "elsewhere" in where else worker
    assert "extended" in worker.answer(CONFIRMED)
    assert worker.rentals.ran == ["extend R1"]
    check_card(worker.session)


def test_without_a_log_another_worker_asks_once_more(tmp_path: Path) -> None:
    first = Desk(tmp_path)
    first.run("Extend R1")
    other = first.another(tmp_path)
    other.answer(CONFIRMED)
    assert [each["whom"] for each in other.prompts()] == ["user"]
    assert other.rentals.ran == []
    other.answer(CONFIRMED)
    assert other.rentals.ran == ["extend R1"]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_persons_answer_is_an_approval(tmp_path: Path, elsewhere: bool) -> None:
    given: Any = {"log": tmp_path / "log.sqlite", "context": None}
    worker = Desk(tmp_path, **given)
    worker.run("Tell me first.")
    worker.run("Yes, please.")
    (prompt,) = worker.prompts()
    assert prompt["whom"] == "person"
    assert "Which customer is signed in?" in prompt["text"]
    worker = worker.another(tmp_path, **given) if elsewhere else worker
    assert "extended" in worker.answer(APPROVED)
    assert worker.rentals.ran == ["extend R1"]
    check_approval(worker.shield)


def test_neither_answer_counts_as_the_other(tmp_path: Path) -> None:
    worker = Desk(tmp_path, log=tmp_path / "one.sqlite")
    worker.run("Extend R1")
    assert "Please confirm" in worker.answer(APPROVED)
    assert worker.rentals.ran == []
    worker = Desk(tmp_path, log=tmp_path / "other.sqlite", context=None)
    worker.run("Extend R1")
    worker.answer(CONFIRMED)
    assert [each["whom"] for each in worker.prompts()] == ["person"]
    worker.answer(CONFIRMED)
    assert worker.rentals.ran == []


def test_where_both_are_needed_each_is_asked_once(tmp_path: Path) -> None:
    worker = Desk(tmp_path, log=tmp_path / "log.sqlite", context=None)
    worker.run("Extend R1")
    asked = [worker.prompts()]
    for answer in (CONFIRMED, APPROVED):
        worker.answer(answer)
        asked.append(worker.prompts())
    assert [[each["whom"] for each in prompts] for prompts in asked] == [["user"], ["person"], []]
    assert worker.rentals.ran == ["extend R1"]


def test_what_the_framework_calls_approved_is_nobodys_yes(tmp_path: Path) -> None:
    worker = Desk(tmp_path)
    worker.run("Extend R1")
    before = worker.prompts()
    worker.answer(None)
    assert worker.prompts() == before
    assert worker.rentals.ran == []


def test_a_yes_is_for_the_arguments_that_were_put(tmp_path: Path) -> None:
    worker = Desk(tmp_path)
    worker.run("Extend R1")
    worker.answer(CONFIRMED, ToolApproved(override_args={**EXTEND, "new_end": "2027-01-01"}))
    assert worker.rentals.ran == []
    assert [each["arguments"]["new_end"] for each in worker.prompts()] == ["2027-01-01"]


@pytest.mark.parametrize("answer", [{"confirm": False}, {}])
def test_what_is_no_yes_lets_nothing_run_and_nobody_is_asked_again(tmp_path: Path, answer: Any) -> None:
    worker = Desk(tmp_path)
    worker.run("Extend R1")
    assert "extend_rental" in worker.answer(answer)
    assert worker.rentals.ran == []


def test_one_answer_is_one_write_in_two_workers(tmp_path: Path) -> None:
    log = tmp_path / "log.sqlite"
    worker = Desk(tmp_path, log=log)
    worker.run("Extend R1")
    other = worker.another(tmp_path, log=log)
    worker.answer(CONFIRMED)
    other.answer(CONFIRMED)
    assert worker.rentals.ran == ["extend R1"]
    assert [each["whom"] for each in other.prompts()] == ["user"]


def test_several_calls_of_a_turn_are_asked_about_one_by_one(tmp_path: Path) -> None:
    worker = Desk(tmp_path)
    worker.run("It was dirty.")
    worker.answer({"confirm": False})
    asked = worker.run("Both.")
    answers = {id: {"id": prompt["id"], "confirm": prompt["tool"] == "refund"} for id, prompt in asked.metadata.items()}
    worker.run(deferred_tool_results=DeferredToolResults(approvals=dict.fromkeys(answers, True), metadata=answers))
    assert worker.rentals.ran == ["refund 20.00"]


@pytest.mark.parametrize("where", ["here", "here, with a log", "elsewhere, with a log"])
def test_a_tool_that_needs_approval_of_its_own_goes_on(tmp_path: Path, where: str) -> None:
    rentals, given = Rentals(), {"pauses": False, "log": tmp_path / "log.sqlite" if "log" in where else None}
    tool = Tool(rentals.extend_rental, requires_approval=True)
    worker = Desk(tmp_path, rentals=rentals, tool=tool, **given)
    worker.run("Tell me first.")
    worker.run("Yes, please.")
    (call,) = worker.output.approvals
    worker = worker.another(tmp_path, tool=tool, **given) if "elsewhere" in where else worker
    worker.run(deferred_tool_results=DeferredToolResults(approvals={call.tool_call_id: True}))
    assert rentals.ran == ["extend R1"]


def test_a_call_that_may_not_run_is_not_deferred(tmp_path: Path) -> None:
    rentals = Rentals()
    tool = Tool(rentals.extend_rental, requires_approval=True)
    worker = Desk(tmp_path, rentals=rentals, tool=tool, pauses=False)
    assert "Please confirm" in worker.run("Extend R1")


@pytest.mark.parametrize("may_run", [True, False])
def test_a_tool_that_is_run_elsewhere_is_decided_on_first(tmp_path: Path, may_run: bool) -> None:
    (plain,) = [Tool(Rentals().extend_rental).tool_def]
    worker = Desk(tmp_path, tool="external", toolsets=[ExternalToolset([plain])], pauses=False)
    worker.run("Tell me first." if may_run else "Hello")
    if not may_run:
        assert worker.output.startswith("End: Not allowed")
        return
    (call,) = worker.run("Yes, please.").calls
    worker.run(deferred_tool_results=DeferredToolResults(calls={call.tool_call_id: "extended"}))
    assert worker.output == "End: extended"
    events = worker.session.trajectory().events
    assert [getattr(each, "content", None) for each in events if type(each).__name__ == "Result"][-1] == "extended"


def test_the_lines_of_the_guide_run(tmp_path: Path) -> None:
    rentals, asked = Rentals(), Asking()
    with desk(tmp_path, log=tmp_path / "log.sqlite") as shield:
        names = {
            "model": scripted(script),
            "tools": [rentals.get_rental, rentals.extend_rental],
            "shield": shield,
            **asked.names(),
        }
        told = asyncio.run(run_section("Pydantic AI", names, "reference/pauses.md"))
    assert "extended" in told["result"].output
    assert asked.whom == ["user", "person"]
    assert rentals.ran == ["extend R1"]
