"""What a host does besides the shield in the Claude Agent SDK: its own hooks, its permissions, and what it submits."""
# pyright: basic, reportMissingImports=false

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import anyio
from claude_agent_sdk.types import PermissionResultAllow, PermissionResultDeny, TextBlock

from bylaw.integrations.follower import log

CHANGED = "its arguments were changed after they were decided on: ask for it once more as it should be"
INJECTED = ("<task-notification>", "Continue from where you left off.")
"""How prompts begin that the program submits by itself."""
MOST = 100


class Prompts:
    """What was submitted, until it is known whose words it is.

    The hook is told every prompt: the user's, and those that the program makes up when a subagent ends, a task is due
    or a call goes on. Only what the host sends comes back among the messages, and summaries are never submitted. So
    what is both submitted and sent back is the user's word.
    """

    def __init__(self) -> None:
        self._submitted: deque[str] = deque(maxlen=MOST)
        self._before = 0
        """How many of these were submitted in runs that are over."""

    def submit(self, text: str) -> None:
        self._submitted.append(text)
        self._before = min(self._before, len(self._submitted) - 1)

    def sent(self, content: str | Sequence[Any]) -> str | None:
        """A message of the user's role has come; its words, where they are the user's."""
        blocks = [] if isinstance(content, str) else [each.text for each in content if isinstance(each, TextBlock)]
        text = content if isinstance(content, str) else "\n".join(blocks)
        if text not in self._submitted:
            return None
        self._submitted.remove(text)
        self._before = min(self._before, len(self._submitted))
        return text

    def end(self) -> None:
        """A run is over."""
        self._before = len(self._submitted)

    @property
    def is_open(self) -> bool:
        """Whether something was submitted in this run that may be the user's and has not come back."""
        return any(not each.startswith(INJECTED) for each in list(self._submitted)[self._before :])


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
                return output if name not in self._decided else denied(CHANGED)
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


def denied(why: str) -> dict[str, Any]:
    """A hook's word that a call may not run."""
    about = {"hookEventName": "PreToolUse", "permissionDecision": "deny"}
    return {"hookSpecificOutput": {**about, "permissionDecisionReason": why}}
