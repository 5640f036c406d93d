"""The handshake with a client is answered at once, while the pack is read and the server behind the proxy starts.

Clients wait ten seconds for it, and some then never get on. All else waits: nothing is done before the shield is there.
"""
# pyright: basic, reportMissingImports=false

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

from fastmcp.exceptions import McpError
from fastmcp.server.dependencies import get_http_headers
from fastmcp.server.middleware import Middleware
from fastmcp.server.providers.proxy import ProxyMetadataMiddleware
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
from pydantic import ValidationError

from bylaw.errors import BylawError
from bylaw.integrations.follower import log
from bylaw.integrations.guard import joined
from bylaw.integrations.mcp_catalogue import Catalogue
from bylaw.integrations.mcp_meta import CONTEXT, context_in
from bylaw.integrations.mcp_passing import Fronts, connection
from bylaw.shield import Shield

PATIENCE = 4.0
"""Seconds that a handshake waits for what the server says of itself."""
CONTEXT_HEADER = "bylaw-context"
"""What the gateway vouches for, as JSON: it wins over what the client says."""
NO_SERVER = -32000
"""What the client is told by number, of those that JSON-RPC leaves to servers."""
_HANDSHAKES = ("initialize", "server/discover")


class Gate(Middleware):
    """What every request passes through: a handshake at once, all else by way of the shield, once it is there."""

    def __init__(self, shield: "Shield | Future[Shield]", make: Callable[[Shield], Middleware], fronts: Fronts) -> None:
        self._shield, self._make, self._fronts = shield, make, fronts
        self._made = make(shield) if isinstance(shield, Shield) else None

    async def __call__(self, context: Any, call_next: Any) -> Any:
        if context.method in _HANDSHAKES:
            return await super().__call__(context, call_next)
        shielded = await self._shielded()
        return await saying_whose(context, partial(shielded, call_next=call_next))

    async def on_request(self, context: Any, call_next: Any) -> Any:
        """Note who shakes hands: the server may ask them something as its own session begins."""
        request = request_of(context)
        if request is None:
            return await call_next(context)
        with self._fronts.taking(request):
            return await call_next(context)

    async def on_initialize(self, context: Any, call_next: Any) -> Any:
        """Keep what is vouched for as a session of MCP begins."""
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
            # Another request may have waited as well.
            self._made = self._made or self._make(shield)
        assert self._made is not None
        return self._made


class Introduction(ProxyMetadataMiddleware):
    """What the server says of itself goes along with a handshake if it says so in time.

    fastmcp waits for the server without a limit, and offers no setting for that nor for the instructions it forwards.
    """

    def __init__(self, *given: Any, catalogue: Catalogue, shield: "Shield | Future[Shield]", **settings: Any) -> None:
        super().__init__(*given, **settings)
        self._catalogue = catalogue
        self._shield = shield
        self._reading: set[asyncio.Task[Any]] = set()

    async def _read_upstream(self, client: Any, context: Any) -> Any:
        reading = asyncio.ensure_future(super()._read_upstream(client, context))
        # Broken off, the server would be greeted a second time.
        self._reading.add(reading)
        reading.add_done_callback(self._done)
        waited: set[asyncio.Future[Any]] = {reading}
        if isinstance(self._shield, Future):
            waited.add(asyncio.ensure_future(_settled(self._shield)))
        await asyncio.wait(waited, timeout=PATIENCE)
        return reading.result() if reading.done() else None

    def _updates(self, result: Any, upstream: Any) -> dict[str, Any]:
        """The server's instructions are shown as they were accepted: the model reads them like descriptions. Those of
        the shield follow, if the pack has been read by now; they hold no sentences, since MCP carries no messages."""
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
    """Wait until the pack has been read, or could not be; whoever needs the shield reports that."""
    read = asyncio.wrap_future(shield)
    await asyncio.wait({read})
    _ = read.cancelled() or read.exception()


async def saying_where(ctx: Any, call_next: Any) -> Any:
    """Answer a request whose parameters cannot be read with their place."""
    try:
        return await call_next(ctx)
    except ValidationError as error:
        place, why = _fault_at(error)
        raise McpError(code=INVALID_PARAMS, message=f"`params{place}` of `{ctx.method}`: {why}") from error


async def saying_whose(ctx: Any, call_next: Any) -> Any:
    """Answer a request whose parameters were read, but not what its server answered: that is no fault of the request.

    It may have been carried out; "invalid params" says that it was not.
    """
    try:
        return await call_next(ctx)
    except ValidationError as error:
        place, why = _fault_at(error)
        said = f"the server's answer to `{ctx.method}` cannot be read: `result{place}`: {why}"
        raise McpError(code=INTERNAL_ERROR, message=said) from error


def _fault_at(error: ValidationError) -> tuple[str, str]:
    """The place of what is wrong, as a path from the whole, and what it is."""
    first: Any = error.errors(include_url=False, include_input=False)[0]
    return "".join(f".{each}" for each in first["loc"] if each != "params"), first["msg"]


def vouched(request: Any, meta: Mapping[str, Any]) -> dict[str, Any]:
    """What is vouched for: by the gateway's header, or else by the client.

    A client behind a gateway vouches for nothing. What a call does not say was said when its MCP session began.
    """
    kept: Any = getattr(connection(request.session), "state", {}).get(CONTEXT) if request is not None else None
    began, header = kept or ({}, None)
    given = get_http_headers(include={CONTEXT_HEADER}).get(CONTEXT_HEADER)
    if given is not None:
        header = (header or {}) | context_in(given, "the header")
    # A header that names nobody is a gateway's word, too.
    return began | context_in(meta.get(CONTEXT), f"`{CONTEXT}`") if header is None else header


def request_of(context: Any) -> Any:
    """The request as the client sent it, with the session that it can be asked back in."""
    return context.fastmcp_context.request_context if context.fastmcp_context is not None else None
