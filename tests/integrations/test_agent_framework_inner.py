"""Agents of Microsoft's Agent Framework that are tools of other agents."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agent_framework", reason="needs the extra `agent-framework`")
pytest.importorskip("agent_framework_openai")

from agent_framework import Agent, AgentSession
from agent_framework.openai import OpenAIChatCompletionClient

from bylaw.integrations.agent_framework import ShieldMiddleware
from tests.integrations.nested import ASKED, check_refused, model
from tests.integrations.rental import CUSTOMER, Rentals, desk


class Talk:
    def __init__(self, folder: Path, *, shielded: bool = True, **given: Any) -> None:
        url = model(folder, **given)
        self.rentals, shield = Rentals(), desk(folder)
        self.guard = ShieldMiddleware(shield, context=CUSTOMER)

        def client(name: str) -> Any:
            return OpenAIChatCompletionClient(model=name, base_url=url, api_key="none")

        inner = Agent(
            client=client("inner"),
            name="specialist",
            tools=[self.rentals.get_rental, self.rentals.refund],
            middleware=ShieldMiddleware(shield).all if shielded else [],
        )
        tool = inner.as_tool(name="ask_specialist", arg_name="input")
        self.agent = Agent(client=client("outer"), name="desk", tools=[tool], middleware=self.guard.all)
        self.session = AgentSession(session_id="c1")

    async def say(self, *texts: str) -> None:
        for text in texts:
            await self.agent.run(text, session=self.session)


def test_what_the_outer_agent_tells_the_inner_one_is_not_the_users_word(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    asyncio.run(talk.say("Hello"))
    follower = talk.guard.follower("c1")
    assert follower is not None
    check_refused(follower.session, talk.rentals.ran)


def test_the_users_yes_to_the_outer_agent_lets_the_inner_one_act_once(tmp_path: Path) -> None:
    talk = Talk(tmp_path, puts=True)
    asyncio.run(talk.say(ASKED, "Yes, please."))
    assert talk.rentals.ran == ["refund 20.00"]


def test_an_inner_agent_without_the_middleware_does_not_run(tmp_path: Path) -> None:
    talk = Talk(tmp_path, shielded=False)
    asyncio.run(talk.say("Hello"))
    assert "whose calls nobody decides on" in str(talk.session.to_dict())
    assert talk.rentals.ran == []
