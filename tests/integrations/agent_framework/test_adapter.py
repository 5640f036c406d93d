"""The shield in Microsoft's Agent Framework, entered by `Agent.run`, streamed and not."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, AgentSession, Message
from agent_framework.openai import OpenAIChatCompletionClient

from bylaw.integrations.agent_framework import UNHEARD, ShieldMiddleware
from bylaw.policy.tool import Postures
from bylaw.shield import Shield
from bylaw.trace import Call
from tests.integrations.agent_framework.desk import agent
from tests.integrations.every_adapter import EveryAdapter
from tests.integrations.guide import run_section
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, Rentals, desk
from tests.integrations.shop import USERS, Shop, check_log, check_talk, start_model, step, write_pack


class Desk:
    """An agent of the shop behind the shield."""

    def __init__(
        self, folder: Path, *talks: dict[str, Any], tools: Any = None, instruct: bool = False, **postures: Any
    ) -> None:
        self.shop = Shop()
        self.script, url = start_model(folder, *talks)
        self.guard = ShieldMiddleware(Shield(write_pack(folder), postures=Postures(**postures)), instruct=instruct)
        self.client = OpenAIChatCompletionClient(model="c1", base_url=url, api_key="none")
        self.tools = tools or [self.shop.get_order, self.shop.refund]
        self.session = AgentSession(session_id="c1")

    def agent(self, middleware: Any = None) -> Agent:
        chosen = self.guard.all if middleware is None else middleware
        told = "You are the shop."
        return Agent(client=self.client, name="desk", instructions=told, tools=self.tools, middleware=chosen)

    async def talk(self, *users: str, stream: bool = False, middleware: Any = None) -> str:
        agent, said = self.agent(middleware), ""
        for user in users:
            if stream:
                answer = agent.run(user, session=self.session, stream=True)
                said = "".join([update.text async for update in answer])
                await answer.get_final_response()
            else:
                said = (await agent.run(user, session=self.session)).text
        return said


@pytest.mark.parametrize(("author", "runs"), [(None, True), ("helper", False)])
def test_a_message_with_an_authors_name_is_not_the_users(tmp_path: Path, author: str | None, runs: bool) -> None:
    rentals = Rentals()
    guard = ShieldMiddleware(desk(tmp_path), context=CUSTOMER)
    session = AgentSession(session_id="c1")

    def script(messages: list[Any]) -> Any:
        if messages[-1].contents[-1].type == "function_result":
            return "End."
        first = {"Hello": [("get_rental", {"rental_id": "R1"})], "Extend R1": PUT_EXTEND}
        return first.get(messages[-1].text, [("extend_rental", EXTEND)])

    tools = [rentals.get_rental, rentals.extend_rental, rentals.refund]
    scripted = agent(script, tools, guard.all)
    for said in ("Hello", "Extend R1", Message(role="user", contents=["Yes, please."], author_name=author)):
        asyncio.run(scripted.run(said, session=session))
    assert bool(rentals.ran) is runs


@pytest.mark.parametrize("stream", [False, True])
def test_a_refused_tool_does_not_run_and_the_agent_goes_on(tmp_path: Path, stream: bool) -> None:
    desk = Desk(tmp_path)
    assert asyncio.run(desk.talk(*USERS, stream=stream)).endswith("Order 8 was not returned.")
    check_talk(desk.script, desk.shop)
    kept = desk.session.to_dict()["state"]["in_memory"]["messages"]
    log = tmp_path / "messages.jsonl"
    log.write_text(json.dumps({"id": "c1", "agent": "desk", "messages": kept}) + "\n")
    follower = desk.guard.follower("c1")
    assert follower is not None
    check_log(follower.session, log)


def test_after_a_restart_the_shield_knows_what_the_messages_show(tmp_path: Path) -> None:
    steps = [step(1, ("get_order", "7")), step(2, text="It is back."), step(3, ("refund", "7")), step(4, text="Done.")]
    desk = Desk(tmp_path, {"id": "c1", "turns": [{"user": "", "steps": steps}]})
    asyncio.run(desk.talk("Look at 7."))
    desk.guard = ShieldMiddleware(desk.guard.shield)
    desk.session = AgentSession.from_dict(json.loads(json.dumps(desk.session.to_dict())))
    asyncio.run(desk.talk("Refund it."))
    assert desk.shop.ran == ["get_order 7", "refund 7"]


def test_a_tool_with_defaults_is_decided_once(tmp_path: Path) -> None:
    shop = Shop()

    def get_order(order_id: str, verbose: bool = False) -> dict[str, Any]:
        """Show an order."""
        return shop.get_order(order_id)

    desk = Desk(tmp_path, tools=[get_order, shop.refund])
    asyncio.run(desk.talk(*USERS))
    check_talk(desk.script, shop)
    follower = desk.guard.follower("c1")
    assert follower is not None
    assert len([each for each in follower.session.trajectory().events if isinstance(each, Call)]) == 6


def test_a_tool_does_not_run_where_only_half_the_shield_is_installed(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"id": "c1", "turns": [{"user": "", "steps": [
        step(1, ("refund", "7")), step(2, text="Hm.")]}]})  # fmt: skip
    asyncio.run(desk.talk("Refund 7.", middleware=desk.guard.all[-1:]))
    assert desk.shop.ran == []
    assert UNHEARD in str(desk.script.requests[1])


class TestAsEveryAdapter(EveryAdapter):
    desk = Desk


def test_the_lines_of_the_reference_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path)
    monkeypatch.chdir(tmp_path)
    names = {"client": desk.client, "get_order": desk.shop.get_order, "refund": desk.shop.refund}
    told = asyncio.run(run_section("Microsoft Agent Framework", names))
    assert told["result"].text.endswith("Order 7 is refunded.")
    assert desk.shop.ran == ["get_order 7", "refund 7"]
