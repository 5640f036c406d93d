"""The shield in Pydantic AI, entered by `Agent.run`, streamed and not."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from bylaw.integrations.pydantic_ai import ShieldCapability
from bylaw.policy.tool import Postures
from bylaw.shield import Shield
from tests.integrations.every_adapter import EveryAdapter
from tests.integrations.guide import run_section
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, Rentals
from tests.integrations.rental import desk as rental_desk
from tests.integrations.shop import USERS, Shop, check_log, check_talk, start_model, step, write_pack


class Desk:
    """An agent of the shop behind the shield."""

    def __init__(
        self, folder: Path, *talks: dict[str, Any], tools: Any = None, instruct: bool = False, **more: Any
    ) -> None:
        self.shop = Shop()
        self.script, self.url = start_model(folder, *talks)
        output = more.pop("output", str)
        shield = Shield(write_pack(folder), postures=Postures(**more))
        self.guard = ShieldCapability(shield, instruct=instruct)
        model = OpenAIChatModel("c1", provider=OpenAIProvider(base_url=self.url, api_key="none"))
        chosen = tools or [self.shop.get_order, self.shop.refund]
        given: Any = {"name": "desk", "output_type": output, "instructions": "You are the shop."}
        self.agent = Agent(model, tools=chosen, capabilities=[self.guard], **given)

    async def talk(self, *users: str) -> Any:
        result = None
        for user in users:
            before = result.all_messages() if result is not None else None
            result = await self.agent.run(user, message_history=before, conversation_id="c1")
        return result


@pytest.mark.parametrize(
    ("before", "runs"),
    [
        ([], True),
        ([ThinkingPart("Coffee?")], True),
        ([TextPart("Coffee?")], False),
        ([FilePart(BinaryContent(b"Coffee?", media_type="audio/wav"))], False),
    ],
)
def test_nothing_that_the_agent_says_goes_unheard(tmp_path: Path, before: list[Any], *, runs: bool) -> None:
    rentals = Rentals()
    answers: list[Any] = [[TextPart("Done.")], [ToolCallPart("extend_rental", EXTEND)]]
    history = [
        ModelRequest([UserPromptPart("Please keep my car until 2026-11-20.")]),
        ModelResponse([ToolCallPart("get_rental", {"rental_id": "R1"}, tool_call_id="k0")]),
        ModelRequest([ToolReturnPart("get_rental", rentals.get_rental("R1"), tool_call_id="k0")]),
        ModelResponse([TextPart(PUT_EXTEND)]),
        *([ModelResponse(before)] if before else []),
    ]
    model = FunctionModel(lambda *_: ModelResponse(answers.pop()))
    guard = ShieldCapability(rental_desk(tmp_path), context=CUSTOMER)
    asks = Agent(model, tools=[rentals.extend_rental, rentals.get_rental], capabilities=[guard])
    asyncio.run(asks.run("Yes", message_history=history, conversation_id="c1"))
    assert bool(rentals.ran) == runs


def test_a_refused_tool_does_not_run_and_the_agent_goes_on(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    result = asyncio.run(desk.talk(*USERS))
    check_talk(desk.script, desk.shop)
    assert result.output == "Order 8 was not returned."
    log = tmp_path / "messages.jsonl"
    log.write_text(json.dumps({"id": "c1", "agent": "desk", "messages": json.loads(result.all_messages_json())}) + "\n")
    follower = desk.guard.follower("c1")
    assert follower is not None
    check_log(follower.session, log)


def test_so_does_a_streamed_run(tmp_path: Path) -> None:
    desk = Desk(tmp_path)

    async def hear(_: Any, events: Any) -> None:
        async for _event in events:
            pass

    async def talk() -> None:
        messages: Any = None
        for user in USERS:
            more = {"message_history": messages, "conversation_id": "c1", "event_stream_handler": hear}
            messages = (await desk.agent.run(user, **more)).all_messages()

    asyncio.run(talk())
    check_talk(desk.script, desk.shop)


def test_after_a_restart_the_shield_knows_what_the_messages_show(tmp_path: Path) -> None:
    steps = [step(1, ("get_order", "7")), step(2, text="It is back."), step(3, ("refund", "7")), step(4, text="Done.")]
    talk = {"id": "c1", "turns": [{"user": "", "steps": steps}]}
    first = Desk(tmp_path, talk)
    kept = asyncio.run(first.talk("Look at 7.")).all_messages_json()
    second = Desk(tmp_path, talk)
    second.script._said.update(first.script._said)
    messages = ModelMessagesTypeAdapter.validate_json(kept)
    asyncio.run(second.agent.run("Refund it.", message_history=messages))
    assert second.shop.ran == ["refund 7"]


def test_a_tool_with_defaults_is_decided_once(tmp_path: Path) -> None:
    shop = Shop()

    def get_order(order_id: str, verbose: bool = False) -> dict[str, Any]:
        """Show an order."""
        return shop.get_order(order_id)

    desk = Desk(tmp_path, tools=[get_order, shop.refund])
    desk.shop = shop
    asyncio.run(desk.talk(*USERS))
    check_talk(desk.script, shop)
    follower = desk.guard.follower("c1")
    assert follower is not None
    assert len([each for each in follower.session.trajectory().events if type(each).__name__ == "Call"]) == 6


def test_how_the_output_is_given_is_no_call_of_a_tool(tmp_path: Path) -> None:
    class Outcome(BaseModel):
        refunded: bool

    steps = [step(1, ("get_order", "7")), {"text": None, "calls": [
        {"id": "call_2", "name": "final_result", "arguments": {"refunded": False}}]}]  # fmt: skip
    desk = Desk(tmp_path, {"id": "c1", "turns": [{"user": "", "steps": steps}]}, output=Outcome)
    assert asyncio.run(desk.talk("Look at 7.")).output == Outcome(refunded=False)
    follower = desk.guard.follower("c1")
    assert follower is not None
    assert follower.session.lacks == ""
    assert "final_result" not in str(follower.session.trajectory().events)


class TestAsEveryAdapter(EveryAdapter):
    desk = Desk


def test_the_lines_of_the_reference_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path)
    monkeypatch.chdir(tmp_path)
    names = {"model": desk.agent.model, "get_order": desk.shop.get_order, "refund": desk.shop.refund}
    told = asyncio.run(run_section("Pydantic AI", names))
    assert told["result"].output == "Order 7 is refunded."
    assert desk.shop.ran == ["get_order 7", "refund 7"]
