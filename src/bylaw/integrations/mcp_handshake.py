"""Answers a client's handshake immediately, while the pack loads and the server behind the proxy starts.

Clients wait ten seconds for the answer, and some never recover from a timeout. All other requests wait until the shield
is ready.
"""
# pyright: basic, reportMissingImports=false

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

import msgspec
from fastmcp.exceptions import McpError
from fastmcp.server.dependencies import get_http_headers
from fastmcp.server.middleware import Middleware
from fastmcp.server.providers.proxy import ProxyMetadataMiddleware
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
from pydantic import ValidationError

from bylaw.errors import BylawError, UsageError
from bylaw.integrations.follower import log
from bylaw.integrations.guard import joined
from bylaw.integrations.history import Heard, Part, Summary, Turn
from bylaw.integrations.mcp_catalogue import Catalogue
from bylaw.integrations.mcp_passing import Fronts, connection
from bylaw.shield import Shield
from bylaw.trace.readers.parts import heard, is_all_words
from bylaw.trace.recorded_value import repeated_key

CONVERSATION = "bylaw/conversation"
"""The conversation of the call."""
TURN = "bylaw/turn"
"""The agent's turn that requested the call, as a number or text. 1 and "1" are the same turn. Calls in one turn do not
see each other's results.
"""
AGENT = "bylaw/agent"
"""The inner agent that makes the call. Its input is not the user's message, and the only results it has seen are its
own.
"""
CONTEXT = "bylaw/context"
"""The client's context, such as `{"signed_in_as": "C1"}`. Each principal has a separate conversation."""
MESSAGES = "bylaw/messages"
"""User and assistant messages since the last call, as chat messages.

Messages may be repeated. Without messages, rules about messages stay undecided. Leave out calls and results, because
the proxy sees them itself.
"""
NAME = 300
"""The maximum length of a conversation's or an agent's name."""
_TALK = {"role", "content", "name", "id", "timestamp", "type"}
"""The fields of a text-only message."""
_NOTES = ("system", "developer")
"""The roles of messages that no participant wrote: instructions, and summaries of earlier messages."""


def name_in(given: Any, of: str) -> str:
    if isinstance(given, bool) or not isinstance(given, int | str) or len(str(given)) > NAME:
        raise UsageError(f"the name of {of} must be text of at most {NAME} characters")
    return str(given)


def context_in(given: Any, where: str) -> dict[str, Any]:
    """Return the context stored under this name in a request. JSON text is decoded."""
    if isinstance(given, str):
        try:
            read = msgspec.json.decode(given)
        except msgspec.DecodeError:
            read = ()
        if read and (twice := repeated_key(given)):
            raise UsageError(f"{where} gives `{twice}` twice")
        given = read
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise UsageError(f"{where} is not an object of names and values", hint='such as `{"signed_in_as": "C1"}`')
    return given


def agent_in(meta: Mapping[str, Any]) -> str:
    """Return the inner agent that makes the call, or an empty string for the main agent."""
    return name_in(meta[AGENT], "the agent") if meta.get(AGENT) else ""


def turn_in(meta: Mapping[str, Any]) -> str | None:
    turn = meta.get(TURN)
    if turn is None:
        return None
    if isinstance(turn, bool) or not isinstance(turn, int | str):
        raise UsageError(f"`{TURN}` is neither a whole number nor text")
    return str(turn)


def said_in(meta: Mapping[str, Any]) -> list[Part] | None:
    """Return the messages of the user and the agent in the call. None if the call carries no messages."""
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
                hint="omit calls and results, because the proxy has already seen them",
            )
        key = str(message.get("id") or "")
        match message["role"]:
            case "user":
                is_theirs = not message.get("name")
                said.append(Heard(text if is_theirs else "", key, is_theirs and heard(message.get("content"))[1]))
            case "assistant":
                said.append(Turn(text, (), key, is_all_words(message.get("content"))))
            case _:
                said.append(Summary())
    return said


def _talk(message: Any) -> str | None:
    """Return the text of a message, or None if the message contains more than text."""
    if not isinstance(message, Mapping) or message.get("role") not in ("user", "assistant", *_NOTES):
        return None
    if (
        any(value not in (None, "", [], {}) for name, value in message.items() if name not in _TALK)
        or message.get("type", "message") != "message"
    ):
        return None
    content = message.get("content")
    if isinstance(content, str):
        return content
    texts = [_part(part) for part in content] if isinstance(content, list) else [None]
    return None if None in texts else "\n".join(text for text in texts if text)


def _part(part: Any) -> str | None:
    """Return the text of a message part. Empty for a picture or a file, and None for any other part."""
    match part:
        case {"type": "text" | "input_text" | "output_text", "text": str(text)} if not part.get("name"):
            return text
        case {"type": "image" | "image_url" | "input_image" | "audio" | "input_audio" | "file" | "input_file"}:
            return ""
        case {"type": "document" | "video" | "thinking" | "redacted_thinking" | "reasoning"}:
            return ""
        case _:
            return None


PATIENCE = 4.0
"""How many seconds a handshake waits for the server's introduction."""
CONTEXT_HEADER = "bylaw-context"
"""The gateway's context as JSON. It overrides the client's context."""
NO_SERVER = -32000
"""The error code for the client, from the range that JSON-RPC reserves for servers."""
_HANDSHAKES = ("initialize", "server/discover")


class Gate(Middleware):
    """Answers handshakes immediately. Passes other requests through the shield once it is ready."""

    def __init__(self, shield: "Shield | Future[Shield]", make: Callable[[Shield], Middleware], fronts: Fronts) -> None:
        self._shield, self._make, self._fronts = shield, make, fronts
        self._made = make(shield) if isinstance(shield, Shield) else None

    async def __call__(self, context: Any, call_next: Any) -> Any:
        if context.method in _HANDSHAKES:
            return await super().__call__(context, call_next)
        shielded = await self._shielded()
        return await saying_whose(context, partial(shielded, call_next=call_next))

    async def on_request(self, context: Any, call_next: Any) -> Any:
        """Register the client of a handshake, because the server may ask that client a question when its session
        begins.
        """
        request = request_of(context)
        if request is None:
            return await call_next(context)
        with self._fronts.taking(request):
            return await call_next(context)

    async def on_initialize(self, context: Any, call_next: Any) -> Any:
        """Keep the context from the start of an MCP session."""
        request = request_of(context)
        state = getattr(connection(request.session), "state", None) if request is not None else None
        if request is not None and state is not None:
            told = context_in((request.meta or {}).get(CONTEXT), f"`{CONTEXT}`")
            given = get_http_headers(include={CONTEXT_HEADER}).get(CONTEXT_HEADER)
            header = None if given is None else context_in(given, f"the header `{CONTEXT_HEADER}`")
            state[CONTEXT] = (told, header)
        return await call_next(context)

    async def _shielded(self) -> Middleware:
        if isinstance(self._shield, Future) and self._made is None:
            try:
                shield = await asyncio.shield(asyncio.wrap_future(self._shield))
            except Exception as error:
                reason = str(error) if isinstance(error, BylawError) else type(error).__name__
                log.error("the proxy could not start: %s", reason)
                raise McpError(code=NO_SERVER, message=f"the proxy could not start: {reason}") from error
            # Another request may have created the client in the meantime.
            self._made = self._made or self._make(shield)
        assert self._made is not None
        return self._made


class Introduction(ProxyMetadataMiddleware):
    """Adds the server's introduction to the answer to a handshake, if the introduction arrives in time.

    fastmcp waits for the server without a time limit, and has no setting for this wait or for the forwarded
    instructions.
    """

    def __init__(self, *given: Any, catalogue: Catalogue, shield: "Shield | Future[Shield]", **settings: Any) -> None:
        super().__init__(*given, **settings)
        self._catalogue = catalogue
        self._shield = shield
        self._reading: set[asyncio.Task[Any]] = set()

    async def _read_upstream(self, client: Any, context: Any) -> Any:
        reading = asyncio.ensure_future(super()._read_upstream(client, context))
        # If this read were cancelled, the server would receive a second handshake.
        self._reading.add(reading)
        reading.add_done_callback(self._done)
        waited: set[asyncio.Future[Any]] = {reading}
        if isinstance(self._shield, Future):
            waited.add(asyncio.ensure_future(_settled(self._shield)))
        await asyncio.wait(waited, timeout=PATIENCE)
        return reading.result() if reading.done() else None

    def _updates(self, result: Any, upstream: Any) -> dict[str, Any]:
        """Return the accepted server instructions, because the model reads them like descriptions.

        If the pack has loaded, the shield's own instructions follow. They do not prescribe messages to the user,
        because messages do not pass through MCP.
        """
        updates = super()._updates(result, upstream)
        shown = joined(self._catalogue.instructions(upstream.instructions or ""), self._instructions())
        return {**updates, "instructions": shown or None} if result.instructions is None else updates

    def _instructions(self) -> str:
        found = self._shield
        if isinstance(found, Future):
            is_read = found.done() and not found.cancelled() and found.exception() is None
            found = found.result() if is_read else None
        return "" if found is None or found.postures.posture == "shadow" else found.instructions(heard=False)

    def _done(self, reading: "asyncio.Task[Any]") -> None:
        self._reading.discard(reading)
        if not reading.cancelled() and (error := reading.exception()) is not None:
            log.error("the server behind this proxy does not answer (%s)", str(error) or type(error).__name__)


async def _settled(shield: "Future[Shield]") -> None:
    """Wait until the pack has loaded or failed to load. The code that uses the shield reports a failure."""
    read = asyncio.wrap_future(shield)
    await asyncio.wait({read})
    _ = read.cancelled() or read.exception()


async def saying_where(ctx: Any, call_next: Any) -> Any:
    """Answer a request that has unreadable parameters. The answer names the location of the error."""
    try:
        return await call_next(ctx)
    except ValidationError as error:
        place, why = _fault_at(error)
        raise McpError(code=INVALID_PARAMS, message=f"`params{place}` of `{ctx.method}`: {why}") from error


async def saying_whose(ctx: Any, call_next: Any) -> Any:
    """Report an unreadable response as an error of the server, not of the request.

    The call may have run, and "invalid params" would suggest that it has not.
    """
    try:
        return await call_next(ctx)
    except ValidationError as error:
        place, why = _fault_at(error)
        said = f"the server's answer to `{ctx.method}` cannot be read: `result{place}`: {why}"
        raise McpError(code=INTERNAL_ERROR, message=said) from error


def _fault_at(error: ValidationError) -> tuple[str, str]:
    first: Any = error.errors(include_url=False, include_input=False)[0]
    return "".join(f".{each}" for each in first["loc"] if each != "params"), first["msg"]


def vouched(request: Any, meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context from the gateway's header, or from the client if there is no header.

    Behind a gateway, the client's own context is ignored. A call without context gets the context of its MCP session.
    """
    kept: Any = getattr(connection(request.session), "state", {}).get(CONTEXT) if request is not None else None
    began, header = kept or ({}, None)
    given = get_http_headers(include={CONTEXT_HEADER}).get(CONTEXT_HEADER)
    if given is not None:
        header = (header or {}) | context_in(given, "the header")
    # The gateway's header takes precedence even if it names no user.
    return began | context_in(meta.get(CONTEXT), f"`{CONTEXT}`") if header is None else header


def request_of(context: Any) -> Any:
    """Return the client's request, and the session through which the client can be asked."""
    return context.fastmcp_context.request_context if context.fastmcp_context is not None else None
