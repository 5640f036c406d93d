"""Measures the service under load: durable decisions per second, the cost of each, and its latency.

    python lab/benchmarks/service_load.py [--store sqlite|postgres] [--workers 2] [--seconds 15] [--rate 750] [--roam]
                                      [--services 1]

The benchmark starts a service on loopback, with the clinic pack and a new log in SQLite or in a PostgreSQL server. Each
request has one decision and the events since the last one, from simulated clinic conversations. There are 64 hosts of
agents, each with its own conversations and an open connection. With `--roam`, any free host may continue a
conversation, so that it moves between workers. With `--services`, several services share one log, each with
`--workers`, as on several machines, and each host uses one of them. The first measurement runs as fast as possible. The
second has an open loop at `--rate` per second: a request is sent when it is due, even if earlier ones have no response
yet, and its time counts from then. Finally, the log is verified.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path

import uvloop
from postgres_server import server_cpu, syncs
from service_hosts import Host, Talks, hosts_of
from service_stores import arguments, described, is_server, new_log
from service_traffic import conversations
from service_traffic import started as running

from bylaw.record import open_store
from bylaw.record.verify import verify
from bylaw.shield import Shield
from bylaw.trace import Call, Message, Trajectory

HOSTS = 64
OPEN = 384
"""The number of conversations that are open at the same time."""


async def closed_loop(hosts: Sequence[Host], seconds: float) -> int:
    """Let each host send its next request after the response. Return the number of responses."""
    end = time.perf_counter() + seconds
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    going = len(hosts)

    def again(host: Host) -> None:
        nonlocal going
        if (now := time.perf_counter()) < end:
            host.send(now, lambda: again(host))
            return
        going -= 1
        if not going:
            ended.set_result(None)

    before = sum(len(host.took) for host in hosts)
    for host in hosts:
        again(host)
    await ended
    _refuse_wrong(hosts)
    return sum(len(host.took) for host in hosts) - before


async def open_loop(hosts: Sequence[Host], rate: float, seconds: float) -> tuple[list[float], float]:
    """Send requests when they are due. Return the seconds until each response, and the longest delay of the
    generator.
    """
    for host in hosts:
        host.took.clear()
    count, late, sent = int(rate * seconds), 0.0, 0
    start = time.perf_counter()
    while sent < count:
        now = time.perf_counter()
        late = max(late, now - start - sent / rate)
        while sent < count and start + sent / rate <= now:
            hosts[sent % len(hosts)].send(start + sent / rate)
            sent += 1
        await asyncio.sleep(max(0.0, start + sent / rate - time.perf_counter()))
    while sum(len(host.took) for host in hosts) < count:
        await asyncio.sleep(0.02)
    _refuse_wrong(hosts)
    return [each for host in hosts for each in host.took], late


def _refuse_wrong(hosts: Sequence[Host]) -> None:
    for host in hosts:
        if host.wrong:
            raise RuntimeError(
                f"{len(host.wrong)} requests of a host were not answered as they should: {host.wrong[0]!r}"
            )


def busy() -> tuple[float, float]:
    """Return the CPU seconds used on this machine, including this benchmark, and those that its host gave to other
    machines.
    """
    first = Path("/proc/stat").read_text().splitlines()[0].split()
    user, nice, system, _, _, irq, soft, stolen = map(int, first[1:9])
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + soft) / tick, stolen / tick


def speed() -> float:
    """Return the CPU seconds of a million turns of a small loop. The loop takes longer on shared cores."""
    started, total = time.process_time(), 0
    for number in range(1_000_000):
        total += number * number
    return time.process_time() - started


def deciding(recorded: Sequence[Trajectory]) -> float:
    """Return the CPU seconds for a decision and its events, in this process and without a log."""
    shield, decided, started = Shield("clinic"), 0, 0.0
    for number, trajectory in enumerate([*recorded] * 6):
        if number == len(recorded) * 2:
            # Things that are created only once exist by now, so restart the measurement here.
            decided, started = 0, time.process_time()
        session = shield.session(trajectory.id)
        for step, event in enumerate(trajectory.events):
            if isinstance(event, Message):
                (session.user if event.by == "user" else session.agent)(event.text)
            elif isinstance(event, Call):
                session.decide(event.tool, event.arguments, id=f"k{step}")
                decided += 1
            elif event.call is not None:
                session.result(event.value(), id=f"k{event.call}", error=event.error)
    return (time.process_time() - started) / decided


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))] * 1000


async def measure(store: str, services: int, workers: int, seconds: float, rate: float, roam: bool) -> None:
    in_server = is_server(store)
    print(described(store))
    cores, load = os.cpu_count(), os.getloadavg()[0]
    print(f"a conversation {'moves between hosts' if roam else 'stays with its host'}")
    print(f"services: {services}, workers of each: {workers}")
    print(f"{cores} cores, shared with the generator; load average before: {load:.1f}")
    recorded = conversations()
    service = running(store, services, workers)
    try:
        await service.ready()
        apart = [Talks(recorded, OPEN // HOSTS, number, HOSTS) for number in range(HOSTS)]
        talks = [Talks(recorded, OPEN)] * HOSTS if roam else apart
        ports = service.ports
        hosts = [host for n, port in enumerate(ports) for host in await hosts_of(port, talks[n :: len(ports)])]
        await closed_loop(hosts, 2)
        slow = speed()
        of_server = server_cpu(store) if in_server else 0.0
        cpu, commits, own, started = service.cpu(), await service.commits(), time.process_time(), time.perf_counter()
        synced, (all_used, taken) = syncs(store) if in_server else 0, busy()
        count = await closed_loop(hosts, seconds)
        spent = time.perf_counter() - started
        theirs = server_cpu(store) - of_server if in_server else 0.0
        used, mine, (all_after, taken_after) = service.cpu() - cpu, time.process_time() - own, busy()
        wrote = await service.commits() - commits
        said = f", {syncs(store) - synced:,} syncs by the server's own count" if in_server else ", each one sync"
        rest = max(0.0, all_after - all_used - used - mine - theirs)
        print(f"closed loop, {HOSTS} hosts, {spent:.1f} s: {count / spent:,.0f} durable decisions a second")
        print(f"  {wrote:,} commits{said} ({count / max(1, wrote):.1f} decisions a commit)")
        print(f"  CPU a decision: service {used / count * 1e6:,.0f} us, generator {mine / count * 1e6:,.0f} us"
              f"{f', PostgreSQL {theirs / count * 1e6:,.0f} us' if in_server else ''}")  # fmt: skip
        print(f"  deciding alone, in process and without a log: {deciding(recorded) * 1e6:,.0f} us of CPU")
        print(f"  of {cores} cores: service {used / spent:.0%}, generator {mine / spent:.0%}"
              f"{f', PostgreSQL {theirs / spent:.0%}' if in_server else ''}, "
              f"all else on the machine {rest / spent:.0%}, lent to other machines "
              f"{(taken_after - taken) / spent:.0%}; a million turns of a loop took {slow:.3f} s")  # fmt: skip
        took, late = await open_loop(hosts, rate, seconds)
        print(f"open loop, {rate:,.0f} a second, {seconds:.0f} s: p50 {percentile(took, 0.5):.1f} ms, "
              f"p99 {percentile(took, 0.99):.1f} ms, most {max(took) * 1000:.1f} ms; "
              f"the generator was up to {late * 1000:.1f} ms late itself")  # fmt: skip
        for host in hosts:
            host.close()
    finally:
        service.stop()
    log = open_store(store)
    found = verify(log, "default")
    log.close()
    print(f"the log after this: {found.entries:,} entries, {len(found.faults)} faults")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--rate", type=float, default=750)
    parser.add_argument("--roam", action="store_true")
    given = parser.parse_args()
    with new_log(given.store) as store:
        uvloop.run(measure(store, given.services, given.workers, given.seconds, given.rate, given.roam))


if __name__ == "__main__":
    main()
