"""The shield in a LangGraph agent, entered by `invoke` and `ainvoke`."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.messages import ToolMessage, messages_to_dict
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from bylaw.integrations.follower import Follower
from bylaw.integrations.langchain import ShieldMiddleware
from bylaw.policy.tool import Postures
from bylaw.shield import Shield
from tests.integrations.every_adapter import check_instructions
from tests.integrations.guide import follow_guide
from tests.integrations.shop import RAN, TALK, USERS, Shop, check_log, check_talk, start_model, step, write_pack


class Desk:
    """An agent of the shop behind the shield."""

    def __init__(
        self,
        folder: Path,
        *talks: dict[str, Any],
        memory: Any = None,
        log: Any = None,
        instruct: bool = False,
        **postures: Any,
    ) -> None:
        self.shop = Shop()
        self.script, url = start_model(folder, *talks)
        shield = Shield(write_pack(folder), postures=Postures(**postures), log=log)
        self.shield = ShieldMiddleware(shield, instruct=instruct)
        self.memory = memory
        self.agent = create_agent(
            ChatOpenAI(model="c1", base_url=url, api_key="none"),
            [self.shop.get_order, self.shop.refund],
            system_prompt="You are the shop.",
            checkpointer=memory,
            middleware=[self.shield],
        )

    def say(self, text: str, thread: str = "c1") -> dict[str, Any]:
        return self.agent.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": thread}})


@pytest.mark.parametrize("instruct", [True, False])
@pytest.mark.parametrize("waits", [True, False])
def test_instructions_are_added_to_the_system_prompt_where_that_is_wanted(
    tmp_path: Path, instruct: bool, waits: bool
) -> None:
    desk, said = Desk(tmp_path, instruct=instruct), {"messages": [("user", USERS[0])]}
    if waits:
        desk.agent.invoke(said)
    else:
        asyncio.run(desk.agent.ainvoke(said))
    check_instructions(desk.script.requests, instruct=instruct)


def export(desk: Desk, path: Path) -> Path:
    state = desk.agent.get_state({"configurable": {"thread_id": "c1"}})
    record = {"id": "c1", "messages": messages_to_dict(state.values["messages"])}
    path.write_text(json.dumps(record, default=str) + "\n")
    return path


def test_a_refused_tool_does_not_run_and_the_agent_goes_on(tmp_path: Path) -> None:
    desk = Desk(tmp_path, memory=InMemorySaver())
    for user in USERS:
        said = desk.say(user)
    check_talk(desk.script, desk.shop)
    assert said["messages"][-1].text == "Order 8 was not returned."
    refused = [each for each in said["messages"] if isinstance(each, ToolMessage) and each.status == "error"]
    assert [each.name for each in refused] == ["refund", "refund", "refund"]
    follower = desk.shield.follower("c1")
    assert follower is not None
    check_log(follower.session, export(desk, tmp_path / "state.jsonl"))


def test_so_does_ainvoke(tmp_path: Path) -> None:
    desk = Desk(tmp_path, memory=InMemorySaver())

    async def talk() -> None:
        for user in USERS:
            await desk.agent.ainvoke({"messages": [("user", user)]}, {"configurable": {"thread_id": "c1"}})

    asyncio.run(talk())
    check_talk(desk.script, desk.shop)
    follower = desk.shield.follower("c1")
    assert follower is not None
    check_log(follower.session, export(desk, tmp_path / "state.jsonl"))


def test_without_a_checkpointer_the_messages_are_the_history(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    messages: list[Any] = []
    for user in USERS:
        messages = desk.agent.invoke({"messages": [*messages, ("user", user)]})["messages"]
    check_talk(desk.script, desk.shop)


def test_after_a_restart_the_shield_knows_what_the_state_shows(tmp_path: Path) -> None:
    memory = InMemorySaver()
    turns = [
        {"user": "Look at 7.", "steps": [step(1, ("get_order", "7")), step(2, text="It is back.")]},
        {"user": "Refund it.", "steps": [step(3, ("refund", "7")), step(4, text="Done.")]},
    ]
    before = Desk(tmp_path, {"id": "c1", "turns": turns[:1]}, memory=memory)
    before.say("Look at 7.")
    after = Desk(tmp_path, {"id": "c1", "turns": turns[1:]}, memory=memory)
    after.say("Refund it.")
    assert after.shop.ran == ["refund 7"]


def test_with_a_log_nothing_is_told_twice_after_a_restart(tmp_path: Path) -> None:
    memory, log = InMemorySaver(), tmp_path / "decisions.sqlite"
    for turn in TALK["turns"]:
        desk = Desk(tmp_path, {"id": "c1", "turns": [turn]}, memory=memory, log=log)
        desk.say(turn["user"])
        desk.shield.shield.close()
    with Shield(tmp_path / "pack", log=log) as shield:
        check_log(shield.session("c1"), export(desk, tmp_path / "state.jsonl"))


def test_threads_do_not_share_what_they_saw(tmp_path: Path) -> None:
    steps = [step(1, ("get_order", "7")), step(2, text="It is back."), step(3, ("refund", "7")), step(4, text="No.")]
    talk = {"id": "c1", "turns": [{"user": "", "steps": steps}]}
    desk = Desk(tmp_path, talk, memory=InMemorySaver())
    desk.say("Look at 7.", "a")
    desk.say("Refund 7.", "b")
    assert desk.shop.ran == ["get_order 7"]


@pytest.mark.parametrize(("posture", "is_told"), [("advise", True), ("shadow", False)])
def test_other_postures_let_it_run(tmp_path: Path, posture: str, is_told: bool) -> None:
    steps = [step(1, ("refund", "7")), step(2, text="Done.")]
    desk = Desk(tmp_path, {"id": "c1", "turns": [{"user": "", "steps": steps}]}, posture=posture)
    said = desk.say("Refund 7.")
    assert desk.shop.ran == ["refund 7"]
    assert ("get_order(order_id=7)" in said["messages"][-2].content) is is_told


def test_a_shield_that_fails_lets_nothing_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr("bylaw.shield.LiveSession.decide", fail)
    desk = Desk(tmp_path, memory=InMemorySaver())
    desk.say(USERS[0])
    assert desk.shop.ran == []
    assert "out of order" in str(desk.script.requests[1])


def test_a_call_that_another_middleware_changes_is_decided_as_it_is_made(tmp_path: Path) -> None:
    @wrap_tool_call
    def to_eight(request: Any, handler: Any) -> Any:
        call = request.tool_call
        return handler(
            request.override(tool_call={**call, "args": {"order_id": "8"}}) if call["name"] == "refund" else request
        )

    desk = Desk(tmp_path, memory=InMemorySaver())
    desk.agent = create_agent(
        ChatOpenAI(model="c1", base_url=start_model(tmp_path)[1], api_key="none"),
        [desk.shop.get_order, desk.shop.refund],
        checkpointer=desk.memory,
        middleware=[to_eight, desk.shield],
    )
    desk.say(USERS[0])
    assert "refund 8" not in desk.shop.ran


def test_the_guide_works_as_written(tmp_path: Path) -> None:
    talk = {"id": "desk", "turns": [TALK["turns"][0]]}
    _, url = start_model(tmp_path, talk)
    assert follow_guide("shield-langgraph", tmp_path, OPENAI_BASE_URL=url, OPENAI_API_KEY="none") == 1


def test_what_is_followed_twice_is_told_once(tmp_path: Path) -> None:
    follower = Follower(Shield(write_pack(tmp_path)).session())
    from bylaw.integrations.history import Answered, Asked, Heard, Turn

    parts = [Heard("yes"), Turn("ok"), Heard("yes"), Turn("", (Asked("a", "get_order", {"order_id": "7"}),))]
    follower.follow(parts[:2])
    follower.follow(parts)
    follower.follow(parts)
    assert follower.decide("a", "get_order", {"order_id": "7"}).allowed
    follower.answered("a", {"order_id": "7", "returned": True})
    follower.follow([*parts[2:], Answered("a", "cut off"), Heard("now")])
    assert [type(event).__name__ for event in follower.session.trajectory().events] == [
        *("Message", "Message", "Message", "Call", "Result", "Message")
    ]
    assert RAN
