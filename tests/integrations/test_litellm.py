"""The shield in LiteLLM, entered by `acompletion`, with a loop around it as its users write one."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
pytest.importorskip("litellm", reason="needs the extra `litellm`")

import litellm
from litellm.caching.caching import Cache
from litellm.integrations.custom_logger import CustomLogger
from litellm.types.caching import LiteLLMCacheType

from bylaw.integrations.litellm import ROUNDS, ShieldGuardrail, _scope  # pyright: ignore[reportPrivateUsage]
from bylaw.policy.tool import Postures
from bylaw.shield import Shield
from tests.integrations.every_adapter import check_instructions
from tests.integrations.guide import run_section
from tests.integrations.rental import BESIDE, CUSTOMER, EXTEND, PUT_EXTEND, Rentals, desk
from tests.integrations.shop import RAN, USERS, Shop, check_log, check_talk, start_model, step, write_pack

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
        },
    }
    for name in ("get_order", "refund")
]


_runner = asyncio.Runner()
run = _runner.run
"""One loop for all: the worker that writes LiteLLM's log belongs to the first it was used in."""


class Logged(CustomLogger):
    """LiteLLM's own log: what it reports of each request that succeeded."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[list[Any]] = []

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        said = response_obj.choices[0].message.model_dump()
        self.requests.append([*json.loads(json.dumps(kwargs["messages"], default=dict)), said])


LOGGED = Logged()
"""LiteLLM keeps one callback of a class."""


class Desk:
    """A loop around `acompletion`, behind the shield."""

    def __init__(
        self, folder: Path, *talks: dict[str, Any], objects: bool = False, instruct: bool = False, **postures: Any
    ) -> None:
        self.shop = Shop()
        self.script, self.url = start_model(folder, *talks)
        shield = Shield(write_pack(folder), postures=Postures(**postures))
        self.guard = ShieldGuardrail(shield, instruct=instruct)
        self.logged = LOGGED
        self.logged.requests.clear()
        self.messages: list[Any] = [{"role": "system", "content": "You are the shop."}]
        self.objects = objects

    async def ask(self, **more: Any) -> Any:
        litellm.callbacks = [self.guard, self.logged]
        given = {"api_base": self.url, "api_key": "none", "tools": TOOLS, "metadata": {"session_id": "c1"}}
        return await litellm.acompletion(model="openai/c1", messages=self.messages, **{**given, **more})

    async def say(self, text: str, **more: Any) -> str:
        self.messages.append({"role": "user", "content": text})
        while True:
            message = (await self.ask(**more)).choices[0].message
            self.messages.append(message if self.objects else message.model_dump())
            if not message.tool_calls:
                return message.content
            for call in message.tool_calls:
                shown = getattr(self.shop, call.function.name)(**json.loads(call.function.arguments))
                content = shown if isinstance(shown, str) else json.dumps(shown)
                self.messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


@pytest.fixture(autouse=True)
def _alone() -> Any:
    yield
    litellm.callbacks = []


@pytest.mark.parametrize("instruct", [True, False])
def test_instructions_are_added_to_the_system_prompt_where_that_is_wanted(tmp_path: Path, instruct: bool) -> None:
    desk = Desk(tmp_path, instruct=instruct)

    async def talk() -> None:
        for user in USERS:
            await desk.say(user)

    run(talk())
    # What the model was told behind the caller's back is put back all the same.
    check_talk(desk.script, desk.shop)
    check_instructions(desk.script.requests, instruct=instruct)


@pytest.mark.parametrize("objects", [False, True])
def test_a_refused_call_never_reaches_the_caller_and_the_model_goes_on(tmp_path: Path, objects: bool) -> None:
    desk = Desk(tmp_path, objects=objects)

    async def talk() -> None:
        for user in USERS:
            await desk.say(user)
        for _ in range(200):
            if len(desk.logged.requests) == len(desk.script.requests):
                return
            await asyncio.sleep(0.05)

    run(talk())
    check_talk(desk.script, desk.shop)
    follower = desk.guard.follower("c1")
    assert follower is not None
    log = tmp_path / "litellm.jsonl"
    whole = max(desk.logged.requests, key=len)
    log.write_text(json.dumps({"id": "c1", "messages": whole}) + "\n")
    check_log(follower.session, log)


def test_the_block_of_the_documentation_works_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path)
    messages = [{"role": "user", "content": USERS[0]}]
    names = {"model": "openai/c1", "messages": messages, "tools": TOOLS}
    monkeypatch.chdir(tmp_path)
    left = run(run_section("LiteLLM", {**names, "where": {"api_base": desk.url, "api_key": "none"}}))
    # The refund was refused, the model looked: that is what the caller is asked to run.
    (call,) = left["answer"].choices[0].message.tool_calls
    assert call.function.name == "get_order"


def test_without_a_name_a_request_is_taken_for_what_its_messages_show(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for user in USERS:
        run(desk.say(user, metadata={}))
    assert desk.shop.ran == RAN
    assert desk.guard.follower("c1") is None


def test_what_one_conversation_was_refused_is_never_put_into_another(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    run(desk.say(USERS[0]))
    messages = desk.messages[:3]
    put_back = desk.guard._whole  # pyright: ignore[reportPrivateUsage]
    for metadata, is_same in (
        ({"session_id": "c1"}, True),
        ({"session_id": "c2"}, False),
        ({"session_id": "c1", "user_api_key_hash": "b"}, False),
        ({}, False),
    ):
        request = {"metadata": metadata}
        assert (len(put_back(_scope(request), messages)) > len(messages)) is is_same, metadata


def test_advice_stands_below_the_result(tmp_path: Path) -> None:
    desk = Desk(tmp_path, posture="advise")
    run(desk.say(USERS[0]))
    assert desk.shop.ran == ["refund 7", "get_order 7", "refund 7"]
    (first,) = [each["content"] for each in desk.script.requests[1]["messages"] if each["role"] == "tool"]
    assert first.startswith("refunded 7")
    assert "goes ahead, but note" in first


def test_a_model_that_keeps_asking_for_what_may_not_be_done_is_stopped(tmp_path: Path) -> None:
    steps = [step(number, ("refund", "8")) for number in range(1, ROUNDS + 2)]
    desk = Desk(tmp_path, {"id": "c1", "turns": [{"user": "Refund 8.", "steps": steps}]})
    assert "Not done yet" in run(desk.say("Refund 8."))
    assert desk.shop.ran == []
    assert len(desk.script.requests) == ROUNDS + 1


@pytest.mark.parametrize("more", [{"stream": True}, {"n": 2}])
def test_what_cannot_be_held_is_refused_before_the_model_is_asked(tmp_path: Path, more: dict[str, Any]) -> None:
    desk = Desk(tmp_path)
    desk.messages.append({"role": "user", "content": USERS[0]})
    with pytest.raises(Exception, match=r"cannot be stopped|one answer"):
        run(desk.ask(**more))
    assert desk.script.requests == []


def test_what_is_not_given_by_name_is_not_seen_and_so_refused(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    litellm.callbacks = [desk.guard]
    with pytest.raises(Exception, match="named arguments"):
        run(litellm.acompletion("openai/c1", [{"role": "user", "content": "Hello."}], api_base=desk.url))
    assert desk.script.requests == []


def test_where_deciding_fails_no_call_gets_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path)
    monkeypatch.setattr("bylaw.integrations.litellm._parts", lambda messages: 1 / 0)
    with pytest.raises(Exception, match="division"):
        run(desk.say(USERS[0]))
    assert desk.shop.ran == []


@pytest.mark.parametrize(
    "given", [*BESIDE, {"audio": {"id": "a"}}, {"images": [BESIDE[1]]}], ids=lambda each: str(min(each))
)
def test_a_yes_to_a_question_beside_media_is_undecided(tmp_path: Path, given: dict[str, Any]) -> None:
    write = {"id": "k", "name": "extend_rental", "arguments": EXTEND}
    steps = [{"text": None, "calls": [write]}, {"text": "End.", "calls": []}]
    _, url = start_model(tmp_path, {"id": "c1", "turns": [{"user": "", "steps": steps}]})
    litellm.callbacks = [ShieldGuardrail(desk(tmp_path), context=CUSTOMER)]
    parts = [given] if "type" in given else []
    question = {"role": "assistant", "content": [*parts, {"type": "text", "text": PUT_EXTEND}]}
    look = {"id": "g", "type": "function", "function": {"name": "get_rental", "arguments": '{"rental_id": "R1"}'}}
    messages = [
        {"role": "user", "content": "Extend R1"},
        {"role": "assistant", "content": None, "tool_calls": [look]},
        {"role": "tool", "tool_call_id": "g", "content": Rentals().get_rental("R1")},
        question if parts else {**question, **given},
        {"role": "user", "content": "Yes"},
    ]
    where: Any = {"api_base": url, "api_key": "none", "metadata": {"session_id": "c1"}, "tools": TOOLS}
    answer: Any = run(litellm.acompletion(model="openai/c1", messages=messages, **where))
    assert bool(answer.choices[0].message.tool_calls) is (given is BESIDE[0])


def test_an_answer_from_the_cache_is_decided(tmp_path: Path) -> None:
    desk = Desk(
        tmp_path, {"id": "c1", "turns": [{"user": "", "steps": [step(1, ("get_order", "7")), step(2, text="No.")]}]}
    )
    desk.messages.append({"role": "user", "content": USERS[0]})

    async def talk() -> tuple[Any, Any]:
        litellm.cache = Cache(type=LiteLLMCacheType.LOCAL)
        first = await desk.ask()
        # LiteLLM fills its cache in the background.
        await asyncio.sleep(0.5)
        return first, await desk.ask(metadata={"session_id": "c2"})

    try:
        first, second = run(talk())
    finally:
        litellm.cache = None
    assert first.choices[0].message.tool_calls
    assert second.choices[0].message.content == "No.", "the model was asked again"


@pytest.mark.parametrize("given", [{"stream": True, "tools": None}, {"n": 2, "tools": None}])
def test_tools_in_the_body_of_a_request_are_tools(tmp_path: Path, given: dict[str, Any]) -> None:
    desk = Desk(tmp_path)
    with pytest.raises(Exception, match=r"cannot be stopped|only one answer"):
        run(desk.ask(**given, extra_body={"tools": TOOLS}))
    with pytest.raises(Exception, match=r"cannot be stopped|only one answer"):
        run(desk.ask(extra_body={name: value for name, value in given.items() if name != "tools"}))
    assert desk.script.requests == []
