"""A connection of the service: what is written to it in one turn of the loop leaves in one piece.

uvicorn writes the head of an answer and its body one after the other. Each would be a packet of its own, for which the
kernel is called and the client woken.
"""
# pyright: basic, reportMissingImports=false

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Connection(HttpToolsProtocol):
    """uvicorn's, over a transport that joins what is written."""

    def connection_made(self, transport: Any) -> None:
        """A client is there."""
        super().connection_made(_Joining(transport, self.loop))  # pyright: ignore[reportArgumentType]


class _Joining:
    """A transport that writes at the end of a turn."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Soon, with what follows."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def _flush(self) -> None:
        if self._parts:
            parts, self._parts = self._parts, []
            self._transport.write(b"".join(parts))

    def close(self) -> None:
        """Once all is written."""
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
