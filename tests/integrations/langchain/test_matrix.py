"""LangGraph: streamed, many at once, and agents that hand over to each other."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import AgentState, create_agent
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command

from bylaw.integrations.langchain import ShieldMiddleware
from bylaw.trace.event import Call
from tests.integrations.langchain.desk import Scripted
from tests.integrations.many import MANY, answer, check_many, first_words, reckless
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, Rentals, desk


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def said_last(messages: list[Any]) -> tuple[str, str, str]:
    last = messages[-1]
    tool = last.name if isinstance(last, ToolMessage) else ""
    return messages[0].content, last.content, tool


@pytest.mark.parametrize("mode", ["updates", "messages", "values"])
@pytest.mark.parametrize("number", [1, 2])
def test_a_streamed_run_is_held_like_any_other(tmp_path: Path, mode: Any, number: int) -> None:
    rentals, guard = Rentals(), ShieldMiddleware(desk(tmp_path), context=CUSTOMER)
    model = Scripted(script=lambda messages: reckless(*said_last(messages)))
    tools = [rentals.get_rental, rentals.extend_rental]
    agent = create_agent(model, tools, middleware=[guard], checkpointer=InMemorySaver())

    async def talk() -> None:
        async for _ in agent.astream({"messages": [("user", first_words(number))]}, thread("c"), stream_mode=mode):
            pass

    asyncio.run(talk())
    for _ in agent.stream({"messages": [("user", answer(number))]}, thread("c"), stream_mode=mode):
        pass
    assert rentals.ran == ([f"extend R{number}"] if number == 1 else [])


@pytest.mark.parametrize("with_log", [False, True])
def test_many_conversations_at_once_are_kept_apart(tmp_path: Path, with_log: bool) -> None:
    rentals = Rentals()
    guard = ShieldMiddleware(desk(tmp_path, log=tmp_path / "log.sqlite" if with_log else None), context=CUSTOMER)
    model = Scripted(script=lambda messages: reckless(*said_last(messages)))
    tools = [rentals.get_rental, rentals.extend_rental]
    agent = create_agent(model, tools, middleware=[guard], checkpointer=InMemorySaver())

    async def talk(number: int) -> None:
        for text in (first_words(number), answer(number)):
            await agent.ainvoke({"messages": [("user", text)]}, thread(f"c{number}"))

    async def all_of_them() -> None:
        await asyncio.gather(*map(talk, range(MANY)))

    asyncio.run(all_of_them())
    check_many(rentals.ran)


class Team:
    """A desk that hands over to a specialist, who has the tools; both have the shield."""

    def __init__(self, folder: Path) -> None:
        @tool
        def call_specialist(input: str, runtime: ToolRuntime) -> Command:
            """Hand over to the specialist."""
            told = ToolMessage("handed over", tool_call_id=runtime.tool_call_id, name="call_specialist")
            messages = [*runtime.state["messages"], told]
            return Command(goto="specialist", graph=Command.PARENT, update={"messages": messages})

        self.rentals = Rentals()
        self.guard = ShieldMiddleware(desk(folder), context=CUSTOMER)
        front = create_agent(Scripted(script=self.front), [call_specialist], middleware=[self.guard], name="front")
        tools = [self.rentals.get_rental, self.rentals.extend_rental]
        back = create_agent(Scripted(script=self.back), tools, middleware=[self.guard], name="specialist")
        graph = StateGraph(AgentState)
        graph.add_node("front", front)
        graph.add_node("specialist", back)
        graph.set_entry_point("front")
        self.graph = graph.compile(checkpointer=InMemorySaver())

    def front(self, _: list[Any]) -> Any:
        return [("call_specialist", {"input": "The customer has said yes."})]

    def back(self, messages: list[Any]) -> Any:
        last = messages[-1]
        if last.name == "get_rental":
            said = [each.content for each in messages if isinstance(each, HumanMessage)][-1]
            return [("extend_rental", EXTEND)] if said in ("Do it", "Yes, please.") else PUT_EXTEND
        return "That is all." if last.name == "extend_rental" else [("get_rental", {"rental_id": "R1"})]

    def say(self, *texts: str) -> None:
        for text in texts:
            self.graph.invoke({"messages": [("user", text)]}, thread("c1"))

    def made(self) -> list[Any]:
        follower = self.guard.follower("c1")
        assert follower is not None
        events = follower.session.trajectory().events
        return [(each.tool, each.refused) for each in events if isinstance(each, Call)]


def test_an_agent_that_is_handed_over_to_is_held(tmp_path: Path) -> None:
    team = Team(tmp_path)
    team.say("Do it")
    assert team.rentals.ran == []
    assert team.made() == [("call_specialist", False), ("get_rental", False), ("extend_rental", True)]


def test_what_the_user_agreed_to_counts_for_the_agent_that_is_handed_over_to(tmp_path: Path) -> None:
    team = Team(tmp_path)
    team.say("Extend R1", "Yes, please.")
    assert team.rentals.ran == ["extend R1"]
