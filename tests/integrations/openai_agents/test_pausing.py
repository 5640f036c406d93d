"""Interruptions of the Agents SDK for every `ask`: one prompt for one write, whoever answers it, here or elsewhere."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, RunState, function_tool, set_tracing_disabled

from bylaw.errors import UsageError
from bylaw.integrations.openai_agents import ShieldHooks
from tests.integrations.guide import run_section
from tests.integrations.openai_agents.desk import Scripted, text_of
from tests.integrations.pausing import Asking, check_approval, check_card
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, REFUND, Rentals, desk, desk_with_numbers

set_tracing_disabled(True)
LOOK, WRITE = [("get_rental", {"rental_id": "R1"})], [("extend_rental", EXTEND)]


def script(items: list[Any]) -> Any:
    last = items[-1]
    if last.get("type") == "function_call_output":
        if "customer_id" not in last["output"]:
            return f"End: {last['output']}"
        return PUT_EXTEND if text_of(items[0]) == "Tell me first." else WRITE
    said = text_of(last)
    return [*WRITE, ("refund", REFUND)] if said == "Both." else WRITE if said == "Yes." else LOOK


def persistent(items: list[Any]) -> Any:
    """Makes the call again where it waits for a person."""
    said = script(items)
    return WRITE if isinstance(said, str) and "Not done yet" in said else said


class Desk:
    """A conversation; `move` hands it to another worker, by the SDK's own state and the log."""

    def __init__(self, folder: Path, *, log: bool = True, context: Any = CUSTOMER, **tool: Any) -> None:
        self.rentals, self.context = Rentals(), context
        self.shield = desk(folder, log=folder / "log.sqlite" if log else None)
        tools = [self.rentals.get_rental, self.rentals.refund]
        extend = function_tool(self.rentals.extend_rental, **tool)
        model = Scripted(script)
        self.agent = Agent(name="desk", model=model, tools=[*map(function_tool, tools), extend])
        self.state: Any = None
        self.result: Any = None
        self.take_up()

    def take_up(self) -> None:
        self.guard = ShieldHooks(self.shield.session("c1", context=self.context), pauses=True)
        self.protected = self.guard.protect(self.agent)

    async def say(self, text: str) -> None:
        before = self.result.to_input_list() if self.result is not None else []
        await self._run([*before, {"role": "user", "content": text}])

    async def go_on(self) -> None:
        await self._run(self.state)

    async def _run(self, given: Any) -> None:
        self.result = await Runner.run(self.protected, given, hooks=self.guard)
        self.state = self.result.to_state() if self.result.interruptions else None

    async def move(self) -> None:
        told = self.state.to_json()
        self.take_up()
        self.state = await RunState.from_json(self.protected, told)

    def items(self) -> list[Any]:
        return self.state.get_interruptions() if self.state is not None else []

    async def asked(self) -> Any:
        (item,) = self.items()
        self.state.approve(item)
        return await self.guard.asked(item)


@pytest.mark.parametrize("where", ["here", "here, with a log", "elsewhere, with a log"])
def test_the_users_answer_to_a_card_is_a_confirmation(tmp_path: Path, where: str) -> None:
    talk = Desk(tmp_path, log="log" in where)

    async def run() -> None:
        await talk.say("Extend R1")
        if "elsewhere" in where:
            await talk.move()
        (prompt,) = await talk.asked()
        assert (prompt.whom, prompt.tool, prompt.arguments) == ("user", "extend_rental", EXTEND)
        assert talk.rentals.ran == []
        await talk.guard.confirm(prompt, True, by="button")
        await talk.go_on()

    asyncio.run(run())
    assert talk.items() == []
    assert "extended" in talk.result.final_output
    assert talk.rentals.ran == ["extend R1"]
    check_card(talk.guard.session)


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("amount", [20, 20.0, "20"])
def test_a_number_that_the_sdk_changes_on_its_way_is_asked_about(tmp_path: Path, amount: Any, elsewhere: bool) -> None:
    def play(items: list[Any]) -> Any:
        output = items[-1].get("output", "")
        if not output:
            return LOOK
        return [("refund", {"rental_id": "R1", "amount": amount})] if "customer_id" in output else f"End: {output}"

    talk = Desk(tmp_path, log=False)
    paid: list[float] = []

    def refund(rental_id: str, amount: float) -> str:
        paid.append(amount)
        return "refunded"

    talk.agent.model = Scripted(play)
    talk.agent.tools = [talk.agent.tools[0], function_tool(refund)]
    talk.shield = desk_with_numbers(tmp_path, log=tmp_path / "log.sqlite")
    talk.take_up()

    async def run() -> None:
        await talk.say("The car broke down. Refund 20 for R1.")
        if elsewhere:
            await talk.move()
        (prompt,) = await talk.asked()
        assert (prompt.whom, prompt.arguments["amount"]) == ("user", amount)
        await talk.guard.confirm(prompt, True, by="button")
        await talk.go_on()

    asyncio.run(run())
    assert talk.items() == []
    assert paid == [20.0]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_persons_answer_is_an_approval(tmp_path: Path, elsewhere: bool) -> None:
    talk = Desk(tmp_path, context=None)

    async def run() -> None:
        await talk.say("Tell me first.")
        await talk.say("Yes.")
        if elsewhere:
            await talk.move()
        (prompt,) = await talk.asked()
        assert prompt.whom == "person"
        assert "Which customer is signed in?" in prompt.text
        await talk.guard.approve(prompt, True, by="ann")
        await talk.go_on()

    asyncio.run(run())
    assert talk.rentals.ran == ["extend R1"]
    check_approval(talk.shield)


def test_what_the_sdk_calls_approved_is_nobodys_yes(tmp_path: Path) -> None:
    talk = Desk(tmp_path)

    async def run() -> None:
        await talk.say("Extend R1")
        (prompt,) = await talk.asked()
        with pytest.raises(UsageError, match="no one else can answer for them"):
            await talk.guard.approve(prompt, True, by="ann")
        await talk.go_on()

    asyncio.run(run())
    assert talk.rentals.ran == []
    assert "Please confirm: extend rental" in talk.result.final_output


@pytest.mark.parametrize("says", ["no", "reject"])
def test_what_is_declined_does_not_run(tmp_path: Path, says: str) -> None:
    talk = Desk(tmp_path)

    async def run() -> None:
        await talk.say("Extend R1")
        if says == "reject":
            talk.state.reject(talk.items()[0])
        else:
            (prompt,) = await talk.asked()
            await talk.guard.confirm(prompt, False)
        await talk.go_on()

    asyncio.run(run())
    assert talk.items() == []
    assert talk.rentals.ran == []


def test_one_answer_is_one_write_in_two_workers(tmp_path: Path) -> None:
    talk = Desk(tmp_path)

    async def run() -> None:
        await talk.say("Extend R1")
        told = talk.state.to_json()
        (prompt,) = await talk.asked()
        await talk.guard.confirm(prompt, True)
        await talk.go_on()
        talk.take_up()
        state = await RunState.from_json(talk.protected, told)
        state.approve(state.get_interruptions()[0])
        await Runner.run(talk.protected, state, hooks=talk.guard)

    asyncio.run(run())
    assert talk.rentals.ran == ["extend R1"]


def test_several_calls_of_a_turn_are_asked_about_one_by_one(tmp_path: Path) -> None:
    talk = Desk(tmp_path)

    async def run() -> None:
        await talk.say("It was dirty.")
        talk.state.reject(talk.items()[0])
        await talk.go_on()
        await talk.say("Both.")
        assert [each.tool_name for each in talk.items()] == ["extend_rental", "refund"]
        for item in talk.items():
            (prompt,) = await talk.guard.asked(item)
            await talk.guard.confirm(prompt, prompt.tool == "refund")
            talk.state.approve(item)
        await talk.go_on()

    asyncio.run(run())
    assert talk.rentals.ran == ["refund 20.00"]


def test_the_tools_own_approval_is_asked_for_in_the_same_pause(tmp_path: Path) -> None:
    talk = Desk(tmp_path, needs_approval=True)

    async def run() -> int:
        await talk.say("Extend R1")
        pauses = 0
        while talk.items() and (pauses := pauses + 1):
            for prompt in await talk.asked():
                await talk.guard.confirm(prompt, True)
            await talk.go_on()
        return pauses

    assert asyncio.run(run()) == 1
    assert talk.rentals.ran == ["extend R1"]


def test_so_it_is_in_a_streamed_run(tmp_path: Path) -> None:
    talk = Desk(tmp_path)

    async def stream(given: Any) -> Any:
        result = Runner.run_streamed(talk.protected, given, hooks=talk.guard)
        async for _ in result.stream_events():
            pass
        return result

    async def run() -> None:
        result = await stream("Extend R1")
        (item,) = result.interruptions
        (prompt,) = await talk.guard.asked(item)
        await talk.guard.confirm(prompt, True, by="button")
        state = result.to_state()
        state.approve(item)
        await stream(state)

    asyncio.run(run())
    assert talk.rentals.ran == ["extend R1"]
    check_card(talk.guard.session)


def test_the_lines_of_the_guide_run(tmp_path: Path) -> None:
    rentals, asked = Rentals(), Asking()
    with desk(tmp_path, log=tmp_path / "log.sqlite") as shield:
        names = {
            "agent": Agent(
                name="desk",
                model=Scripted(persistent),
                tools=[*map(function_tool, [rentals.get_rental, rentals.extend_rental])],
            ),
            "shield": shield,
            **asked.names(),
        }
        told = asyncio.run(run_section("OpenAI Agents SDK", names, "reference/pauses.md"))
    assert "extended" in told["result"].final_output
    assert asked.whom == ["user", "person"]
    assert rentals.ran == ["extend R1"]
