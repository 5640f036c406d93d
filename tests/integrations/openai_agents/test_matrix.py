"""The OpenAI Agents SDK: many conversations at once, and who is speaking, told by the run's own context."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, function_tool, set_tracing_disabled

from bylaw.integrations.openai_agents import ShieldHooks
from bylaw.trace.event import Message
from tests.integrations.many import MANY, answer, check_many, first_words, reckless
from tests.integrations.openai_agents.desk import Scripted, text_of
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, Rentals, desk

set_tracing_disabled(True)


def script(items: list[Any]) -> Any:
    last = items[-1]
    if last.get("type") == "function_call_output":
        return reckless(text_of(items[0]), "", "get_rental" if "customer_id" in last["output"] else "extend_rental")
    return reckless(text_of(items[0]), text_of(last), "")


@pytest.mark.parametrize("with_log", [False, True])
def test_many_conversations_at_once_are_kept_apart(tmp_path: Path, with_log: bool) -> None:
    rentals, shield = Rentals(), desk(tmp_path, log=tmp_path / "log.sqlite" if with_log else None)
    tools = [function_tool(rentals.get_rental), function_tool(rentals.extend_rental)]
    agent = Agent(name="desk", model=Scripted(script), tools=tools)

    async def talk(number: int) -> None:
        guard, items = ShieldHooks(shield.session(f"c{number}", context=CUSTOMER)), []
        for text in (first_words(number), answer(number)):
            result = await Runner.run(guard.protect(agent), [*items, {"role": "user", "content": text}], hooks=guard)
            items = result.to_input_list()

    async def all_of_them() -> None:
        await asyncio.gather(*map(talk, range(MANY)))

    asyncio.run(all_of_them())
    check_many(rentals.ran)


class Talk:
    """One conversation in which several principals may speak."""

    def __init__(self, folder: Path, *, log: bool) -> None:
        self.rentals, self.shield = Rentals(), desk(folder, log=folder / "log.sqlite" if log else None)
        tools = [function_tool(self.rentals.get_rental), function_tool(self.rentals.extend_rental)]
        self.agent = Agent(name="desk", model=Scripted(lambda _: self.steps.pop(0)), tools=tools)
        self.steps: list[Any] = []
        self.items: list[Any] = []
        self.take_up()

    def take_up(self) -> None:
        """Another worker."""
        session = self.shield.session("c1")
        self.guard = ShieldHooks(session, context=lambda given: {"signed_in_as": given["user"]})

    def say(self, user: str, text: str, *steps: Any) -> None:
        self.steps = [*steps]
        agent, items = self.guard.protect(self.agent), [*self.items, {"role": "user", "content": text}]
        result = asyncio.run(Runner.run(agent, items, hooks=self.guard, context={"user": user}))
        self.items = result.to_input_list()


LOOK, WRITE = [("get_rental", {"rental_id": "R1"})], [("extend_rental", EXTEND)]


@pytest.mark.parametrize("log", [False, True])
def test_who_is_speaking_is_told_run_by_run(tmp_path: Path, log: bool) -> None:
    talk = Talk(tmp_path, log=log)
    talk.say("C1", "Extend R1", LOOK, PUT_EXTEND)
    if log:
        talk.take_up()
    talk.say("C1", "Yes, please.", WRITE, "Done.")
    assert talk.rentals.ran == ["extend R1"]
    assert talk.guard.session.context == {"signed_in_as": "C1"}


@pytest.mark.parametrize("log", [False, True])
def test_a_yes_of_one_principal_is_not_anothers(tmp_path: Path, log: bool) -> None:
    talk = Talk(tmp_path, log=log)
    talk.say("C1", "Extend R1", LOOK, PUT_EXTEND)
    talk.say("C2", "Yes, please.", LOOK, WRITE, "Hm.")
    assert talk.rentals.ran == []
    talk.say("C1", "What now?", LOOK, WRITE, "Hm.")
    assert talk.rentals.ran == []
    said = [each.text for each in talk.guard.session.trajectory().events if isinstance(each, Message)]
    assert "Yes, please." not in said
    talk.say("C1", "Extend R1", PUT_EXTEND)
    talk.say("C1", "Yes, please.", LOOK, WRITE, "Hm.")
    assert talk.rentals.ran == ["extend R1"]
