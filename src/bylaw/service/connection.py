"""A connection of the service: the head of an answer leaves with its body, in one piece.

uvicorn writes one after the other. Each would be a packet of its own, for which the kernel is called and the client
woken.
"""
# pyright: basic, reportMissingImports=false

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Connection(HttpToolsProtocol):
    """uvicorn's, over a transport that keeps a head until its body is there."""

    def connection_made(self, transport: Any) -> None:
        """A client is there."""
        super().connection_made(_Joining(transport, self.loop))  # pyright: ignore[reportArgumentType]


class _Joining:
    """A transport that writes a head with what follows it, or, where nothing does, at the end of the loop's turn."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""

    def write(self, data: bytes) -> None:
        """At once, unless it is a head."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head + data)
        elif data.endswith(b"\r\n\r\n") and data.startswith(b"HTTP/"):
            self._head = data
            self._loop.call_soon(self._flush)
        else:
            self._transport.write(data)

    def _flush(self) -> None:
        if self._head:
            self.write(b"")

    def close(self) -> None:
        """Once all is written."""
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
