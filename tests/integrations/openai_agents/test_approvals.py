"""The SDK's own approvals: one prompt for one write, and the call goes on after it, here and in another worker."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, RunState, function_tool, set_tracing_disabled

from bylaw.integrations.openai_agents import ShieldHooks
from bylaw.shield import Shield
from tests.integrations.openai_agents.desk import Scripted, text_of
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, Rentals, desk, desk_with_numbers

set_tracing_disabled(True)


def hasty(items: list[Any]) -> Any:
    """Makes the call as soon as there is a yes, looks where it is told to, and makes it again."""
    last = items[-1]
    if last.get("type") != "function_call_output":
        return [("extend_rental", EXTEND)] if text_of(last) == "Yes." else PUT_EXTEND
    if "Look up: get_rental" in last["output"]:
        return [("get_rental", {"rental_id": "R1"})]
    if "customer_id" in last["output"]:
        return [("extend_rental", EXTEND)]
    return f"End: {last['output']}"


async def run_approved(shield: Shield, agent: Agent, first: str, *, elsewhere: bool) -> tuple[int, Any]:
    """What the user asks for and says yes to, each interruption approved, here or in another worker; how many there
    were, and what the agent said in the end."""

    def worker() -> tuple[ShieldHooks, Agent]:
        guard = ShieldHooks(shield.session("c1", context=CUSTOMER))
        return guard, guard.protect(agent)

    guard, protected = worker()
    result = await Runner.run(protected, first, hooks=guard)
    items: Any = [*result.to_input_list(), {"role": "user", "content": "Yes."}]
    result = await Runner.run(protected, items, hooks=guard)
    prompts = 0
    while result.interruptions and prompts < 5:
        prompts += 1
        state: Any = result.to_state()
        if elsewhere:
            guard, protected = worker()
            state = await RunState.from_json(protected, state.to_json())
        for each in state.get_interruptions():
            state.approve(each)
        result = await Runner.run(protected, state, hooks=guard)
    return prompts, result.final_output


@pytest.mark.parametrize("kind", [True, "function"])
@pytest.mark.parametrize("where", ["here", "here, with a log", "elsewhere, with a log"])
def test_a_person_is_asked_once_and_the_call_goes_on(tmp_path: Path, where: str, kind: Any) -> None:
    async def needed(context: Any, arguments: Any, id: str) -> bool:
        return True

    rentals = Rentals()
    shield = desk(tmp_path, log=tmp_path / "log.sqlite" if "log" in where else None)
    approved = function_tool(rentals.extend_rental, needs_approval=True if kind is True else needed)
    agent = Agent(name="desk", model=Scripted(hasty), tools=[function_tool(rentals.get_rental), approved])
    prompts, said = asyncio.run(run_approved(shield, agent, "Extend R1", elsewhere="elsewhere" in where))
    assert "extended" in said
    assert prompts == 1
    assert rentals.ran == ["extend R1"]


@pytest.mark.parametrize("amount", [20, 20.0, "20"])
@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_a_number_that_the_sdk_changes_is_the_same_call_when_it_goes_on(
    tmp_path: Path, where: str, amount: Any
) -> None:
    def play(items: list[Any]) -> Any:
        last = items[-1]
        if last.get("type") == "function_call_output":
            looked = "customer_id" in last["output"]
            return "Shall I refund 20 for rental R1?" if looked else f"End: {last['output']}"
        said = text_of(last)
        refund = [("refund", {"rental_id": "R1", "amount": amount})]
        return refund if said == "Yes." else [("get_rental", {"rental_id": "R1"})]

    paid: list[float] = []

    def refund(rental_id: str, amount: float) -> str:
        paid.append(amount)
        return "refunded"

    shield = desk_with_numbers(tmp_path, log=tmp_path / "log.sqlite")
    tools = [function_tool(Rentals().get_rental), function_tool(refund, needs_approval=True)]
    agent = Agent(name="desk", model=Scripted(play), tools=tools)
    said = "The car broke down. Refund 20 for R1."
    prompts, said = asyncio.run(run_approved(shield, agent, said, elsewhere=where == "elsewhere"))
    assert (paid, prompts) == ([20.0], 1), said


def test_a_call_that_a_person_rejects_does_not_run(tmp_path: Path) -> None:
    rentals = Rentals()
    guard = ShieldHooks(desk(tmp_path).session("c1", context=CUSTOMER))
    approved = function_tool(rentals.extend_rental, needs_approval=True)
    tools = [function_tool(rentals.get_rental), approved]
    protected = guard.protect(Agent(name="desk", model=Scripted(hasty), tools=tools))

    async def talk() -> Any:
        result = await Runner.run(protected, "Extend R1", hooks=guard)
        items: Any = [*result.to_input_list(), {"role": "user", "content": "Yes."}]
        result = await Runner.run(protected, items, hooks=guard)
        state = result.to_state()
        for each in result.interruptions:
            state.reject(each)
        return await Runner.run(protected, state, hooks=guard)

    asyncio.run(talk())
    assert rentals.ran == []


@pytest.mark.parametrize("workers", [1, 2])
def test_one_yes_in_two_runs_at_once_is_one_write(tmp_path: Path, workers: int) -> None:
    rentals = Rentals()
    shield = desk(tmp_path, log=tmp_path / "log.sqlite")
    tools = [function_tool(rentals.get_rental), function_tool(rentals.extend_rental)]
    agent = Agent(name="desk", model=Scripted(hasty), tools=tools)
    guards = [ShieldHooks(shield.session("c1", context=CUSTOMER)) for _ in range(workers)]

    async def talk() -> list[Any]:
        first = guards[0]
        result = await Runner.run(first.protect(agent), "Extend R1", hooks=first)
        items: Any = [*result.to_input_list(), {"role": "user", "content": "Yes."}]
        both = [guards[0], guards[-1]]
        done = await asyncio.gather(*(Runner.run(each.protect(agent), items, hooks=each) for each in both))
        return [each.final_output for each in done]

    said = asyncio.run(talk())
    assert rentals.ran == ["extend R1"]
    assert sum("extended" in each for each in said) == 1
    assert sum("the user's yes was already used for an earlier call" in each for each in said) == 1
