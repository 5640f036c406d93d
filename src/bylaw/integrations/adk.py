"""The shield as a plugin of Google's Agent Development Kit. Extra `adk`.

    app = App(name="shop", root_agent=agent, plugins=[ShieldPlugin("pack")])

The shield covers the tools of all agents of the app. The shield reads the history from the session's own events, so it
also works after a restart and in another worker. The input of a workflow node, or of an agent that works for another
agent, looks like a user message but does not count as one.

An agent's own `before_tool_callback` runs after the plugins. If the callback changes the arguments, the call is decided
again. An agent that is the tool of another agent (`AgentTool`), or that a tool runs, is an inner agent. Its calls are
decided in the outer conversation.
"""
# pyright: basic, reportMissingImports=false

import asyncio
import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from msgspec import to_builtins

from bylaw.integrations.follower import Follower
from bylaw.integrations.guard import Adapter, Context, Execution, Paused, Prompt, carried, once, watch
from bylaw.integrations.history import Answered, Asked, By, Part, Piece, Summary, Turn, as_text, parts_of
from bylaw.pack import Pack
from bylaw.shield import Decision, Shield
from bylaw.shield.shield import shield_of
from bylaw.trace.event import with_note
from bylaw.trace.readers.parts import unwrapped

UNHEARD = "Not done: the shield does not know which conversation the call of `{}` belongs to."
OWN = "adk_request_"
"""The name prefix of the calls that ADK itself makes to ask for a confirmation or a credential."""
INPUT = "adk_request_input"
"""The ADK call that asks the user for text."""
_UNSEEN = frozenset(
    (
        *("text", "thought", "thought_signature", "executable_code", "code_execution_result", "tool_call"),
        *("tool_response", "part_metadata", "media_resolution", "media_processing"),
    )
)
"""Fields whose text the user does not see."""


class _Allowed(NamedTuple):
    follower: Follower
    agent: str
    """The inner agent that makes the call."""
    decision: Decision
    arguments: dict[str, Any]
    """The arguments in the decision."""


class ShieldPlugin(Adapter, BasePlugin):
    """Shields the tools of an app's agents. Each session of the app is a conversation.

    With `pauses`, a call that needs the user's confirmation or a reviewer's approval asks for an ADK confirmation with
    a `Prompt` as payload. The answer is also a payload: `{"id": prompt["id"], "confirm": True}` for the user, or
    `{"id": prompt["id"], "approve": True, "by": "ann"}` for a reviewer. Declining in ADK denies the call. With
    `instruct`, the shield's instructions are added to the agents' instructions.
    """

    def __init__(
        self,
        shield: Shield | Pack | str | Path,
        *,
        context: Context = None,
        pauses: bool = False,
        instruct: bool = False,
    ) -> None:
        super().__init__(shield, context=context, pauses=pauses, instruct=instruct, name="bylaw")
        self._failed: set[tuple[str, str]] = set()
        """Calls whose tools raised an error, by conversation and call id. Later events show the error as the model saw
        it.
        """
        self._allowed: dict[tuple[str, str], _Allowed] = {}
        """Running calls, by conversation and call id."""
        self._rewound: dict[str, set[str]] = {}
        """The rewinds seen so far, by conversation."""

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        if told := self.instructions:
            llm_request.append_instructions([told])

    async def before_tool_callback(self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any) -> Any:
        """Decide a call. None lets the call run. Any other value replaces the tool's result."""
        if self.is_idle:
            return None
        try:
            follower, agent, decision = await asyncio.to_thread(self._decide, tool.name, tool_args, tool_context)
        except Paused as paused:
            tool_context.request_confirmation(hint=paused.prompt.text, payload=to_builtins(paused.prompt))
            tool_context.actions.skip_summarization = True
            return {"error": str(paused)}
        if not decision.allowed:
            return {"error": decision.feedback}
        self._allowed[_place(tool_context)] = _Allowed(follower, agent, decision, copy.deepcopy(tool_args))
        self._hold(tool)
        return None

    @property
    def is_idle(self) -> bool:
        """Whether the shield ignores this call."""
        return False

    def _hold(self, tool: Any) -> None:
        """Decide the call again just before its tool runs, because the agent's own callback may have changed the
        arguments.
        """
        run = tool.run_async
        if getattr(run, "bylaw", None) is self:
            return

        async def run_async(*, args: dict[str, Any], tool_context: Any) -> Any:
            if self.is_idle:
                return await run(args=args, tool_context=tool_context)
            allowed, id = self._allowed.get(_place(tool_context)), tool_context.function_call_id or ""
            if allowed is None:
                return {"error": UNHEARD.format(tool.name)}
            follower, agent = allowed.follower, allowed.agent
            if allowed.arguments != args:
                _, _, decision = await asyncio.to_thread(self._decide, tool.name, args, tool_context)
                if not decision.allowed:
                    return {"error": decision.feedback}
            # If a tool raises, `on_tool_error_callback` takes over.
            call = Asked(id, tool.name, args)
            async with Execution(follower, call, allowed.decision, agent, reported=(BaseException,)):
                result = await run(args=args, tool_context=tool_context)
            if agent:
                await asyncio.to_thread(follower.answered, id, _shown(result), agent=agent)
            return result

        run_async.bylaw = self
        tool.run_async = run_async

    async def after_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any) -> Any:
        """Append the decision's advice to the result. A call that is waiting for a confirmation has no result yet."""
        place = _place(tool_context)
        allowed = self._allowed.pop(place, None)
        if allowed is None:
            return None
        if place[1] in tool_context.actions.requested_tool_confirmations:
            interrupted = allowed.follower.interrupted
            await asyncio.to_thread(interrupted, place[1], allowed.decision, agent=allowed.agent)
            return None
        if not allowed.decision.feedback:
            return None
        return {"result": with_note(as_text(_shown(result)), allowed.decision.feedback)}

    async def on_tool_error_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, error: Exception) -> None:
        """Record that the failed call may or may not have taken effect."""
        self._allowed.pop(_place(tool_context), None)
        self._failed.add(_place(tool_context))

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        await asyncio.to_thread(self._end, invocation_context.session)

    def _end(self, session: Any) -> None:
        if not self._guard.agent:
            self._guard.end(_key(session), session, self._heard(session))

    def follower(self, conversation: Any) -> Follower | None:
        return super().follower(_key(conversation))

    def _decide(self, tool: str, arguments: dict[str, Any], tool_context: Any) -> tuple[Follower, str, Decision]:
        call, session = Asked(tool_context.function_call_id or "", tool, arguments), tool_context.session
        parts = _parts(list(session.events)) if self._guard.agent else self._heard(session)
        return self._guard.decide(_key(session), session, parts, call, _answers(tool_context) if self._pauses else None)

    def _heard(self, session: Any) -> list[Part]:
        """Return a session's history without rewound events. If a tool raised an error, its call has an unknown
        outcome.
        """
        key = _key(session)
        follower = self._guard.followers.get(key, session)
        events = list(session.events)
        if rewinds := {event.id for event in events if _rewinds(event)} - self._rewound.get(key, set()):
            self._rewound.setdefault(key, set()).update(rewinds)
            follower.lose()
        parts = _parts(_live(events), follower.is_inner)
        answered = {part.id for part in parts if isinstance(part, Answered)}
        last = max((at for at, part in enumerate(parts) if isinstance(part, Turn)), default=-1)
        is_open = {call.id for part in parts[last:] if isinstance(part, Turn) for call in part.calls}
        for place in [each for each in self._failed if each[0] == key]:
            if place[1] in answered or place[1] not in is_open:
                self._failed.discard(place)
            if place[1] not in answered and place[1] not in is_open:
                follower.answered(place[1], "", captured=False)
        return parts


class _InnerPlugin(ShieldPlugin):
    """Shields the tools of an unshielded runner that a shielded tool starts."""

    @property
    def is_idle(self) -> bool:
        return carried() is None


def _watched(run: Any) -> Any:
    """Wrap a runner method to add the shield to the runner's plugins when a shielded tool starts the runner."""

    def watched(self: Any, *given: Any, **more: Any) -> Any:
        outer, manager = carried(), self.plugin_manager
        if outer is not None and not any(isinstance(each, ShieldPlugin) for each in manager.plugins):
            manager.register_plugin(_InnerPlugin(shield_of(outer.follower.session)))
        return run(self, *given, **more)

    return watched


for _name in ("run_async", "run_live"):
    watch(Runner, _name, _watched)


def _key(session: Any) -> str:
    """Return a session's key, which includes the user, because sessions of two users may have the same id."""
    return f"{session.app_name}/{session.user_id}/{session.id}"


def _place(tool_context: Any) -> tuple[str, str]:
    return _key(tool_context.session), tool_context.function_call_id or ""


def _live(events: Sequence[Any]) -> list[Any]:
    kept: list[Any] = []
    for event in events:
        if before := _rewinds(event):
            at = next((at for at, each in enumerate(kept) if each.invocation_id == before), len(kept))
            del kept[at:]
        else:
            kept.append(event)
    return kept


def _rewinds(event: Any) -> str:
    return getattr(event.actions, "rewind_before_invocation_id", None) or ""


def _parts(events: Sequence[Any], is_told: Callable[[str], bool] = lambda _: False) -> list[Part]:
    """Convert events to parts. `is_told` says whether the call of an inner agent was already decided."""
    parts: list[Part] = []
    made = {call.id for event in events for call in event.get_function_calls() if call.id}
    for event in events:
        if event.partial:
            continue
        if getattr(event.actions, "compaction", None) is not None:
            parts.append(Summary())
            continue
        is_aside = _is_aside(event, made)
        by: By = "user" if event.author == "user" else "agent"
        given, hidden = (event.content.parts or ()) if event.content else (), event.actions.requested_tool_confirmations
        pieces = [piece for part in given for piece in _pieces(part, by, event.content.role)]
        # Until a call is confirmed, its result is only a placeholder.
        pieces = [each for each in pieces if not (isinstance(each, Answered) and each.id in hidden)]
        if is_aside or (by == "user" and _node(event)):
            calls = [each for each in pieces if isinstance(each, Asked | Answered)]
            pieces = [each for each in calls if not (is_aside and is_told(each.id))]
        if pieces or (event.content and not given):
            parts += parts_of(by, pieces, event.id or "")
        # A transcript of speech may contain errors.
        if event.input_transcription:
            parts += parts_of("user", [event.input_transcription.text or "", None], event.id or "")
        if event.output_transcription and not is_aside:
            parts += parts_of("agent", [event.output_transcription.text or "", None], event.id or "")
    return parts


def _pieces(part: Any, by: By, role: str) -> list[Piece]:
    """Return the piece in a part as a one-item list, or an empty list if the user does not see the part."""
    if named := part.function_call or part.function_response:
        if (named.name or "").startswith(OWN):
            return [None] if named.name == INPUT else []
        if part.function_call:
            return [Asked(named.id or "", named.name, dict(named.args or {}))]
        return [Answered(named.id or "", *unwrapped(named.response))]
    if part.text and not part.thought:
        return [part.text]
    is_seen = by == "user" or (role != "user" and part.model_dump(exclude_none=True).keys() - _UNSEEN)
    return [None] if is_seen else []


def _node(event: Any) -> str:
    """Return the name of the workflow node that created an event. User messages have no node; a message from a node is
    input for another agent.
    """
    return getattr(getattr(event, "node_info", None), "path", "") or ""


def _is_aside(event: Any, calls: set[str]) -> bool:
    """Whether the speaker is an agent used as a tool by another agent. The user may not see its messages."""
    steps = (event.branch or "").replace(".", "@").split("@")
    return getattr(event, "isolation_scope", None) is None and any(step in calls for step in steps)


def _answers(tool_context: Any) -> Callable[[Prompt], Any]:
    """Return a function that stops the call and shows a prompt. ADK can ask only once for each call."""
    confirmation = tool_context.tool_confirmation
    if confirmation is None:
        return once(None)
    given = [confirmation.payload if confirmation.confirmed else _declined(tool_context)]
    return lambda prompt: given.pop() if given else {"id": prompt.id}


def _declined(tool_context: Any) -> dict[str, Any]:
    """Treat a declined confirmation as a denial, even if its payload says otherwise."""
    payload, id = tool_context.tool_confirmation.payload, tool_context.function_call_id
    asked = [event.actions.requested_tool_confirmations.get(id) for event in tool_context.session.events]
    prompts = [each.payload for each in asked if each is not None and isinstance(each.payload, dict)]
    said = payload if isinstance(payload, dict) else {}
    return {**said, "id": prompts[-1].get("id") if prompts else None, "confirm": False, "approve": False}


def _shown(result: Any) -> Any:
    only = result.get("result") if isinstance(result, dict) and result.keys() == {"result"} else result
    return only if only is not None else ""
