"""The shield in the Claude Agent SDK, as hooks. Extra `claude`.

    guard = ShieldHooks(shield.session("conv-17"))
    async for message in guard.hear(query(prompt="Refund order 7", options=guard.protect(options))):
        ...

In the SDK, a hook that fails or takes too long lets the call run. So a hook here never fails and never waits long: a
call is refused if no decision is made in time. Hooks do not see the agent's text or its parallel calls; the shield
reads both from the messages. A call is also refused if its message never arrives.

If one of the host's hooks changes a call's arguments before the decision, the decision covers the changed arguments. A
later change stops the call. A subagent is an inner agent: its calls are decided in this conversation, and its input
does not count as the user's message.
"""
# pyright: basic, reportMissingImports=false

import dataclasses
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import anyio
import anyio.to_thread
from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, HookMatcher, ResultMessage, UserMessage
from claude_agent_sdk.types import PermissionResultAllow, PermissionResultDeny, TextBlock, ToolResultBlock, ToolUseBlock

from bylaw.integrations.follower import Follower, log, tell, undecided
from bylaw.integrations.guard import Prompt, approve, confirm, is_declined, joined, prompts
from bylaw.integrations.history import Asked
from bylaw.shield import Decision, LiveSession
from bylaw.shield.shield import shield_of
from bylaw.trace.recorded_value import read_content

CHANGED = "its arguments were changed after the decision. Make the call again with the right arguments"
INJECTED = ("<task-notification>", "Continue from where you left off.")
"""How prompts from the program itself begin."""
MOST = 100
PATIENCE = 10.0
"""How many seconds a call waits for the message that contains it."""
LIMIT = 30.0
"""The time limit for a decision, in seconds."""
UNHEARD = "the shield did not receive the message with this call: wrap the messages in `guard.hear(...)`"
LATE = "it was reported after other calls in the same message. Make the call again"
UNSURE = "the shield received words that may be the user's, but no message contained them"
REPLAY = "replay-user-messages"
"""The option that makes the program echo messages from the host."""
APPEND = "append-system-prompt"
"""The program's option that appends a text file to the system prompt."""


class Prompts:
    """Finds out which submitted prompts the user wrote.

    The hook receives prompts from the host and from the program, which creates prompts when a subagent ends, a task is
    due or a call continues. The program echoes only prompts from the host. A summary looks like an echo but is never
    submitted. So a prompt comes from the user if it was both submitted and echoed.
    """

    def __init__(self) -> None:
        self._submitted: deque[str] = deque(maxlen=MOST)
        self._before = 0
        """The number of prompts submitted in earlier runs."""

    def submit(self, text: str) -> None:
        self._submitted.append(text)
        self._before = min(self._before, len(self._submitted) - 1)

    def sent(self, content: str | Sequence[Any]) -> str | None:
        """Process a message with the user's role. Return its text if the user wrote the message."""
        blocks = [] if isinstance(content, str) else [each.text for each in content if isinstance(each, TextBlock)]
        text = content if isinstance(content, str) else "\n".join(blocks)
        if text not in self._submitted:
            return None
        self._submitted.remove(text)
        self._before = min(self._before, len(self._submitted))
        return text

    def end(self) -> None:
        self._before = len(self._submitted)

    @property
    def is_open(self) -> bool:
        """Whether this run has a prompt that may come from the user but has not been echoed yet."""
        return any(not each.startswith(INJECTED) for each in list(self._submitted)[self._before :])


class HostHooks:
    """Call arguments that the host's own hooks have changed, by call id."""

    def __init__(self) -> None:
        self._running: dict[str, int] = {}
        """The number of host hooks that are currently running for each call."""
        self._idle = anyio.Condition()
        self._changed: dict[str, list[Any]] = {}
        self._decided: dict[str, Any] = {}
        """The arguments in each decision."""

    def watched(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a host hook so that the decision waits for it. If the hook changes the call later, the call is
        stopped.
        """

        async def run(told: Any, id: Any, context: Any) -> Any:
            name = told.get("tool_use_id") or id or ""
            self._running[name] = self._running.get(name, 0) + 1
            try:
                output = await hook(told, id, context)
                changed = ((output or {}).get("hookSpecificOutput") or {}).get("updatedInput")
                if changed is None or changed == self._decided.get(name, told.get("tool_input")):
                    return output
                self._changed.setdefault(name, []).append(changed)
                return output if name not in self._decided else denied(CHANGED)
            finally:
                self._running[name] = self._running.get(name, 1) - 1
                async with self._idle:
                    self._idle.notify_all()

        return run

    def permitting(self, may: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the host's permission check. It runs after the decision and must not change the call."""

        async def run(tool: str, given: dict[str, Any], context: Any) -> Any:
            answer = await may(tool, given, context)
            if not isinstance(answer, PermissionResultAllow):
                return answer
            runs = given if answer.updated_input is None else answer.updated_input
            decided = self._decided.get(getattr(context, "tool_use_id", None) or "", given)
            return answer if runs == decided else PermissionResultDeny(message=CHANGED)

        return run

    async def arguments(self, id: str, given: dict[str, Any], patience: float) -> dict[str, Any]:
        """Return the arguments to use in the decision, after the host's hooks have run."""
        with anyio.move_on_after(patience):
            async with self._idle:
                while self._running.get(id):
                    await self._idle.wait()
        if not self._running.get(id):
            self._running.pop(id, None)
        changed = self._changed.pop(id, [given])
        self._decided[id] = changed[0]
        if any(each != changed[0] for each in changed):
            raise ValueError("two hooks of the host change its arguments in different ways")
        return changed[0]

    def ran(self, id: str, given: Any) -> None:
        """Record the arguments with which a tool ran."""
        decided = self._decided.pop(id, given)
        if decided != given:
            log.error("a tool ran with arguments that were not checked: a hook in a settings file changed them")


def denied(why: str) -> dict[str, Any]:
    about = {"hookEventName": "PreToolUse", "permissionDecision": "deny"}
    return {"hookSpecificOutput": {**about, "permissionDecisionReason": why}}


def _instructed(options: ClaudeAgentOptions, told: str) -> ClaudeAgentOptions:
    given: Any = options.system_prompt
    match given:
        case _ if not told:
            return options
        case None | str():
            return dataclasses.replace(options, system_prompt=joined(given, told))
        case {"type": "custom", "prompt": prompt}:
            return dataclasses.replace(options, system_prompt={**given, "prompt": joined(prompt, told)})
        case {"type": "preset"}:
            return dataclasses.replace(options, system_prompt={**given, "append": joined(given.get("append"), told)})
        case _:
            more = {**options.extra_args, APPEND: joined(options.extra_args.get(APPEND), told)}
            return dataclasses.replace(options, extra_args=more)


class _Made(NamedTuple):
    follower: Follower
    decision: Decision
    agent: str
    """The subagent that makes the call."""


class ShieldHooks:
    """Shields one conversation. Use the same object for the options and messages of all its runs.

    With `pauses`, a call that needs the user's confirmation or a reviewer's approval is deferred. The run ends, and its
    result contains the call as `deferred_tool_use`. `asked` returns the prompts, and `confirm` and `approve` accept the
    answers. To continue the call, resume the session with a client. With `instruct`, `protect` adds the shield's
    instructions to the system prompt.
    """

    def __init__(
        self,
        session: LiveSession,
        *,
        patience: float = PATIENCE,
        limit: float = LIMIT,
        pauses: bool = False,
        instruct: bool = False,
    ) -> None:
        self.session = session
        self._instructions = shield_of(session).instructions() if instruct else ""
        self._follower: Follower | None = None
        self._pauses = pauses
        self._prompts = Prompts()
        self._patience = patience
        self._limit = limit
        self._turn: tuple[str, Any] | None = None
        """The current message from the model, and why its turn is not complete yet."""
        self._heard: dict[str, anyio.Event] = {}
        """For each call id, an event that is set when the message with the call arrives."""
        self._made: dict[str, _Made] = {}
        """Allowed calls without a result."""
        self._advice: dict[str, str] = {}
        self._inner: dict[str, tuple[str, Asked]] = {}
        """Undecided calls of subagents, by call id, each with the message that contains it."""
        self._planned: set[str] = set()
        """Subagent messages whose calls have been decided."""
        self._agent = ""
        """The inner agent that these hooks serve."""
        self._main: ShieldHooks | None = None
        self._host = HostHooks()
        self._order = anyio.Lock()
        """A lock that keeps reports to the session in order."""

    def inner(self, agent: str) -> "ShieldHooks":
        """Return hooks for an inner agent in the same conversation. Its prompts come from your code or from another
        agent.

        The program's own subagents do not need these hooks. Give each inner agent a name.
        """
        other = ShieldHooks(self.session, patience=self._patience, limit=self._limit)
        other._agent, other._main, other._order = agent, self, self._order
        return other

    def protect(self, options: ClaudeAgentOptions) -> ClaudeAgentOptions:
        """Return the options with the shield's hooks."""
        hooks: dict[Any, list[HookMatcher]] = {name: list(given) for name, given in (options.hooks or {}).items()}
        hooks["PreToolUse"] = [
            dataclasses.replace(each, hooks=[self._host.watched(hook) for hook in each.hooks])
            for each in hooks.get("PreToolUse", [])
        ]
        own = {"UserPromptSubmit": self._user, "PreToolUse": self._before, "PostToolUse": self._after}
        for name, hook in own.items():
            hooks.setdefault(name, []).append(HookMatcher(hooks=[hook], timeout=2 * (self._patience + self._limit)))
        may = options.can_use_tool
        options = _instructed(options, self._instructions)
        return dataclasses.replace(
            options,
            hooks=hooks,
            can_use_tool=self._host.permitting(may) if may else None,
            extra_args={**options.extra_args, REPLAY: None},
        )

    async def asked(self, call: Any) -> list[Prompt]:
        """Return the prompts of a deferred call. The list is empty if one of the host's hooks deferred the call."""
        follower = await self._ready()
        waiting = await anyio.to_thread.run_sync(partial(follower.asked, call.id, call.name, call.input))
        return prompts(waiting) if waiting is not None else []

    async def confirm(self, prompt: Prompt, yes: bool, *, by: str = "") -> None:
        """Report the user's answer to a card. `by` says how the user answered, such as with a button."""
        await anyio.to_thread.run_sync(partial(confirm, self.session, prompt, yes, by=by))

    async def approve(self, prompt: Prompt, yes: bool, *, by: str, note: str = "") -> None:
        """Report a reviewer's answer. `by` is the reviewer's name for the log."""
        await anyio.to_thread.run_sync(partial(approve, self.session, prompt, yes, by=by, note=note))

    async def hear(self, messages: AsyncIterable[Any]) -> AsyncIterator[Any]:
        """Yield the messages of a run, and report them to the shield."""
        async for message in messages:
            try:
                await self._hear(message)
            except Exception as error:
                tell(error, "a message could not be processed")
                self.session.lacks = f"part of the conversation could not be read: {error}"
            yield message

    async def _hear(self, message: Any) -> None:
        match message:
            case AssistantMessage():
                is_inner = bool(message.parent_tool_use_id or self._agent)
                if not is_inner:
                    await self._in_turn(partial(self._hear_agent, message))
                for block in message.content:
                    if isinstance(block, ToolUseBlock):
                        if is_inner and message.message_id:
                            self._inner[block.id] = (message.message_id, Asked(block.id, block.name, block.input))
                        self._event(block.id).set()
            case UserMessage():
                if isinstance(message.content, list):
                    await self._in_turn(partial(self._hear_results, message))
                is_sent = not message.parent_tool_use_id and (message.origin or {}).get("kind", "human") == "human"
                if is_sent and (text := self._prompts.sent(message.content)) is not None and not self._agent:
                    # The SDK passes on only the text of a message with several blocks, without pictures and files.
                    await self._in_turn(partial(self._hear_user, text, whole=isinstance(message.content, str)))
            case ResultMessage():
                deferred = message.deferred_tool_use
                await self._in_turn(partial(self._end, deferred.id if deferred is not None else ""))
            case _:
                pass

    async def _ready(self) -> Follower:
        """Return the follower once it has read the conversation's log."""
        if self._main is not None:
            return await self._main._ready()
        async with self._order:
            if self._follower is None:
                self._follower = await anyio.to_thread.run_sync(Follower, self.session)
        return self._follower

    async def _in_turn(self, work: Callable[[], None]) -> None:
        """Run `work` in order without blocking the event loop, because it may wait for the log."""
        async with self._order:
            await anyio.to_thread.run_sync(work)

    def _hear_results(self, message: UserMessage) -> None:
        for block in message.content:
            if isinstance(block, ToolResultBlock) and block.tool_use_id in self._made:
                made = self._made.pop(block.tool_use_id)
                content, error = read_content(block.content), True if block.is_error else None
                made.follower.answered(block.tool_use_id, content, error=error, agent=made.agent)

    def _end(self, deferred: str) -> None:
        self._end_turn()
        self._prompts.end()
        for id, made in list(self._made.items()):
            if made.agent and not self._agent:
                # The call may still be running.
                continue
            del self._made[id]
            if id == deferred:
                made.follower.interrupted(id, made.decision)
            else:
                # The call may or may not have taken effect.
                made.follower.answered(id, "", captured=False, agent=made.agent)
        self.session.flush()

    def _hear_agent(self, message: AssistantMessage) -> None:
        text = "".join(block.text for block in message.content if isinstance(block, TextBlock))
        name = message.message_id or ""
        if self._turn is None or self._turn[0] != name or not name:
            # Each block of a model response arrives as a separate message with the response's id.
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
        self._prompts.submit(told["prompt"])
        return {}

    def _hear_user(self, text: str, *, whole: bool) -> None:
        self._end_turn()
        self.session.user(text, whole=whole)

    async def _before(self, told: Any, id: Any, _context: Any) -> Any:
        tool, arguments = told.get("tool_name", ""), told.get("tool_input") or {}
        id = told.get("tool_use_id") or id or ""
        try:
            with anyio.fail_after(self._patience + self._limit):
                arguments = await self._host.arguments(id, arguments, self._patience)
                decision = await self._decide(told, id, tool, arguments)
        except Exception as error:
            decision = undecided(self.session.shield, tool, arguments, error)
        if decision.allowed:
            # An empty answer leaves the host's permission checks in place.
            return {}
        return _deferred() if self._is_put(told, decision) else denied(decision.feedback)

    def _is_put(self, told: Any, decision: Decision) -> bool:
        """Whether the call pauses for an answer. A subagent's call does not pause, because the subagent could not
        continue it.
        """
        if not self._pauses or told.get("agent_id"):
            return False
        return bool(prompts(decision)) and not is_declined(self.session, decision)

    async def _decide(self, told: Any, id: str, tool: str, arguments: dict[str, Any]) -> Decision:
        agent = f"{told.get('agent_type') or 'subagent'} ({told['agent_id']})" if told.get("agent_id") else self._agent
        follower = await self._ready()
        comes_back = partial(follower.comes_back, id, tool, arguments)
        if agent or not await anyio.to_thread.run_sync(comes_back, abandon_on_cancel=True):
            with anyio.move_on_after(self._patience):
                await self._event(id).wait()
            if not self._event(id).is_set():
                raise TimeoutError(UNHEARD)
        if self._prompts.is_open:
            raise RuntimeError(UNSURE)
        if agent:
            await self._in_turn(partial(self._plan, follower, Asked(id, tool, arguments), agent))
        decided = partial(follower.decide, id, tool, arguments, agent=agent)
        decision = await anyio.to_thread.run_sync(decided, abandon_on_cancel=True)
        if decision.allowed:
            self._made[id] = _Made(follower, decision, agent)
            if decision.feedback:
                self._advice[id] = decision.feedback
        return decision

    def _plan(self, follower: Follower, call: Asked, agent: str) -> None:
        """Decide a subagent's parallel calls as one turn."""
        self._end_turn()
        name, _ = self._inner.get(call.id, ("", call))
        beside = [each for id, (message, each) in self._inner.items() if message == name and id != call.id]
        tool = self.session.pack.schema.tools.get(call.tool)
        if name in self._planned and (tool is None or tool.effect == "write"):
            # Other calls in the turn may already have returned results, but the subagent had not seen them when it made
            # this call.
            raise RuntimeError(LATE)
        if name:
            self._planned.add(name)
            follower.plan([call, *beside], agent, name)
        for each in (call, *beside):
            self._inner.pop(each.id, None)

    async def _after(self, told: Any, id: Any, _context: Any) -> Any:
        self._host.ran(told.get("tool_use_id") or id or "", told.get("tool_input"))
        advice = self._advice.pop(told.get("tool_use_id") or id or "", "")
        if not advice:
            return {}
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": advice}}


def _deferred() -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "defer"}}
