"""What a server asks of its client, and tells it, through the proxy: sampling, roots, elicitation, log messages, lists
that changed. All of it goes to the client whose request is under way, as it came.
"""
# pyright: basic, reportMissingImports=false

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

import mcp_types
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import McpError
from fastmcp.server.providers.proxy import ProxyClient
from mcp.shared.message import ServerMessageMetadata

MOST = 1000
"""Clients that are told of what changed at most."""
NOBODY = -32000
LISTS = (
    mcp_types.ToolListChangedNotification,
    mcp_types.ResourceListChangedNotification,
    mcp_types.PromptListChangedNotification,
    mcp_types.ResourceUpdatedNotification,
)


class Fronts:
    """The clients of the proxy, and their requests that are under way."""

    def __init__(self) -> None:
        self._active: list[Any] = []
        self._known: dict[int, Any] = {}
        """By connection, the session of its last request."""

    @contextmanager
    def taking(self, request: Any) -> Generator[None]:
        """A client's request, as long as it takes."""
        self._active.append(request)
        place = _connection(request)
        self._known.pop(place, None)
        self._known[place] = request.session
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]
        try:
            yield
        finally:
            self._active.remove(request)

    def asked(self) -> Any:
        """The request that a server's question belongs to. Where clients share a server that does not say which, nobody
        is asked: it may be about another's words."""
        if not self._active:
            raise McpError(code=NOBODY, message="no request of a client is under way that this could belong to")
        if len({_connection(each) for each in self._active}) > 1:
            raise McpError(code=NOBODY, message="several clients share this server: whom it asks cannot be told")
        return self._active[-1]

    async def tell_all(self, notification: Any) -> None:
        """Tell every client: those with a request under way beside its answer, others on a stream of their own."""
        asking = {_connection(each): each for each in self._active}
        for place, session in list(self._known.items()):
            request = asking.get(place)
            try:
                number = request.request_id if request is not None else None
                await (request.session if request is not None else session).send_notification(notification, number)
            except Exception:
                # It has hung up.
                self._known.pop(place, None)


class PassingClient(ProxyClient):
    """The proxy's client of the server: what the server asks it goes on to the client in front."""

    def __init__(self, transport: Any, *, fronts: Fronts, **settings: Any) -> None:
        self.fronts = fronts
        self.is_shared = isinstance(transport, StdioTransport)
        """One server process, and one session with it, for all clients."""
        super().__init__(transport, **settings)

    def _bind_restoring_handlers(self) -> None:
        super()._bind_restoring_handlers()
        handlers: dict[str, Any] = self._session_kwargs  # pyright: ignore[reportAssignmentType]
        heard = handlers.get("message_handler")

        async def sample(_: Any, params: Any) -> Any:
            return await self._ask(mcp_types.CreateMessageRequest(params=params), mcp_types.CreateMessageResult)

        async def elicit(_: Any, params: Any) -> Any:
            return await self._ask(mcp_types.ElicitRequest(params=params), mcp_types.ElicitResult)

        async def roots(_: Any) -> Any:
            return await self._ask(mcp_types.ListRootsRequest(), mcp_types.ListRootsResult)

        async def log(params: Any) -> None:
            with suppress(McpError):
                front = self._front()
                message = mcp_types.LoggingMessageNotification(params=params)
                await front.session.send_notification(message, front.request_id)

        handlers["sampling_callback"] = _told_why(sample)
        handlers["elicitation_callback"] = _told_why(elicit)
        handlers["list_roots_callback"] = _told_why(roots)
        handlers["logging_callback"] = log
        handlers["message_handler"] = self._hearing(heard)

    def _hearing(self, heard: Any) -> Any:
        async def hear(message: Any) -> None:
            if heard is not None:
                await heard(message)
            if isinstance(message, LISTS):
                await self.fronts.tell_all(message)

        return hear

    def _front(self) -> Any:
        """The request of the client in front that a call of this client was made for."""
        stashed = None if self.is_shared else self._proxy_rc_ref[0]
        return stashed[0] if stashed is not None else self.fronts.asked()

    async def _ask(self, request: Any, kind: Any) -> Any:
        front = self._front()
        return await front.session.send_request(
            request, kind, metadata=ServerMessageMetadata(related_request_id=front.request_id)
        )


def _told_why(asking: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The same; where nobody could be asked, the server is told why."""

    async def told(*given: Any) -> Any:
        try:
            return await asking(*given)
        except McpError as error:
            return error.error

    return told


def _connection(request: Any) -> int:
    return id(getattr(request.session, "_connection", request.session))
