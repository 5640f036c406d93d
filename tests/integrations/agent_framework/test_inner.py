"""Agents of Microsoft's Agent Framework that are tools of other agents."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, AgentSession, FunctionTool
from agent_framework.openai import OpenAIChatCompletionClient

from bylaw.integrations.agent_framework import ShieldMiddleware
from tests.integrations.nested import ASKED, check_refused, model
from tests.integrations.rental import CUSTOMER, Rentals, desk


class Talk:
    def __init__(self, folder: Path, *, way: str = "shielded", **given: Any) -> None:
        url = model(folder, **given)
        self.rentals, shield = Rentals(), desk(folder)
        self.guard = ShieldMiddleware(shield, context=CUSTOMER)

        def client(name: str) -> Any:
            return OpenAIChatCompletionClient(model=name, base_url=url, api_key="none")

        inner = Agent(
            client=client("inner"),
            name="specialist",
            tools=[self.rentals.get_rental, self.rentals.refund],
            middleware=ShieldMiddleware(shield).all if way == "shielded" else [],
        )

        async def run(input: str) -> str:
            """Call the specialist."""
            return (await inner.run(input)).text

        async def stream(input: str) -> str:
            """Call the specialist."""
            streamed = inner.run(input, stream=True)
            return "".join([update.text async for update in streamed])

        async def client_alone(input: str) -> str:
            """Call the specialist."""
            tools = {"tools": [self.rentals.get_rental, self.rentals.refund]}
            return (await client("inner").get_response(input, options=tools)).text

        ways: dict[str, Any] = {each.__name__: each for each in (run, stream, client_alone)}
        tool = inner.as_tool(name="call_specialist", arg_name="input")
        if way in ways:
            tool = FunctionTool(name="call_specialist", func=ways[way])
        self.agent = Agent(client=client("outer"), name="desk", tools=[tool], middleware=self.guard.all)
        self.session = AgentSession(session_id="c1")

    async def say(self, *texts: str) -> None:
        for text in texts:
            await self.agent.run(text, session=self.session)


WAYS = ["shielded", "as tool", "run", "stream"]


@pytest.mark.parametrize("way", [*WAYS, "client_alone"])
def test_what_the_outer_agent_tells_the_inner_one_is_not_the_users_word(tmp_path: Path, way: str) -> None:
    talk = Talk(tmp_path, way=way)
    asyncio.run(talk.say("Hello"))
    follower = talk.guard.follower("c1")
    assert follower is not None
    check_refused(follower.session, talk.rentals.ran)


@pytest.mark.parametrize("way", WAYS)
def test_the_users_yes_to_the_outer_agent_lets_the_inner_one_act_once(tmp_path: Path, way: str) -> None:
    talk = Talk(tmp_path, puts=True, way=way)
    asyncio.run(talk.say(ASKED, "Yes, please."))
    assert talk.rentals.ran == ["refund 20.00"]
