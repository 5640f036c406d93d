"""The shield in the Claude Agent SDK, as hooks. Extra `claude`.

    guard = ShieldHooks(shield.session("conv-17"))
    async for message in guard.hear(query(prompt="Refund order 7", options=guard.protect(options))):
        ...

A hook that fails or takes too long lets the call through there, so nothing in here may fail and nothing may wait for
long: what is not decided in time is refused. Hooks are not told what the agent says, nor which calls it asks for at
once; that is heard from the messages, so a call whose message was not heard is refused too. Where a hook of the host
changes a call's arguments, the changed ones are decided on; what comes too late for that is refused.
"""
# pyright: basic, reportMissingImports=false

import dataclasses
from collections.abc import AsyncIterable, AsyncIterator, Callable
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, HookMatcher, ResultMessage, UserMessage
from claude_agent_sdk.types import PermissionResultAllow, PermissionResultDeny, TextBlock, ToolResultBlock, ToolUseBlock

from bylaw.integrations.undecided import log, tell, undecided
from bylaw.shield import Decision, LiveSession
from bylaw.trace.transcript import read_content

PATIENCE = 10.0
"""Seconds to wait for a call's message."""
LIMIT = 30.0
"""Seconds that a decision may take."""
UNHEARD = "the shield did not hear the message that asks for this call: wrap the messages in `guard.hear(...)`"
CHANGED = "its arguments were changed after they were decided on: ask for it once more as it should be"
SUBAGENT = "the history of a subagent is not known here"


class ShieldHooks:
    """One conversation. Use it for the options and for the messages of every run of it."""

    def __init__(self, session: LiveSession, *, patience: float = PATIENCE, limit: float = LIMIT) -> None:
        self.session = session
        self._patience = patience
        self._limit = limit
        self._turn: tuple[str, Any] | None = None
        """The message of the model that is being heard, and what holds its turn open."""
        self._heard: dict[str, anyio.Event] = {}
        """Calls by id: set where the message that asks for it was heard."""
        self._made: set[str] = set()
        """Calls that were let through and have no answer yet."""
        self._advice: dict[str, str] = {}
        self._host = HostHooks()
        self._order = anyio.Lock()
        """What is heard is told to the session in the order in which it comes."""

    def protect(self, options: ClaudeAgentOptions) -> ClaudeAgentOptions:
        """The options with the shield among their hooks."""
        hooks: dict[Any, list[HookMatcher]] = {name: list(given) for name, given in (options.hooks or {}).items()}
        hooks["PreToolUse"] = [
            dataclasses.replace(each, hooks=[self._host.watched(hook) for hook in each.hooks])
            for each in hooks.get("PreToolUse", [])
        ]
        own = {"UserPromptSubmit": self._user, "PreToolUse": self._before, "PostToolUse": self._after}
        for name, hook in own.items():
            hooks.setdefault(name, []).append(HookMatcher(hooks=[hook], timeout=2 * (self._patience + self._limit)))
        may = options.can_use_tool
        return dataclasses.replace(options, hooks=hooks, can_use_tool=self._host.permitting(may) if may else None)

    async def hear(self, messages: AsyncIterable[Any]) -> AsyncIterator[Any]:
        """The messages of a run, as they come."""
        async for message in messages:
            try:
                await self._hear(message)
            except Exception as error:
                tell(error, "a message could not be followed")
                self.session.lacks = f"part of the conversation could not be read: {error}"
            yield message

    async def _hear(self, message: Any) -> None:
        if getattr(message, "parent_tool_use_id", None):
            return
        match message:
            case AssistantMessage():
                await self._in_turn(partial(self._hear_agent, message))
                for block in message.content:
                    if isinstance(block, ToolUseBlock):
                        self._event(block.id).set()
            case UserMessage(content=list()):
                await self._in_turn(partial(self._hear_results, message))
            case ResultMessage():
                await self._in_turn(self._end)
            case _:
                pass

    async def _in_turn(self, work: Callable[[], None]) -> None:
        """Do what may wait for the log, one after the other, while the event loop goes on."""
        async with self._order:
            await anyio.to_thread.run_sync(work)

    def _hear_results(self, message: UserMessage) -> None:
        for block in message.content:
            if isinstance(block, ToolResultBlock) and block.tool_use_id in self._made:
                self._made.discard(block.tool_use_id)
                content, error = read_content(block.content), True if block.is_error else None
                self.session.result(content, id=block.tool_use_id, error=error)

    def _end(self) -> None:
        self._end_turn()
        for id in self._made:
            # It may have been carried out or not.
            self.session.result("", id=id, captured=False)
        self._made.clear()
        self.session.flush()

    def _hear_agent(self, message: AssistantMessage) -> None:
        text = "".join(block.text for block in message.content if isinstance(block, TextBlock))
        name = message.message_id or ""
        if self._turn is None or self._turn[0] != name or not name:
            # Each part of what the model says at once comes as a message of its own, under one id.
            self._end_turn()
            self._turn = (name, self.session.turn(text))
            self._turn[1].__enter__()
        elif text:
            self.session.agent(text)

    def _end_turn(self) -> None:
        if self._turn is not None:
            self._turn[1].__exit__(None, None, None)
            self._turn = None

    def _event(self, id: str) -> anyio.Event:
        return self._heard.setdefault(id, anyio.Event())

    async def _user(self, told: Any, _id: Any, _context: Any) -> Any:
        try:
            await self._in_turn(partial(self._hear_user, told["prompt"]))
        except Exception as error:
            tell(error, "a message of the user could not be followed")
            self.session.lacks = f"part of the conversation could not be read: {error}"
        return {}

    def _hear_user(self, text: str) -> None:
        self._end_turn()
        self.session.user(text)

    async def _before(self, told: Any, id: Any, _context: Any) -> Any:
        tool, arguments = told.get("tool_name", ""), told.get("tool_input") or {}
        id = told.get("tool_use_id") or id or ""
        try:
            with anyio.fail_after(self._patience + self._limit):
                arguments = await self._host.arguments(id, arguments, self._patience)
                decision = await self._decide(told, id, tool, arguments)
        except Exception as error:
            decision = undecided(self.session.shield, tool, arguments, error)
        # No word on what may run: whatever else the host asks before a call is still asked.
        return {} if decision.allowed else _denied(decision.feedback)

    async def _decide(self, told: Any, id: str, tool: str, arguments: dict[str, Any]) -> Decision:
        if told.get("agent_id"):
            other = self.session.apart(lacks=SUBAGENT)
            return await anyio.to_thread.run_sync(partial(other.decide, tool, arguments), abandon_on_cancel=True)
        with anyio.move_on_after(self._patience):
            await self._event(id).wait()
        if not self._event(id).is_set():
            raise TimeoutError(UNHEARD)
        return await anyio.to_thread.run_sync(partial(self._decided, id, tool, arguments), abandon_on_cancel=True)

    def _decided(self, id: str, tool: str, arguments: dict[str, Any]) -> Decision:
        decision = self.session.decide(tool, arguments, id=id)
        if not decision.allowed:
            self.session.result(decision.feedback, id=id, error=True)
        else:
            self._made.add(id)
            if decision.feedback:
                self._advice[id] = decision.feedback
        return decision

    async def _after(self, told: Any, id: Any, _context: Any) -> Any:
        """Advice goes beside the answer."""
        self._host.ran(told.get("tool_use_id") or id or "", told.get("tool_input"))
        advice = self._advice.pop(told.get("tool_use_id") or id or "", "")
        if not advice:
            return {}
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": advice}}


class HostHooks:
    """What the host's own hooks make of the arguments of calls, by the ids of these."""

    def __init__(self) -> None:
        self._running: dict[str, int] = {}
        """How many of its hooks are at work on a call."""
        self._idle = anyio.Condition()
        self._changed: dict[str, list[Any]] = {}
        self._decided: dict[str, Any] = {}
        """The arguments that a decision was made on."""

    def watched(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        """A hook of the host that is waited for; what it changes too late stops the call."""

        async def run(told: Any, id: Any, context: Any) -> Any:
            name = told.get("tool_use_id") or id or ""
            self._running[name] = self._running.get(name, 0) + 1
            try:
                output = await hook(told, id, context)
                changed = ((output or {}).get("hookSpecificOutput") or {}).get("updatedInput")
                if changed is None or changed == self._decided.get(name, told.get("tool_input")):
                    return output
                self._changed.setdefault(name, []).append(changed)
                return output if name not in self._decided else _denied(CHANGED)
            finally:
                self._running[name] = self._running.get(name, 1) - 1
                async with self._idle:
                    self._idle.notify_all()

        return run

    def permitting(self, may: Callable[..., Any]) -> Callable[..., Any]:
        """The host's own word on whether a tool may be used; it comes after the decision, and changes nothing."""

        async def run(tool: str, given: dict[str, Any], context: Any) -> Any:
            answer = await may(tool, given, context)
            if not isinstance(answer, PermissionResultAllow):
                return answer
            runs = given if answer.updated_input is None else answer.updated_input
            decided = self._decided.get(getattr(context, "tool_use_id", None) or "", given)
            return answer if runs == decided else PermissionResultDeny(message=CHANGED)

        return run

    async def arguments(self, id: str, given: dict[str, Any], patience: float) -> dict[str, Any]:
        """What a call is to be decided on, once the host's hooks are done with it."""
        with anyio.move_on_after(patience):
            async with self._idle:
                while self._running.get(id):
                    await self._idle.wait()
        if not self._running.get(id):
            self._running.pop(id, None)
        changed = self._changed.pop(id, [given])
        self._decided[id] = changed[0]
        if any(each != changed[0] for each in changed):
            raise ValueError("two hooks of the host change its arguments, each in its own way")
        return changed[0]

    def ran(self, id: str, given: Any) -> None:
        """A tool has run with these arguments."""
        decided = self._decided.pop(id, given)
        if decided != given:
            log.error("a tool ran with arguments that were not decided on: a hook in a settings file changed them")


def _denied(why: str) -> dict[str, Any]:
    about = {"hookEventName": "PreToolUse", "permissionDecision": "deny"}
    return {"hookSpecificOutput": {**about, "permissionDecisionReason": why}}
