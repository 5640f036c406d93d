"""Microsoft's Agent Framework: the event loop goes on while the log's database answers late."""

import asyncio
from pathlib import Path

import pytest
from agent_framework import Agent, AgentSession
from agent_framework.openai import OpenAIChatCompletionClient

from bylaw.integrations.agent_framework import ShieldMiddleware
from bylaw.shield import Shield
from tests.integrations.shop import USERS, Shop, start_model, write_pack
from tests.integrations.slow_log import held_up, slow_log


@pytest.mark.parametrize("stream", [False, True])
def test_the_loop_goes_on_while_the_log_is_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    shop, log = Shop(), slow_log(tmp_path, monkeypatch)
    guard = ShieldMiddleware(Shield(write_pack(tmp_path), log=log))
    client = OpenAIChatCompletionClient(model="c1", base_url=start_model(tmp_path)[1], api_key="none")
    agent = Agent(client=client, tools=[shop.get_order, shop.refund], middleware=guard.all)

    async def talk() -> None:
        session = AgentSession(session_id="c1")
        for text in USERS[:1]:
            if stream:
                async for _ in agent.run(text, session=session, stream=True):
                    pass
            else:
                await agent.run(text, session=session)

    assert not asyncio.run(held_up(talk(), log))
    assert "refund 7" in shop.ran
