"""Pydantic AI agents that run agents in their tools."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, Tool
from pydantic_ai.agent import WrapperAgent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from bylaw.integrations.pydantic_ai import ShieldCapability
from tests.integrations.nested import ASKED, check_refused, model
from tests.integrations.rental import CUSTOMER, Rentals, desk


class Talk:
    def __init__(self, folder: Path, *, shielded: bool = True, runs: str = "run", **given: Any) -> None:
        provider = OpenAIProvider(base_url=model(folder, **given), api_key="none")
        self.rentals, shield = Rentals(), desk(folder)
        self.guard = ShieldCapability(shield, context=CUSTOMER)
        tools = [self.rentals.get_rental, self.rentals.refund]
        capabilities = [ShieldCapability(shield)] if shielded else []
        inner = Agent(OpenAIChatModel("inner", provider=provider), tools=tools, capabilities=capabilities)

        async def run(input: str) -> str:
            """Call the specialist."""
            return (await inner.run(input)).output

        async def stream(input: str) -> str:
            """Call the specialist."""
            async with inner.run_stream(input) as streamed:
                return await streamed.get_output()

        def loop(input: str) -> str:
            """Call the specialist."""
            return asyncio.run(inner.run(input)).output

        async def wrapped(input: str) -> str:
            """Call the specialist."""
            return (await WrapperAgent(inner).run(input, toolsets=[])).output

        async def task(input: str) -> str:
            """Call the specialist."""
            return (await asyncio.create_task(inner.run(input))).output

        ways = {each.__name__: each for each in (run, stream, loop, wrapped, task)}
        outer = OpenAIChatModel("outer", provider=provider)
        self.agent = Agent(outer, tools=[Tool(ways[runs], name="call_specialist")], capabilities=[self.guard])

    async def say(self, *texts: str) -> None:
        history: Any = None
        for text in texts:
            history = (await self.agent.run(text, message_history=history, conversation_id="c1")).all_messages()


WAYS = ["run", "stream", "loop", "wrapped", "task"]


@pytest.mark.parametrize("shielded", [True, False])
@pytest.mark.parametrize("runs", WAYS)
def test_what_the_outer_agent_tells_the_inner_one_is_not_the_users_word(
    tmp_path: Path, shielded: bool, runs: str
) -> None:
    talk = Talk(tmp_path, shielded=shielded, runs=runs)
    asyncio.run(talk.say("Hello"))
    follower = talk.guard.follower("c1")
    assert follower is not None
    check_refused(follower.session, talk.rentals.ran)


@pytest.mark.parametrize("shielded", [True, False])
def test_the_users_yes_to_the_outer_agent_lets_the_inner_one_act_once(tmp_path: Path, shielded: bool) -> None:
    talk = Talk(tmp_path, shielded=shielded, puts=True)
    asyncio.run(talk.say(ASKED, "Yes, please."))
    assert talk.rentals.ran == ["refund 20.00"]


def test_an_agent_that_no_shielded_tool_runs_is_left_alone(tmp_path: Path) -> None:
    rentals = Rentals()
    provider = OpenAIProvider(base_url=model(tmp_path), api_key="none")
    plain = Agent(OpenAIChatModel("inner", provider=provider), tools=[rentals.get_rental, rentals.refund])
    assert asyncio.run(plain.run("Hello")).output == "Done."
    assert rentals.ran == ["refund 20.00", "refund 20.00"]
