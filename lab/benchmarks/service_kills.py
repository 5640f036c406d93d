"""Kills the service, or its database, at random moments under load, and searches for lost data.

    python lab/benchmarks/service_kills.py [--store sqlite|postgres] [--workers 2] [--kills 50] [--seed 11]
                                       [--kill service|database] [--services 1]

The service runs on loopback, with the clinic pack and a log in SQLite or in a PostgreSQL server. 64 clients send
requests at the same time. The benchmark kills the service with SIGKILL: all workers at once, or one of them first. With
`--services`, there are several independent services, and one of them is killed first. With `--kill database`, all
processes of the PostgreSQL server are killed at once, and the service must continue when the server is back.

Afterwards, these must hold for each conversation:

- The log contains every acknowledged event and decision, unchanged and in order. It may also contain the one request
  without a response, either completely or not at all.
- The chain of the log verifies.
- After a restart, the client sends its last request again, because it cannot know whether the request was processed.
  The conversation then continues.

The exit status is 1 if anything is wrong.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import deque
from typing import Any

from postgres_server import crash, start
from service_stores import arguments, described, new_log
from service_traffic import Connection, Request, Work, conversations, started, told

from bylaw.record import Store, open_store
from bylaw.record.verify import verify
from bylaw.shield.history import read_history

CLIENTS = 64
ONE_FIRST = 0.3
"""Seconds between killing one worker and killing all of them, in every second run."""


ROUNDS = 3
"""The maximum number of times that a request is sent."""


class Unanswered(Exception):
    """The service responded that it could not write the log."""


class Told:
    """The responses about one conversation."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []
        self.decisions: list[tuple[str, str, bool]] = []
        self.pending: Request | None = None
        """The request that has no response yet."""
        self.rest: deque[Request] = deque()

    def acknowledge(self, request: Request, body: bytes) -> None:
        self.events.extend(request.events)
        for decision in json.loads(body).get("decisions", ()):
            self.decisions.append((decision["id"], decision["answer"], decision["allowed"]))
        self.pending = None


class Run:
    """One run of the service, from its start to its kill."""

    def __init__(self, store: str, services: int, workers: int, work: Work) -> None:
        self.store = store
        self._services = services
        self._workers = workers
        self.told: dict[str, Told] = {}
        self.acknowledged = 0
        self._work = work
        self.service = started(store, services, workers, stderr=subprocess.DEVNULL)

    async def lose_its_log(self, after: float) -> None:
        """Kill the database, and restart it after all clients have noticed. The service keeps running."""
        await self.service.ready()
        clients = self._clients()
        await asyncio.sleep(after)
        crash(self.store)
        for outcome in await asyncio.gather(*clients, return_exceptions=True):
            if not isinstance(outcome, Unanswered):
                raise RuntimeError(f"a client ended otherwise than by the kill: {outcome!r}")
        start(self.store)

    async def be_killed(self, after: float, *, one_first: bool) -> None:
        service = self.service
        await service.ready()
        clients = self._clients()
        await asyncio.sleep(after)
        # The other services still respond to their clients, which may continue conversations of the killed service.
        if one_first and service.fell_one():
            await asyncio.sleep(ONE_FIRST)
        service.stop(signal.SIGKILL)
        for outcome in await asyncio.gather(*clients, return_exceptions=True):
            if not isinstance(outcome, OSError | EOFError):
                raise RuntimeError(f"a client ended otherwise than by the kill: {outcome!r}")

    def _clients(self) -> list[asyncio.Task[None]]:
        ports = self.service.ports
        return [asyncio.create_task(self._client(ports[number % len(ports)])) for number in range(CLIENTS)]

    async def _client(self, port: int) -> None:
        connection = Connection(port)
        while True:
            request, rest = self._work.next()
            told = self.told.setdefault(request.conversation, Told())
            told.pending, told.rest = request, rest
            status, body = await connection.ask(request.sent)
            if status == 503:
                raise Unanswered(body)
            if status != 200:
                raise RuntimeError(f"{status} {body!r}")
            told.acknowledge(request, body)
            self.acknowledged += 1
            self._work.give_back(rest)

    def lost(self, log: Store) -> list[str]:
        """Return acknowledged entries that are missing from the log or changed in it, and entries that no client
        requested.
        """
        faults: list[str] = []
        for name, told_here in self.told.items():
            history = read_history(log.conversation("default", name))
            events = [told(event) for event in history.events] if history is not None else []
            decisions = [(each.id, each.answer, each.allowed) for each in history.decisions] if history else []
            pending = list(told_here.pending.events) if told_here.pending is not None else []
            asked = int(told_here.pending is not None and told_here.pending.path == "/v1/decide")
            count = len(told_here.events)
            if events[:count] != told_here.events:
                faults.append(f"{name}: an acknowledged event is lost or altered")
            elif events[count:] not in ([], pending):
                faults.append(f"{name}: part of a request is in the log")
            elif decisions[: len(told_here.decisions)] != told_here.decisions:
                faults.append(f"{name}: an acknowledged decision is lost or altered")
            elif len(decisions) - len(told_here.decisions) != (asked if events[count:] else 0):
                faults.append(f"{name}: an event without its decision, or a decision without its event")
        return faults

    async def stuck(self, most: int) -> tuple[int, list[str]]:
        """Retry the requests without a response. Return their number, and the conversations that do not continue."""
        if not self.service.is_up:
            self.service = started(self.store, self._services, self._workers)
            await self.service.ready()
        connection = Connection(self.service.ports[-1])
        waiting = [each for each in self.told.values() if each.pending is not None][:most]
        faults: list[str] = []
        for told_here in waiting:
            first, *later = [told_here.pending, *list(told_here.rest)[:1]]
            assert first is not None
            status, body = await self._asked(connection, first)
            if status != 200:
                faults.append(f"{first.conversation}: sent again: {status} {body!r}")
            for request in later:
                status, body = await self._asked(connection, request)
                if status != 200:
                    faults.append(f"{first.conversation}: goes on: {status} {body!r}")
        connection.close()
        self.service.stop()
        return len(waiting), faults

    async def _asked(self, connection: Connection, request: Request) -> tuple[int, bytes]:
        """Send a request twice if needed, because a worker notices a lost database connection only when it gets a
        request.
        """
        for _ in range(ROUNDS):
            status, body = await connection.ask(request.sent)
            if status != 503:
                break
        return status, body


async def measure(store: str, services: int, workers: int, kills: int, seed: int, *, database: bool) -> int:
    print(described(store), flush=True)
    recorded = conversations()
    rng, faults, heard, tried, touched = random.Random(seed), list[str](), 0, 0, 0
    began = time.perf_counter()
    for number in range(1, kills + 1):
        run = Run(store, services, workers, Work(recorded, number, apart=True))
        if database:
            await run.lose_its_log(rng.uniform(0.05, 1.5))
        else:
            await run.be_killed(rng.uniform(0.05, 1.5), one_first=number % 2 == 0)
        log = open_store(store)
        faults += run.lost(log)
        if number % 10 == 0 or number == kills:
            faults += verify(log, "default").faults
        log.close()
        count, held = await run.stuck(CLIENTS)
        faults += held
        heard, tried, touched = heard + run.acknowledged, tried + count, touched + len(run.told)
        if number % 10 == 0:
            print(f"  {number} kills, {heard:,} requests acknowledged, {len(faults)} faults", flush=True)
    log = open_store(store)
    found = verify(log, "default")
    log.close()
    faults += found.faults
    what = "database" if database else "service"
    several = f"{services} services with " if services > 1 else ""
    print(f"{several}{workers} workers, kill -9 of the {what} at {kills} random moments under {CLIENTS} clients, "
          f"{time.perf_counter() - began:.0f} s, load average {os.getloadavg()[0]:.1f}: "
          f"{heard:,} requests acknowledged in {touched:,} conversations; "
          f"{len(faults)} faults")  # fmt: skip
    print(f"  {tried:,} conversations that waited for an answer were taken up again; the chain of {found.entries:,} "
          f"entries {'verifies' if not found.faults else 'does not verify'}")  # fmt: skip
    for fault in faults[:20]:
        print(f"  {fault}")
    return 1 if faults else 0


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--kill", choices=("service", "database"), default="service")
    given = parser.parse_args()
    if given.kill == "database" and given.store != "postgres":
        parser.error("a file of SQLite has no process of its own: --kill database is for --store postgres")
    with new_log(given.store) as store:
        is_database = given.kill == "database"
        how = (given.services, given.workers, given.kills, given.seed)
        return asyncio.run(measure(store, *how, database=is_database))


if __name__ == "__main__":
    sys.exit(main())
