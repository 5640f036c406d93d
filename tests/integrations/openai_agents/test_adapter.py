"""The shield in the OpenAI Agents SDK, entered by `Runner.run`, over the chat API and the Responses API."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    UserError,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from bylaw.integrations.openai_agents import ShieldHooks
from bylaw.policy.tool import Postures
from bylaw.shield import Shield
from tests.integrations.every_adapter import EveryAdapter, check_instructions
from tests.integrations.guide import run_section
from tests.integrations.shop import USERS, Shop, check_log, check_talk, start_model, step, write_pack

set_tracing_disabled(True)


class Desk:
    """An agent of the shop behind the shield."""

    def __init__(
        self,
        folder: Path,
        *talks: dict[str, Any],
        kind: Any = OpenAIChatCompletionsModel,
        instruct: bool = False,
        **postures: Any,
    ) -> None:
        self.shop = Shop()
        self.script, url = start_model(folder, *talks)
        self.shield = Shield(write_pack(folder), postures=Postures(**postures))
        self.guard = ShieldHooks(self.shield.session("c1"), instruct=instruct)
        model = kind(model="c1", openai_client=AsyncOpenAI(base_url=url, api_key="none"))
        tools = [function_tool(self.shop.get_order), function_tool(self.shop.refund)]
        self.plain = Agent(name="desk", instructions="You are the shop.", tools=tools, model=model)

    async def talk(self, *users: str) -> Any:
        agent, items, result = self.guard.protect(self.plain), [], None
        for user in users:
            result = await Runner.run(agent, [*items, {"role": "user", "content": user}], hooks=self.guard)
            items = result.to_input_list()
        return result


@pytest.mark.parametrize("own", [lambda context, agent: "You are the shop.", None])
def test_instructions_follow_those_of_a_function_and_need_none(tmp_path: Path, own: Any) -> None:
    desk = Desk(tmp_path, instruct=True)
    desk.plain.instructions = own
    asyncio.run(desk.talk(USERS[0]))
    check_instructions(desk.script.requests, instruct=True, own="You are the shop." if own else "# Changes: look up")


@pytest.mark.parametrize("kind", [OpenAIChatCompletionsModel, OpenAIResponsesModel])
def test_a_refused_tool_does_not_run_and_the_agent_goes_on(tmp_path: Path, kind: Any) -> None:
    desk = Desk(tmp_path, kind=kind)
    result = asyncio.run(desk.talk(*USERS))
    check_talk(desk.script, desk.shop)
    assert result.final_output == "Order 8 was not returned."
    log = tmp_path / "items.jsonl"
    log.write_text(json.dumps({"id": "c1", "agent": "desk", "messages": result.to_input_list()}) + "\n")
    check_log(desk.guard.session, log)


def test_so_does_a_streamed_run(tmp_path: Path) -> None:
    desk = Desk(tmp_path)

    async def talk() -> None:
        items: list[Any] = []
        for user in USERS:
            messages = [*items, {"role": "user", "content": user}]
            result = Runner.run_streamed(desk.guard.protect(desk.plain), messages, hooks=desk.guard)
            async for _ in result.stream_events():
                pass
            items = result.to_input_list()

    asyncio.run(talk())
    check_talk(desk.script, desk.shop)


def test_after_a_restart_the_shield_knows_what_the_items_show(tmp_path: Path) -> None:
    steps = [step(1, ("get_order", "7")), step(2, text="It is back."), step(3, ("refund", "7")), step(4, text="Done.")]
    desk = Desk(tmp_path, {"id": "c1", "turns": [{"user": "", "steps": steps}]})
    items = asyncio.run(desk.talk("Look at 7.")).to_input_list()
    desk.guard = ShieldHooks(desk.shield.session("c1"))
    agent = desk.guard.protect(desk.plain)
    asyncio.run(Runner.run(agent, [*items, {"role": "user", "content": "Refund it."}], hooks=desk.guard))
    assert desk.shop.ran == ["get_order 7", "refund 7"]


def test_a_tool_that_was_not_protected_does_not_run(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with pytest.raises(UserError, match="tool `refund` would run without a decision"):
        asyncio.run(Runner.run(desk.plain, USERS[0], hooks=desk.guard))
    assert desk.shop.ran == []


def test_tools_of_agents_that_are_handed_over_to_are_protected_too(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.plain.handoffs = [desk.plain]
    protected = desk.guard.protect(desk.plain)
    assert protected.handoffs == [protected]
    assert all(tool.tool_input_guardrails for tool in protected.tools)
    assert not any(tool.tool_input_guardrails for tool in desk.plain.tools)


class TestAsEveryAdapter(EveryAdapter):
    desk = Desk


def test_the_lines_of_the_reference_run(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    messages = [{"role": "user", "content": USERS[0]}]
    names = {"agent": desk.plain, "shield": desk.guard.session.shield, "messages": messages}
    told = asyncio.run(run_section("OpenAI Agents SDK", names))
    assert told["result"].final_output == "Order 7 is refunded."
    assert desk.shop.ran == ["get_order 7", "refund 7"]
