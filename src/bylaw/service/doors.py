"""Limits the time, size and connections of clients before they are authenticated.

uvicorn's httptools protocol limits neither the size of a request's head (its request line and headers) nor the time for
sending it. This protocol rejects a head that is too large (431) or too slow (408), and a body that is too slow. It also
limits the number of connections per client (429).
"""
# pyright: basic, reportMissingImports=false

import asyncio
from collections import Counter
from http import HTTPStatus
from itertools import chain
from typing import Any, Literal

from msgspec import Struct
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Limits(Struct, frozen=True):
    """The limits that apply to each client."""

    head: int = 1 << 16
    """The maximum size of a request's head (request line and headers) in bytes."""
    headers: int = 100
    """The maximum number of headers."""
    head_seconds: float = 10.0
    """The time limit for the head, in seconds. For the first request it starts with the connection, for later ones with
    the first byte.
    """
    body_seconds: float = 30.0
    """The time limit for the body in seconds."""
    connections: int = 512
    """The maximum number of connections per address and worker. All clients behind one proxy have the same address."""


Part = Literal["head", "body"]
"""The part of a request that the client is sending."""


class _TooMuch(Exception):
    """Raised if the head is too large."""


def protocol(limits: Limits) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol class with these limits added, for `uvicorn.Config(http=...)`."""
    taken: Counter[str] = Counter()

    class Door(HttpToolsProtocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._timer: asyncio.TimerHandle | None = None
            self._part: Part | None = "head"
            self._size = 0
            self._address = self.client[0] if self.client else ""
            taken[self._address] += 1
            if taken[self._address] > limits.connections:
                self._refuse(429, f"more than {limits.connections} connections from one client")
            else:
                self._expect("head")

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            taken[self._address] -= 1
            if not taken[self._address]:
                del taken[self._address]
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self.transport.is_closing():
                return
            self._part = self._part or "head"
            if self._part == "head":
                self._size += len(data)
            super().data_received(data)
            if self.transport.is_closing():
                return
            if self._part == "head" and self._size > limits.head:
                self._refuse_head()
            elif self._part is not None and self._timer is None:
                # Most requests arrive in one piece, so they need no timer.
                self._expect(self._part)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._part = "head"

        def on_headers_complete(self) -> None:
            size = len(self.url) + sum(map(len, chain(*self.headers))) + 4 * len(self.headers)
            if size > limits.head or len(self.headers) > limits.headers:
                # Stop the parser, because otherwise the request would be handled anyway.
                self._refuse_head()
                raise _TooMuch
            self._stop()
            self._part, self._size = "body", 0
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self._stop()
            self._part = None
            super().on_message_complete()

        def send_400_response(self, msg: str) -> None:
            if not self.transport.is_closing():
                super().send_400_response(msg)

        def _refuse_head(self) -> None:
            self._refuse(431, f"request headers are limited to {limits.head:,} bytes and {limits.headers} headers")

        def _expect(self, part: Part) -> None:
            seconds, what = (limits.head_seconds, "headers") if part == "head" else (limits.body_seconds, "body")
            self._timer = self.loop.call_later(seconds, self._refuse, 408, f"the request {what} did not arrive in time")

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _refuse(self, status: int, why: str) -> None:
            """Close the connection. If no response has started, send the reason first."""
            self._stop()
            cycle = self.cycle
            if not self.transport.is_closing() and (
                cycle is None or cycle.response_complete or not cycle.response_started
            ):
                body = b'{"error":{"code":"BY703","message":"%b"}}' % why.encode()
                about = f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
                self.transport.write(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{about}".encode() + body)
            self.transport.close()

    return Door
