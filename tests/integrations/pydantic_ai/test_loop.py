"""Pydantic AI: the event loop goes on while the log's database answers late."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent

from bylaw.integrations.pydantic_ai import ShieldCapability
from bylaw.shield import Shield
from tests.integrations.pydantic_ai.test_adapter import Desk
from tests.integrations.shop import USERS, write_pack
from tests.integrations.slow_log import held_up, slow_log


async def hear(_: Any, events: Any) -> None:
    async for _event in events:
        pass


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("pauses", [False, True])
def test_the_loop_goes_on_while_the_log_is_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: bool, stream: bool
) -> None:
    desk, log = Desk(tmp_path), slow_log(tmp_path, monkeypatch)
    shield = Shield(write_pack(tmp_path), log=log)
    tools: list[Any] = [desk.shop.get_order, desk.shop.refund]

    async def talk() -> None:
        agent = Agent(desk.agent.model, tools=tools, capabilities=[ShieldCapability(shield, pauses=pauses)])
        await agent.run(USERS[0], conversation_id="c1", event_stream_handler=hear if stream else None)

    assert not asyncio.run(held_up(talk(), log))
    assert "refund 7" in desk.shop.ran
