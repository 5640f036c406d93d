"""Pydantic AI: many conversations at once, handovers, and who is speaking, told by the run's dependencies."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext

from bylaw.integrations.pydantic_ai import ShieldCapability
from bylaw.trace.event import Call
from tests.integrations.many import MANY, answer, check_many, first_words, reckless
from tests.integrations.pydantic_ai.desk import scripted
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, Rentals, desk

LOOK, WRITE = [("get_rental", {"rental_id": "R1"})], [("extend_rental", EXTEND)]


@pytest.mark.parametrize("with_log", [False, True])
def test_many_conversations_at_once_are_kept_apart(tmp_path: Path, with_log: bool) -> None:
    rentals = Rentals()
    guard = ShieldCapability(desk(tmp_path, log=tmp_path / "log.sqlite" if with_log else None), context=CUSTOMER)

    def script(who: str, said: str, messages: list[Any]) -> Any:
        return reckless(messages[0].parts[0].content, said, "" if who == "user" else who)

    agent = Agent(scripted(script), tools=[rentals.get_rental, rentals.extend_rental], capabilities=[guard])

    async def talk(number: int) -> None:
        history: Any = None
        for text in (first_words(number), answer(number)):
            history = (await agent.run(text, message_history=history, conversation_id=f"c{number}")).all_messages()

    async def all_of_them() -> None:
        await asyncio.gather(*map(talk, range(MANY)))

    asyncio.run(all_of_them())
    check_many(rentals.ran)


class Talk:
    """One conversation, whoever speaks and whichever agent answers."""

    def __init__(self, folder: Path, **given: Any) -> None:
        self.rentals, self.steps, self.history = Rentals(), [], None
        context = given.get("context", CUSTOMER)
        self.guard = ShieldCapability(desk(folder, log=given.get("log")), context=context)
        tools = [self.rentals.get_rental, self.rentals.extend_rental]
        self.model = scripted(lambda *_: self.steps.pop(0))
        self.agent: Any = Agent(self.model, tools=tools, capabilities=[self.guard], deps_type=str)

    def say(self, text: str, *steps: Any, agent: Any = None, deps: Any = None) -> Any:
        self.steps = [*steps]
        given: Any = {"message_history": self.history, "conversation_id": "c1", "deps": deps}
        result = asyncio.run((agent or self.agent).run(text, **given))
        self.history = result.all_messages()
        return result.output

    def made(self) -> list[Any]:
        follower = self.guard.follower("c1")
        assert follower is not None
        events = follower.session.trajectory().events
        return [(each.tool, each.refused) for each in events if isinstance(each, Call)]


def test_an_agent_that_goes_on_with_the_messages_of_another_is_held(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    front: Any = Agent(talk.model, capabilities=[talk.guard])
    talk.say("Extend R1", "Let me hand you over.", agent=front)
    talk.say("Hello?", LOOK, WRITE, PUT_EXTEND)
    assert talk.rentals.ran == []
    talk.say("Yes, please.", WRITE, "Done.")
    assert talk.rentals.ran == ["extend R1"]
    assert talk.made() == [("get_rental", False), ("extend_rental", True), ("extend_rental", False)]


@pytest.mark.parametrize("shielded", [True, False])
def test_an_agent_that_an_output_hands_over_to_is_held(tmp_path: Path, shielded: bool) -> None:
    talk = Talk(tmp_path)
    tools: Any = [talk.rentals.get_rental, talk.rentals.extend_rental]
    back = Agent(talk.model, tools=tools, capabilities=[talk.guard] if shielded else [])

    async def hand_over(ctx: RunContext, query: str) -> str:
        """Hand over to the specialist."""
        return (await back.run("Yes, please.")).output

    front: Any = Agent(talk.model, output_type=hand_over, capabilities=[talk.guard])
    talk.say("Extend R1", [("final_result", {"query": "extend"})], LOOK, WRITE, "Done.", agent=front)
    assert talk.rentals.ran == []
    assert ("extend_rental", True) in talk.made()


@pytest.mark.parametrize("log", [False, True])
def test_a_yes_of_one_principal_is_not_anothers(tmp_path: Path, log: bool) -> None:
    context = lambda run: {"signed_in_as": run.deps}  # noqa: E731
    talk = Talk(tmp_path, context=context, log=tmp_path / "log.sqlite" if log else None)
    talk.say("Extend R1", LOOK, PUT_EXTEND, deps="C1")
    talk.say("Yes, please.", LOOK, WRITE, "Hm.", deps="C2")
    talk.say("What now?", LOOK, WRITE, "Hm.", deps="C1")
    assert talk.rentals.ran == []
    talk.say("Extend R1", PUT_EXTEND, deps="C1")
    talk.say("Yes, please.", LOOK, WRITE, "Hm.", deps="C1")
    assert talk.rentals.ran == ["extend R1"]
