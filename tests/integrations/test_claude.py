"""The shield in the Claude Agent SDK, entered by `query` and `ClaudeSDKClient`: its own program, a scripted model."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk", reason="needs the extra `claude`")

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)

from bylaw.integrations.claude import CHANGED, UNHEARD, ShieldHooks
from bylaw.policy.tool import Postures
from bylaw.shield import Shield
from bylaw.trace import Call
from tests.engine.test_conversation import FILES
from tests.integrations.claude_desk import alone as alone
from tests.integrations.guide import run_section
from tests.integrations.shop import TALK, USERS, Shop, check_log, check_talk, start_model, step, write_pack
from tests.integrations.slow_log import held_up, slow_log

NAMES = {"get_order": "mcp__shop__get_order", "refund": "mcp__shop__refund"}
"""What the model calls the tools of an MCP server by; the pack has the same names."""


def renamed(text: str) -> str:
    for name in ("tools: [refund]", "  refund:", "get_order:", "read: get_order"):
        for plain, full in NAMES.items():
            text = text.replace(name, name.replace(plain, full))
    return text


PACK = {name: renamed(text) for name, text in FILES.items()}


def scripted(talk: dict[str, Any]) -> dict[str, Any]:
    told = json.loads(json.dumps(talk))
    for turn in told["turns"]:
        for each in turn["steps"]:
            for call in each["calls"]:
                call["name"] = NAMES.get(call["name"], call["name"])
    return told


class Desk:
    """An agent of the shop behind the shield."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, talk: dict[str, Any] = TALK, **postures: Any
    ) -> None:
        self.shop = Shop()
        self.script, url = start_model(folder, scripted(talk))
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url.removesuffix("/v1"))
        shield = Shield(write_pack(folder, PACK), postures=Postures(**postures))
        self.guard = ShieldHooks(shield.session("c1"))
        self.messages: list[Any] = []

        @tool("get_order", "Show an order.", {"order_id": str})
        async def get_order(given: dict[str, Any]) -> dict[str, Any]:
            return _text(json.dumps(self.shop.get_order(given["order_id"])))

        @tool("refund", "Pay an order back.", {"order_id": str})
        async def refund(given: dict[str, Any]) -> dict[str, Any]:
            return _text(self.shop.refund(given["order_id"]))

        self.options = ClaudeAgentOptions(
            mcp_servers={"shop": create_sdk_mcp_server("shop", tools=[get_order, refund])},
            allowed_tools=list(NAMES.values()),
            tools=[],
            model="c1",
            setting_sources=[],
            cwd=folder,
        )

    async def talk(self, *users: str) -> str:
        async with ClaudeSDKClient(self.guard.protect(self.options)) as client:
            for user in users:
                self.messages.append(UserMessage(content=user))
                await client.query(user)
                await self.listen(self.guard.hear(client.receive_response()))
        return self.said()

    async def listen(self, messages: AsyncIterable[Any]) -> None:
        async for message in messages:
            self.messages.append(message)

    def said(self) -> str:
        (last,) = [each for each in self.messages if isinstance(each, AssistantMessage)][-1].content
        return last.text


@pytest.mark.parametrize(
    "own",
    [
        None,
        "You are the shop.",
        {"type": "custom", "prompt": "You are the shop."},
        {"type": "preset", "preset": "claude_code", "append": "You are the shop."},
        {"type": "file", "path": "prompt.md"},
    ],
)
@pytest.mark.parametrize("instruct", [True, False])
def test_instructions_are_added_to_the_system_prompt_where_that_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: Any, instruct: bool
) -> None:
    (tmp_path / "prompt.md").write_text("You are the shop.")
    desk = Desk(tmp_path, monkeypatch)
    desk.guard = ShieldHooks(desk.guard.session, instruct=instruct)
    if isinstance(own, dict) and own["type"] == "file":
        own = {**own, "path": str(tmp_path / "prompt.md")}
    desk.options.system_prompt = own
    asyncio.run(desk.talk(USERS[0]))
    told = [str(request["system"]) for request in desk.script.requests if request.get("tools")]
    assert told
    for each in told:
        assert each.count("Look up first: `mcp__shop__get_order(order_id)`") == int(instruct)
        assert own is None or each.count("You are the shop.") == 1


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def test_a_refused_tool_does_not_run_and_the_agent_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path, monkeypatch)
    assert asyncio.run(desk.talk(*USERS)) == "Order 8 was not returned."
    check_talk(desk.script, desk.shop)
    told = [{"type": type(each).__name__, **dataclasses.asdict(each)} for each in desk.messages]
    log = tmp_path / "messages.jsonl"
    log.write_text(json.dumps({"id": "c1", "agent": "desk", "messages": told}, default=str) + "\n")
    check_log(desk.guard.session, log, PACK)


def test_a_tool_does_not_run_where_the_messages_are_not_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path, monkeypatch, {"id": "c1", "turns": [{"user": "", "steps": [
        step(1, ("refund", "7")), step(2, text="Hm.")]}]})  # fmt: skip
    desk.guard = ShieldHooks(desk.guard.session, patience=0.5)
    asyncio.run(desk.listen(query(prompt="Refund 7.", options=desk.guard.protect(desk.options))))
    assert desk.shop.ran == []
    assert UNHEARD in str(desk.script.requests[1])
    assert desk.said() == "Hm."


def test_a_shield_that_fails_lets_no_write_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("out of order")

    desk = Desk(tmp_path, monkeypatch)
    monkeypatch.setattr("bylaw.shield.LiveSession.decide", fail)
    asyncio.run(desk.talk(USERS[0]))
    assert "refund 7" not in desk.shop.ran
    assert "out of order" in str(desk.script.requests[1])


def test_a_shield_that_takes_too_long_lets_no_write_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    desk = Desk(tmp_path, monkeypatch, {"id": "c1", "turns": [{"user": "", "steps": [
        step(1, ("refund", "7")), step(2, text="Hm.")]}]})  # fmt: skip
    desk.guard = ShieldHooks(desk.guard.session, patience=0.5, limit=0.5)
    monkeypatch.setattr("bylaw.shield.LiveSession.decide", lambda *_, **__: time.sleep(3))
    asyncio.run(desk.talk("Refund 7."))
    assert desk.shop.ran == []
    assert desk.said() == "Hm."


def changing(order: str, after: float = 0.0) -> Any:
    """A hook of the host's own that has another order refunded than the model asked for."""

    async def hook(told: Any, _id: Any, _context: Any) -> Any:
        await asyncio.sleep(after)
        if "refund" not in told["tool_name"]:
            return {}
        about = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"order_id": order}}
        return {"hookSpecificOutput": about}

    return hook


ASKED = [step(1, ("get_order", "7")), step(2, ("refund", "7")), step(3, text="Hm.")]


@pytest.mark.parametrize(("order", "ran"), [("7", True), ("8", False)])
def test_arguments_that_a_hook_of_the_host_changes_are_those_decided_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str, ran: bool
) -> None:
    # Order 7 was looked up and returned; nothing is known of order 8.
    talk = {
        "id": "c1",
        "turns": [{"user": "", "steps": [ASKED[0], step(2, ("refund", "8" if ran else "7")), ASKED[2]]}],
    }
    desk = Desk(tmp_path, monkeypatch, talk)
    desk.options.hooks = {"PreToolUse": [HookMatcher(hooks=[changing(order, 0.3)])]}
    asyncio.run(desk.talk("Refund it."))
    assert desk.shop.ran == (["get_order 7", "refund 7"] if ran else ["get_order 7"])
    last = [event for event in desk.guard.session.trajectory().events if isinstance(event, Call)][-1]
    assert (last.arguments, last.refused) == ({"order_id": order}, not ran)


def test_arguments_that_are_changed_after_the_decision_stop_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path, monkeypatch, {"id": "c1", "turns": [{"user": "", "steps": ASKED}]})
    desk.guard = ShieldHooks(desk.guard.session, patience=0.5)
    desk.options.hooks = {"PreToolUse": [HookMatcher(hooks=[changing("8", 2.0)])]}
    asyncio.run(desk.talk("Refund 7."))
    assert desk.shop.ran == ["get_order 7"]
    assert CHANGED in str(desk.script.requests[2])


def test_the_hosts_own_permission_changes_no_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def may(tool: str, given: dict[str, Any], context: Any) -> Any:
        return PermissionResultAllow(updated_input={"order_id": "8"} if "refund" in tool else None)

    desk = Desk(tmp_path, monkeypatch, {"id": "c1", "turns": [{"user": "", "steps": ASKED}]})
    desk.options.allowed_tools, desk.options.can_use_tool = [], may
    asyncio.run(desk.talk("Refund 7."))
    assert desk.shop.ran == ["get_order 7"]
    assert CHANGED in str(desk.script.requests[2])


@pytest.mark.parametrize(("posture", "is_told"), [("advise", True), ("shadow", False)])
def test_other_postures_let_it_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, posture: str, is_told: bool
) -> None:
    steps = [step(1, ("refund", "7")), step(2, text="Done.")]
    desk = Desk(tmp_path, monkeypatch, {"id": "c1", "turns": [{"user": "", "steps": steps}]}, posture=posture)
    asyncio.run(desk.talk("Refund 7."))
    assert desk.shop.ran == ["refund 7"]
    told = str(desk.script.requests[1])
    assert "refunded 7" in told
    assert ("get_order(order_id=7)" in told) is is_told


def test_the_lines_of_the_reference_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path, monkeypatch)
    told = asyncio.run(run_section("Claude Agent SDK", {"options": desk.options, "shield": desk.guard.session.shield}))
    assert told["message"].result == "Order 7 is refunded."
    assert desk.shop.ran == ["get_order 7", "refund 7"]


def test_the_loop_goes_on_while_the_log_is_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk, log = Desk(tmp_path, monkeypatch), slow_log(tmp_path, monkeypatch)
    desk.guard = ShieldHooks(Shield(write_pack(tmp_path, PACK), log=log).session("c1"))
    assert not asyncio.run(held_up(desk.talk(USERS[0]), log))
    assert "refund 7" in desk.shop.ran
