"""The shield as a middleware of LangChain's agents, and so of LangGraph. Extra `langchain`.

The history is the agent's own state, so nothing has to be kept: after a restart, or in another worker, the shield knows
what the messages show.
"""
# pyright: basic, reportMissingImports=false

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from bylaw.engine.pack import Pack
from bylaw.integrations.follower import Answered, Asked, Follower, Heard, Part, Turn
from bylaw.integrations.followers import Followers
from bylaw.shield import Decision, Shield
from bylaw.trace.event import with_note
from bylaw.trace.transcript import plain_text, read_content


class ShieldMiddleware(AgentMiddleware):
    """`create_agent(model, tools, middleware=[ShieldMiddleware("pack")])`.

    Put it last in the list, next to the tools: what stands after it may still change a call that it has allowed.
    """

    def __init__(self, shield: Shield | Pack | str | Path, *, context: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.shield = shield if isinstance(shield, Shield) else Shield(shield)
        self._followers = Followers(self.shield, context)

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Let the call through, or answer in the tool's place."""
        follower, decision = self._decide(request)
        if not decision.allowed:
            return _told(request, decision)
        try:
            result = handler(request)
        except BaseException as error:
            self._failed(follower, request, error)
            raise
        return self._kept(follower, request, decision, result)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        """The same, for `ainvoke` and `astream`."""
        follower, decision = self._decide(request)
        if not decision.allowed:
            return _told(request, decision)
        try:
            result = await handler(request)
        except BaseException as error:
            self._failed(follower, request, error)
            raise
        return self._kept(follower, request, decision, result)

    def after_agent(self, state: Any, runtime: Any) -> None:
        """What the agent said in the end belongs to the conversation too."""
        messages = _messages(state)
        follower = self._followers.get(_thread(runtime), messages, _first)
        follower.follow(_parts(messages))
        follower.end()

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """The same, for `ainvoke` and `astream`."""
        self.after_agent(state, runtime)

    def follower(self, thread: str) -> Follower | None:
        """What the shield knows of a thread."""
        return self._followers.known(thread)

    def _decide(self, request: Any) -> tuple[Follower, Decision]:
        messages = _messages(request.state)
        follower = self._followers.get(_thread(request.runtime), messages, _first)
        follower.follow(_parts(messages))
        call = request.tool_call
        return follower, follower.decide(call["id"] or "", call["name"], call["args"])

    def _failed(self, follower: Follower, request: Any, error: BaseException) -> None:
        if not isinstance(error, GraphBubbleUp):
            # It may have been carried out or not. (A graph that is interrupted comes back to the call.)
            follower.answered(request.tool_call["id"] or "", "", captured=False)

    def _kept(self, follower: Follower, request: Any, decision: Decision, result: Any) -> Any:
        id = request.tool_call["id"] or ""
        message = _message_of(result, id)
        if message is None:
            follower.answered(id, "", captured=False)
            return result
        error = True if message.status == "error" else None
        follower.answered(id, read_content(message.content), error=error)
        if decision.feedback and isinstance(message.content, str):
            message.content = with_note(message.content, decision.feedback)
        return result


def _told(request: Any, decision: Decision) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(decision.feedback, tool_call_id=call["id"], name=call["name"], status="error")


def _message_of(result: Any, id: str) -> ToolMessage | None:
    """The message that the agent will see as the call's result."""
    if isinstance(result, ToolMessage):
        return result
    update = result.update if isinstance(result, Command) else None
    found = update.get("messages", ()) if isinstance(update, dict) else ()
    return next((each for each in found if isinstance(each, ToolMessage) and each.tool_call_id == id), None)


def _messages(state: Any) -> list[Any]:
    found = state.get("messages", ()) if isinstance(state, Mapping) else getattr(state, "messages", state)
    return list(found or ())


def _thread(runtime: Any) -> str:
    """The thread that a checkpointer keeps; without one, nothing."""
    config = getattr(runtime, "config", None)
    if config is None:
        info = getattr(runtime, "execution_info", None)
        return str(getattr(info, "thread_id", None) or "")
    return str((config.get("configurable") or {}).get("thread_id") or "")


def _first(messages: list[Any]) -> str:
    """Messages of a state have ids of their own, so the first names the conversation where no thread does."""
    return str(getattr(messages[0], "id", None) or "") if messages else ""


def _parts(messages: list[Any]) -> list[Part]:
    parts: list[Part] = []
    for message in messages:
        match message:
            case HumanMessage():
                parts.append(Heard(plain_text(message.content)))
            case AIMessage():
                calls = tuple(Asked(call["id"] or "", call["name"], dict(call["args"])) for call in message.tool_calls)
                parts.append(Turn(plain_text(message.content), calls))
            case ToolMessage():
                error = True if message.status == "error" else None
                parts.append(Answered(message.tool_call_id, read_content(message.content), error))
    return parts
