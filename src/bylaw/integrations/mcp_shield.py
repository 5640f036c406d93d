"""Decides every tool call through an MCP proxy, and finds the client's conversation by the call's key.

Everything else passes through. The text of resources and prompts is recorded as content.
"""
# pyright: basic, reportMissingImports=false

import itertools
import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from fastmcp.exceptions import McpError, ToolError
from fastmcp.server.dependencies import get_http_headers
from fastmcp.server.middleware import Middleware
from fastmcp.tools.base import InputRequiredToolResult, Tool, ToolResult
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types import TextContent, ToolListChangedNotification
from mcp_types import Tool as McpTool
from msgspec import Struct

from bylaw.integrations.follower import Follower, log, tell, undecided
from bylaw.integrations.guard import Followers
from bylaw.integrations.history import Heard, Part
from bylaw.integrations.mcp_asking import MOST_QUESTIONS, Round, can_ask, elicited, needs_rounds, take, take_round
from bylaw.integrations.mcp_catalogue import Catalogue
from bylaw.integrations.mcp_handshake import (
    CONVERSATION,
    NO_SERVER,
    agent_in,
    name_in,
    request_of,
    said_in,
    turn_in,
    vouched,
)
from bylaw.integrations.mcp_passing import Front, Fronts, Links
from bylaw.integrations.mcp_result import (
    PROMPT,
    RESOURCE,
    HandedOut,
    embedded,
    never_ran,
    prompt_parts,
    resource_parts,
    returned,
    with_note,
)
from bylaw.integrations.mcp_showing import error_for_agent, for_agent, masking_all, resource_for_agent, shows_all
from bylaw.policy.tool import Tool as DeclaredTool
from bylaw.shield import Decision, LiveSession, Shield

PAGE_CHANGED = "the page has changed since the decision on this call"
PAGE_UNKNOWN = "the page could not be shown again before the call"


MOST = 10_000
"""The maximum number of conversations in memory, and of conversations whose last tool list is remembered."""
Hidden = frozenset[str]
HEADER = "bylaw-conversation"
"""The HTTP header in which a gateway names the conversation. It overrides the call's own value."""
ANSWER = 15.0
"""The time limit for the server's answer to a ping, in seconds."""
DECIDING = 200
"""The maximum number of concurrent decisions. Decisions that wait for a model do not delay others."""


class Hiding:
    """The tools hidden from each conversation's client: those hidden from its last list, and those to hide now."""

    def __init__(self, tools: Mapping[str, DeclaredTool], listeners: set[InMemorySubscriptionBus]) -> None:
        self._tools = tools
        self._told: OrderedDict[str, Hidden] = OrderedDict()
        self.listeners = listeners
        """Clients subscribed to changes, in the protocol without sessions."""

    def update(self, session: LiveSession) -> tuple[Hidden, bool]:
        """Return the tools that the user's messages so far do not need, and whether these tools have changed.

        No tools are hidden until the user has said something.
        """
        allowance, hidden = session.allowance, Hidden()
        if allowance is not None:
            # A generic tool is needed if any of its actions is needed.
            tools = self._tools.values()
            hidden = Hidden(
                self._tools.keys()
                - {name for each in tools if allowance.may_need(each) for name in (each.name, *each.of)}
            )
        before = self._told.pop(session.id, Hidden())
        self._told[session.id] = hidden
        if len(self._told) > MOST:
            self._told.popitem(last=False)
        return hidden, before != hidden

    async def announce(self, request: Any) -> None:
        """Ask the client to request the tool list again."""
        if self.listeners:
            for bus in list(self.listeners):
                await bus.publish(ToolsListChanged())
        else:
            await Front(request.session, request.request_id).tell(ToolListChangedNotification())


class ShieldMiddleware(Middleware):
    def __init__(
        self,
        shield: Shield,
        *,
        context: Mapping[str, Any] | None = None,
        key_argument: str = "",
        conversation: str = "",
        fronts: Fronts,
        links: Links,
        catalogue: Catalogue,
        hiding: Hiding | None = None,
    ) -> None:
        self.shield = shield
        self._tools = shield.pack.schema.tools
        self._hiding = hiding
        """Finds the tools that a request cannot need. If None, all tools are listed."""
        self._catalogue = catalogue
        shield.doubts = catalogue.doubts
        self._fronts = fronts
        fronts.drops_notes = not all(map(shows_all, self._tools.values()))
        self._links = links
        self._followers = Followers(shield, lambda given: given or None, most=MOST, passes_history=False)
        self._context = dict(context or {})
        self._key_argument = key_argument
        self._conversation = conversation
        self._turns: dict[str, str | None] = {}
        self._under_way: Counter[str] = Counter()
        """The number of running calls of the main agent, by conversation."""
        self._handed = HandedOut()
        self._deciding = anyio.CapacityLimiter(DECIDING)
        self._numbers = itertools.count(1)
        self._name = f"mcp-{uuid.uuid4().hex[:12]}"
        """A unique name for this proxy, because several proxies may continue one conversation, and a restarted proxy
        counts from 1 again.
        """

    async def on_request(self, context: Any, call_next: Any) -> Any:
        """Register a client during its request, so that questions from the server reach it."""
        request = request_of(context)
        if request is None or context.method == "subscriptions/listen":
            return await call_next(context)
        await self._links.shrink()
        with self._fronts.taking(request):
            if context.method == "tools/call":
                return await call_next(context)
            return await self._passed_on(context, call_next)

    async def _passed_on(self, context: Any, call_next: Any) -> Any:
        """Return the server's response. If the server has forgotten the session, send the request again, because it did
        not run.
        """
        try:
            return await call_next(context)
        except McpError as error:
            request = request_of(context)
            if request is None or not await self._links.is_begun_anew(request.session, error):
                raise
        return await call_next(context)

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        """Pass the call on, or answer in place of the server."""
        tool, arguments = context.message.name, dict(context.message.arguments or {})
        request, round, id, agent = request_of(context), Round(), self._new_id(), ""
        session: LiveSession | None = None
        try:
            meta = (request.meta if request is not None else None) or {}
            agent = agent_in(meta)
            round, answer = take_round(request)
            follower = await self._follower(self._key(meta, arguments), self._vouched(request, meta))
            session = follower.session
            # The client of an inner agent may let a model answer for the user.
            call = _Call(follower, tool, self._own(tool, arguments), meta, agent, not agent and can_ask(request))
            decision, id = await anyio.to_thread.run_sync(self._decide, call, round, answer, id, limiter=self._deciding)
            if self._hiding is not None and (await anyio.to_thread.run_sync(self._hiding.update, session))[1]:
                await self._hiding.announce(request)
            if call.can_ask and not decision.allowed:
                if not needs_rounds(request):
                    decision, id = await self._asked(request, call, decision, id)
                elif session.channel.puts_cards and (question := round.asks(decision)) is not None:
                    await self._record(session, id, decision.feedback, error=True)
                    return question
            if decision.allowed and id != round.call:
                decision, id = await self._checked(call, decision, id)
        except Exception as error:
            decision = undecided(self.shield, tool, arguments, error)
            session = None
        if not decision.allowed:
            await self._record(session, id, decision.feedback, error=True)
            return ToolResult(content=[TextContent(type="text", text=decision.feedback)], is_error=True)
        try:
            with self._carrying_out(session, agent):
                answer = await self._passed_on(context, call_next)
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                if never_ran(error):
                    await self._record(session, id, str(error), error=True, refused=True)
                else:
                    # The call may or may not have taken effect.
                    await self._record(session, id, "", captured=False)
            if isinstance(error, Exception) and (reason := await self._gone()):
                raise ToolError(f"{reason}; it is unknown whether `{tool}` ran") from error
            raise error_for_agent(error, self._tools.get(tool)) from None
        if isinstance(answer, InputRequiredToolResult):
            await self._interrupt(session, id, decision)
            return round.goes_on(id, answer)
        await self._record(session, id, **returned(answer, tool))
        await self._bring_along(session, embedded(answer.content))
        return with_note(for_agent(answer, self._tools.get(tool)), decision)

    @contextmanager
    def _carrying_out(self, session: LiveSession | None, agent: str) -> Generator[None]:
        if session is None or agent:
            yield
            return
        self._under_way[session.id] += 1
        try:
            yield
        finally:
            self._under_way[session.id] -= 1
            self._under_way += Counter()

    async def _follower(self, key: str | None, context: dict[str, Any]) -> Follower:
        return await anyio.to_thread.run_sync(self._followers.get, key or "", context, limiter=self._deciding)

    def _new_id(self) -> str:
        return f"{self._name}-{next(self._numbers)}"

    def _decide(self, call: "_Call", round: Round, answer: Any, id: str) -> tuple[Decision, str]:
        """Return the decision on a call and the id of the call. A continued call keeps its earlier id."""
        self._catalogue.refresh()
        # In an inner agent's conversation, the main agent is the one who speaks.
        session, said = call.session, None if call.agent else said_in(call.meta)
        session.channel.puts_cards = call.can_ask
        session.channel.files_questions = (
            said is None and not (call.can_ask or call.agent) and self.shield.log is not None
        )
        if (round.question or round.card) and not call.agent:
            if said is not None:
                # The user's text before the answer may be a refusal.
                call.follower.follow(self._handed.own(session, said))
            session.channel.puts_cards = take(session, answer, question=round.question, card=round.card)
            return self._decide_now(call, id), id
        turn = turn_in(call.meta)
        is_same = turn is not None and self._turns.get(session.id) == turn
        self._turns[session.id] = turn
        if said is not None:
            # The agent's final text belongs to its current turn, which continues.
            heard = _up_to_the_user(said) if is_same else said
            call.follower.follow(self._handed.own(session, heard))
        elif not (is_same or round.call or (call.agent and self._under_way[session.id])):
            # There are no new messages while the main agent waits for a call of an inner agent.
            session.channel.reports_user = False
            session.unheard()
        if is_same:
            session.resume_turn()
        if round.call and (before := session.resume(round.call, call.tool, call.arguments)) is not None:
            return before, round.call
        return self._decide_now(call, id), id

    def _decide_now(self, call: "_Call", id: str) -> Decision:
        return call.session.decide(call.tool, call.arguments, id=id, agent=call.agent)

    async def _asked(self, request: Any, call: "_Call", decision: Decision, id: str) -> tuple[Decision, str]:
        """Ask the user during the call. Return the new decision and the id of the call. An unanswered question is not
        repeated.
        """
        session = call.session
        for _ in range(MOST_QUESTIONS):
            round = Round().asking(decision)
            if decision.allowed or not session.channel.puts_cards or round is None:
                break
            answer = await elicited(request, round.form(decision))
            await self._record(session, id, decision.feedback, error=True)
            decision, id = await anyio.to_thread.run_sync(
                self._decide, call, round, answer, self._new_id(), limiter=self._deciding
            )
        return decision, id

    async def _checked(self, call: "_Call", decision: Decision, id: str) -> tuple[Decision, str]:
        """Take a snapshot just before an allowed call acts on a page element. If the effect of the call would now be
        different, decide the call again.
        """
        tool = await anyio.to_thread.run_sync(call.session.page_tool, id)
        if not tool:
            return decision, id
        snapshot = await self._snapshot(tool)
        if snapshot is not None and await anyio.to_thread.run_sync(call.session.is_same_on, id, snapshot):
            return decision, id
        why = PAGE_UNKNOWN if snapshot is None else PAGE_CHANGED
        await self._record(call.session, id, why, error=True, refused=True)
        id = self._new_id()
        return await anyio.to_thread.run_sync(self._decide_now, call, id, limiter=self._deciding), id

    async def _snapshot(self, tool: str) -> str | None:
        try:
            with anyio.fail_after(ANSWER):
                async with self._links.client() as client:
                    answer = await client.call_tool_mcp(tool, {})
        except Exception as error:
            tell(error, f"`{tool}` does not show the page again")
            return None
        return None if answer.is_error else "\n".join(each.text for each in answer.content if each.type == "text")

    async def on_read_resource(self, context: Any, call_next: Any) -> Any:
        """Pass on a resource and record its text as content."""
        masking = masking_all(self._tools.values())
        try:
            answer = await call_next(context)
        except Exception as error:
            raise error_for_agent(error, masking) from None
        uri = context.message.uri
        await self._hand_out(context, RESOURCE, resource_parts(answer.to_mcp_result(uri).contents))
        return answer if masking is None else resource_for_agent(answer, masking)

    async def on_get_prompt(self, context: Any, call_next: Any) -> Any:
        """Pass on a prompt and record its text, which does not come from the user even if it has the user's role."""
        answer = await call_next(context)
        await self._hand_out(context, PROMPT, prompt_parts(answer.messages))
        return answer

    async def _hand_out(self, context: Any, way: str, parts: list[dict[str, str]]) -> None:
        request, session = request_of(context), None
        meta = (request.meta if request is not None else None) or {}
        key = self._key(meta, {})
        if key is not None:
            session = (await self._follower(key, self._vouched(request, meta))).session
        await anyio.to_thread.run_sync(self._handed.note, session, way, parts, self._new_id())

    async def _bring_along(self, session: LiveSession | None, parts: list[dict[str, str]]) -> None:
        """Record the text of the resources in a tool's result."""
        note = partial(self._handed.note, session, RESOURCE, parts, self._new_id())
        if not await self._logged(note, "the data that came with a result is not in the log"):
            self._handed.note(None, RESOURCE, parts, "")

    async def on_list_tools(self, context: Any, call_next: Any) -> list[Any]:
        """Return the server's tools with the accepted descriptions."""
        tools = await call_next(context)
        if not tools and (reason := await self._gone()):
            # fastmcp returns an empty tool list if it cannot reach the server.
            raise McpError(code=NO_SERVER, message=reason)
        listed = [told_of(tool).model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
        shown = await anyio.to_thread.run_sync(self._catalogue.take, listed)
        hidden = await self._hidden(self._hiding, request_of(context)) if self._hiding is not None else ()
        told = [
            each if shows_all(self._tools.get(each["name"])) else {**each, "outputSchema": None}
            for each in shown
            if each["name"] not in hidden
        ]
        return [_AsTold(name=each["name"], parameters=each["inputSchema"], told=each) for each in told]

    async def _hidden(self, hiding: Hiding, request: Any) -> Hidden:
        """Return the tools that the conversation cannot use. The set is empty if the conversation is unknown."""
        meta = (request.meta if request is not None else None) or {}
        key = self._key(meta, {})
        if key is None:
            return frozenset()
        said = None if agent_in(meta) else said_in(meta)
        return await anyio.to_thread.run_sync(
            self._hidden_now, hiding, key, self._vouched(request, meta), said, limiter=self._deciding
        )

    def _hidden_now(self, hiding: Hiding, key: str, context: dict[str, Any], said: Any) -> Hidden:
        follower = self._followers.get(key, context)
        session = follower.session
        if said is not None:
            follower.follow(self._handed.own(session, said))
        hidden, _ = hiding.update(session)
        return hidden

    async def _gone(self) -> str:
        try:
            with anyio.fail_after(ANSWER):
                async with self._links.client() as client:
                    await client.list_tools()
        except Exception as error:
            reason = f"the server behind this proxy does not answer ({str(error) or type(error).__name__})"
            log.error(reason)
            return reason
        return ""

    def _key(self, meta: Mapping[str, Any], arguments: Mapping[str, Any]) -> str | None:
        # A gateway sets the header, and the client behind the gateway must stay in that conversation.
        header = get_http_headers(include={HEADER}).get(HEADER)
        given = header if header is not None else meta.get(CONVERSATION) or arguments.get(self._key_argument)
        return name_in(given or self._conversation, "the conversation") if given or self._conversation else None

    def _vouched(self, request: Any, meta: Mapping[str, Any]) -> dict[str, Any]:
        """Return the operator's context, extended by the context from the gateway or the client."""
        return vouched(request, meta) | self._context

    def _own(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Drop an undeclared argument that only names the conversation."""
        declared = self._tools.get(tool)
        if declared is None or self._key_argument in declared.parameters:
            return arguments
        return {name: value for name, value in arguments.items() if name != self._key_argument}

    async def _interrupt(self, session: LiveSession | None, id: str, decision: Decision) -> None:
        """Record that the server needs more input for a call. Until it gets the input, the call is neither done nor
        refused.

        If recording fails, the repeated call is decided again, and its confirmation is no longer valid.
        """
        if session is not None:
            what = f"the question about `{decision.tool}` is not in the log"
            await self._logged(partial(session.interrupt, id, decision), what)

    async def _record(self, session: LiveSession | None, id: str, content: Any = "", **told: Any) -> None:
        """Record a result. If recording fails, the agent still gets the result, but the log does not show that the
        agent has seen it.
        """

        def keep(session: LiveSession) -> None:
            session.result(content, id=id, **told)
            # Clients do not announce the end of a conversation.
            session.flush()

        if session is not None:
            await self._logged(partial(keep, session), f"the answer to call {id} is not in the log")

    async def _logged(self, work: Callable[[], Any], what: str) -> bool:
        """Write to the log. Return whether this succeeded, and raise no error, because the call may have run."""
        try:
            await anyio.to_thread.run_sync(work)
        except Exception as error:
            tell(error, what)
            return False
        return True


def _up_to_the_user(said: list[Part]) -> list[Part]:
    last = max((at for at, part in enumerate(said) if isinstance(part, Heard)), default=-1)
    return said[: last + 1]


class _Call(Struct, frozen=True):
    follower: Follower
    tool: str
    arguments: dict[str, Any]
    meta: Mapping[str, Any]
    agent: str
    """The inner agent that makes the call, or an empty string for the main agent."""
    can_ask: bool

    @property
    def session(self) -> LiveSession:
        return self.follower.session


class _AsTold(Tool):
    """A tool exactly as the server describes it. fastmcp would add a title and notes."""

    told: dict[str, Any]

    def to_mcp_tool(self, **_: Any) -> Any:
        return McpTool.model_validate(self.told)


def told_of(tool: Tool) -> McpTool:
    return tool.to_mcp_tool(title=tool.title, _meta=tool.meta)
