"""What the slowest requests wait for: the time of each, stage by stage, under load that is sent when it is due.

    python lab/benchmarks/service_waits.py [--store sqlite|postgres] [--workers 2] [--seconds 5] [--rate 750]

As `service_load.py`, with workers that note when a request was begun, decided, written and answered
(`service_stamps.py`). All of it runs on the clock of one machine. To measure beside others who use the machine, give
one worker, half the rate and one core: `taskset -c 1 python lab/benchmarks/service_waits.py --workers 1 --rate 375`.
"""

import os
import time
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop
from service_hosts import Host, Talks, Wire, hosts_of
from service_load import HOSTS, OPEN, closed_loop, open_loop, percentile, speed
from service_stores import arguments, described, new_log
from service_traffic import Service, conversations, name_of

STAGES = (
    "the generator is late",
    "on the way, and until the worker turns to it",
    "it is decided",
    "others of the same turn are decided, and the last commit ends",
    "another worker writes, and what is there is read",
    "it is written and synced",
    "others are answered",
    "on the way back",
)


NOTED: dict[str, tuple[float, float, float]] = {}
"""By the name of a request, when it was due, sent and answered."""


class Noting(Host):
    """A host that notes it."""

    def _ask(self, wire: Wire, talk: deque[bytes], due: float, then: Callable[[], None] | None) -> None:
        name, sent = name_of(talk[0]), time.perf_counter()

        def noting() -> None:
            NOTED[name] = (due, sent, time.perf_counter())
            if then is not None:
                then()

        super()._ask(wire, talk, due, noting)


async def measure(store: str, workers: int, seconds: float, rate: float, folder: Path) -> None:
    print(described(store))
    recorded = conversations()
    os.environ["STAMPS"] = str(folder)
    service = Service(store, workers=workers, first="import service_stamps")
    try:
        await service.ready()
        apart = (Talks(recorded, OPEN // HOSTS, number, HOSTS) for number in range(HOSTS))
        hosts = await hosts_of(service.port, apart, Noting)
        await closed_loop(hosts, 2)
        NOTED.clear()
        took, _ = await open_loop(hosts, rate, seconds)
        noted = dict(NOTED)
        # Workers write their notes now and then: some more, so that the last ones are written too.
        await closed_loop(hosts, 2)
        for host in hosts:
            host.close()
    finally:
        service.stop()
    print(f"{workers} workers, {rate:,.0f} a second: p50 {percentile(took, 0.5):.1f} ms, "
          f"p99 {percentile(took, 0.99):.1f} ms; a million turns of a loop took {speed():.3f} s")  # fmt: skip
    show(noted, folder)


def show(noted: dict[str, tuple[float, float, float]], folder: Path) -> None:
    """Milliseconds of each stage, for all and for the slowest."""
    rows: list[list[float]] = []
    for file in folder.glob("*.stamps"):
        for line in file.read_text().splitlines():
            name, *stamps = line.split("\t")
            if name in noted and len(stamps) == 6:
                due, sent, back = noted[name]
                times = [due, sent, *map(float, stamps), back]
                rows.append([later - earlier for earlier, later in pairwise(times)])
    rows.sort(key=sum)
    slow = rows[-max(1, len(rows) // 100) :]
    print(f"milliseconds of a request, mean of {len(rows):,} and of the slowest {len(slow)}:")
    for stage, name in enumerate(STAGES):
        means = [sum(row[stage] for row in part) / len(part) * 1000 for part in (rows, slow)]
        print(f"  {means[0]:6.2f} {means[1]:6.2f}  {name}")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rate", type=float, default=750)
    given = parser.parse_args()
    with TemporaryDirectory(prefix="bylaw-waits-") as folder, new_log(given.store) as store:
        uvloop.run(measure(store, given.workers, given.seconds, given.rate, Path(folder)))


if __name__ == "__main__":
    main()
