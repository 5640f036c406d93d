"""The clients in front of the proxy: which of them a server's question or message is for."""
# pyright: basic, reportMissingImports=false

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

from fastmcp.exceptions import McpError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

MOST = 1000
"""Clients that are told of what changed at most."""
NOBODY = -32000


class Front(NamedTuple):
    """Where a client is reached: beside the answer to a request of its own, or on a stream of its own."""

    session: Any
    request: Any = None

    async def tell(self, notification: Any) -> None:
        await self.session.send_notification(notification, self.request)

    async def ask(self, request: Any, kind: Any, **options: Any) -> Any:
        beside = ServerMessageMetadata(related_request_id=self.request)
        return await self.session.send_request(request, kind, metadata=beside, **options)


class Fronts:
    """The clients of the proxy, and their requests that are under way."""

    def __init__(self) -> None:
        self._active: list[Any] = []
        self._known: dict[Any, Any] = {}
        """By client, the session of its last request."""

    @contextmanager
    def taking(self, request: Any) -> Generator[None]:
        """A client's request, as long as it takes."""
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
        """Where a client is reached."""
        for request in reversed(self._active):
            if _place(request.session) is place:
                return Front(request.session, request.request_id)
        if place not in self._known:
            raise McpError(code=NOBODY, message="the client that this could belong to is gone")
        return Front(self._known[place])

    def asked(self) -> Front:
        """Where a server's question belongs that all clients share. Where it does not say which of several it is for,
        nobody is asked: it may be about another's words."""
        places = {_place(each.session) for each in self._active} or set(self._known)
        if len(places) > 1:
            raise McpError(code=NOBODY, message="several clients share this server: whom it asks cannot be told")
        if not places:
            raise McpError(code=NOBODY, message="no client is there that this could belong to")
        return self.of(*places)

    async def tell_all(self, notification: Any) -> None:
        for place in list(self._known):
            try:
                await self.of(place).tell(notification)
            except Exception:
                # It has hung up.
                self._known.pop(place, None)


def connection(session: Any) -> Any:
    """What stays the same from one request of a client to the next, where there are sessions."""
    return getattr(session, "_connection", session)


def _place(session: Any) -> Any:
    """The same; without sessions (2026-07-28), the pipe that the client is at the other end of."""
    found = connection(session)
    if getattr(found, "protocol_version", None) not in MODERN_PROTOCOL_VERSIONS:
        return found
    return getattr(getattr(session, "_request_outbound", None), "_dispatcher", found)
