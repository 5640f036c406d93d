"""The OpenAI Agents SDK: the event loop goes on while the log's database answers late."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents import Runner

from bylaw.integrations.openai_agents import ShieldHooks
from bylaw.shield import Shield
from tests.integrations.openai_agents.test_adapter import Desk
from tests.integrations.shop import USERS, step, write_pack
from tests.integrations.slow_log import held_up, slow_log

AT_ONCE = {
    "id": "c1",
    "turns": [{"user": "", "steps": [step(1, ("get_order", "7"), ("refund", "8")), step(2, text="Not yet.")]}],
}


async def run(desk: Desk, shield: Shield, *, stream: bool = False, **given: Any) -> None:
    """A host that makes the hooks where it serves the request."""
    desk.guard = ShieldHooks(shield.session("c1"), **given)
    if not stream:
        await desk.talk(USERS[0])
        return
    async for _ in Runner.run_streamed(desk.guard.protect(desk.plain), USERS[0], hooks=desk.guard).stream_events():
        pass


@pytest.mark.parametrize("stream", [False, True])
def test_the_loop_goes_on_while_the_log_is_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    desk, log = Desk(tmp_path), slow_log(tmp_path, monkeypatch)
    shield = Shield(write_pack(tmp_path), log=log)
    assert not asyncio.run(held_up(run(desk, shield, stream=stream), log))
    assert "refund 7" in desk.shop.ran


def test_it_goes_on_while_one_call_of_a_turn_waits_for_the_log_and_another_may_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, log = Desk(tmp_path, AT_ONCE), slow_log(tmp_path, monkeypatch)
    shield = Shield(write_pack(tmp_path), log=log)
    assert not asyncio.run(held_up(run(desk, shield, pauses=True), log))
    assert desk.shop.ran == ["get_order 7"]
