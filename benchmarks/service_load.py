"""Load on the service: how many durable decisions a second, how long one takes, and what a kill -9 loses.

    python benchmarks/service_load.py [--store postgresql://...] [--seconds 15] [--rate 750] [--kills 50]

A service of its own is started on loopback, with the clinic pack and a new log (or the given database). One decision a
request, each with what happened since the last one; the calls are those of simulated clinic conversations. First as
fast as 64 connections go, then open loop at `--rate` a second: a request is sent when it is due, whether or not earlier
ones were answered, and its time counts from then. Then the service is killed at random moments under load: every
decision and event that was acknowledged must stand in the log, the chain must verify, and every conversation go on.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bylaw.packs.clinic.simulator.generate import simulate
from bylaw.record import open_store
from bylaw.record.verify import verify
from bylaw.shield.history import read_history
from bylaw.trace import Call, Message, Result, Trajectory

CONNECTIONS = 64


def requests_of(trajectory: Trajectory, name: str) -> list[bytes]:
    """One request for each call, with the events since the last one."""
    found: list[bytes] = []
    events: list[dict[str, Any]] = []
    for step, event in enumerate(trajectory.events):
        if isinstance(event, Message):
            events.append({event.by: event.text})
        elif isinstance(event, Call) and event.by == "agent":
            asked = {"tool": event.tool, "arguments": event.arguments, "id": f"k{step}", "events": events}
            found.append(http("POST", "/v1/decide", json.dumps({"conversation": name, **asked}).encode()))
            events = []
        elif isinstance(event, Result) and event.call is not None:
            events.append({"result": event.value(), "call": f"k{event.call}", "error": event.error})
    return found


def http(method: str, path: str, body: bytes = b"") -> bytes:
    """A request as it goes over the wire."""
    head = (
        f"{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


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

    def __init__(self, conversations: list[Trajectory], generation: int) -> None:
        self._recorded = conversations
        self._generation = generation
        self._queues: deque[deque[bytes]] = deque()
        self._made = 0

    def next(self) -> tuple[bytes, deque[bytes]]:
        """A request, and the rest of its conversation, to be given back once it is answered."""
        while True:
            if len(self._queues) < 400:
                recorded = self._recorded[self._made % len(self._recorded)]
                requests = requests_of(recorded, f"g{self._generation}-{self._made}")
                self._made += 1
                if not requests:
                    continue
                return requests[0], deque(requests[1:])
            queue = self._queues.popleft()
            return queue.popleft(), queue

    def give_back(self, queue: deque[bytes]) -> None:
        if queue:
            self._queues.append(queue)


class Service:
    """A service of our own."""

    def __init__(self, store: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, "-c", "from bylaw.cli import main; main()", "serve", "--pack", "clinic"]
        self.process = subprocess.Popen(
            [*command, "--store", store, "--port", str(self.port)], stdout=subprocess.DEVNULL
        )

    async def ready(self) -> None:
        for _ in range(600):
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

    def cpu(self) -> float:
        """Seconds of CPU that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self, how: int = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        self.process.wait(30)


async def closed_loop(port: int, work: Work, seconds: float, acknowledged: list[bytes]) -> None:
    """As fast as the connections go."""
    end = time.perf_counter() + seconds

    async def client() -> None:
        connection = Connection(port)
        while time.perf_counter() < end:
            request, rest = work.next()
            status, body = await connection.ask(request)
            assert status == 200, body
            acknowledged.append(body)
            work.give_back(rest)
        connection.close()

    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))


async def open_loop(port: int, work: Work, rate: float, seconds: float) -> tuple[list[float], float]:
    """Requests when they are due; seconds from then to the answer, and how late the generator itself was at worst."""
    free = [Connection(port) for _ in range(CONNECTIONS * 4)]
    took: list[float] = []
    tasks: set[asyncio.Task[None]] = set()
    late = 0.0

    async def one(due: float, request: bytes, rest: deque[bytes]) -> None:
        connection = free.pop() if free else Connection(port)
        status, body = await connection.ask(request)
        assert status == 200, body
        took.append(time.perf_counter() - due)
        free.append(connection)
        work.give_back(rest)

    start = time.perf_counter()
    for number in range(int(rate * seconds)):
        due = start + number / rate
        wait = due - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        late = max(late, time.perf_counter() - due)
        task = asyncio.create_task(one(due, *work.next()))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    return took, late


async def killed(store: str, work: Work, rng: random.Random, acknowledged: list[bytes]) -> Service:
    """A service that was killed at a random moment under load."""
    service = Service(store)
    await service.ready()
    load = asyncio.create_task(closed_loop(service.port, work, 60, acknowledged))
    await asyncio.sleep(rng.uniform(0.1, 1.2))
    service.stop(signal.SIGKILL)
    await asyncio.gather(load, return_exceptions=True)
    return service


def lost(store: str, acknowledged: list[bytes]) -> list[str]:
    """What was acknowledged and is not in the log, and what is wrong with its chain."""
    log = open_store(store)
    faults = list(verify(log, "default").faults)
    told: dict[str, dict[str, Any]] = {}
    for body in acknowledged:
        for decision in json.loads(body)["decisions"]:
            told.setdefault(decision["conversation"], {})[decision["id"]] = decision
    for conversation, decisions in told.items():
        history = read_history(log.conversation("default", conversation))
        kept = {each.id: each for each in history.decisions} if history is not None else {}
        for name, decision in decisions.items():
            if name not in kept or kept[name].answer != decision["answer"]:
                faults.append(f"{name} was acknowledged and is not in the log")
        calls = sum(isinstance(event, Call) for event in history.events) if history is not None else 0
        if calls != len(kept):
            faults.append(f"{conversation}: {calls} calls, {len(kept)} decisions")
    log.close()
    return faults


async def go_on(store: str, acknowledged: list[bytes]) -> int:
    """How many of the conversations that were going on take another decision after a restart."""
    service = Service(store)
    await service.ready()
    names = {each["conversation"] for body in acknowledged[-400:] for each in json.loads(body)["decisions"]}
    going = 0
    connection = Connection(service.port)
    for name in names:
        asked = {"conversation": name, "tool": "get_patient", "arguments": {"patient_id": "P121"}}
        status, body = await connection.ask(http("POST", "/v1/decide", json.dumps(asked).encode()))
        going += status == 200 and json.loads(body)["decisions"][0]["answer"] == "allow"
    connection.close()
    service.stop()
    return len(names) - going


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))] * 1000


async def measure(options: argparse.Namespace, folder: Path) -> None:
    store = options.store or str(folder / "decisions.db")
    recorded = [trajectory for trajectory, _ in simulate(7, 60)]
    settings = "synchronous_commit=on, fsync as the server has it" if "://" in store else "WAL, synchronous=FULL"
    load = os.getloadavg()[0]
    print(f"log: {store.split('://')[0] if '://' in store else 'SQLite'} ({settings}); {os.cpu_count()} cores; "
          f"load average before: {load:.1f}")  # fmt: skip
    service = Service(store)
    try:
        acknowledged = await _pace(service, Work(recorded, 0), options)
    finally:
        service.stop()
    await _kills(store, recorded, options, acknowledged)


async def _pace(service: Service, work: Work, options: argparse.Namespace) -> list[bytes]:
    await service.ready()
    await closed_loop(service.port, work, 2, [])
    acknowledged: list[bytes] = []
    cpu, commits, own, started = service.cpu(), await service.commits(), time.process_time(), time.perf_counter()
    await closed_loop(service.port, work, options.seconds, acknowledged)
    spent = time.perf_counter() - started
    used, wrote = service.cpu() - cpu, await service.commits() - commits
    count = len(acknowledged)
    print(f"closed loop, {CONNECTIONS} connections, {spent:.1f} s: {count / spent:,.0f} durable decisions a second")
    print(f"  {wrote:,} commits, each one sync ({count / max(1, wrote):.1f} decisions a sync); service CPU "
          f"{used / count * 1e6:,.0f} us a decision, {used / spent:.0%} of a core; "
          f"generator {(time.process_time() - own) / spent:.0%} of a core")  # fmt: skip
    took, late = await open_loop(service.port, work, options.rate, options.seconds)
    print(f"open loop, {options.rate:,.0f} a second, {options.seconds:.0f} s: "
          f"p50 {percentile(took, 0.5):.1f} ms, p99 {percentile(took, 0.99):.1f} ms, most {max(took) * 1000:.1f} ms; "
          f"the generator was up to {late * 1000:.1f} ms late itself")  # fmt: skip
    return acknowledged


async def _kills(
    store: str, recorded: list[Trajectory], options: argparse.Namespace, acknowledged: list[bytes]
) -> None:
    faults, stuck, heard = lost(store, acknowledged), 0, 0
    print(f"the log after this: {len(faults)} faults")
    rng = random.Random(11)
    for number in range(1, options.kills + 1):
        said: list[bytes] = []
        await killed(store, Work(recorded, number), rng, said)
        heard += len(said)
        faults += lost(store, said)
        if number % 10 == 0 or number == options.kills:
            stuck += await go_on(store, said)
    if options.kills:
        print(f"kill -9 at {options.kills} random moments: {heard:,} decisions acknowledged, "
              f"{len(faults)} lost or faulty, {stuck} conversations stuck; "
              f"load average now {os.getloadavg()[0]:.1f}")  # fmt: skip
    for fault in faults[:20]:
        print(f"  {fault}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store", default="")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--rate", type=float, default=750)
    parser.add_argument("--kills", type=int, default=0)
    options = parser.parse_args()
    with TemporaryDirectory(prefix="bylaw-load-") as folder:
        asyncio.run(measure(options, Path(folder)))


if __name__ == "__main__":
    main()
