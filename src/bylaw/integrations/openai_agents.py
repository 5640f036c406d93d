"""The shield in the OpenAI Agents SDK (extra `openai-agents`): a guardrail on each function tool, history by run hooks.

    guard = ShieldHooks(shield.session("conv-17"))
    result = await Runner.run(guard.protect(agent), "Refund order 7", hooks=guard)

Protecting an agent also protects every agent that it hands over to or uses as a tool, or that its tools run. An inner
agent's calls are decided in the same conversation. Tools that OpenAI runs on its own servers bypass the shield; see the
guide.
"""
# pyright: basic, reportMissingImports=false

import asyncio
import copy
import dataclasses
import inspect
import threading
import uuid
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from agents import Agent, FunctionTool, RunHooks, ToolGuardrailFunctionOutput, ToolInputGuardrail, ToolOutputGuardrail
from agents.items import ItemHelpers
from agents.models.fake_id import FAKE_RESPONSES_ID
from agents.run import AgentRunner

from bylaw.errors import UsageError
from bylaw.integrations.follower import Answers, Follower
from bylaw.integrations.guard import (
    Followers,
    Prompt,
    Vouched,
    approve,
    begin,
    carried,
    confirm,
    inner_agent,
    is_begun,
    is_declined,
    joined,
    prompts,
    watch,
)
from bylaw.integrations.history import Answered, Asked, Heard, Part, Summary, Turn
from bylaw.shield import Decision, LiveSession
from bylaw.shield.shield import shield_of
from bylaw.trace.event import with_note
from bylaw.trace.readers.parts import heard, is_all_words
from bylaw.trace.recorded_value import plain_text
from bylaw.trace.transcript import is_users

HANDED_OVER = "For context, here is the conversation so far"
"""How the SDK's text that replaces the history after a handover begins. An agent may write such a text too."""
HOSTED = frozenset(
    ("WebSearchTool", "FileSearchTool", "CodeInterpreterTool", "HostedMCPTool", "ImageGenerationTool", "ToolSearchTool")
)


class ShieldHooks(RunHooks):
    """Shields one conversation. Pass it as `hooks` to every run, with the agent that `protect` returns.

    With `pauses`, a call that needs the user's confirmation or a reviewer's approval interrupts the run. `asked`
    returns the prompts, and `confirm` and `approve` accept the answers. Then continue the run with
    `state.approve(item)`. `context` is a function that takes the `context` of `Runner.run` and returns the shield's
    context, which names the user. With `instruct`, `protect` adds the shield's instructions to the agent's
    instructions.
    """

    def __init__(
        self,
        session: LiveSession,
        *,
        context: Callable[[Any], Vouched] | None = None,
        pauses: bool = False,
        instruct: bool = False,
        follower: Follower | None = None,
    ) -> None:
        self.session = session
        self._instructions = shield_of(session).instructions() if instruct else ""
        self._followers = Followers(shield_of(session), context) if context is not None else None
        self._name = session.id or uuid.uuid4().hex
        self._pauses = pauses
        self._follower = follower
        self._agent = ""
        """The inner agent that these hooks serve."""
        self._main: ShieldHooks | None = None
        self._answers: Answers = "all" if session.is_named else "heard"
        self._making = threading.Lock()
        self._decided: dict[tuple[str, str], Decision] = {}
        """Decisions on allowed calls, by inner agent and call id."""
        self._protected: dict[int, tuple[Any, ...]] = {}
        """The protected copy of each agent, with the parts from which it was made, by the agent's identity."""
        self._ours: set[int] = set()
        self._held: set[str] = set()
        """Tools whose calls the SDK may hold back for approval."""

    def inner(self, agent: str) -> "ShieldHooks":
        """Return hooks for an inner agent in the same conversation. Its messages come from your code or from another
        agent.

        An agent that a tool runs in its own task does not need these hooks, because the shield detects it. Give each
        inner agent a name.
        """
        other = ShieldHooks(self.session)
        other._agent, other._main = agent, self
        return other

    def _inner(self, id: str = "") -> str:
        """Return the name of the inner agent that runs in this task or requested a call. Empty for the main agent."""
        return self._agent or inner_agent(id)

    @property
    def follower(self) -> Follower:
        """The current speaker's conversation. Reads the log on first use."""
        if self._main is not None:
            return self._main.follower
        if self._follower is None:
            with self._making:
                self._follower = self._follower or Follower(self.session, answers=self._answers)
        return self._follower

    def _hear(self, run: Any) -> None:
        if self._followers is not None and not self._inner():
            self._follower = self._followers.get(self._name, run.context)
            self.session = self._follower.session
        else:
            _ = self.follower

    def protect(self, agent: Agent) -> Agent:
        """Return the agent with shielded tools, including the tools of every agent that it hands over to or uses."""
        if id(agent) in self._ours:
            return agent
        made_of = (agent, list(agent.tools), list(agent.handoffs), list(agent.mcp_servers))
        protected, *before = self._protected.get(id(agent), (None,))
        if protected is not None and tuple(before) == made_of:
            return protected
        protected = agent.clone(tools=[], instructions=self._instructed(agent.instructions))
        self._protected[id(agent)] = (protected, *made_of)
        self._ours.add(id(protected))
        protected.tools = [self._guarded(tool, agent) for tool in agent.tools]
        protected.handoffs = [self._handoff(each) for each in agent.handoffs]
        if agent.mcp_servers:
            find = protected.get_mcp_tools

            async def get_mcp_tools(context: Any) -> list[Any]:
                return [self._guarded(tool, agent) for tool in await find(context)]

            protected.get_mcp_tools = get_mcp_tools
        return protected

    def _instructed(self, given: Any) -> Any:
        """Add the shield's instructions to an agent's own instructions. An inner agent gets none, because it cannot ask
        the user.
        """
        told = self._instructions
        if not told or self._inner():
            return given
        if not callable(given):
            return joined(given, told)

        async def instructions(context: Any, agent: Any) -> str:
            own = given(context, agent)
            text: Any = await own if inspect.isawaitable(own) else own
            return joined(text, told)

        return instructions

    def _handoff(self, given: Any) -> Any:
        if isinstance(given, Agent):
            return self.protect(given)
        invoke = given.on_invoke_handoff

        async def on_invoke_handoff(context: Any, arguments: Any = None) -> Any:
            return self.protect(await invoke(context, arguments))

        handoff = copy.copy(given)
        handoff.on_invoke_handoff = on_invoke_handoff
        target = given._agent_ref() if given._agent_ref is not None else None
        if isinstance(target, Agent):
            handoff._agent_ref = weakref.ref(self.protect(target))
        return handoff

    def _guarded(self, tool: Any, agent: Agent) -> Any:
        if not isinstance(tool, FunctionTool):
            if type(tool).__name__ in HOSTED:
                return tool
            what = f"tool `{getattr(tool, 'name', type(tool).__name__)}` of agent `{agent.name}`"
            hint = "make it a function tool"
            raise UsageError(f"the shield cannot check {what}, because it is a `{type(tool).__name__}`", hint=hint)
        before = ToolInputGuardrail(guardrail_function=self._before, name="bylaw")
        after = ToolOutputGuardrail(guardrail_function=self._after, name="bylaw")
        return dataclasses.replace(
            tool,
            needs_approval=self._approval(tool.name, tool.needs_approval),
            # The shield's guardrails run last before the tool and first after the tool.
            tool_input_guardrails=[*(tool.tool_input_guardrails or ()), before],
            tool_output_guardrails=[after, *(tool.tool_output_guardrails or ())],
        )

    def _approval(self, tool: str, needed: Any) -> Any:
        """Require the tool's own approval only if a call can run or is waiting for an answer. The call then
        continues.
        """
        declared = self.session.pack.schema.tools.get(tool)
        # If a tool's approval is a function, the SDK holds back every call whose arguments it converts.
        if needed is False and (not self._pauses or (declared is not None and declared.effect == "read")):
            return False
        self._held.add(tool)

        async def needs_approval(context: Any, arguments: Any, id: str) -> bool:
            agent = self._inner()
            decision = await asyncio.to_thread(lambda: self.follower.planned(id, agent=agent))
            if decision is not None and not decision.allowed:
                return self._pauses and not agent and await asyncio.to_thread(self._pause, id, decision)
            answer = needed if isinstance(needed, bool) else needed(context, arguments, id)
            is_needed = await answer if inspect.isawaitable(answer) else answer
            if is_needed and decision is not None:
                await asyncio.to_thread(self.follower.interrupted, id, decision, agent=agent)
            return is_needed

        return needs_approval

    def _pause(self, id: str, decision: Decision) -> bool:
        if not prompts(decision) or is_declined(self.session, decision):
            return False
        self.follower.pause(id)
        return True

    async def asked(self, item: Any) -> list[Prompt]:
        """Return the prompts of an interrupted run. The list is empty if only the tool's own `needs_approval` asked."""
        call = item.raw_item
        return await asyncio.to_thread(self._asked, call.call_id, item.tool_name, call.arguments)

    def _asked(self, id: str, tool: str, arguments: str) -> list[Prompt]:
        planned = self.follower.planned(id)
        if planned is not None and not planned.allowed:
            # The SDK holds back a call without asking the shield if it would convert the arguments, such as 60 for a
            # float.
            self._pause(id, planned)
        waiting = self.follower.asked(id, tool, arguments)
        return prompts(waiting) if waiting is not None else []

    async def confirm(self, prompt: Prompt, yes: bool, *, by: str = "") -> None:
        """Report the user's answer to a card. `by` says how the user answered, such as with a button."""
        await asyncio.to_thread(confirm, self.session, prompt, yes, by=by)

    async def approve(self, prompt: Prompt, yes: bool, *, by: str, note: str = "") -> None:
        """Report a reviewer's answer. `by` is the reviewer's name. The answer does not count as the user's
        confirmation.
        """
        await asyncio.to_thread(approve, self.session, prompt, yes, by=by, note=note)

    async def _before(self, data: Any) -> ToolGuardrailFunctionOutput:
        call, agent = data.context, self._inner()
        await asyncio.to_thread(self._hear, call)
        decide = self.follower.decide
        decision = await asyncio.to_thread(decide, call.tool_call_id, call.tool_name, call.tool_arguments, agent=agent)
        if not decision.allowed:
            return ToolGuardrailFunctionOutput.reject_content(decision.feedback, output_info=decision.id)
        self._decided[agent, call.tool_call_id] = decision
        begin(call.tool_name, call.tool_call_id, self.follower)
        if (task := asyncio.current_task()) is not None:
            # The SDK has no hook for a tool that raises an error.
            done = partial(self.follower.finish, call.tool_call_id, agent=agent)
            task.add_done_callback(lambda _: done())
        return ToolGuardrailFunctionOutput.allow(output_info=decision.id)

    async def _after(self, data: Any) -> ToolGuardrailFunctionOutput:
        id = data.context.tool_call_id
        decision = self._decided.get((self._inner(id), id))
        if decision is None or not decision.feedback:
            return ToolGuardrailFunctionOutput.allow()
        shown = with_note(_shown(data.output), decision.feedback)
        return ToolGuardrailFunctionOutput.reject_content(shown)

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
        """Report the model's input, which is the history. Ignore an inner agent's input, because the outer agent wrote
        it.
        """
        if self._inner():
            return
        await asyncio.to_thread(self._hear, context)
        await asyncio.to_thread(self.follower.follow, _parts(input_items))
        self._seen = list(input_items)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """Decide the model's calls as one turn."""
        if name := self._inner():
            calls = [
                call for part in _parts(response.to_input_items()) if isinstance(part, Turn) for call in part.calls
            ]
            if calls:
                await asyncio.to_thread(self.follower.plan, calls, name)
            return
        items = [*self._seen, *response.to_input_items()]
        await asyncio.to_thread(self.follower.follow, _parts(items))
        held = [item.call_id for item in response.output if getattr(item, "name", "") in self._held]
        if held:
            await asyncio.to_thread(self._note_held, held)

    def _note_held(self, ids: Sequence[str]) -> None:
        """Record the calls that the SDK holds back.

        The SDK holds back a call without asking if it would convert the arguments, such as 60 for a float. Another
        worker continues such a call only if the log says that the call was interrupted.
        """
        for id in ids:
            decision = self.follower.planned(id)
            if decision is not None and decision.allowed:
                self.follower.interrupted(id, decision)

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        if not self._inner():
            await asyncio.to_thread(self.follower.end)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """Stop a tool that has no decision."""
        id = getattr(context, "tool_call_id", "")
        if (self._inner(id), id) not in self._decided or not is_begun(id):
            name = getattr(tool, "name", type(tool).__name__)
            hint = "run the agent that `protect` returns"
            raise UsageError(f"tool `{name}` would run without a decision", hint=hint)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        id = context.tool_call_id
        inner = self._inner(id)
        self._decided.pop((inner, id), None)
        await asyncio.to_thread(self.follower.answered, id, _shown(result), agent=inner)


def _shown(result: Any) -> str:
    if isinstance(result, str):
        return result
    item: Any = ItemHelpers.tool_call_output_item(SimpleNamespace(call_id=""), result)
    output = item["output"]
    return output if isinstance(output, str) else plain_text(output)


def _parts(items: Any) -> list[Part]:
    """Convert items from the Responses API. A message and the calls after it form one turn."""
    parts: list[Part] = []
    text: str | None = None
    key, calls, whole = "", [], True

    def end_turn() -> None:
        nonlocal text, key, calls, whole
        if text is not None or calls or not whole:
            parts.append(Turn(text or "", tuple(calls), key, whole))
        text, key, calls, whole = None, "", [], True

    for place, given in enumerate(items):
        item = given if isinstance(given, dict) else given.model_dump(exclude_unset=True)
        kind = item.get("type", "message")
        if kind == "function_call":
            calls.append(Asked(item["call_id"], item["name"], item["arguments"]))
        elif kind == "function_call_output":
            end_turn()
            output = item["output"]
            parts.append(Answered(item["call_id"], output if isinstance(output, str) else plain_text(output)))
        elif kind == "message" and item.get("role") == "assistant":
            if text is not None or calls:
                end_turn()
            said = plain_text(item.get("content"))
            if place == 0 and not item.get("id") and said.startswith(HANDED_OVER):
                parts.append(Summary())
            else:
                text, key, whole = said, _key(item), whole and is_all_words(item.get("content"))
        elif kind == "message" and item.get("role") == "user":
            end_turn()
            words, is_all = heard(item.get("content"))
            is_theirs = is_users(item.get("name") or item.get("agent"), item.get("tool_call_id"))
            parts.append(Heard(words if is_theirs else "", _key(item), is_all and is_theirs))
        elif kind.startswith("compaction"):
            end_turn()
            parts.append(Summary())
        elif not is_all_words(item):
            # The model's provider created a picture.
            whole = False
    end_turn()
    return parts


def _key(item: dict[str, Any]) -> str:
    id = str(item.get("id") or "")
    return "" if id == FAKE_RESPONSES_ID else id


def _both(ours: RunHooks, theirs: RunHooks | None) -> RunHooks:
    return ours if theirs is None else _Both(ours, theirs)


class _Both(RunHooks):
    def __init__(self, *hooks: RunHooks) -> None:
        self._hooks = hooks


def _in_turn(name: str) -> Callable[..., Any]:
    async def hook(self: _Both, *given: Any) -> None:
        for each in self._hooks:
            await getattr(each, name)(*given)

    return hook


for _name in ("llm_start", "llm_end", "agent_start", "agent_end", "handoff", "tool_start", "tool_end"):
    setattr(_Both, f"on_{_name}", _in_turn(f"on_{_name}"))


def _watched(run: Any) -> Any:
    """Wrap a run that starts inside a call, so that the shield's hooks decide its calls."""

    def begun(self: Any, starting_agent: Any, input: Any, **options: Any) -> Any:
        outer, hooks = carried(), options.get("hooks")
        if outer is not None and not any(isinstance(each, ShieldHooks) for each in getattr(hooks, "_hooks", (hooks,))):
            guard = ShieldHooks(outer.follower.session, follower=outer.follower)
            starting_agent = guard.protect(starting_agent)
            options["hooks"] = _both(guard, hooks)
        return run(self, starting_agent, input, **options)

    return begun


for _name in ("run", "run_streamed"):
    watch(AgentRunner, _name, _watched)
