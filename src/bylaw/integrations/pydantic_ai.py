"""The shield as a capability of Pydantic AI's agents. Extra `pydantic-ai`.

    agent = Agent(model, tools=[...], capabilities=[ShieldCapability("pack")])

The shield wraps each toolset directly, so that no hook can change an allowed call. The shield reads the history from
the run's own messages, so it also works after a restart and in another worker. Tools that the model's provider runs on
its own servers bypass the shield. An agent that a tool of another agent runs is an inner agent, with or without the
capability. Its calls are decided in the outer conversation.
"""
# pyright: basic, reportMissingImports=false

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from pydantic_ai import ApprovalRequired, CallDeferred, ModelRetry, ToolReturn
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.capabilities.abstract import CapabilityOrdering
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.toolsets import WrapperToolset
from pydantic_core import to_jsonable_python

from bylaw.integrations.follower import Follower
from bylaw.integrations.guard import Adapter, Context, Execution, Paused, begin, carried, end, once, watch
from bylaw.integrations.history import Answered, Asked, Part, Piece, as_text, parts_of
from bylaw.pack import Pack
from bylaw.shield import Decision, Shield
from bylaw.shield.shield import shield_of
from bylaw.trace.event import with_note

_UNSEEN = frozenset(("thinking", "compaction", "builtin-tool-call", "builtin-tool-return"))
"""Kinds of message parts that the user does not see."""
DEFERS = "bylaw defers"
"""The tool metadata key that says how allowed calls are deferred: `unapproved` or `external`."""


class ShieldCapability(Adapter, AbstractCapability):
    """Shields an agent's tools. `conversation_id` identifies the conversation.

    With `pauses`, a call that needs the user's confirmation or a reviewer's approval is deferred, and its metadata in
    `DeferredToolRequests` is a `Prompt`. Approve it with the answer as metadata: `{"id": prompt["id"], "confirm":
    True}` for the user, or `{"id": prompt["id"], "approve": True, "by": "ann"}` for a reviewer. With `instruct`, the
    shield's instructions are added to the agent's instructions.
    """

    def __init__(
        self,
        shield: Shield | Pack | str | Path,
        *,
        context: Context = None,
        pauses: bool = False,
        instruct: bool = False,
    ) -> None:
        super().__init__(shield, context=context, pauses=pauses, instruct=instruct)
        self.tools: set[str] = set()
        """The names of the shielded tools, without output tools."""

    def get_ordering(self) -> CapabilityOrdering:
        """Run this capability last, next to the tools."""
        return CapabilityOrdering(position="innermost")

    def get_instructions(self) -> Any:
        """Return the shield's instructions for runs that may ask the user."""
        return (lambda: self.instructions or None) if self._instructions else None

    def get_wrapper_toolset(self, toolset: Any) -> Any:
        """Wrap the tools so that each call is decided."""
        return _Shielded(toolset, self)

    async def after_run(self, ctx: Any, *, result: Any) -> Any:
        parts = _parts(result.all_messages(), self.tools)
        await asyncio.to_thread(self._guard.end, ctx.conversation_id or "", ctx, parts)
        return result

    async def wrap_output_process(self, ctx: Any, *, output_context: Any, output: Any, handler: Any) -> Any:
        """If an output function runs an agent, that agent is an inner agent."""
        if self._guard.agent:
            return await handler(output)
        follower = await asyncio.to_thread(self._guard.followers.get, ctx.conversation_id or "", ctx)
        if not ctx.partial_output:
            await asyncio.to_thread(follower.follow, _parts(list(ctx.messages), self.tools))
        token = begin("output", ctx.tool_call_id or "", follower)
        try:
            return await handler(output)
        finally:
            end(token)

    def decide(self, ctx: Any, tool: str, arguments: dict[str, Any]) -> tuple[Follower, str, Decision]:
        """Decide a call. Return the conversation, the inner agent and the decision."""
        messages, id = list(ctx.messages), ctx.tool_call_id or ""
        call = Asked(id, tool, _as_asked(messages, id, to_jsonable_python(arguments)))
        answer = ctx.tool_call_metadata if ctx.tool_call_approved else None
        put, parts = once(answer or None) if self._pauses else None, _parts(messages, self.tools)
        try:
            return self._guard.decide(ctx.conversation_id or "", ctx, parts, call, put)
        except Paused as paused:
            raise ApprovalRequired(metadata=to_builtins(paused.prompt)) from None


@dataclass
class _Shielded(WrapperToolset):
    shield: ShieldCapability

    async def get_tools(self, ctx: Any) -> Any:
        found = await super().get_tools(ctx)
        self.shield.tools.update(name for name, tool in found.items() if not _is_output(tool))
        # Decide deferred tools first, because the framework would skip this step.
        return {name: _decided_first(tool) if tool.tool_def.defer else tool for name, tool in found.items()}

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        if _is_output(tool):
            return await super().call_tool(name, tool_args, ctx, tool)
        follower, agent, decision = await asyncio.to_thread(self.shield.decide, ctx, name, tool_args)
        if not decision.allowed:
            return decision.feedback
        id = ctx.tool_call_id or ""
        defers = (tool.tool_def.metadata or {}).get(DEFERS)
        if defers == "external":
            # The messages will contain the result.
            raise CallDeferred
        if defers == "unapproved" and not ctx.tool_call_approved:
            await asyncio.to_thread(follower.interrupted, id, decision, agent=agent)
            raise ApprovalRequired
        # A call that was held back is repeated, and the next messages show a failed call as the model sees it.
        ends: Any = {"held": (ApprovalRequired, CallDeferred), "reported": (ModelRetry, ToolFailed)}
        async with Execution(follower, Asked(id, name, tool_args), decision, agent, **ends):
            result = await super().call_tool(name, tool_args, ctx, tool)
        shown = _shown(result.return_value if isinstance(result, ToolReturn) else result)
        await asyncio.to_thread(follower.answered, id, shown, agent=agent)
        if not decision.feedback or isinstance(result, ToolReturn):
            return result
        return with_note(as_text(shown), decision.feedback)


def _decided_first(tool: Any) -> Any:
    """Change a tool so that its calls are decided before the framework defers them."""
    given = tool.tool_def
    metadata = {**(given.metadata or {}), DEFERS: given.kind}
    return replace(tool, tool_def=replace(given, kind="function", metadata=metadata))


def _shielded(toolset: Any, shield: Shield) -> Any:
    """Wrap the tools of an agent that a shielded tool runs, no matter who created the agent."""
    within = toolset
    while within is not None:
        if isinstance(within, _Shielded):
            return toolset
        within = getattr(within, "wrapped", None)
    return _Shielded(toolset, ShieldCapability(shield))


def _watched(made: Any) -> Any:
    """Wrap `ToolManager`, which every run creates. The framework has no hook for agents inside tools."""

    def init(self: Any, *given: Any, **more: Any) -> None:
        made(self, *given, **more)
        if (outer := carried()) is not None:
            self.toolset = _shielded(self.toolset, shield_of(outer.follower.session))

    return init


watch(ToolManager, "__init__", _watched)


def _is_output(tool: Any) -> bool:
    return tool.tool_def.kind == "output"


def _as_asked(messages: Sequence[Any], id: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the model's own arguments if parsing only added defaults."""
    for message in reversed(messages):
        for part in message.parts if isinstance(message, ModelResponse) else ():
            if isinstance(part, ToolCallPart) and part.tool_call_id == id:
                asked = part.args_as_dict()
                return asked if asked.items() <= arguments.items() else arguments
    return arguments


def _shown(result: Any) -> Any:
    return result if isinstance(result, str) else to_jsonable_python(result, fallback=str)


def _parts(messages: Sequence[Any], tools: Collection[str]) -> list[Part]:
    parts: list[Part] = []
    ids: set[str] = set()
    for message in messages:
        if isinstance(message, ModelResponse):
            pieces = [piece for part in message.parts for piece in _pieces(part, tools)]
            ids.update(piece.id for piece in pieces if isinstance(piece, Asked))
            parts += parts_of("agent", pieces, message.timestamp.isoformat(), between="")
        elif isinstance(message, ModelRequest):
            parts += [told for part in message.parts for told in _told(part, ids)]
    return parts


def _pieces(part: Any, tools: Collection[str]) -> list[Piece]:
    """Return the pieces of a part as a list, or an empty list if the user does not see the part."""
    if isinstance(part, TextPart):
        return [part.content]
    if part.part_kind == "speech":
        return [part.content, None]
    if isinstance(part, ToolCallPart):
        return [Asked(part.tool_call_id, part.tool_name, _arguments(part))] if part.tool_name in tools else []
    return [] if part.part_kind in _UNSEEN else [None]


def _arguments(call: ToolCallPart) -> dict[str, Any] | str:
    try:
        return call.args_as_dict()
    except ValueError:
        return str(call.args)


def _told(part: Any, ids: Collection[str]) -> list[Part]:
    if isinstance(part, UserPromptPart):
        given = [part.content] if isinstance(part.content, str) else part.content
        read = [each for each in given if getattr(each, "kind", "") != "cache-point"]
        pieces = [each if isinstance(each, str) else None for each in read]
        return parts_of("user", pieces, part.timestamp.isoformat())
    if part.part_kind == "speech":
        return parts_of("user", [part.content, None])
    if getattr(part, "tool_call_id", None) not in ids:
        return []
    if part.part_kind == "retry-prompt":
        return [Answered(part.tool_call_id, part.model_response(), True)]
    if part.part_kind == "tool-return":
        has_failed = part.outcome in ("failed", "retried")
        return [Answered(part.tool_call_id, _shown(part.content), True if has_failed else None)]
    return []
