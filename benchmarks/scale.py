"""Audits in shards: what the driver costs, what kills change, how much memory it takes, how fast tables answer.

    uv run python benchmarks/scale.py logs --count 100000 [--distinct 20000]      writes the logs once
    uv run python benchmarks/scale.py cost [--engine local|ray] [--workers 2]     CPU seconds beside a plain loop
    uv run python benchmarks/scale.py kills [--kills 10]                          driver and workers killed at random
    python benchmarks/scale.py kills --engine ray --kills 2                       the same in an environment with Ray
    uv run python benchmarks/scale.py sql [--rows 10000000]                       rates by agent, tool and policy

All take `--folder` (by default bylaw-scale in the folder for temporary files); a million conversations are the first
command with `--count 1000000`, then the others. Conversations come from the clinic's simulator; beyond `--distinct`
they are repeated under other ids. Every file is of a day of its own, thirty days in turn. CPU seconds are those of the
driver and all its workers: on a machine that others use, wall time says little. The
plain loop reads, judges and writes the same tables in one process, without a driver.
"""

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from bylaw.audit.batch.counts import add_counts
from bylaw.audit.batch.local import LocalEngine
from bylaw.audit.batch.on_ray import RayEngine
from bylaw.audit.batch.part import Job, Judge, read_entry
from bylaw.audit.batch.query import Tables, ready_queries
from bylaw.audit.batch.run import audit_in_shards
from bylaw.audit.batch.schema import TABLES
from bylaw.audit.batch.shard import Shard
from bylaw.audit.batch.tables import place_parts, write_table
from bylaw.audit.collecting import rarely_collecting
from bylaw.audit.examine import open_examiner
from bylaw.audit.request import Request
from bylaw.packs.clinic.simulator.generate import simulated
from bylaw.packs.clinic.simulator.world import build
from bylaw.trace import Identities

EACH = 5000
"""Conversations of a seed, and of a file."""
OPENING = b'"messages":[{'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("logs", "cost", "kills", "sql", "run"))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bylaw-scale")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--distinct", type=int, default=20_000)
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--shard", type=int, default=4 << 20)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    match given.what:
        case "logs":
            return write_logs(given.folder, given.count, given.distinct)
        case "cost":
            return cost(given)
        case "kills":
            return kills(given)
        case "run":
            return run(given, given.out)
        case _:
            return sql(given)


def write_logs(folder: Path, count: int, distinct: int) -> int:
    """Files of 5,000 conversations; those beyond `distinct` repeat earlier files under other ids."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    world = folder / "clinic.sqlite"
    if not world.is_file():
        build(world).close()
    for number in range(-(-count // EACH)):
        target = log_file(folder, number)
        if target.is_file():
            continue
        aside = target.with_suffix(".new")
        with aside.open("wb") as out:
            if number < -(-distinct // EACH):
                records = (msgspec.json.encode(made.record) + b"\n" for made in simulated(number + 1, EACH))
                out.writelines(line.replace(OPENING, timed(number), 1) for line in records)
            else:
                first = number % -(-distinct // EACH)
                with log_file(folder, first).open("rb") as lines:
                    for line in lines:
                        named = line.replace(b'{"id":"clinic-', b'{"id":"again-%d-' % number, 1)
                        out.write(named.replace(timed(first), timed(number), 1))
        os.replace(aside, target)
    return 0


def timed(number: int) -> bytes:
    """How the first message of a conversation begins, with a time of the file's day."""
    return b'"messages":[{"time":"2025-04-%02dT09:00:00Z",' % (1 + number % 30)


def log_file(folder: Path, number: int) -> Path:
    return folder / "logs" / f"logs-{number:04}.jsonl"


def request_for(folder: Path, count: int) -> Request:
    files = tuple(log_file(folder, number) for number in range(-(-count // EACH)))
    if missing := [file for file in files if not file.is_file()]:
        raise SystemExit(f"{missing[0]} is not there: write the logs first")
    return Request(files, "clinic", folder / "clinic.sqlite")


def run(given: Any, out: Path) -> int:
    """One run by an engine, for `cost` and `kills`, which start it as a process of its own."""
    engine = RayEngine(given.workers) if given.engine == "ray" else LocalEngine(given.workers)
    audit_in_shards(request_for(given.folder, given.count), out, engine, size=given.shard)
    own, workers = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({"driver": own.ru_maxrss / 1024, "worker": workers.ru_maxrss / 1024}))
    return 0


def started(given: Any, out: Path, *, engine: str = "") -> "subprocess.Popen[str]":
    options = ["--folder", given.folder, "--count", given.count, "--engine", engine or given.engine]
    options += ["--workers", given.workers]
    command = [sys.executable, __file__, "run", *map(str, options), "--shard", str(given.shard), "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def cost(given: Any) -> int:
    """CPU seconds of an engine beside those of a plain loop over the same logs."""
    before = spent()
    start = time.monotonic()
    plain_loop(request_for(given.folder, given.count), given.folder / "plain")
    plain, plain_wall = spent() - before, time.monotonic() - start
    out = given.folder / f"out-{given.engine}"
    shutil.rmtree(out, ignore_errors=True)
    start = time.monotonic()
    process = started(given, out)
    family = Family(process.pid)
    while process.poll() is None:
        family.look()
        time.sleep(0.25)
    wall = time.monotonic() - start
    engine = sum(family.seconds.values())
    print(
        f"{given.count:,} conversations, {given.workers} workers, engine {given.engine}, load {os.getloadavg()[0]:.1f}"
    )
    print(f"plain loop  {plain:8.1f} CPU s  {plain_wall:7.1f} s wall")
    print(f"engine      {engine:8.1f} CPU s  {wall:7.1f} s wall, {engine / plain - 1:+.1%} CPU")
    driver = family.seconds[process.pid]
    workers = sum(seconds for pid, seconds in family.seconds.items() if pid in family.workers)
    rest = engine - driver - workers
    print(f"of these    driver {driver:.1f}, workers {workers:.1f}, the engine's own processes {rest:.1f} CPU s")
    memory = max((family.memory[pid] for pid in family.workers), default=0.0)
    print(f"peak memory: driver {family.memory[process.pid]:.0f} MB, worker {memory:.0f} MB")
    return process.returncode


class Family:
    """A driver and all below it: what they took, as last seen, those that are gone included."""

    def __init__(self, driver: int) -> None:
        self._driver = driver
        self.seconds: dict[int, float] = {}
        self.memory: dict[int, float] = {}
        """The peak of each, in MB."""
        self.workers: set[int] = set()

    def look(self) -> None:
        for pid in family_of(self._driver):
            with contextlib.suppress(OSError, ValueError, IndexError):
                spent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
                self.seconds[pid] = sum(map(int, spent)) / os.sysconf("SC_CLK_TCK")
                status = Path(f"/proc/{pid}/status").read_text()
                self.memory[pid] = int(status.partition("VmHWM:")[2].split()[0]) / 1024
                if is_worker(pid):
                    self.workers.add(pid)


def spent() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


def plain_loop(request: Request, out: Path) -> None:
    """Every file one after the other, in this process, then the tables."""
    shutil.rmtree(out, ignore_errors=True)
    job = Job(request, out / "parts")
    judge, total = Judge(job), open_examiner(request)
    folders: list[Path] = []
    counts: list[int] = []
    with rarely_collecting():
        for number, file in enumerate(request.files):
            shard = Shard(number, number, f"{number:04}", file.stat().st_size)  # type: ignore[union-attr]
            counts.append(judge.judge(shard))
            folders.append(job.part(shard))
            add_counts(total, (read_entry(folders[-1]) or {})["counts"])
    parts = list(place_parts(folders, counts, Identities()))
    for table in TABLES:
        write_table(table, parts, out / table, ("day", "agent"))


def kills(given: Any) -> int:
    """A run that is killed at random again and again, beside one that is left alone: every row of every table.

    Whichever engine is killed, the one left alone is the local one, and is run once.
    """
    whole, out = given.folder / "out-whole", given.folder / f"out-killed-{given.engine}"
    shutil.rmtree(out, ignore_errors=True)
    if not is_whole(whole, given.count):
        shutil.rmtree(whole, ignore_errors=True)
        if started(given, whole, engine="local").wait():
            return 1
    draw = random.Random(11)
    done = {"driver": 0, "worker": 0}
    shards = sum(file.stat().st_size for file in request_for(given.folder, given.count).files) // given.shard  # type: ignore[union-attr]
    while not (out / "summary.json").is_file():
        process = started(given, out)
        while process.poll() is None:
            left = given.kills - sum(done.values())
            # At random, a tenth of the run apart on average; sooner where less of it is left.
            wait = draw.uniform(0.2, 1.8) * shards / (given.kills + 1)
            parts = made_parts(out)
            while process.poll() is None and (left == 0 or made_parts(out) < parts + wait):
                time.sleep(0.2)
            if process.poll() is not None or not left:
                continue
            workers = children(process.pid)
            # Workers of Ray only: a cluster outlives its drivers, one that a driver has started does not.
            whom = "driver" if given.engine == "local" and (draw.random() < 0.4 or not workers) else "worker"
            if whom == "worker" and not workers:
                continue
            os.kill(process.pid if whom == "driver" else draw.choice(workers), signal.SIGKILL)
            done[whom] += 1
            print(f"killed a {whom} after {made_parts(out)} parts", flush=True)
    same = {table: same_rows(whole, out, table) for table in TABLES}
    is_same_summary = (whole / "summary.json").read_bytes() == (out / "summary.json").read_bytes()
    print(f"{given.count:,} conversations, engine {given.engine}, kills: {done}")
    for table, (is_same, rows) in same.items():
        print(f"{table:15} {rows:9,} rows, {'the same' if is_same else 'NOT THE SAME'}")
    print(f"summary.json: {'the same' if is_same_summary else 'NOT THE SAME'}")
    return 0 if all(found for found, _ in same.values()) and is_same_summary else 1


def is_whole(out: Path, count: int) -> bool:
    """Whether an earlier command has left a run over so many conversations."""
    path = out / "tables" / "schema.json"
    return path.is_file() and json.loads(path.read_bytes())["tables"]["conversations"]["rows"] == count


def made_parts(out: Path) -> int:
    return len(list(out.glob(".run/parts/[0-9a-f]*")))


def children(pid: int) -> list[int]:
    """The workers below a driver, of either engine; its helpers are none."""
    return [each for each in family_of(pid) if is_worker(each)]


def family_of(pid: int) -> list[int]:
    """A process and all below it."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
    below = [pid]
    for each in below:
        below += parents.get(each, [])
    return below


def is_worker(pid: int) -> bool:
    try:
        told = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"spawn_main" in told or told.startswith(b"ray::RayWorker")


def same_rows(one: Path, other: Path, table: str) -> tuple[bool, int]:
    """Whether two audits have the same rows in a table, and how many."""
    import pyarrow.dataset as ds

    def rows(out: Path) -> Any:
        found = ds.dataset(out / "tables" / table, partitioning="hive").to_table()
        order = [("ordinal", "ascending"), *([("step", "ascending")] if "step" in found.column_names else [])]
        return found.sort_by(order).combine_chunks()

    left, right = rows(one), rows(other)
    # Equal rows may be coded by words in another order.
    return left.equals(right) or left.to_pylist() == right.to_pylist(), left.num_rows


def sql(given: Any) -> int:
    """Seconds of ready queries over many calls: those of an audit, repeated under other ids and days."""
    source, out = given.out or given.folder / "out-local", given.folder / "out-many"
    if not (source / "tables").is_dir():
        raise SystemExit("run `cost` first, or give tables by --out: they are repeated")
    repeat_tables(source, out, given.rows)
    tables = Tables(out)
    tables.query("SET threads = 2")
    calls, conversations = (tables.query(f"SELECT count(*) FROM {name}")[1][0][0] for name in REPEATED)
    kinds = tables.query("SELECT count(DISTINCT policies_json) FROM calls")[1][0][0]
    print(f"{calls:,} calls, {kinds:,} kinds of them by their policies, {conversations:,} conversations; two threads")
    slowest = 0.0
    for name in ("rates-by-policy", "rates-by-tool", "rates-by-agent"):
        for _ in range(3):
            cpu, start = os.times(), time.monotonic()
            found = tables.query(ready_queries()[name].text)[1]
            wall, after = time.monotonic() - start, os.times()
            used = after.user + after.system - cpu.user - cpu.system
            print(f"{name}: {len(found)} rows, {wall:.2f} s wall, {used:.2f} CPU s, load {os.getloadavg()[0]:.1f}")
            slowest = max(slowest, wall)
    return 0 if slowest < 2 else 1


REPEATED = ("calls", "conversations")


def repeat_tables(source: Path, out: Path, rows: int) -> None:
    """Write tables again with as many calls as asked for, without the JSON lines, which no query of rates reads."""
    import duckdb

    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(source, out, ignore=shutil.ignore_patterns(*REPEATED, ".run"))
    base = duckdb.connect()
    base.execute("SET threads = 2")
    times = 0
    for table in REPEATED:
        read = f"read_parquet('{source}/tables/{table}/**/*.parquet', hive_partitioning = true)"
        if not times:
            held = base.execute(f"SELECT count(*) FROM {read}").fetchone()
            times = -(-rows // held[0]) if held else 0
        base.execute(
            f"""COPY (SELECT c.* REPLACE (conversation || '-' || n AS conversation, NULL::VARCHAR AS record,
                                          DATE '2025-01-01' + (n % 30)::INT AS day, ordinal + n * 10000000 AS ordinal)
                      FROM {read} c, range({times}) AS again(n))
                TO '{out}/tables/{table}' (FORMAT parquet, PARTITION_BY (day, agent), COMPRESSION zstd)"""
        )


if __name__ == "__main__":
    raise SystemExit(main())
