"""ADK's own confirmations for every `ask`: one prompt for one write, whoever answers it and wherever it goes on."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool
from google.genai import types

from bylaw.integrations.adk import ShieldPlugin
from bylaw.trace import Call, Message, Result
from tests.integrations import pausing
from tests.integrations.adk.desk import Place, Scripted, agent, said
from tests.integrations.guide import run_section
from tests.integrations.pausing import CONFIRMED, Asking, EveryPause
from tests.integrations.rental import EXTEND, Rentals, desk

ASKS = "adk_request_confirmation"


def script(contents: list[Any]) -> Any:
    parts = [part for content in contents for part in content.parts]
    first, last = next(part.text for part in parts if part.text), parts[-1]
    if last.function_response is None:
        return pausing.script("user", last.text, first)
    told = last.function_response
    return pausing.script(told.name, str(told.response.get("result", told.response)), first)


def insists(contents: list[Any], where: str = "A reviewer must decide") -> Any:
    """Makes the call again where it waits for a person: ADK does not stop the same call twice."""
    said = script(contents)
    return [("extend_rental", EXTEND)] if isinstance(said, str) and where in said else said


def disobeys(contents: list[Any]) -> Any:
    """Makes the call again where it is told to show the user a card."""
    return insists(contents, "Show the user the text below")


class Worker(pausing.Worker):
    stays = False

    def __init__(self, folder: Path, **given: Any) -> None:
        super().__init__(folder, **given)
        self.guard = ShieldPlugin(self.shield, context=self.context, pauses=self.given.get("pauses", True))
        says = self.given.get("says", insists)
        extend = self.given.get("tool") or self.rentals.extend_rental
        self.place = Place(self.guard, agent(says, [self.rentals.get_rental, extend, self.rentals.refund]))
        if "events" in self.given:
            asyncio.run(self.place.keep("c1", self.given["events"]))

    def another(self) -> "Worker":
        session = asyncio.run(self.place.session("c1"))
        given = {**self.given, "rentals": self.rentals, "events": session.events}
        return Worker(self.folder, log=self.log, context=self.context, **given)

    def say(self, text: str) -> str:
        return self.tell(said(text))

    def tell(self, message: types.Content) -> str:
        events = asyncio.run(self.place.say("c1", message))
        texts = [part.text for part in events[-1].content.parts if part.text]
        return "".join(texts)

    def asked(self) -> list[Any]:
        events = asyncio.run(self.place.session("c1")).events
        answered = {each.id for event in events for each in event.get_function_responses()}
        calls = [call for event in events for call in event.get_function_calls() if call.name == ASKS]
        return [call for call in calls if call.id not in answered]

    def prompts(self) -> list[Any]:
        return [call.args["toolConfirmation"]["payload"] for call in self.asked()]

    def resume(self, answers: Sequence[Any]) -> str:
        told = [{"confirmed": True, "payload": answer} for answer in answers]
        return self.respond(told)

    def respond(self, told: list[Any]) -> str:
        responses = [
            types.FunctionResponse(id=call.id, name=ASKS, response=each)
            for call, each in zip(self.asked(), told, strict=True)
        ]
        return self.tell(types.Content(role="user", parts=[types.Part(function_response=each) for each in responses]))

    @property
    def session(self) -> Any:
        follower = self.guard.follower(asyncio.run(self.place.session("c1")))
        assert follower is not None
        return follower.session


class TestPauses(EveryPause):
    worker = Worker


def test_a_confirmation_that_is_declined_lets_nothing_run_and_nobody_is_asked_again(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    worker.say("Extend R1")
    assert "extend_rental" in worker.respond([{"confirmed": False}])
    assert worker.prompts() == []
    assert worker.rentals.ran == []


@pytest.mark.parametrize("answer", [None, CONFIRMED])
def test_it_is_a_no_whatever_its_payload_says_and_an_agent_that_insists_asks_nobody(
    tmp_path: Path, answer: Any
) -> None:
    worker = Worker(tmp_path, says=disobeys)
    worker.say("Extend R1")
    (prompt,) = worker.prompts()
    payload = answer and {"id": prompt["id"], **answer}
    assert "Please confirm" not in worker.respond([{"confirmed": False, "payload": payload}])
    assert worker.prompts() == []
    assert worker.rentals.ran == []
    said = [each.confirmation for each in worker.session.trajectory().events if isinstance(each, Message)]
    assert [(each.card, each.yes) for each in said if each is not None] == [(prompt["id"], False)]


@pytest.mark.parametrize(("by", "status"), [("ann", "rejected"), ("", "waiting")])
def test_a_person_who_declines_it_is_heard_where_they_give_a_name(tmp_path: Path, by: str, status: str) -> None:
    worker = Worker(tmp_path, log=tmp_path / "log.sqlite", context=None, says=script)
    worker.say("Tell me first.")
    worker.say("Yes, please.")
    worker.respond([{"confirmed": False, "payload": {"approve": True, "by": by}}])
    assert worker.shield.log is not None
    assert [each.status for each in worker.shield.log.approvals("default")] == [status]
    assert worker.rentals.ran == []


def test_an_agent_that_insists_where_nobody_has_answered_asks_once_more(tmp_path: Path) -> None:
    worker = Worker(tmp_path, says=disobeys)
    worker.say("Extend R1")
    before = worker.prompts()
    worker.answer(None)
    assert worker.prompts() == before
    assert worker.rentals.ran == []


def test_the_log_holds_what_the_tool_answered_and_not_what_was_told_before(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    worker.say("Extend R1")
    worker.answer(CONFIRMED)
    events = worker.session.trajectory().events
    made = [at for at, each in enumerate(events) if isinstance(each, Call) and each.tool == "extend_rental"]
    told = [each for each in events if isinstance(each, Result) and each.call == made[-1]]
    assert ["extended" in str(each.content) for each in told] == [True]


def test_so_does_a_tool_with_a_confirmation_of_its_own(tmp_path: Path) -> None:
    rentals = Rentals()
    worker = Worker(
        tmp_path, rentals=rentals, pauses=False, tool=FunctionTool(rentals.extend_rental, require_confirmation=True)
    )
    worker.say("Tell me first.")
    worker.say("Yes, please.")
    worker.respond([{"confirmed": True}])
    assert rentals.ran == ["extend R1"]
    events = worker.session.trajectory().events
    (made,) = [at for at, each in enumerate(events) if isinstance(each, Call) and each.tool == "extend_rental"]
    told = [each for each in events if isinstance(each, Result) and each.call == made]
    assert ["extended" in str(each.content) for each in told] == [True]


def test_the_lines_of_the_guide_run(tmp_path: Path) -> None:
    rentals, asked = Rentals(), Asking()
    with desk(tmp_path, log=tmp_path / "log.sqlite") as shield:
        model, tools = Scripted(script=insists), [rentals.get_rental, rentals.extend_rental]
        place = Place(ShieldPlugin(shield), LlmAgent(name="desk", model=model))
        asyncio.run(place.session("c1"))
        names = {
            "agent": LlmAgent(name="desk", model=model, tools=tools),
            "sessions": place.sessions,
            "shield": shield,
            "ids": {"user_id": "u", "session_id": "c1"},
            "message": said("Extend R1"),
            **asked.names(),
        }
        asyncio.run(run_section("Google ADK", names, "reference/pauses.md"))
    assert asked.whom == ["user", "person"]
    assert rentals.ran == ["extend R1"]
