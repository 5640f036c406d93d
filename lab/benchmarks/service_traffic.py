"""A service of our own under traffic: what is sent are simulated clinic conversations, a request for each call.

Some conversations tell what happened with the next call, in one request; others tell it as it happens, to /v1/events.
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
from pathlib import Path
from typing import Any, NamedTuple

from service_stores import cpu_of

from bylaw.trace import Call, Message, Result, Trajectory
from bylaw_lab.clinic.simulator.generate import simulate

OPEN = 400
"""Conversations that go on side by side."""


class Request(NamedTuple):
    """One request of a conversation, and what the log must hold once it is answered."""

    conversation: str
    path: str
    body: bytes
    events: tuple[tuple[Any, ...], ...]
    """What happened, in order; the call that is asked about is the last of it."""

    @property
    def sent(self) -> bytes:
        return http("POST", self.path, self.body)


def conversations() -> list[Trajectory]:
    """What is talked about: simulated conversations of the clinic."""
    return [trajectory for trajectory, _ in simulate(7, 60)]


def told(event: Message | Call | Result) -> tuple[Any, ...]:
    """An event as it is compared: what was said, by whom."""
    if isinstance(event, Message):
        return event.by, event.text
    if isinstance(event, Call):
        return "call", event.id, event.tool, json.dumps(event.arguments, sort_keys=True)
    return "result", json.dumps(event.value(), sort_keys=True)


def requests_of(trajectory: Trajectory, name: str, *, apart: bool = False) -> list[Request]:
    """One request for each call, with the events since the last one; or, `apart`, these in a request of their own."""
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
    """The name of a request, with that of its conversation."""
    found = re.search(rb'"conversation": "([^"]+)", "request": "([^"]+)"', request)
    return b"/".join(found.groups()).decode() if found else ""


def http(method: str, path: str, body: bytes = b"") -> bytes:
    """A request as it goes over the wire."""
    headers = f"host: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return f"{method} {path} HTTP/1.1\r\n{headers}\r\n\r\n".encode() + body


class Connection:
    """One kept-alive connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """The status and the body of the answer."""
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
    """Requests of many conversations, one of each in turn; those of one conversation in their order."""

    def __init__(self, conversations: list[Trajectory], generation: int, *, apart: bool = False) -> None:
        self._recorded = conversations
        self._generation = generation
        self._apart = apart
        self._queues: deque[deque[Request]] = deque()
        self._made = 0

    def next(self) -> tuple[Request, deque[Request]]:
        """A request, and the rest of its conversation, to be given back once it is answered."""
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
    """A service of our own."""

    def __init__(
        self, store: str, pack: str = "clinic", *, workers: int = 1, stderr: int | None = None, first: str = "pass"
    ) -> None:
        """`first` is a statement that it runs before it begins, in this folder."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        here = str(Path(__file__).parent)
        begin = f"import sys; sys.path.append({here!r}); {first}; from bylaw.cli import main; main()"
        command = [sys.executable, "-c", begin, "serve", "--pack", pack]
        if "://" in store:
            # Next to a file the anchors go by default; for a server they would land in the current folder.
            command += ["--anchors", str(Path(tempfile.gettempdir()) / f"bylaw-{self.port}.anchors")]
        self.process = subprocess.Popen(
            [*command, "--store", store, "--port", str(self.port), "--workers", str(workers)],
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
        """Its processes beside the first; empty where it is one."""
        pid = self.process.pid
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def cpu(self) -> float:
        """Seconds of CPU that all its processes have used."""
        return sum(map(cpu_of, (self.process.pid, *self.workers())))

    @property
    def ports(self) -> list[int]:
        """Where it listens."""
        return [self.port]

    @property
    def is_up(self) -> bool:
        """Whether it was not ended."""
        return self.process.poll() is None

    def fell_one(self) -> bool:
        """Kill one of its processes, where others go on."""
        workers = self.workers()
        if workers:
            os.kill(workers[0], signal.SIGKILL)
        return bool(workers)

    def stop(self, how: int = signal.SIGTERM) -> None:
        """End it; by a kill all its processes fall at once."""
        if how == signal.SIGKILL:
            # Stopped, the first cannot start again what falls.
            self.process.send_signal(signal.SIGSTOP)
            for worker in self.workers():
                os.kill(worker, how)
        self.process.send_signal(how)
        self.process.wait(30)


class Fleet:
    """Several services of our own that share a log, as on several machines: none knows of the others."""

    def __init__(self, store: str, count: int, *, workers: int = 1, stderr: int | None = None) -> None:
        self.services = [Service(store, workers=workers, stderr=stderr) for _ in range(count)]

    @property
    def ports(self) -> list[int]:
        """Where they listen."""
        return [each.port for each in self.services]

    @property
    def is_up(self) -> bool:
        """Whether none was ended."""
        return all(each.is_up for each in self.services)

    async def ready(self) -> None:
        for each in self.services:
            await each.ready()

    async def commits(self) -> int:
        return sum([await each.commits() for each in self.services])

    def cpu(self) -> float:
        """Seconds of CPU that all their processes have used."""
        return sum(each.cpu() for each in self.services)

    def fell_one(self) -> bool:
        """Kill one of them, while the others go on."""
        self.services[0].stop(signal.SIGKILL)
        return True

    def stop(self, how: int = signal.SIGTERM) -> None:
        """End all that are up."""
        for each in self.services:
            if each.is_up:
                each.stop(how)


def started(store: str, services: int, workers: int, *, stderr: int | None = None) -> Service | Fleet:
    """One service with its workers, or several with as many each."""
    if services == 1:
        return Service(store, workers=workers, stderr=stderr)
    return Fleet(store, services, workers=workers, stderr=stderr)
