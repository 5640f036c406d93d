"""Pydantic AI's deferred calls for every `ask`: one prompt for one write, whoever answers it, here or elsewhere."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool, ToolApproved
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.toolsets import ExternalToolset

from bylaw.integrations.pydantic_ai import ShieldCapability
from tests.integrations import pausing
from tests.integrations.guide import run_section
from tests.integrations.pausing import CONFIRMED, Asking, EveryPause
from tests.integrations.pydantic_ai.desk import scripted
from tests.integrations.rental import EXTEND, Rentals, desk


def script(who: str, said: str, messages: list[Any]) -> Any:
    return pausing.script(who, said, messages[0].parts[0].content)


class Worker(pausing.Worker):
    def __init__(self, folder: Path, **given: Any) -> None:
        super().__init__(folder, **given)
        self.messages, self.output = self.given.get("messages"), self.given.get("output")
        pauses = self.given.get("pauses", True)
        self.guard = ShieldCapability(self.shield, context=self.context, pauses=pauses)
        extend = self.given.get("tool") or self.rentals.extend_rental
        self.agent: Any = Agent(
            scripted(script),
            tools=[self.rentals.get_rental, self.rentals.refund, *([extend] if extend != "external" else [])],
            capabilities=[self.guard],
            output_type=[str, DeferredToolRequests],
            toolsets=self.given.get("toolsets"),
        )

    def another(self) -> "Worker":
        given = {**self.given, "rentals": self.rentals, "messages": self.messages, "output": self.output}
        return Worker(self.folder, log=self.log, context=self.context, **given)

    def say(self, text: str) -> str:
        return str(self.run(text))

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

    def resume(self, answers: Sequence[Any], approved: Any = True) -> str:
        ids = [call.tool_call_id for call in self.output.approvals]
        metadata = {id: answer for id, answer in zip(ids, answers, strict=True) if answer is not None}
        results = DeferredToolResults(approvals=dict.fromkeys(ids, approved), metadata=metadata)
        return str(self.run(deferred_tool_results=results))

    @property
    def session(self) -> Any:
        follower = self.guard.follower("c1")
        assert follower is not None
        return follower.session


class TestPauses(EveryPause):
    worker = Worker


def test_a_yes_is_for_the_arguments_that_were_put(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    worker.say("Extend R1")
    answer = {"id": worker.prompts()[0]["id"], **CONFIRMED}
    worker.resume([answer], ToolApproved(override_args={**EXTEND, "new_end": "2027-01-01"}))
    assert worker.rentals.ran == []
    assert [each["arguments"]["new_end"] for each in worker.prompts()] == ["2027-01-01"]


@pytest.mark.parametrize("where", ["here", "here, with a log", "elsewhere, with a log"])
def test_a_tool_that_needs_approval_of_its_own_goes_on(tmp_path: Path, where: str) -> None:
    rentals, given = Rentals(), {"pauses": False, "log": tmp_path / "log.sqlite" if "log" in where else None}
    tool = Tool(rentals.extend_rental, requires_approval=True)
    worker = Worker(tmp_path, rentals=rentals, tool=tool, **given)
    worker.run("Tell me first.")
    worker.run("Yes, please.")
    (call,) = worker.output.approvals
    worker = worker.another() if "elsewhere" in where else worker
    worker.run(deferred_tool_results=DeferredToolResults(approvals={call.tool_call_id: True}))
    assert rentals.ran == ["extend R1"]


def test_a_call_that_may_not_run_is_not_deferred(tmp_path: Path) -> None:
    rentals = Rentals()
    tool = Tool(rentals.extend_rental, requires_approval=True)
    worker = Worker(tmp_path, rentals=rentals, tool=tool, pauses=False)
    assert "Please confirm" in worker.say("Extend R1")


@pytest.mark.parametrize("may_run", [True, False])
def test_a_tool_that_is_run_elsewhere_is_decided_on_first(tmp_path: Path, may_run: bool) -> None:
    (plain,) = [Tool(Rentals().extend_rental).tool_def]
    worker = Worker(tmp_path, tool="external", toolsets=[ExternalToolset([plain])], pauses=False)
    worker.run("Tell me first." if may_run else "Hello")
    if not may_run:
        assert worker.output.startswith("End: Not done yet: ask first")
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
