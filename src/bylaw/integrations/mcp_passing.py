"""Passes requests and notifications from an MCP server to the proxy's client, and manages sessions.

Sampling, roots, elicitation, progress, log messages and list changes reach the client unchanged and before the response
to which they belong. A server started by a command has one session for all clients. An HTTP server has one session per
connected client, so that notifications arrive and session state is kept. In the protocol without sessions (2026-07-28),
each request has its own connection.
"""
# pyright: basic, reportMissingImports=false

import copy
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any, NamedTuple

import anyio
import httpx2
import mcp_types
from fastmcp.client.dependencies import _get_forwardable_http_headers
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.exceptions import McpError
from fastmcp.server.dependencies import get_context
from fastmcp.server.providers.proxy import (
    ProxyClient,
    _ForwardingClientSession,
    _make_restoring_handler,
    _mirror_front_era_mode,
    default_proxy_progress_handler,
)
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

MOST = 1000
"""The maximum number of clients to notify of changes."""
NOBODY = -32000
PATIENCE = 5.0
"""How many seconds a response waits for earlier notifications."""
LISTS = (
    mcp_types.ToolListChangedNotification,
    mcp_types.ResourceListChangedNotification,
    mcp_types.PromptListChangedNotification,
    mcp_types.ResourceUpdatedNotification,
)


class Front(NamedTuple):
    """The way to reach a client: the response to one of its requests, or its own stream."""

    session: Any
    request: Any = None

    async def tell(self, notification: Any) -> None:
        await self.session.send_notification(notification, self.request)

    async def ask(self, request: Any, kind: Any, **options: Any) -> Any:
        beside = ServerMessageMetadata(related_request_id=self.request)
        return await self.session.send_request(request, kind, metadata=beside, **options)


class Fronts:
    """The clients of the proxy, with their requests in progress."""

    def __init__(self) -> None:
        self._active: list[Any] = []
        self._known: dict[Any, Any] = {}
        """The session of the last request from each client."""
        self.drops_notes = False
        """Whether the server's log messages and the text of its progress notifications are withheld from the client,
        because they may contain text that the pack masks or marks.
        """

    @contextmanager
    def taking(self, request: Any) -> Generator[None]:
        self._active.append(request)
        place = _place(request.session)
        self._known.pop(place, None)
        self._known[place] = request.session
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]
        try:
            yield
        finally:
            self._active.remove(request)

    def of(self, place: Any) -> Front:
        for request in reversed(self._active):
            if _place(request.session) is place:
                return Front(request.session, request.request_id)
        if place not in self._known:
            raise McpError(code=NOBODY, message="the client for this request has disconnected")
        return Front(self._known[place])

    def asked(self) -> Front:
        """Return the client that a shared server may ask. Raises McpError unless there is exactly one client, because
        the question may contain another client's data.
        """
        places = {_place(each.session) for each in self._active} or set(self._known)
        if len(places) > 1:
            raise McpError(
                code=NOBODY, message="several clients share this server, so it is unknown which client the server asks"
            )
        if not places:
            raise McpError(code=NOBODY, message="no client is connected for this request")
        return self.of(*places)

    async def tell_all(self, notification: Any) -> None:
        for place in list(self._known):
            try:
                await self.of(place).tell(notification)
            except Exception:
                # The client has disconnected.
                self._known.pop(place, None)


def connection(session: Any) -> Any:
    """Return an object that identifies the client's connection across requests, if the protocol has sessions."""
    return getattr(session, "_connection", session)


def _place(session: Any) -> Any:
    """Return an object that identifies a client: its session or, without sessions (2026-07-28), its stream."""
    found = connection(session)
    if getattr(found, "protocol_version", None) not in MODERN_PROTOCOL_VERSIONS:
        return found
    return getattr(getattr(session, "_request_outbound", None), "_dispatcher", found)


class Hearing(_ForwardingClientSession):
    """A server session that tracks which notifications are still being forwarded.

    The SDK forwards each notification in its own task and has no public hook for the end of that task. But a response
    must not overtake earlier progress notifications, so this class overrides the SDK's methods.
    """

    passing = 0
    _done: anyio.Event | None = None

    def _intercept_notification(self, method: str, params: Any) -> bool:
        # Notifications arrive in order, but each one is forwarded in a separate task.
        is_ours = super()._intercept_notification(method, params)
        if not is_ours:
            self.begin()
        return is_ours

    async def _on_notify(self, dctx: Any, method: str, params: Any) -> None:
        try:
            await super()._on_notify(dctx, method, params)
        finally:
            self.end()

    def begin(self) -> None:
        self.passing += 1

    def end(self) -> None:
        self.passing -= 1
        if self.passing == 0 and self._done is not None:
            self._done.set()

    async def passed_on(self) -> None:
        """Wait until all received notifications have been forwarded."""
        with anyio.move_on_after(PATIENCE):
            while self.passing:
                self._done = anyio.Event()
                await self._done.wait()


class PassingClient(ProxyClient):
    """Connects the proxy to the server, and forwards the server's questions to the client.

    fastmcp's own handlers drop parts of a question and do not distinguish clients, and this class is the only place to
    replace them.
    """

    def __init__(
        self, transport: Any, *, fronts: Fronts, negotiated: Callable[[str | None], None], **settings: Any
    ) -> None:
        self.fronts = fronts
        self._negotiated = negotiated
        """Called with the protocol version at the start of a session."""
        self.is_shared = isinstance(transport, StdioTransport)
        """Whether all clients share one server process and one session."""
        self._greeting = anyio.Lock()
        """Locked while the shared session begins, so that it begins only once."""
        self.connection: Any = None
        """The connection of the client that has its own session with the server."""
        super().__init__(transport, **settings)
        assert self._transport_options is not None
        self._transport_options = replace(self._transport_options, session_class=Hearing)

    def for_one_request(self) -> "PassingClient":
        """Return a client for a single request in the same session. It reports progress to that request."""
        mine: Any = copy.copy(self)
        mine._proxy_rc_ref = [None]
        mine._progress_handler = _make_restoring_handler(default_proxy_progress_handler, mine._proxy_rc_ref)
        mine.count_progress()
        return mine

    async def __aenter__(self) -> Any:
        if self.connection is not None and not self.is_connected():
            self._offer_what_the_front_has()
        return await super().__aenter__()

    async def _negotiate(self, timeout: Any = None) -> None:
        async with self._greeting if self.is_shared else nullcontext():
            await super()._negotiate(timeout)
        self._negotiated(self.session.protocol_version)

    def _offer_what_the_front_has(self) -> None:
        """Offer the server only the capabilities that the client has."""
        with suppress(McpError):
            has = self._front().session.client_capabilities
            handlers: dict[str, Any] = self._session_kwargs  # pyright: ignore[reportAssignmentType]
            for name, callback in (
                ("sampling", "sampling_callback"),
                ("elicitation", "elicitation_callback"),
                ("roots", "list_roots_callback"),
            ):
                if has is not None and getattr(has, name) is None:
                    handlers[callback] = None
            if has is not None and has.sampling is not None:
                handlers["sampling_capabilities"] = has.sampling

    async def __aexit__(self, *failure: Any) -> None:
        with anyio.CancelScope(shield=True):
            session = self._session_state.session
            if isinstance(session, Hearing):
                await session.passed_on()
            if self.connection is None:
                await super().__aexit__(*failure)
                return
            async with self._session_state.lock:
                self._session_state.nesting_counter = max(0, self._session_state.nesting_counter - 1)

    def _bind_restoring_handlers(self) -> None:
        super()._bind_restoring_handlers()
        handlers: dict[str, Any] = self._session_kwargs  # pyright: ignore[reportAssignmentType]
        heard = handlers.get("message_handler")

        async def sample(context: Any, params: Any) -> Any:
            kind = mcp_types.CreateMessageResultWithTools if params.tools else mcp_types.CreateMessageResult
            return await self._ask(context, mcp_types.CreateMessageRequest(params=params), kind)

        async def elicit(context: Any, params: Any) -> Any:
            return await self._ask(context, mcp_types.ElicitRequest(params=params), mcp_types.ElicitResult)

        async def roots(context: Any) -> Any:
            return await self._ask(context, mcp_types.ListRootsRequest(), mcp_types.ListRootsResult)

        async def log(params: Any) -> None:
            if self.fronts.drops_notes:
                return
            with suppress(McpError):
                await self._front().tell(mcp_types.LoggingMessageNotification(params=params))

        handlers["sampling_callback"] = _told_why(sample)
        handlers["elicitation_callback"] = _told_why(elicit)
        handlers["list_roots_callback"] = _told_why(roots)
        handlers["logging_callback"] = log
        handlers["message_handler"] = self._hearing(heard)
        # Without sessions, each request sets its log level. Otherwise fastmcp would request all messages.
        handlers["log_level"] = None
        self.count_progress()

    def count_progress(self) -> None:
        """Send progress notifications to the client that made this request."""
        tell = self._progress_handler

        async def counted(done: float, total: float | None, message: str | None) -> None:
            session = self._session_state.session
            progress = (done, total, None if self.fronts.drops_notes else message)
            if not isinstance(session, Hearing):
                await tell(*progress)
                return
            session.begin()
            try:
                await tell(*progress)
            finally:
                session.end()

        self._progress_handler = counted

    def _hearing(self, heard: Any) -> Any:
        async def hear(message: Any) -> None:
            if heard is not None:
                await heard(message)
            if not isinstance(message, LISTS):
                return
            if self.connection is None:
                await self.fronts.tell_all(message)
            else:
                with suppress(McpError):
                    await self._front().tell(message)

        return hear

    def _front(self) -> Front:
        if self.is_shared:
            return self.fronts.asked()
        if self.connection is not None:
            return self.fronts.of(self.connection)
        stashed = self._proxy_rc_ref[0]
        if stashed is None or (request := stashed[0]) is None:
            return self.fronts.asked()
        return Front(request.session, request.request_id)

    async def _ask(self, context: Any, request: Any, kind: Any) -> Any:
        token = (context.meta or {}).get("progress_token")

        async def progress(done: float, total: float | None, message: str | None) -> None:
            await context.session.send_progress_notification(token, done, total, message)

        told = {} if token is None else {"progress_callback": progress}
        return await self._front().ask(request, kind, **told)


def _told_why(asking: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Wrap a question handler, so that the server learns why no client can be asked."""

    async def told(*given: Any) -> Any:
        try:
            return await asking(*given)
        except McpError as error:
            return error.error

    return told


ENDED = "Session terminated"
"""The SDK's error for a session that the server does not know. The request did not run."""


class Links:
    """The proxy's sessions with the server."""

    def __init__(self, upstream: Any, fronts: Fronts) -> None:
        self._plain = PassingClient(upstream, fronts=fronts, negotiated=self._negotiated)
        self._version = ""
        self._kept: OrderedDict[Any, PassingClient] = OrderedDict()
        """The clients for the server, by downstream connection."""

    def client(self) -> PassingClient:
        mode = self._mode()
        if mode != "legacy" or self._plain.is_shared:
            return self._fresh(mode)
        place = connection(get_context().session)
        if not hasattr(place, "exit_stack"):
            return self._fresh(mode)
        kept = self._kept.get(place)
        if kept is None:
            kept = self._kept[place] = self._fresh(mode)
            kept.connection = place
            place.exit_stack.push_async_callback(self.drop, place)
        self._kept.move_to_end(place)
        return kept.for_one_request()

    def _mode(self) -> str | None:
        """Return the protocol version to use with the server. The client may use another version."""
        front = _mirror_front_era_mode()
        if front not in MODERN_PROTOCOL_VERSIONS:
            return front
        if not self._version:
            return "auto"
        return self._version if self._version in MODERN_PROTOCOL_VERSIONS else "legacy"

    def _negotiated(self, version: str | None) -> None:
        self._version = version or self._version

    async def shrink(self) -> None:
        """Drop the sessions of the clients that have been inactive longest. Many clients never announce that they are
        leaving.
        """
        while len(self._kept) > MOST:
            await self.drop(next(iter(self._kept)))

    async def drop(self, place: Any) -> None:
        kept = self._kept.pop(place, None)
        if kept is not None:
            with anyio.CancelScope(shield=True):
                await kept._disconnect(force=True)

    async def is_begun_anew(self, session: Any, error: Exception) -> bool:
        """Whether a request failed only because the server no longer knows the session. The request may then be sent
        again.
        """
        place = connection(session)
        if not (isinstance(error, McpError) and error.error.message == ENDED and place in self._kept):
            return False
        await self.drop(place)
        return True

    def _fresh(self, mode: str | None) -> PassingClient:
        fresh: Any = self._plain.new()
        if mode is not None:
            fresh.mode = mode
        if mode is not None and not self._plain.is_shared:
            # Clients that share a transport must use the same options.
            fresh._transport_options = replace(fresh._transport_options, backend_mode=mode)
        return fresh


def by_url(url: str) -> StreamableHttpTransport:
    """Return the transport for an HTTP server. Each request carries only its own headers."""

    def client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
        **_: Any,
    ) -> httpx2.AsyncClient:
        made = create_mcp_http_client(headers, timeout, auth)

        async def own(request: httpx2.Request) -> None:
            now = _get_forwardable_http_headers()
            if not now and not headers:
                return
            for name in headers or {}:
                if name not in now:
                    request.headers.pop(name, None)
            request.headers.update(now)

        made.event_hooks["request"] = [own]
        return made

    return StreamableHttpTransport(url, httpx_client_factory=client)
