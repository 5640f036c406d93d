"""LangGraph's own pause for every `ask`: one prompt for one write, whoever answers it and wherever it goes on."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from bylaw.integrations.langchain import ShieldMiddleware
from tests.integrations import pausing
from tests.integrations.guide import run_section
from tests.integrations.langchain.desk import Scripted
from tests.integrations.pausing import CONFIRMED, Asking, EveryPause, check_card
from tests.integrations.rental import Rentals, desk

THREAD: Any = {"configurable": {"thread_id": "c1"}}


def script(messages: list[Any]) -> Any:
    last = messages[-1]
    return pausing.script(last.name if isinstance(last, ToolMessage) else "user", last.content, messages[0].content)


class Worker(pausing.Worker):
    def __init__(self, folder: Path, **given: Any) -> None:
        super().__init__(folder, **given)
        self.memory = self.given.get("memory") or InMemorySaver()
        self.guard = ShieldMiddleware(self.shield, context=self.context, pauses=True)
        tools = [self.rentals.get_rental, self.given.get("tool") or self.rentals.extend_rental, self.rentals.refund]
        self.agent = create_agent(Scripted(script=script), tools, checkpointer=self.memory, middleware=[self.guard])

    def another(self) -> "Worker":
        given = {**self.given, "rentals": self.rentals, "memory": self.memory}
        return Worker(self.folder, log=self.log, context=self.context, **given)

    def say(self, text: str) -> str:
        return self.invoke({"messages": [("user", text)]})

    def invoke(self, given: Any, config: Any = THREAD) -> str:
        return self.agent.invoke(given, config)["messages"][-1].content

    def waiting(self) -> Sequence[Any]:
        return self.agent.get_state(THREAD).interrupts

    def prompts(self) -> list[Any]:
        return [each.value for each in self.waiting()]

    def resume(self, answers: Sequence[Any]) -> str:
        # LangGraph has no word for yes: what is none of ours is a bare one.
        told = [True if each is None else each for each in answers]
        return self.invoke(Command(resume={each.id: said for each, said in zip(self.waiting(), told, strict=True)}))

    @property
    def session(self) -> Any:
        follower = self.guard.follower("c1")
        assert follower is not None
        return follower.session


class TestPauses(EveryPause):
    worker = Worker

    def test_one_answer_is_one_write_in_two_workers(self, tmp_path: Path) -> None:
        one = Worker(tmp_path, log=tmp_path / "log.sqlite")
        one.say("Extend R1")
        (prompt,) = one.prompts()
        config = one.agent.get_state(THREAD).config
        one.answer(CONFIRMED)
        other = one.another()
        again = other.agent.invoke(Command(resume={"id": prompt["id"], **CONFIRMED}), config)
        assert one.rentals.ran == ["extend R1"]
        assert "extended" in again["messages"][-1].content, "it is the same call, and this is its result"


@pytest.mark.parametrize("answer", [True, "yes"])
def test_what_does_not_say_what_it_answers_is_no_answer(tmp_path: Path, answer: Any) -> None:
    worker = Worker(tmp_path, log=tmp_path / "log.sqlite")
    worker.say("Extend R1")
    before = worker.prompts()
    worker.invoke(Command(resume=answer))
    assert worker.prompts() == before
    assert worker.rentals.ran == []


@pytest.mark.parametrize("answer", [{"approve": True, "by": "ann"}, {"confirm": 1}])
def test_what_says_something_else_is_no_yes(tmp_path: Path, answer: Any) -> None:
    worker = Worker(tmp_path, log=tmp_path / "log.sqlite")
    worker.say("Extend R1")
    assert "extend_rental" in worker.answer(answer)
    assert worker.prompts() == []
    assert worker.rentals.ran == []


def test_after_a_no_the_agent_cannot_make_the_user_answer_again(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    worker.say("Extend R1")
    worker.answer({"confirm": False})
    again = worker.agent.update_state(THREAD, {"messages": [ToolMessage("", tool_call_id="x", name="get_rental")]})
    assert not worker.agent.invoke(None, again).get("__interrupt__")
    assert worker.rentals.ran == []


def test_a_tool_that_asks_itself_gets_its_own_answer(tmp_path: Path) -> None:
    rentals, heard = Rentals(), []

    def extend_rental(rental_id: str, new_end: str) -> str:
        """Extend a rental to a new last day."""
        heard.append(interrupt("really?"))
        return rentals.extend_rental(rental_id, new_end)

    first = Worker(tmp_path, log=tmp_path / "log.sqlite", rentals=rentals, tool=extend_rental)
    first.say("Extend R1")
    first.answer(CONFIRMED)
    assert first.prompts() == ["really?"]
    first.another().invoke(Command(resume="sure"))
    assert heard == ["sure"]
    assert rentals.ran == ["extend R1"]


def test_it_goes_on_under_ainvoke_too(tmp_path: Path) -> None:
    worker = Worker(tmp_path, log=tmp_path / "log.sqlite")

    async def talk() -> None:
        waits: Any = await worker.agent.ainvoke({"messages": [("user", "Extend R1")]}, THREAD)
        (asked,) = waits["__interrupt__"]
        await worker.agent.ainvoke(Command(resume={"id": asked.value["id"], **CONFIRMED}), THREAD)

    asyncio.run(talk())
    assert worker.rentals.ran == ["extend R1"]
    check_card(worker.session)


def test_without_pauses_the_agent_is_told(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    worker.guard._pauses = False
    assert "Please confirm: extend rental" in worker.say("Extend R1")
    assert worker.prompts() == []


def test_the_lines_of_the_guide_run(tmp_path: Path) -> None:
    rentals, asked = Rentals(), Asking()
    with desk(tmp_path, log=tmp_path / "log.sqlite") as shield:
        names = {
            "model": Scripted(script=script),
            "tools": [rentals.get_rental, rentals.extend_rental],
            "saver": InMemorySaver(),
            "thread": THREAD,
            "shield": shield,
            **asked.names(),
        }
        told = asyncio.run(run_section("LangGraph", names, "reference/pauses.md"))
    assert "extended" in told["result"]["messages"][-1].content
    assert asked.whom == ["user", "person"]
    assert rentals.ran == ["extend R1"]


def test_without_a_log_one_answer_is_one_write_in_one_worker(tmp_path: Path) -> None:
    one = Worker(tmp_path)
    one.say("Extend R1")
    (waiting,) = one.waiting()
    answer = Command(resume={waiting.id: {"id": waiting.value["id"], **CONFIRMED}})
    config = one.agent.get_state(THREAD).config
    one.answer(CONFIRMED)
    other = one.another()
    for _ in range(2):
        assert other.agent.invoke(answer, config)["__interrupt__"], "the user is asked again"
    assert one.rentals.ran == ["extend R1"]


def test_a_middleware_for_each_request_is_said_to_need_a_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker(tmp_path)
    worker.say("Extend R1")
    for _ in range(2):
        worker = worker.another()
        end = worker.answer(CONFIRMED)
    assert worker.rentals.ran == []
    assert "Please confirm: extend rental" in end, "the agent may still show the card"
    assert "or give the shield of each one a `log`" in caplog.text
