"""LangGraph's own interrupts: a call that was allowed goes on after them, here and in another worker, and only once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from bylaw.integrations.langchain import ShieldMiddleware
from bylaw.trace.event import Call
from tests.integrations.langchain.desk import Scripted
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, Rentals, desk

THREAD: Any = {"configurable": {"thread_id": "c1"}}


def script(messages: list[Any]) -> Any:
    last = messages[-1]
    if isinstance(last, ToolMessage):
        return PUT_EXTEND if last.name == "get_rental" else f"End: {last.content}"
    return [("extend_rental", EXTEND)] if last.content == "Yes, please." else [("get_rental", {"rental_id": "R1"})]


class Desk:
    """A worker; several share the checkpointer and the log."""

    def __init__(self, folder: Path, rentals: Rentals, memory: Any, log: Path | None) -> None:
        def extend_rental(rental_id: str, new_end: str) -> str:
            """Extend a rental to a new last day."""
            is_sure = interrupt("really?")
            return rentals.extend_rental(rental_id, new_end) if is_sure else "stopped"

        self.shield = desk(folder, log=log)
        self.guard = ShieldMiddleware(self.shield, context=CUSTOMER)
        tools = [rentals.get_rental, extend_rental]
        self.agent = create_agent(Scripted(script=script), tools, checkpointer=memory, middleware=[self.guard])

    def say(self, text: str) -> Any:
        return self.agent.invoke({"messages": [("user", text)]}, THREAD)

    def go_on(self) -> str:
        return self.agent.invoke(Command(resume=True), THREAD)["messages"][-1].content


@pytest.mark.parametrize("where", ["here", "here, with a log", "elsewhere, with a log"])
def test_a_call_that_was_interrupted_goes_on(tmp_path: Path, where: str) -> None:
    rentals, memory = Rentals(), InMemorySaver()
    log = tmp_path / "log.sqlite" if "log" in where else None
    first = Desk(tmp_path, rentals, memory, log)
    first.say("Extend R1")
    assert first.say("Yes, please.")["__interrupt__"]
    assert rentals.ran == []
    second = Desk(tmp_path, rentals, memory, log) if "elsewhere" in where else first
    assert "extended" in second.go_on()
    assert rentals.ran == ["extend R1"]
    follower = second.guard.follower("c1")
    assert follower is not None
    made = [each for each in follower.session.trajectory().events if isinstance(each, Call)]
    assert [(each.tool, each.refused) for each in made] == [("get_rental", False), ("extend_rental", False)]


def test_it_goes_on_under_ainvoke_too(tmp_path: Path) -> None:
    rentals = Rentals()
    worker = Desk(tmp_path, rentals, InMemorySaver(), tmp_path / "log.sqlite")

    async def talk() -> Any:
        for given in ({"messages": ["Extend R1"]}, {"messages": ["Yes, please."]}, Command(resume=True)):
            await worker.agent.ainvoke(given, THREAD)

    asyncio.run(talk())
    assert rentals.ran == ["extend R1"]


def test_it_goes_on_in_one_worker_only(tmp_path: Path) -> None:
    log = tmp_path / "log.sqlite"
    with desk(tmp_path, log=log) as one, desk(tmp_path, log=log) as other:
        session = one.session("c1", context=CUSTOMER)
        decision = session.decide("get_rental", {"rental_id": "R1"}, id="a")
        session.interrupt("a", decision)
        workers = [one.session("c1"), other.session("c1"), session]
        resumed = [each.resume("a", "get_rental", {"rental_id": "R1"}) for each in workers]
        assert [each is not None for each in resumed] == [True, False, False]


def test_another_call_does_not_go_on_in_its_place(tmp_path: Path) -> None:
    session = desk(tmp_path).session(context=CUSTOMER)
    decision = session.decide("get_rental", {"rental_id": "R1"}, id="a")
    assert session.resume("a", "get_rental", {"rental_id": "R1"}) is None, "it was never interrupted"
    session.interrupt("a", decision)
    assert session.resume("a", "get_rental", {"rental_id": "R2"}) is None
    assert session.resume("b", "get_rental", {"rental_id": "R1"}) is None
    assert session.resume("a", "get_rental", {"rental_id": "R1"}) is not None


def test_where_the_user_has_spoken_since_it_does_not_go_on(tmp_path: Path) -> None:
    rentals = Rentals()
    worker = Desk(tmp_path, rentals, InMemorySaver(), None)
    worker.say("Extend R1")
    worker.say("Yes, please.")
    worker.agent.update_state(THREAD, {"messages": [HumanMessage("No, stop.")]}, as_node="__start__")
    worker.agent.invoke(Command(resume=True), THREAD)
    assert rentals.ran == []


def test_without_a_log_another_worker_asks_again(tmp_path: Path) -> None:
    rentals, memory = Rentals(), InMemorySaver()
    first = Desk(tmp_path, rentals, memory, None)
    first.say("Extend R1")
    assert first.say("Yes, please.")["__interrupt__"]
    assert "May have been done" in Desk(tmp_path, rentals, memory, None).go_on()
    assert rentals.ran == []
