"""Lightweight hosts of agents. Their requests are generated in advance, and they only read the responses.

Each host has its own conversations and keeps its connections open. It sends the next request of a conversation after
the response to the last one. Requests of different conversations are independent.
"""

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from service_traffic import requests_of

from bylaw.trace import Trajectory

NAME = b"conversation-0000000"
"""A placeholder for the name of the conversation in the generated requests. All names have the same length."""
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class Talks:
    """Yields one request of each conversation in turn. When a conversation ends, a new one takes its place."""

    def __init__(self, recorded: Iterable[Trajectory], open_at_once: int, first: int = 0, step: int = 1) -> None:
        made = ([request.sent for request in requests_of(each, NAME.decode())] for each in recorded)
        self._scripts = [requests for requests in made if requests]
        self._open_at_once = open_at_once
        self._number, self._step = first, step
        self._begun = 0
        self._waiting: deque[deque[bytes]] = deque()

    def next(self) -> deque[bytes]:
        """Return a conversation whose first request is due."""
        if self._begun < self._open_at_once or not self._waiting:
            name = b"conversation-%07d" % self._number
            script = self._scripts[self._number % len(self._scripts)]
            self._number += self._step
            self._begun += 1
            return deque(request.replace(NAME, name) for request in script)
        return self._waiting.popleft()

    def answered(self, talk: deque[bytes]) -> None:
        """Record the response to the conversation's first request."""
        talk.popleft()
        if talk:
            self._waiting.append(talk)
        else:
            self._begun -= 1


class Wire(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._done: Callable[[int, bytes], None] | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def ask(self, request: bytes, done: Callable[[int, bytes], None]) -> None:
        """Send a request. `done` gets the status and the response."""
        assert self._transport is not None
        self._done = done
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        found = _LENGTH.search(self._buffer, 0, end)
        if found is None or len(self._buffer) < end + 4 + int(found[1]):
            return
        answer, self._buffer = self._buffer, b""
        assert self._done is not None
        self._done(int(answer[9:12]), answer)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._done is not None:
            self._done(0, repr(exc).encode())

    def close(self) -> None:
        self._done = None
        if self._transport is not None:
            self._transport.close()


class Host:
    """One host with its open connections."""

    def __init__(self, port: int, talks: Talks) -> None:
        self._port = port
        self._talks = talks
        self._free: list[Wire] = []
        self._all: list[Wire] = []
        self.took: list[float] = []
        """The seconds from the due time of a request to its response."""
        self.wrong: list[bytes] = []
        self.sent = 0

    async def connect(self) -> Wire:
        loop = asyncio.get_running_loop()
        _, wire = await loop.create_connection(Wire, "127.0.0.1", self._port)
        self._all.append(wire)
        return wire

    async def ready(self, connections: int) -> None:
        """Open connections in advance."""
        self._free += [await self.connect() for _ in range(connections)]

    def send(self, due: float, then: Callable[[], None] | None = None) -> None:
        """Send a request that is due, on a free connection or a new one."""
        self.sent += 1
        talk = self._talks.next()
        if self._free:
            self._ask(self._free.pop(), talk, due, then)
        else:
            asyncio.get_running_loop().create_task(self._send(talk, due, then))

    async def _send(self, talk: deque[bytes], due: float, then: Callable[[], None] | None) -> None:
        self._ask(await self.connect(), talk, due, then)

    def _ask(self, wire: Wire, talk: deque[bytes], due: float, then: Callable[[], None] | None) -> None:
        def done(status: int, answer: bytes) -> None:
            self.took.append(time.perf_counter() - due)
            if status != 200:
                self.wrong.append(answer)
            self._free.append(wire)
            self._talks.answered(talk)
            if then is not None:
                then()

        wire.ask(talk[0], done)

    def close(self) -> None:
        for wire in self._all:
            wire.close()


async def hosts_of(port: int, talks: Iterable[Talks], kind: type[Host] = Host) -> list[Host]:
    """Return one host for each `Talks` object, each with one open connection."""
    found = [kind(port, each) for each in talks]
    for host in found:
        await host.ready(1)
    return found
