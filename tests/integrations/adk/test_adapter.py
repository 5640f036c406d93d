"""The shield in Google's ADK, entered by `Runner.run_async`."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from bylaw.integrations.adk import ShieldPlugin
from bylaw.policy.tool import Postures
from bylaw.shield import Shield
from bylaw.trace import Call, Result
from tests.integrations.every_adapter import EveryAdapter
from tests.integrations.guide import run_section
from tests.integrations.shop import USERS, Shop, check_log, check_talk, start_model, step, write_pack


class Desk:
    """An agent of the shop behind the shield."""

    def __init__(self, folder: Path, *talks: dict[str, Any], instruct: bool = False, **postures: Any) -> None:
        self.shop = Shop()
        self.script, url = start_model(folder, *talks)
        self.sessions = InMemorySessionService()
        self.plugin = ShieldPlugin(Shield(write_pack(folder), postures=Postures(**postures)), instruct=instruct)
        self.model = LiteLlm(model="openai/c1", api_base=url, api_key="none")
        self.tools: list[Any] = [self.shop.get_order, self.shop.refund]

    async def session(self) -> Any:
        found = await self.sessions.get_session(app_name="shop", user_id="u", session_id="c1")
        return found or await self.sessions.create_session(app_name="shop", user_id="u", session_id="c1")

    async def talk(self, *users: str, plugin: ShieldPlugin | None = None, callback: Any = None, **more: Any) -> Any:
        agent = LlmAgent(
            name="desk",
            model=self.model,
            instruction="You are the shop.",
            tools=self.tools,
            before_tool_callback=callback,
        )
        plugins: list[Any] = [plugin or self.plugin]
        app = App(name="shop", root_agent=agent, plugins=plugins)
        runner = Runner(app=app, session_service=self.sessions)
        for user in users:
            await self.session()
            message = types.Content(role="user", parts=[types.Part(text=user)])
            async for _ in runner.run_async(user_id="u", session_id="c1", new_message=message, **more):
                pass
        return await self.session()


@pytest.mark.parametrize("mode", [StreamingMode.NONE, StreamingMode.SSE])
def test_a_refused_tool_does_not_run_and_the_agent_goes_on(tmp_path: Path, mode: StreamingMode) -> None:
    desk = Desk(tmp_path)
    session = asyncio.run(desk.talk(*USERS, run_config=RunConfig(streaming_mode=mode)))
    check_talk(desk.script, desk.shop)
    assert session.events[-1].content.parts[0].text == "Order 8 was not returned."
    log = tmp_path / "sessions.jsonl"
    log.write_text(session.model_dump_json() + "\n")
    follower = desk.plugin.follower(session)
    assert follower is not None
    check_log(follower.session, log)


def test_a_call_that_a_callback_changes_after_the_decision_is_decided_anew(tmp_path: Path) -> None:
    steps = [step(1, ("get_order", "7")), step(2, ("refund", "7")), step(3, text="Hm.")]
    desk = Desk(tmp_path, {"id": "c1", "turns": [{"user": "", "steps": steps}]})

    def swap(tool: Any, args: dict[str, Any], tool_context: Any) -> None:
        if tool.name == "refund":
            args["order_id"] = "8"

    asyncio.run(desk.talk("Refund 7.", callback=swap))
    assert desk.shop.ran == ["get_order 7"]
    assert "get_order(order_id=8)" in str(desk.script.requests[2])


def test_after_a_restart_the_shield_knows_what_the_events_show(tmp_path: Path) -> None:
    steps = [step(1, ("get_order", "7")), step(2, text="It is back."), step(3, ("refund", "7")), step(4, text="Done.")]
    desk = Desk(tmp_path, {"id": "c1", "turns": [{"user": "", "steps": steps}]})
    asyncio.run(desk.talk("Look at 7."))
    asyncio.run(desk.talk("Refund it.", plugin=ShieldPlugin(desk.plugin.shield)))
    assert desk.shop.ran == ["get_order 7", "refund 7"]


def test_what_a_failing_tool_did_is_not_known(tmp_path: Path) -> None:
    steps = [step(1, ("get_order", "7")), step(2, ("refund", "7")), step(3, ("get_order", "7")), step(4, text="Hm.")]
    desk = Desk(tmp_path, {"id": "c1", "turns": [{"user": "", "steps": steps}]})

    def refund(order_id: str) -> str:
        """Pay an order back."""
        raise RuntimeError("the line is dead")

    desk.tools[1] = refund
    with pytest.raises(RuntimeError, match="the line is dead"):
        asyncio.run(desk.talk("Refund 7."))
    session = asyncio.run(desk.talk("And?"))
    follower = desk.plugin.follower(session)
    assert follower is not None
    assert follower.session.lacks == ""
    events = follower.session.trajectory().events
    (tried,) = [at for at, event in enumerate(events) if isinstance(event, Call) and event.tool == "refund"]
    (answer,) = [event for event in events if isinstance(event, Result) and event.call == tried]
    assert not answer.captured


class TestAsEveryAdapter(EveryAdapter):
    desk = Desk


def test_the_lines_of_the_reference_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path)
    monkeypatch.chdir(tmp_path)
    agent = LlmAgent(name="desk", model=desk.model, tools=desk.tools)
    message = types.Content(role="user", parts=[types.Part(text=USERS[0])])
    asyncio.run(desk.sessions.create_session(app_name="shop", user_id="ann", session_id="conv-17"))
    told = asyncio.run(run_section("Google ADK", {"agent": agent, "sessions": desk.sessions, "message": message}))
    assert told["event"].content.parts[0].text == "Order 7 is refunded."
    assert desk.shop.ran == ["get_order 7", "refund 7"]
