"""A service with traffic from simulated clinic conversations, one request per call.

Some conversations send the events with the next call, in one request. Others report each event to /v1/events.
"""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from service_stores import cpu_of

from bylaw.trace import Call, Message, Result, Trajectory
from bylaw_lab.clinic.simulator.generate import simulate

OPEN = 400
"""The number of conversations that are open at the same time."""


class Request(NamedTuple):
    """One request of a conversation, and the entries that the log must contain after the response."""

    conversation: str
    path: str
    body: bytes
    events: tuple[tuple[Any, ...], ...]
    """The events in order, ending with the call to decide."""

    @property
    def sent(self) -> bytes:
        return http("POST", self.path, self.body)


def conversations() -> list[Trajectory]:
    return [trajectory for trajectory, _ in simulate(7, 60)]


def told(event: Message | Call | Result) -> tuple[Any, ...]:
    """Return an event in a form that can be compared: the text and its author."""
    if isinstance(event, Message):
        return event.by, event.text
    if isinstance(event, Call):
        return "call", event.id, event.tool, json.dumps(event.arguments, sort_keys=True)
    return "result", json.dumps(event.value(), sort_keys=True)


def requests_of(trajectory: Trajectory, name: str, *, apart: bool = False) -> list[Request]:
    """Return one request per call, with the events since the last one. With `apart`, events are sent in separate
    requests.
    """
    found: list[Request] = []
    events: list[dict[str, Any]] = []
    happened: list[tuple[Any, ...]] = []
    for step, event in enumerate(trajectory.events):
        if isinstance(event, Message):
            events.append({event.by: event.text})
            happened.append(told(event))
        elif isinstance(event, Result) and event.call is not None:
            events.append({"result": event.value(), "call": f"k{event.call}", "error": event.error})
            happened.append(told(event))
        elif isinstance(event, Call) and event.by == "agent":
            if apart and events:
                body = json.dumps({"conversation": name, "request": f"e{step}", "events": events}).encode()
                found.append(Request(name, "/v1/events", body, tuple(happened)))
                events, happened = [], []
            asked = {"request": f"d{step}", "tool": event.tool, "arguments": event.arguments, "id": f"k{step}"}
            happened.append(told(Call(event.tool, event.arguments, f"k{step}")))
            body = json.dumps({"conversation": name, **asked, "events": events}).encode()
            found.append(Request(name, "/v1/decide", body, tuple(happened)))
            events, happened = [], []
    return found


def name_of(request: bytes) -> str:
    """Return the name of a request, which includes the name of its conversation."""
    found = re.search(rb'"conversation": "([^"]+)", "request": "([^"]+)"', request)
    return b"/".join(found.groups()).decode() if found else ""


def http(method: str, path: str, body: bytes = b"") -> bytes:
    headers = f"host: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return f"{method} {path} HTTP/1.1\r\n{headers}\r\n\r\n".encode() + body


class Connection:
    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head, re.IGNORECASE)[1])  # type: ignore[index]
        return int(head[9:12]), await reader.readexactly(length)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


class Work:
    """Yields requests of many conversations in turn. Requests of the same conversation stay in order."""

    def __init__(self, conversations: list[Trajectory], generation: int, *, apart: bool = False) -> None:
        self._recorded = conversations
        self._generation = generation
        self._apart = apart
        self._queues: deque[deque[Request]] = deque()
        self._made = 0

    def next(self) -> tuple[Request, deque[Request]]:
        """Return a request and the rest of its conversation, which the caller must return after the response."""
        while True:
            if len(self._queues) < OPEN:
                recorded = self._recorded[self._made % len(self._recorded)]
                name = f"g{self._generation}-{self._made}"
                requests = requests_of(recorded, name, apart=self._apart and self._made % 2 == 1)
                self._made += 1
                if not requests:
                    continue
                return requests[0], deque(requests[1:])
            queue = self._queues.popleft()
            return queue.popleft(), queue

    def give_back(self, queue: deque[Request]) -> None:
        if queue:
            self._queues.append(queue)


class Service:
    """A service for measurements."""

    def __init__(
        self,
        store: str,
        pack: str = "clinic",
        *,
        workers: int = 1,
        stderr: int | None = None,
        first: str = "pass",
        options: Sequence[str] = (),
    ) -> None:
        """`first` is a statement that the service runs in this folder before it starts."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        here = str(Path(__file__).parent)
        begin = f"import sys; sys.path.append({here!r}); {first}; from bylaw.cli import main; main()"
        command = [sys.executable, "-c", begin, "serve", "--pack", pack]
        if "://" in store:
            # By default, the anchors are next to a log file. With a database server, they would be in the current
            # folder.
            command += ["--anchors", str(Path(tempfile.gettempdir()) / f"bylaw-{self.port}.anchors")]
        self.process = subprocess.Popen(
            [*command, "--store", store, "--port", str(self.port), "--workers", str(workers), *options],
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )

    async def ready(self) -> None:
        for _ in range(1200):
            try:
                connection = Connection(self.port)
                status, _ = await connection.ask(http("GET", "/health"))
                connection.close()
                if status == 200:
                    return
            except OSError:
                await asyncio.sleep(0.05)
        raise RuntimeError("the service does not answer")

    async def commits(self) -> int:
        connection = Connection(self.port)
        _, page = await connection.ask(http("GET", "/metrics"))
        connection.close()
        return int(re.search(rb"bylaw_log_commits_total (\d+)", page)[1])  # type: ignore[index]

    def workers(self) -> list[int]:
        """Return the worker processes of the service. The list is empty if the service has only one process."""
        pid = self.process.pid
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def cpu(self) -> float:
        return sum(map(cpu_of, (self.process.pid, *self.workers())))

    @property
    def ports(self) -> list[int]:
        return [self.port]

    @property
    def is_up(self) -> bool:
        """Whether the service is still running."""
        return self.process.poll() is None

    def fell_one(self) -> bool:
        """Kill one process of the service, if others can continue."""
        workers = self.workers()
        if workers:
            os.kill(workers[0], signal.SIGKILL)
        return bool(workers)

    def stop(self, how: int = signal.SIGTERM) -> None:
        """Stop the service. A kill ends all its processes at once."""
        if how == signal.SIGKILL:
            # A suspended first process cannot restart the others.
            self.process.send_signal(signal.SIGSTOP)
            for worker in self.workers():
                os.kill(worker, how)
        self.process.send_signal(how)
        self.process.wait(30)


class Fleet:
    """Several independent services that share a log, as on several machines."""

    def __init__(self, store: str, count: int, *, workers: int = 1, stderr: int | None = None) -> None:
        self.services = [Service(store, workers=workers, stderr=stderr) for _ in range(count)]

    @property
    def ports(self) -> list[int]:
        return [each.port for each in self.services]

    @property
    def is_up(self) -> bool:
        """Whether all services are still running."""
        return all(each.is_up for each in self.services)

    async def ready(self) -> None:
        for each in self.services:
            await each.ready()

    async def commits(self) -> int:
        return sum([await each.commits() for each in self.services])

    def cpu(self) -> float:
        return sum(each.cpu() for each in self.services)

    def fell_one(self) -> bool:
        """Kill one service. The others continue."""
        self.services[0].stop(signal.SIGKILL)
        return True

    def stop(self, how: int = signal.SIGTERM) -> None:
        """Stop all services that are still running."""
        for each in self.services:
            if each.is_up:
                each.stop(how)


def started(store: str, services: int, workers: int, *, stderr: int | None = None) -> Service | Fleet:
    """Return one service with these workers, or several services with as many workers each."""
    if services == 1:
        return Service(store, workers=workers, stderr=stderr)
    return Fleet(store, services, workers=workers, stderr=stderr)
