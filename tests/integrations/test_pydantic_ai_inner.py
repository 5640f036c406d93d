"""Pydantic AI agents that run agents in their tools."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="needs the extra `pydantic-ai`")
pytest.importorskip("openai")

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from bylaw.integrations.pydantic_ai import ShieldCapability
from tests.integrations.nested import ASKED, check_refused, model
from tests.integrations.rental import CUSTOMER, Rentals, desk


class Talk:
    def __init__(self, folder: Path, **given: Any) -> None:
        provider = OpenAIProvider(base_url=model(folder, **given), api_key="none")
        self.rentals, shield = Rentals(), desk(folder)
        self.guard = ShieldCapability(shield, context=CUSTOMER)
        tools = [self.rentals.get_rental, self.rentals.refund]
        inner = Agent(OpenAIChatModel("inner", provider=provider), tools=tools, capabilities=[ShieldCapability(shield)])

        async def ask_specialist(input: str) -> str:
            """Ask the specialist."""
            return (await inner.run(input)).output

        outer = OpenAIChatModel("outer", provider=provider)
        self.agent = Agent(outer, tools=[ask_specialist], capabilities=[self.guard])

    async def say(self, *texts: str) -> None:
        history: Any = None
        for text in texts:
            history = (await self.agent.run(text, message_history=history, conversation_id="c1")).all_messages()


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
