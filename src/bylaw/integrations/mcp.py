"""An MCP proxy: any client on one side, any server on the other, and the shield before every tool call. Extra `mcp`.

What is not a tool call passes through: the list of tools, resources, prompts, what the server asks of the client.
"""
# pyright: basic, reportMissingImports=false

import itertools
import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from unittest import mock

import anyio
import anyio.to_thread
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import McpError, ToolError
from fastmcp.server.dependencies import get_http_headers
from fastmcp.server.middleware import Middleware
from fastmcp.server.mixins import transport
from fastmcp.server.providers.proxy import FastMCPProxy
from fastmcp.tools.base import InputRequiredToolResult, Tool, ToolResult
from mcp_types import TextContent

from bylaw.errors import UsageError
from bylaw.integrations.follower import Follower, Heard, Part, Turn
from bylaw.integrations.mcp_asking import BY, answered, ask_for_yes, ask_in_words, can_ask, question_for_user
from bylaw.integrations.mcp_asking import MOST as MOST_ASKED
from bylaw.integrations.mcp_fronts import Fronts
from bylaw.integrations.mcp_lines import answering_stdio_server
from bylaw.integrations.mcp_links import Links, by_url
from bylaw.integrations.mcp_upwards import pass_upwards
from bylaw.integrations.sessions import MOST, Sessions
from bylaw.integrations.undecided import log, tell, undecided
from bylaw.shield import Decision, LiveSession, Shield

CONVERSATION = "bylaw/conversation"
"""In `_meta` of a call: the conversation it belongs to."""
TURN = "bylaw/turn"
"""In `_meta`: the agent's turn that asked for it, a number or a text; 1 and "1" are the same turn. Calls of one turn do
not count on each other's results."""
MESSAGES = "bylaw/messages"
"""In `_meta`: what user and assistant said since the last call, as chat messages; what was told before may be told
again. Without it, rules about what was said stay open. Calls and results are no talk: those the proxy sees itself, and
it takes nobody's word for them."""
_TALK = {"role", "content", "name", "id", "timestamp", "type"}
"""What a message that only says something may hold."""
HEADER = "bylaw-conversation"
"""The same as a header of HTTP, which a gateway sets: it wins over what the call says of itself."""
NAME = 300
"""Characters in the name of a conversation at most."""
NO_SERVER = -32000
"""What the client is told by number, of those that JSON-RPC leaves to servers."""
ANSWER = 15.0
"""Seconds in which a server that is asked whether it is there must answer."""


class ShieldMiddleware(Middleware):
    """Decides on every tool call before it goes on to the server."""

    def __init__(
        self,
        shield: Shield,
        *,
        context: Mapping[str, Any] | None = None,
        key_argument: str = "",
        conversation: str = "",
        fronts: Fronts | None = None,
        links: Links | None = None,
    ) -> None:
        self.shield = shield
        self._fronts = fronts or Fronts()
        self._links = links
        self._sessions = Sessions(shield, context=context)
        self._key_argument = key_argument
        self._conversation = conversation
        self._turns: dict[str, str | None] = {}
        self._followers: dict[str, Follower] = {}
        self._numbers = itertools.count(1)
        self._name = f"mcp-{uuid.uuid4().hex[:12]}"
        """Another for each proxy: several may go on with one conversation, and one that starts anew counts from 1."""

    async def on_request(self, context: Any, call_next: Any) -> Any:
        """Note who asks, for as long as it takes: what the server asks meanwhile is asked of them."""
        request = _request(context)
        if request is None or context.method == "subscriptions/listen":
            return await call_next(context)
        if self._links is not None:
            await self._links.shrink()
        with self._fronts.taking(request):
            if context.method == "tools/call":
                return await call_next(context)
            return await self._passed_on(context, call_next)

    async def _passed_on(self, context: Any, call_next: Any) -> Any:
        """What the server answers; asked again where it no longer knew the session, since it did nothing then."""
        try:
            return await call_next(context)
        except McpError as error:
            request = _request(context)
            if self._links is None or request is None or not await self._links.is_begun_anew(request.session, error):
                raise
        return await call_next(context)

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        """Let the call pass, or answer in the server's place."""
        tool, arguments = context.message.name, dict(context.message.arguments or {})
        id = f"{self._name}-{next(self._numbers)}"
        session: LiveSession | None = None
        try:
            meta = _meta(context)
            session = self._sessions.get(self._key(meta, arguments))
            asks = MESSAGES not in meta and can_ask(_request(context))
            decision = await anyio.to_thread.run_sync(self._decide, session, meta, tool, arguments, id, asks)
            if asks and decision.answer == "ask" and not decision.allowed:
                decision, id = await self._asked(_request(context), session, decision, arguments, id)
        except Exception as error:
            decision = undecided(self.shield, tool, arguments, error)
            session = None
        if not decision.allowed:
            await self._record(session, id, decision.feedback, error=True)
            return ToolResult(content=[TextContent(type="text", text=decision.feedback)], is_error=True)
        try:
            answer = await self._passed_on(context, call_next)
        except BaseException as error:
            # It may have been carried out or not.
            with anyio.CancelScope(shield=True):
                await self._record(session, id, "", captured=False)
            if isinstance(error, Exception) and (reason := await self._gone()):
                raise ToolError(f"{reason}; whether `{tool}` was carried out is not known") from error
            raise
        captured, content, error = _shown(answer)
        await self._record(session, id, content, error=error, captured=captured)
        return _with_note(answer, decision)

    async def _asked(
        self, request: Any, session: LiveSession, decision: Decision, arguments: dict[str, Any], id: str
    ) -> tuple[Decision, str]:
        """What is decided once the user was asked by elicitation, and the id of the call; one who does not answer is
        not asked again."""
        tool = decision.tool
        for _ in range(MOST_ASKED):
            if decision.answer != "ask" or decision.allowed:
                break
            question, card = question_for_user(decision), decision.card
            puts_cards = True
            if question and (said := await ask_in_words(request, question)) is not None:
                await anyio.to_thread.run_sync(answered, session, question, said)
            elif not question and card is not None and (yes := await ask_for_yes(request, card.text)) is not None:
                await anyio.to_thread.run_sync(lambda card=card, yes=yes: session.confirm(card, yes, by=BY))
            elif question or card is not None:
                puts_cards = False
            else:
                break
            await self._record(session, id, decision.feedback, error=True)
            id = f"{self._name}-{next(self._numbers)}"
            again = (session, tool, arguments, id, puts_cards)
            decision = await anyio.to_thread.run_sync(self._decide_again, *again)
            if not puts_cards:
                break
        return decision, id

    def _decide_again(
        self, session: LiveSession, tool: str, arguments: dict[str, Any], id: str, puts_cards: bool
    ) -> Decision:
        session.puts_cards = puts_cards
        return session.decide(tool, self._own(tool, arguments), id=id)

    async def on_list_tools(self, context: Any, call_next: Any) -> list[Any]:
        """The server's tools, as it tells of them."""
        tools = await call_next(context)
        if not tools and (reason := await self._gone()):
            # fastmcp tells of no tools where it reaches no server.
            raise McpError(code=NO_SERVER, message=reason)
        return [_AsGiven(name=tool.name, parameters=tool.parameters, given=tool) for tool in tools]

    async def _gone(self) -> str:
        """Why the server cannot be reached; nothing where it answers."""
        if self._links is None:
            return ""
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
        # A gateway sets the header, the client behind it the rest: it must not get out of its conversation.
        given = get_http_headers(include={HEADER}).get(HEADER) or meta.get(CONVERSATION)
        given = given or arguments.get(self._key_argument) or self._conversation
        if not given:
            return None
        if isinstance(given, bool) or not isinstance(given, int | str) or len(str(given)) > NAME:
            raise UsageError(f"the name of the conversation is not a text of at most {NAME} characters")
        return str(given)

    def _decide(
        self, session: LiveSession, meta: Mapping[str, Any], tool: str, arguments: dict[str, Any], id: str, asks: bool
    ) -> Decision:
        turn, said = _turn(meta), _said(meta)
        session.puts_cards = asks
        is_same = turn is not None and self._turns.get(session.id) == turn
        self._turns[session.id] = turn
        if is_same:
            session.resume_turn()
        elif said is not None:
            self._follower(session).follow(said)
        else:
            session.unheard()
        return session.decide(tool, self._own(tool, arguments), id=id)

    def _follower(self, session: LiveSession) -> Follower:
        """Tells what is new in what a client says was said: some send all of it each time."""
        follower = self._followers.pop(session.id, None)
        if follower is None or follower.session is not session:
            follower = Follower(session)
        self._followers[session.id] = follower
        if len(self._followers) > MOST:
            del self._followers[next(iter(self._followers))]
        return follower

    def _own(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments, without one that the pack does not know and that only names the conversation."""
        declared = self.shield.pack.schema.tools.get(tool)
        if declared is None or self._key_argument in declared.parameters:
            return arguments
        return {name: value for name, value in arguments.items() if name != self._key_argument}

    async def _record(self, session: LiveSession | None, id: str, content: Any, **told: Any) -> None:
        def keep(session: LiveSession) -> None:
            session.result(content, id=id, **told)
            # Nobody says when a conversation ends.
            session.flush()

        if session is None:
            return
        try:
            await anyio.to_thread.run_sync(keep, session)
        except Exception as error:
            # The tool has answered, and the agent is told what; until the log has it too, it does not count as seen.
            tell(error, f"the answer to call {id} is not in the log")


class _AsGiven(Tool):
    """A tool told of in the server's own words: fastmcp would add a title and notes of its own."""

    given: Tool

    def to_mcp_tool(self, **_: Any) -> Any:
        return self.given.to_mcp_tool(title=self.given.title, _meta=self.given.meta)


def _request(context: Any) -> Any:
    """The request as the client sent it, with the session that it can be asked back in."""
    return context.fastmcp_context.request_context if context.fastmcp_context is not None else None


def _meta(context: Any) -> Mapping[str, Any]:
    request = _request(context)
    return (request.meta if request is not None else None) or {}


def _turn(meta: Mapping[str, Any]) -> str | None:
    """The name of the turn, where the call says one."""
    turn = meta.get(TURN)
    if turn is None:
        return None
    if isinstance(turn, bool) or not isinstance(turn, int | str):
        raise UsageError(f"`{TURN}` is neither a whole number nor a text")
    return str(turn)


def _said(meta: Mapping[str, Any]) -> list[Part] | None:
    """What user and agent said to each other, and nothing else; None where the call does not tell."""
    if MESSAGES not in meta:
        return None
    messages = meta[MESSAGES]
    if not isinstance(messages, list):
        raise UsageError(f"`{MESSAGES}` is not a list")
    said: list[Part] = []
    for place, message in enumerate(messages):
        text = _talk(message)
        if text is None:
            raise UsageError(
                f"message {place} of `{MESSAGES}` is not a plain message from `user` or `assistant`",
                hint="leave out calls and results: the proxy has seen those itself",
            )
        key = str(message.get("id") or "")
        said.append(Heard(text, key) if message["role"] == "user" else Turn(text, (), key))
    return said


def _talk(message: Any) -> str | None:
    """The text of a message that does nothing but say it; None for any other."""
    if not isinstance(message, Mapping) or message.get("role") not in ("user", "assistant"):
        return None
    if (
        any(value for name, value in message.items() if name not in _TALK)
        or message.get("type", "message") != "message"
    ):
        return None
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [None]
    texts: list[Any] = [part["text"] for part in parts if isinstance(part, Mapping) and part.keys() == {"type", "text"}]
    is_text = len(texts) == len(parts) and all(isinstance(text, str) for text in texts)
    return "\n".join(texts) if is_text else None


def _shown(answer: Any) -> tuple[bool, Any, bool | None]:
    """What the agent is shown: whether that is known, the content, and whether it failed."""
    if isinstance(answer, InputRequiredToolResult):
        # The server asks for more before it goes on.
        return False, "", None
    structured = answer.structured_content
    if structured is not None:
        # A tool that returns no object has what it returns under this name.
        wrapped = structured.get("result") if structured.keys() == {"result"} else structured
        return True, wrapped, answer.is_error
    texts = [part.text for part in answer.content if isinstance(part, TextContent)]
    return True, "\n".join(texts), answer.is_error


def _with_note(answer: Any, decision: Decision) -> Any:
    """The answer, with what the agent is advised of beside it."""
    if not decision.feedback or isinstance(answer, InputRequiredToolResult):
        return answer
    note = TextContent(type="text", text=decision.feedback)
    return answer.model_copy(update={"content": [*answer.content, note]})


def proxy(
    shield: Shield,
    upstream: Any,
    *,
    context: Mapping[str, Any] | None = None,
    key_argument: str = "",
    conversation: str = "",
) -> Any:
    """A server that passes everything on to `upstream` (a URL, a transport, a server) but the calls the shield stops.

    A call's conversation is named by a header, in its `_meta`, or by the argument `key_argument`, the first that is
    there; `conversation` is the one that all calls belong to which name none.
    """
    fronts = Fronts()
    links = Links(upstream, fronts)
    server = FastMCPProxy(client_factory=links.client, name="bylaw", identity="upstream")
    pass_upwards(server, links)
    named = {"key_argument": key_argument, "conversation": conversation}
    shielded = ShieldMiddleware(shield, context=context, fronts=fronts, links=links, **named)
    server.add_middleware(shielded)
    return server


def upstream(where: str | tuple[str, ...]) -> Any:
    """What to stand before: a URL, or the command that starts a server, once for all calls."""
    if isinstance(where, str):
        return by_url(where)
    command, *arguments = where
    return StdioTransport(command, arguments, env=dict(os.environ))


def run(server: Any, address: tuple[str, int] | None = None, *, hosts: Sequence[str] = ()) -> None:
    """Serve: at an address by streamable HTTP, else on standard input and output.

    A request for another host, or from a page of another origin, is refused: a browser may have been led here by a
    foreign site. `hosts` are other names by which the address is reached, such as that of a gateway before it.
    """
    if address is None:
        with mock.patch.object(transport, "stdio_server", answering_stdio_server):
            server.run("stdio", show_banner=False)
        return
    host, port = address
    allowed = {
        "host_origin_protection": True,
        "allowed_hosts": [*hosts],
        "allowed_origins": [f"{scheme}://{each}" for each in hosts for scheme in ("http", "https")],
    }
    server.run("http", show_banner=False, host=host, port=port, uvicorn_config={"log_level": "warning"}, **allowed)
