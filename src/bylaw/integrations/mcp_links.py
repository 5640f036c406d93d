"""Which session with the server a client's request goes by.

A server that a command starts has one session for all clients. One that is reached by HTTP has a session for each
client, which lasts as long as the client stays: what it tells between two answers arrives, and what it remembers of a
session it remembers. For a client of the protocol without sessions (2026-07-28) each request has one of its own.
"""
# pyright: basic, reportMissingImports=false

from collections import OrderedDict
from dataclasses import replace
from typing import Any

import anyio
import httpx2
from fastmcp.client.dependencies import _get_forwardable_http_headers
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.exceptions import McpError
from fastmcp.server.dependencies import get_context
from fastmcp.server.providers.proxy import _mirror_front_era_mode
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from bylaw.integrations.mcp_passing import MOST, Fronts, PassingClient, connection

ENDED = "Session terminated"
"""What the SDK says of a request whose session the server does not know: it was not carried out."""


class Links:
    """The proxy's sessions with the server behind it."""

    def __init__(self, upstream: Any, fronts: Fronts) -> None:
        self._plain = PassingClient(upstream, fronts=fronts, negotiated=self._negotiated)
        self._version = ""
        """The version of the protocol that the server was found to speak."""
        self._kept: OrderedDict[Any, PassingClient] = OrderedDict()
        """By connection of a client in front."""

    def client(self) -> PassingClient:
        """A client of the server for the request that is under way."""
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
        """How to begin with the server: in its own version of the protocol, whichever the client in front speaks."""
        front = _mirror_front_era_mode()
        if front not in MODERN_PROTOCOL_VERSIONS:
            return front
        if not self._version:
            return "auto"
        return self._version if self._version in MODERN_PROTOCOL_VERSIONS else "legacy"

    def _negotiated(self, version: str | None) -> None:
        self._version = version or self._version

    async def shrink(self) -> None:
        """Let go of the sessions of clients that were quiet longest: many never say that they leave."""
        while len(self._kept) > MOST:
            await self.drop(next(iter(self._kept)))

    async def drop(self, place: Any) -> None:
        """End the session of a client in front."""
        kept = self._kept.pop(place, None)
        if kept is not None:
            with anyio.CancelScope(shield=True):
                await kept._disconnect(force=True)

    async def is_begun_anew(self, session: Any, error: Exception) -> bool:
        """Whether a request failed only because the server no longer knows the session: it may be sent again."""
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
            # Clients that share a transport must ask for the same options.
            fresh._transport_options = replace(fresh._transport_options, backend_mode=mode)
        return fresh


def by_url(url: str) -> StreamableHttpTransport:
    """A server that is reached by HTTP: each request has the headers of the one it is made for, and of no other."""

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
