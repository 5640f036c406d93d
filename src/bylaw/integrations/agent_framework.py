"""The shield as middleware of Microsoft's Agent Framework. Extra `agent-framework`.

    agent = Agent(client=client, tools=[...], middleware=ShieldMiddleware("pack").all)

`all` contains three middlewares that work together: one follows runs, one follows model requests, and one decides each
function call before it runs. The framework's sessions are the conversations. A run without a session is a separate
conversation. An agent that a function of another agent runs is an inner agent, with or without the middleware. Its
calls are decided in the outer conversation.
"""
# pyright: basic, reportMissingImports=false

import asyncio
from collections.abc import Mapping, Sequence, Set
from contextlib import nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any

from agent_framework import (
    AgentMiddleware,
    AgentMiddlewareLayer,
    ChatMiddleware,
    Content,
    FunctionInvocationLayer,
    FunctionMiddleware,
    HistoryProvider,
    InMemoryHistoryProvider,
)
from msgspec import Struct, to_builtins

from bylaw.integrations.follower import Follower, undecided
from bylaw.integrations.guard import Adapter, Execution, Guard, Paused, Prompt, carried, decide, joined, once, watch
from bylaw.integrations.history import Answered, Asked, By, Part, Piece, Summary, Turn, as_text, parts_of
from bylaw.shield import Decision
from bylaw.shield.shield import shield_of
from bylaw.trace.event import with_note


class _Running(Struct, frozen=True, eq=False):
    follower: Follower
    histories: frozenset[str] = frozenset()
    """The names of the history providers that store messages from the agent."""


_RUN: ContextVar[_Running | None] = ContextVar("run", default=None)
_UNSEEN = frozenset(
    (
        *("text_reasoning", "usage", "function_approval_request", "hosted_vector_store"),
        *("code_interpreter_tool_result", "mcp_server_tool_result", "search_tool_result", "shell_tool_result"),
        *("shell_command_output",),
    )
)
"""Content types that the user does not see."""
PROMPT = "bylaw"
"""The key of the prompt in an approval request, and of the answer in the response."""
UNHEARD = "the shield does not know the conversation: install all of the shield's middleware"


class ShieldMiddleware(Adapter):
    """Shields an agent. Put `all` last in the agent's list of middleware.

    With `pauses`, a call that needs the user's confirmation or a reviewer's approval becomes an approval request. Its
    additional properties contain a `Prompt` under `bylaw`. The response contains the answer under the same key: `{"id":
    prompt["id"], "confirm": True}` for the user, or `{"id": prompt["id"], "approve": True, "by": "ann"}` for a
    reviewer. With `instruct`, the shield's instructions are added to the agent's instructions.
    """

    @property
    def all(self) -> list[Any]:
        return [_Run(self._guard), _Model(self._guard, self.instructions), _Tool(self._guard, pauses=self._pauses)]


class _Run(AgentMiddleware):
    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def _conversation(self, session: Any) -> tuple[Follower, str]:
        key, agent = session.session_id if session is not None else "", self._guard.agent
        return self._guard.outer(key, session, agent) if agent else (self._guard.followers.get(key, session), "")

    async def process(self, context: Any, call_next: Any) -> None:
        if carried() is not None:
            await call_next()
            return
        follower, _ = await asyncio.to_thread(self._conversation, context.session)
        providers = getattr(context.agent, "context_providers", None) or ()
        names = {each.source_id for each in providers if isinstance(each, HistoryProvider)}
        _RUN.set(_Running(follower, frozenset({*names, InMemoryHistoryProvider.DEFAULT_SOURCE_ID})))
        await call_next()
        if context.stream:
            context.stream_cleanup_hooks.append(partial(asyncio.to_thread, follower.end))
        else:
            await asyncio.to_thread(follower.end)


class _Model(ChatMiddleware):
    """Follows each model request and its answer. All calls in one answer are decided together."""

    def __init__(self, guard: Guard, instructions: str = "") -> None:
        self._guard = guard
        self._instructions = instructions

    async def process(self, context: Any, call_next: Any) -> None:
        running = _RUN.get()
        if self._instructions and not self._guard.agent:
            given = dict(context.options or {})
            context.options = {**given, "instructions": joined(given.get("instructions"), self._instructions)}
        if running is None:
            await call_next()
            return
        follower, histories = running.follower, running.histories
        before, agent = list(context.messages), self._guard.agent
        if not agent:
            await asyncio.to_thread(follower.follow, _parts(before, histories))

        async def hear(response: Any) -> Any:
            if agent:
                said = _parts(response.messages)
                calls = [call for part in said if isinstance(part, Turn) for call in part.calls]
                await asyncio.to_thread(follower.plan, calls, agent)
                return response
            await asyncio.to_thread(follower.follow, _parts([*before, *response.messages], histories))
            return response

        if context.stream:
            context.stream_result_hooks.append(hear)
        await call_next()
        if not context.stream and context.result is not None:
            await hear(context.result)


class _Tool(FunctionMiddleware):
    """Runs a function, or returns an answer in place of its result."""

    def __init__(self, guard: Guard, *, pauses: bool = False) -> None:
        self._guard = guard
        self._pauses = pauses

    async def process(self, context: Any, call_next: Any) -> None:
        outer, agent = carried(), self._guard.agent
        running = _RUN.get()
        follower = outer.follower if outer is not None else running.follower if running is not None else None
        id = str(context.metadata.get("call_id") or "")
        name, arguments = context.function.name, _plain(context.arguments)
        call, response = Asked(id, name, arguments), context.metadata.get("approval_response")
        try:
            decision = await asyncio.to_thread(self._decide, follower, call, agent, _answer(response))
        except Paused as paused:
            context.result = _request(context, paused.prompt, is_again=response is not None)
            return
        if not decision.allowed:
            context.result = decision.feedback
            return
        # The next messages show the failed call as the model sees it.
        is_known = follower is not None
        async with Execution(follower, call, decision, agent, reported=(Exception,)) if is_known else nullcontext():
            await call_next()
        if agent and follower is not None:
            await asyncio.to_thread(follower.answered, id, _text(context.result), agent=agent)
        if decision.feedback:
            context.result = with_note(_text(context.result), decision.feedback)

    def _decide(self, follower: Follower | None, call: Asked, agent: str, answer: Any) -> Decision:
        if follower is None:
            return undecided(self._guard.shield, call.tool, call.arguments, RuntimeError(UNHEARD))
        return decide(follower, call, once(answer) if self._pauses and not agent else None, agent=agent)


def _answer(response: Any) -> Any:
    """Return the answer in the response to an approval request. The prompt, which has the same key, is not an
    answer.
    """
    found = (response.additional_properties or {}).get(PROMPT) if response is not None else None
    return None if isinstance(found, Mapping) and "whom" in found else found


def _request(context: Any, prompt: Prompt, *, is_again: bool) -> Content:
    """Return a call that is waiting for an answer as an approval request for the framework."""
    id, occurrence = context.metadata["call_id"], context.metadata.get("function_call_occurrence_id")
    call = Content.from_function_call(id, context.function.name, arguments=prompt.arguments)
    call.id = occurrence
    marks: dict[str, Any] = {PROMPT: to_builtins(prompt)}
    name = occurrence or id
    if is_again:
        # When a call asks a second question, the framework treats its first question as answered.
        name, marks["_replacement_approval_request"] = f"{name}:{prompt.id}", True
    return Content.from_function_approval_request(name, call, additional_properties=marks)


def _watched_run(run: Any) -> Any:
    """Wrap a run method to shield every agent that a function call starts."""

    def watched(self: Any, *given: Any, **more: Any) -> Any:
        outer, own = carried(), [*(self.middleware or ()), *(more.get("middleware") or ())]
        if outer is not None and not any(isinstance(each, _Tool) for each in own):
            guard = ShieldMiddleware(shield_of(outer.follower.session))
            more["middleware"] = [*(more.get("middleware") or ()), *guard.all]
        return run(self, *given, **more)

    return watched


def _watched_pipeline(pipeline: Any) -> Any:
    def watched(self: Any, runtime_middleware: Any) -> Any:
        outer, given = carried(), list(runtime_middleware)
        if outer is not None and not any(isinstance(each, _Tool) for each in (*self.function_middleware, *given)):
            # A client may be called without an agent.
            given.append(_Tool(Guard(shield_of(outer.follower.session))))
        return pipeline(self, given)

    return watched


watch(AgentMiddlewareLayer, "run", _watched_run)
watch(FunctionInvocationLayer, "_get_function_middleware_pipeline", _watched_pipeline)


def _plain(arguments: Any) -> dict[str, Any]:
    return arguments.model_dump(mode="json") if hasattr(arguments, "model_dump") else dict(arguments)


def _text(result: Any) -> str:
    if isinstance(result, list):
        return "".join(str(getattr(each, "text", None) or "") for each in result)
    return as_text(result)


def _parts(messages: Sequence[Any], histories: Set[str] = frozenset()) -> list[Part]:
    parts: list[Part] = []
    for message in messages:
        if _is_nobodys(message, histories):
            parts.append(Summary())
            continue
        if message.role not in ("user", "assistant", "tool"):
            continue
        by: By = "agent" if message.role == "assistant" else "user"
        pieces = [_piece(each) for each in message.contents if by == "user" or not _is_unseen(each)]
        if message.author_name or message.role == "tool":
            # The text may come from another participant.
            pieces = [None if by == "user" and isinstance(each, str) else each for each in pieces]
        parts += parts_of(by, pieces, message.message_id or "", between="")
    return parts


def _piece(content: Any) -> Piece:
    match content.type:
        case "text":
            return content.text or ""
        case "function_call":
            return Asked(content.call_id or "", content.name or "", _asked(content.arguments))
        case "function_result":
            failed = content.exception is not None
            told = content.result or str(content.exception) if failed else content.result
            return Answered(content.call_id or "", told, True if failed else None)
        case _:
            return None


def _is_unseen(content: Any) -> bool:
    """Whether part of an agent's message, such as thoughts or the provider's own calls, is hidden from the user."""
    if content.type == "function_call":
        return bool(getattr(content, "hosted", None) or getattr(content, "informational_only", None))
    return content.type in _UNSEEN or content.type.endswith("_tool_call")


def _is_nobodys(message: Any, histories: Set[str]) -> bool:
    """Whether the framework itself wrote a message, such as a summary or a provider's context."""
    marks = message.additional_properties or {}
    group, source = marks.get("_group"), marks.get("_attribution")
    if any(
        str(name).startswith("_summary_of") for each in (marks, group) if isinstance(each, Mapping) for name in each
    ):
        return True
    if not isinstance(source, Mapping):
        return False
    return source.get("source_id") not in histories or bool(source.get("origin_session_ids"))


def _asked(arguments: Any) -> dict[str, Any] | str:
    return dict(arguments) if isinstance(arguments, Mapping) else arguments or "{}"
