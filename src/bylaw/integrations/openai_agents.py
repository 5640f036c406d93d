"""The shield in the OpenAI Agents SDK (extra `openai-agents`): a guardrail on each function tool, history by run hooks.

    guard = ShieldHooks(shield.session("conv-17"))
    result = await Runner.run(guard.protect(agent), "Refund order 7", hooks=guard)

Tools that OpenAI runs on its own servers never come by here; see the guide.
"""
# pyright: basic, reportMissingImports=false

import asyncio
import dataclasses
from typing import Any

from agents import Agent, FunctionTool, RunHooks, ToolGuardrailFunctionOutput, ToolInputGuardrail, ToolOutputGuardrail
from agents.items import ItemHelpers

from bylaw.errors import UsageError
from bylaw.integrations.follower import Answered, Asked, Follower, Heard, Part, Turn
from bylaw.shield import Decision, Guarded
from bylaw.trace.event import with_note
from bylaw.trace.transcript import plain_text


class ShieldHooks(RunHooks):
    """One conversation. Give it as `hooks` to every run of it, with the agent that `protect` returns."""

    def __init__(self, session: Guarded) -> None:
        self.session = session
        self.follower = Follower(session)
        self._decided: dict[str, Decision] = {}

    def protect(self, agent: Agent) -> Agent:
        """The agent with the shield before its tools, and before those of the agents it hands over to."""
        return self._protect(agent, {})

    def _protect(self, agent: Agent, done: dict[int, Agent]) -> Agent:
        if id(agent) in done:
            return done[id(agent)]
        copy = done[id(agent)] = agent.clone(tools=[self._guarded(tool) for tool in agent.tools])
        copy.handoffs = [self._protect(each, done) if isinstance(each, Agent) else each for each in agent.handoffs]
        return copy

    def _guarded(self, tool: Any) -> Any:
        if not isinstance(tool, FunctionTool):
            return tool
        before = ToolInputGuardrail(guardrail_function=self._before, name="bylaw")
        after = ToolOutputGuardrail(guardrail_function=self._after, name="bylaw")
        return dataclasses.replace(
            tool,
            # The last word before the tool, and the first after it.
            tool_input_guardrails=[*(tool.tool_input_guardrails or ()), before],
            tool_output_guardrails=[after, *(tool.tool_output_guardrails or ())],
        )

    async def _before(self, data: Any) -> ToolGuardrailFunctionOutput:
        call = data.context
        decide = self.follower.decide
        decision = await asyncio.to_thread(decide, call.tool_call_id, call.tool_name, call.tool_arguments)
        if not decision.allowed:
            return ToolGuardrailFunctionOutput.reject_content(decision.feedback, output_info=decision.id)
        self._decided[call.tool_call_id] = decision
        return ToolGuardrailFunctionOutput.allow(output_info=decision.id)

    async def _after(self, data: Any) -> ToolGuardrailFunctionOutput:
        """Advice goes below the answer."""
        decision = self._decided.get(data.context.tool_call_id)
        if decision is None or not decision.feedback:
            return ToolGuardrailFunctionOutput.allow()
        shown = with_note(_shown(data.output), decision.feedback)
        return ToolGuardrailFunctionOutput.reject_content(shown)

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
        """What the model is about to see is the history."""
        await asyncio.to_thread(self.follower.follow, _parts(input_items))
        self._seen = list(input_items)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """What the model asks for is decided as one turn."""
        items = [*self._seen, *response.to_input_items()]
        await asyncio.to_thread(self.follower.follow, _parts(items))

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        """The agent has done for now."""
        await asyncio.to_thread(self.follower.end)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """Nothing runs here that was not decided on."""
        if getattr(context, "tool_call_id", None) not in self._decided:
            name = getattr(tool, "name", type(tool).__name__)
            raise UsageError(
                f"tool `{name}` would run without a decision", hint="run the agent that `protect` returns, with it"
            )

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        """What the tool answered."""
        id = context.tool_call_id
        self._decided.pop(id, None)
        await asyncio.to_thread(self.follower.answered, id, _shown(result))


def _shown(result: Any) -> str:
    """A result as the SDK shows it to the model."""
    if isinstance(result, str):
        return result
    item: Any = ItemHelpers.tool_call_output_item(_NO_CALL, result)
    output = item["output"]
    return output if isinstance(output, str) else plain_text(output)


class _Call:
    call_id = ""


_NO_CALL: Any = _Call()


def _parts(items: Any) -> list[Part]:
    """Items of the Responses API as the SDK keeps them: a message and the calls after it are one turn."""
    parts: list[Part] = []
    text, calls = "", []

    def end_turn() -> None:
        nonlocal text, calls
        if text or calls:
            parts.append(Turn(text, tuple(calls)))
        text, calls = "", []

    for given in items:
        item = given if isinstance(given, dict) else given.model_dump(exclude_unset=True)
        kind = item.get("type", "message")
        if kind == "function_call":
            calls.append(Asked(item["call_id"], item["name"], item["arguments"]))
        elif kind == "function_call_output":
            end_turn()
            output = item["output"]
            parts.append(Answered(item["call_id"], output if isinstance(output, str) else plain_text(output)))
        elif kind == "message" and item.get("role") == "assistant":
            if calls:
                end_turn()
            end_turn()
            text = plain_text(item.get("content"))
        elif kind == "message" and item.get("role") == "user":
            end_turn()
            parts.append(Heard(plain_text(item.get("content"))))
    end_turn()
    return parts
