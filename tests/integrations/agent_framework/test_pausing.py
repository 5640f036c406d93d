"""Agent Framework's own approvals for every `ask`: one prompt for one write, whoever answers it and wherever."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_framework import AgentSession, Message

from bylaw.integrations.agent_framework import ShieldMiddleware
from bylaw.trace import Call
from tests.integrations import pausing
from tests.integrations.agent_framework.desk import Scripted, agent
from tests.integrations.guide import run_section
from tests.integrations.pausing import CONFIRMED, Asking, EveryPause
from tests.integrations.rental import EXTEND, Rentals, desk


def script(messages: list[Any]) -> Any:
    names = {
        each.call_id: each.name for message in messages for each in message.contents if each.type == "function_call"
    }
    first, last = next(each.text for each in messages if each.role == "user"), messages[-1].contents[-1]
    if last.type != "function_result":
        return pausing.script("user", messages[-1].text, first)
    return pausing.script(names[last.call_id], str(last.result), first)


class Worker(pausing.Worker):
    def __init__(self, folder: Path, **given: Any) -> None:
        super().__init__(folder, **given)
        self.guard = ShieldMiddleware(self.shield, context=self.context, pauses=True)
        tools = [self.rentals.get_rental, self.rentals.extend_rental, self.rentals.refund]
        self.agent = agent(script, tools, self.guard.all)
        self.kept = self.given.get("session") or AgentSession(session_id="c1")
        self.requests: list[Any] = self.given.get("requests") or []

    def another(self) -> "Worker":
        session = AgentSession.from_dict(json.loads(json.dumps(self.kept.to_dict())))
        given = {"rentals": self.rentals, "session": session, "requests": list(self.requests)}
        return Worker(self.folder, log=self.log, context=self.context, **given)

    def say(self, text: Any) -> str:
        result = asyncio.run(self.agent.run(text, session=self.kept))
        self.requests = list(result.user_input_requests)
        return result.text

    def prompts(self) -> list[Any]:
        return [each.additional_properties["bylaw"] for each in self.requests]

    def resume(self, answers: Sequence[Any]) -> str:
        return self.respond([(True, answer) for answer in answers])

    def respond(self, told: Sequence[tuple[bool, Any]]) -> str:
        responses = [
            request.to_function_approval_response(approved)
            for request, (approved, _) in zip(self.requests, told, strict=True)
        ]
        for response, (_, answer) in zip(responses, told, strict=True):
            if answer is not None:
                response.additional_properties["bylaw"] = answer
        return self.say(Message(role="user", contents=responses))

    @property
    def session(self) -> Any:
        follower = self.guard.follower("c1")
        assert follower is not None
        return follower.session


class TestPauses(EveryPause):
    worker = Worker


def test_a_request_that_is_rejected_lets_nothing_run(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    worker.say("Extend R1")
    worker.respond([(False, None)])
    assert worker.prompts() == []
    assert worker.rentals.ran == []


def test_a_yes_is_for_the_arguments_that_were_put(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    worker.say("Extend R1")
    worker.requests[0].function_call.arguments = {**EXTEND, "new_end": "2027-01-01"}
    worker.answer(CONFIRMED)
    made = [each.arguments for each in worker.session.trajectory().events if isinstance(each, Call)]
    assert made[-1] == EXTEND


def test_the_lines_of_the_guide_run(tmp_path: Path) -> None:
    rentals, asked = Rentals(), Asking()
    with desk(tmp_path, log=tmp_path / "log.sqlite") as shield:
        names = {
            "client": Scripted(script),
            "tools": [rentals.get_rental, rentals.extend_rental],
            "shield": shield,
            **asked.names(),
        }
        told = asyncio.run(run_section("Microsoft Agent Framework", names, "reference/pauses.md"))
    assert "extended" in told["result"].text
    assert asked.whom == ["user", "person"]
    assert rentals.ran == ["extend R1"]
