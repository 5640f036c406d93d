"""The shield as middleware for LangChain agents, and so also for LangGraph. Extra `langchain`.

The shield reads the history from the agent's own state, so it also works after a restart and in another worker. An
agent inside another agent's tool is an inner agent. Its calls are decided in the outer conversation.
"""
# pyright: basic, reportMissingImports=false

import asyncio
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.callbacks.manager import BaseCallbackManager
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.types import Command, Overwrite, interrupt
from msgspec import to_builtins

from bylaw.errors import UsageError
from bylaw.integrations.follower import Follower, log
from bylaw.integrations.guard import MOST, Adapter, Context, Execution, Prompt, carried, joined
from bylaw.integrations.history import Answered, Asked, Heard, Part, Summary, Turn, as_text
from bylaw.pack import Pack
from bylaw.shield import Decision, Shield
from bylaw.trace.event import Result, with_note
from bylaw.trace.readers.parts import heard, is_all_words
from bylaw.trace.recorded_value import plain_text, read_content
from bylaw.trace.transcript import is_users

AGAIN = 2
"""How many other workers may show a prompt again before the agent gets a message instead. Used only without a log."""
ELSEWHERE = (
    "the answer to a card went to a different `ShieldMiddleware` from the one that showed the card, and neither has a "
    "log: use a single `ShieldMiddleware` for all requests, or give the shield of each one a `log`"
)
SOURCE = "lc_source"
"""The key that names the middleware that wrote a user message."""
DISTINCT = 20
"""The minimum length of a globally unique message id. A UUID has 32 characters."""
TOOL = "bylaw: a tool"
"""Marks a message that a tool added to the history. Such a message may repeat the user's text or quote an e-mail."""


class ShieldMiddleware(Adapter, AgentMiddleware):
    """Shields an agent: `create_agent(model, tools, middleware=[ShieldMiddleware("pack")])`.

    Put it last in the list, closest to the tools, because later middleware may change an allowed call. With `pauses`, a
    call that needs the user's confirmation or a reviewer's approval becomes a graph `interrupt` with a `Prompt`. Resume
    with `Command(resume={"id": prompt["id"], "confirm": True})` for the user. For a reviewer, use `"approve": True,
    "by": "ann"` instead of `"confirm"`. With `instruct`, the shield's instructions are added to the system prompt.
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
        self._begun: dict[str, None] = {}
        """Threads whose model was called in this process. Used only without a log."""
        self._answers: dict[str, dict[str, Any]] = {}
        """Answers to prompts other than the current one, by thread."""
        self._name = f":{uuid.uuid4().hex}" if self.shield.log is None else ""
        """A suffix for prompt ids. Without a log, workers would otherwise use the same ids."""
        self._asking = threading.Lock()

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Add the instructions, and record that this process requested the thread's calls."""
        self._begin_thread(request)
        return handler(self._instructed(request))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        self._begin_thread(request)
        return await handler(self._instructed(request))

    def _instructed(self, request: Any) -> Any:
        if not (told := self.instructions):
            return request
        given = request.system_message
        if given is None or isinstance(given.content, str):
            content: Any = joined(given.content if given is not None else "", told)
        else:
            content = [*given.content, {"type": "text", "text": told}]
        message = given.model_copy(update={"content": content}) if given is not None else SystemMessage(content)
        return request.override(system_message=message)

    def _begin_thread(self, request: Any) -> None:
        if self.shield.log is None and (thread := _thread(request.runtime)):
            self._begun[thread] = None
            if len(self._begun) > MOST:
                self._begun.pop(next(iter(self._begun)), None)

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Run the call, or return a message in place of its result."""
        follower, agent, decision = self._decide(request)
        if isinstance(decision, Result) or not decision.allowed:
            return _told(request, decision)
        with self._carrying_out(request, follower, agent, decision):
            result = handler(request)
        return _kept(follower, agent, request, decision, result)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Like `wrap_tool_call`, for `ainvoke` and `astream`.

        Waiting for the log does not block the event loop.
        """
        follower, agent, decision = await asyncio.to_thread(self._decide, request)
        if isinstance(decision, Result) or not decision.allowed:
            return _told(request, decision)
        async with self._carrying_out(request, follower, agent, decision):
            result = await handler(request)
        return await asyncio.to_thread(_kept, follower, agent, request, decision, result)

    def _carrying_out(self, request: Any, follower: Follower, agent: str, decision: Decision) -> Execution:
        config = request.runtime.config
        _watch(config, self.shield.pack)
        # After an interrupt, the graph repeats the call.
        ends: Any = {"held": (GraphInterrupt,), "reported": (GraphBubbleUp,)}
        return Execution(follower, _asked(request), decision, agent, place=_place(config.get("metadata")), **ends)

    def after_agent(self, state: Any, runtime: Any) -> None:
        self._answers.pop(_thread(runtime), None)
        messages = _messages(state)
        self._guard.end(_thread(runtime), runtime, _parts(messages), unnamed=_first(messages))

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        await asyncio.to_thread(self.after_agent, state, runtime)

    def _decide(self, request: Any) -> tuple[Follower, str, Decision | Result]:
        """Return the conversation, the inner agent and the decision for a call.

        Return the result instead of a decision if the graph repeats a finished call.
        """
        thread, agent, messages = _thread(request.runtime), self._guard.agent, _messages(request.state)
        asked, parts = _asked(request), _parts(messages)
        if thread and not agent:
            follower = self._guard.followers.get(thread, request.runtime)
            is_new = thread not in self._begun and self.shield.log is None and not follower.session.length
            is_repeated = any(isinstance(part, Answered) and part.id == asked.id for part in parts)
            if is_new:
                parts += _begun_elsewhere(parts)
            elif not is_repeated and (result := follower.result_of(asked.id, asked.tool, asked.arguments)) is not None:
                return follower, agent, result
        put = self._put(thread) if self._pauses else None
        return self._guard.decide(thread, request.runtime, parts, asked, put, replays=True, unnamed=_first(messages))

    def _put(self, thread: str) -> Callable[[Prompt], Any]:
        """Return a function that shows a prompt through an interrupt.

        After the interrupt, the graph repeats the node, and passes all earlier answers to the node's interrupts in
        order. An answer may belong to another prompt or to a call from another thread, so each answer is matched to its
        prompt.
        """
        answers = self._answers.setdefault(thread, {})

        def put(prompt: Prompt) -> Any:
            name = prompt.id + self._name
            with self._asking:
                while name not in answers:
                    if self._name and len(_workers(answers) - {self._name}) >= AGAIN:
                        log.warning(ELSEWHERE)
                        return {"id": prompt.id}
                    given = interrupt({**to_builtins(prompt), "id": name})
                    id = given.get("id") if isinstance(given, Mapping) else None
                    if not isinstance(id, str):
                        return given
                    answers[id] = given
                return {**answers.pop(name), "id": prompt.id}

        return put


def _workers(answers: Iterable[str]) -> set[str]:
    return {f":{end}" for id in answers for head, _, end in [id.rpartition(":")] if head}


def _begun_elsewhere(parts: list[Part]) -> list[Part]:
    """Mark calls that may have started before a restart or in another worker, so that the new decision treats them as
    calls that may have run.
    """
    answered = {part.id for part in parts if isinstance(part, Answered)}
    turn = next((part for part in reversed(parts) if isinstance(part, Turn)), None)
    return [Answered(each.id, "", captured=False) for each in turn.calls if each.id not in answered] if turn else []


def _kept(follower: Follower, agent: str, request: Any, decision: Decision, result: Any) -> Any:
    id = request.tool_call["id"] or ""
    result = _disowned(result, _messages(request.state))
    message = _message_of(result, id)
    if message is None:
        follower.answered(id, "", captured=False, agent=agent)
        return result
    error = True if message.status == "error" else None
    follower.answered(id, read_content(message.content), error=error, agent=agent)
    if decision.feedback and isinstance(message.content, str):
        message.content = with_note(message.content, decision.feedback)
    return result


def _disowned(result: Any, known: list[Any]) -> Any:
    """Mark the user messages that a tool adds to the history, because a tool may pass the history to another agent.

    The user's own messages stay unmarked.
    """
    if isinstance(result, list | tuple):
        return [_disowned(each, known) for each in result]
    if not isinstance(result, Command) or result.update is None:
        return result
    # The graph accepts a dict, pairs, or an object with fields.
    pairs = result._update_as_tuples()
    changed = [(key, _marked(value, known) if key in ("messages", "__root__") else value) for key, value in pairs]
    return replace(result, update=dict(changed) if isinstance(result.update, dict) else changed)


def _marked(given: Any, known: list[Any]) -> Any:
    if isinstance(given, Overwrite):
        return Overwrite(_marked(given.value, known))
    is_list = isinstance(given, list | tuple) and not (len(given) == 2 and isinstance(given[0], str))
    found: list[Any] = []
    for each in given if is_list else [given]:
        message: Any = each if isinstance(each, BaseMessage) else convert_to_messages([each])[0]
        is_users = isinstance(message, HumanMessage) or _role(message) == "user"
        if is_users and not any(message.id == old.id and message.content == old.content for old in known if old.id):
            told = {**message.additional_kwargs, SOURCE: TOOL}
            message = message.model_copy(update={"additional_kwargs": told})
        found.append(message)
    return found


def _is_users(message: Any) -> bool:
    marks = {**message.additional_kwargs, **(message.model_extra or {})}
    return is_users(message.name or marks.get("agent"), marks.get("tool_call_id"))


def _role(message: Any) -> str:
    """Return the author of a message: `user`, `agent`, an empty string for neither, or `?` if unknown."""
    if not isinstance(message, ChatMessage):
        return ""
    role = message.role.strip().lower()
    known = {"user": "user", "human": "user", "assistant": "agent", "ai": "agent", "model": "agent"}
    return known.get(role, "" if role in ("system", "developer", "tool", "function") else "?")


def _asked(request: Any) -> Asked:
    call = request.tool_call
    return Asked(call["id"] or "", call["name"], call["args"])


def _told(request: Any, answer: Decision | Result) -> ToolMessage:
    """Return the message in place of the tool's result: the reason why the call was stopped, or the call's earlier
    result.
    """
    call = request.tool_call
    about: Any = {"tool_call_id": call["id"], "name": call["name"]}
    if isinstance(answer, Result):
        return ToolMessage(as_text(answer.value()), **about)
    return ToolMessage(answer.feedback, **about, status="error")


def _message_of(result: Any, id: str) -> ToolMessage | None:
    if isinstance(result, ToolMessage):
        return result
    results = result if isinstance(result, list) else [result]
    updates = [dict(each.update or ()) for each in results if isinstance(each, Command)]
    found = [*results, *(each for update in updates for each in _listed(update.get("messages", ())))]
    return next((each for each in found if isinstance(each, ToolMessage) and each.tool_call_id == id), None)


def _listed(given: Any) -> list[Any]:
    """Return the messages of an update, which extends or replaces the history."""
    given = given.value if isinstance(given, Overwrite) else given
    return list(given) if isinstance(given, list | tuple) else [given]


def _messages(state: Any) -> list[Any]:
    found = state.get("messages", ()) if isinstance(state, Mapping) else getattr(state, "messages", state)
    return list(found or ())


def _thread(runtime: Any) -> str:
    config = getattr(runtime, "config", None)
    if config is None:
        info = getattr(runtime, "execution_info", None)
        return str(getattr(info, "thread_id", None) or "")
    return str((config.get("configurable") or {}).get("thread_id") or "")


def _first(messages: list[Any]) -> str:
    """Identify a conversation without a thread by its message ids up to the last user message.

    LangGraph gives messages unique ids. A host may reuse one message object in all conversations, so the id of a single
    message is not enough. A host's own sequential ids do not identify a conversation.
    """
    last = max((at for at, each in enumerate(messages) if isinstance(each, HumanMessage)), default=0)
    ids = [str(getattr(each, "id", None) or "") for each in messages[: last + 1]]
    return " ".join(ids) if ids and all(len(id) >= DISTINCT for id in ids) else ""


def _parts(messages: list[Any]) -> list[Part]:
    parts: list[Part] = []
    for message in messages:
        match message:
            case HumanMessage() | ChatMessage() if message.additional_kwargs.get(SOURCE) == TOOL:
                parts.append(Heard("", message.id or "", whole=False))
            case HumanMessage() if message.additional_kwargs.get(SOURCE):
                # Middleware wrote this message, for example as a summary.
                parts.append(Summary())
            case ChatMessage() if (role := _role(message)) != "user":
                if role == "agent":
                    parts.append(_turn(message))
                elif role:
                    # The author is unknown and may be the user.
                    parts.append(Heard("", message.id or "", whole=False))
            case HumanMessage() | ChatMessage() if not _is_users(message):
                # Another participant, such as an agent or a tool, wrote this message.
                parts.append(Heard("", message.id or "", whole=False))
            case HumanMessage() | ChatMessage():
                text, whole = heard(message.content)
                parts.append(Heard(text, message.id or "", whole))
            case AIMessage():
                calls = [Asked(call["id"] or "", call["name"], dict(call["args"])) for call in message.tool_calls]
                parts.append(_turn(message, *calls))
            case ToolMessage():
                error = True if message.status == "error" else None
                parts.append(Answered(message.tool_call_id, read_content(message.content), error))
    return parts


def _turn(message: Any, *calls: Asked) -> Turn:
    whole = is_all_words(message.content) and not message.additional_kwargs.get("audio")
    return Turn(plain_text(message.content), calls, message.id or "", whole)


def _watch(config: Any, pack: Pack) -> None:
    """Stop tools that another tool runs without a decision."""
    given = config.get("callbacks")
    if any(isinstance(each, _Watch) for each in getattr(given, "handlers", given or ())):
        return
    manager = given.copy() if isinstance(given, BaseCallbackManager) else CallbackManager(list(given or ()))
    manager.add_handler(_Watch(pack), inherit=True)
    config["callbacks"] = manager


class _Watch(BaseCallbackHandler):
    """Stops the tools of an unshielded inner agent. All agents inside a tool inherit this handler."""

    raise_error = True
    run_inline = True

    def __init__(self, pack: Pack) -> None:
        self._pack = pack

    def on_tool_start(self, serialized: Any, input_str: str, *, metadata: Any = None, **_: Any) -> None:
        name = (serialized or {}).get("name", "")
        current = carried()
        if current is not None and not current.is_running and current.tool == name:
            current.is_running = True
            return
        declared = self._pack.schema.tools.get(name)
        is_write = declared is not None and declared.effect == "write"
        if current is not None and _place(metadata) == current.place and not is_write:
            # The decision on this tool also covers the tools that it uses.
            return
        outer = f"inside `{current.tool}`" if current is not None else "inside another tool"
        hint = "add the middleware to the inner agent too: `create_agent(..., middleware=[ShieldMiddleware(shield)])`"
        raise UsageError(f"tool `{name}` would run {outer} without a decision", hint=hint)


def _place(metadata: Any) -> str:
    return str((metadata or {}).get("langgraph_checkpoint_ns") or "")
