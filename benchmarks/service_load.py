"""Load on the service: how many durable decisions a second, what one costs, and how long one takes.

    python benchmarks/service_load.py [--store sqlite|postgres] [--workers 2] [--seconds 15] [--rate 750]

A service of its own is started on the loopback, with the clinic pack and a new log: a file of SQLite, or a PostgreSQL
server of its own. One decision a request, each with what happened since the last one; the calls are those of simulated
clinic conversations. First as fast as 64 connections go, then open loop at `--rate` a second: a request is sent when it
is due, whether or not earlier ones were answered, and its time counts from then. At the end the log is verified.
"""

import argparse
import asyncio
import os
import time
from collections import deque
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from postgres_server import server, settings, syncs
from service_traffic import Connection, Request, Service, Work

from bylaw.packs.clinic.simulator.generate import simulate
from bylaw.record import open_store
from bylaw.record.sqlite import SETTINGS
from bylaw.record.verify import verify

CONNECTIONS = 64


async def closed_loop(port: int, work: Work, seconds: float) -> int:
    """As fast as the connections go; how many requests were answered."""
    end = time.perf_counter() + seconds
    answered = 0

    async def client() -> None:
        nonlocal answered
        connection = Connection(port)
        while time.perf_counter() < end:
            request, rest = work.next()
            status, body = await connection.ask(request.sent)
            assert status == 200, body
            answered += 1
            work.give_back(rest)
        connection.close()

    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))
    return answered


async def open_loop(port: int, work: Work, rate: float, seconds: float) -> tuple[list[float], float]:
    """Requests when they are due; seconds from then to the answer, and how late the generator itself was at worst."""
    free = [Connection(port) for _ in range(CONNECTIONS * 4)]
    took: list[float] = []
    tasks: set[asyncio.Task[None]] = set()
    late = 0.0

    async def one(due: float, request: Request, rest: deque[Request]) -> None:
        connection = free.pop() if free else Connection(port)
        status, body = await connection.ask(request.sent)
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


def busy() -> float:
    """Seconds of CPU that everything on this machine has used, this benchmark included."""
    first = Path("/proc/stat").read_text().splitlines()[0].split()
    user, nice, system, _, _, irq, soft = map(int, first[1:8])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))] * 1000


async def measure(store: str, workers: int, seconds: float, rate: float) -> None:
    """One log's numbers."""
    is_server = "://" in store
    durable = settings(store) if is_server else ", ".join(f"{name}={value}" for name, value in SETTINGS.items())
    print(f"log: {'PostgreSQL' if is_server else 'SQLite'} ({durable})")
    cores, load = os.cpu_count(), os.getloadavg()[0]
    print(f"workers: {workers}; {cores} cores, shared with the generator; load average before: {load:.1f}")
    work = Work([trajectory for trajectory, _ in simulate(7, 60)], 0)
    service = Service(store, workers=workers)
    try:
        await service.ready()
        await closed_loop(service.port, work, 2)
        cpu, commits, own, started = service.cpu(), await service.commits(), time.process_time(), time.perf_counter()
        synced, all_used = syncs(store) if is_server else 0, busy()
        count = await closed_loop(service.port, work, seconds)
        spent = time.perf_counter() - started
        used, mine, all_used = service.cpu() - cpu, time.process_time() - own, busy() - all_used
        wrote = await service.commits() - commits
        said = f", {syncs(store) - synced:,} syncs by the server's own count" if is_server else ", each one sync"
        print(f"closed loop, {CONNECTIONS} connections, {spent:.1f} s: {count / spent:,.0f} durable decisions a second")
        print(f"  {wrote:,} commits{said} ({count / max(1, wrote):.1f} decisions a commit)")
        print(f"  service CPU {used / count * 1e6:,.0f} us a decision, {used / spent:.0%} of a core; generator "
              f"{mine / spent:.0%}; everything else on the machine{' (PostgreSQL included)' if is_server else ''} "
              f"{max(0.0, all_used - used - mine) / spent:.0%}")  # fmt: skip
        took, late = await open_loop(service.port, work, rate, seconds)
        print(f"open loop, {rate:,.0f} a second, {seconds:.0f} s: p50 {percentile(took, 0.5):.1f} ms, "
              f"p99 {percentile(took, 0.99):.1f} ms, most {max(took) * 1000:.1f} ms; "
              f"the generator was up to {late * 1000:.1f} ms late itself")  # fmt: skip
    finally:
        service.stop()
    log = open_store(store)
    found = verify(log, "default")
    log.close()
    print(f"the log after this: {found.entries:,} entries, {len(found.faults)} faults")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--rate", type=float, default=750)
    given = parser.parse_args()
    with TemporaryDirectory(prefix="bylaw-load-") as folder:
        file = str(Path(folder) / "decisions.db")
        with server() if given.store == "postgres" else nullcontext(file) as store:
            asyncio.run(measure(store, given.workers, given.seconds, given.rate))


if __name__ == "__main__":
    main()
