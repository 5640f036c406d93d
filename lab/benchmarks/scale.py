"""Measures audits in shards: the cost of the driver, the effect of kills, the memory, and the speed of queries.

    uv run python lab/benchmarks/scale.py logs --count 100000 [--distinct 20000]      writes the logs once
    uv run python lab/benchmarks/scale.py cost [--engine local|ray] [--workers 2]     CPU seconds next to a plain loop
    uv run python lab/benchmarks/scale.py watch [--engine local|ray] [--workers 2]    one run: CPU, wall and memory
    uv run python lab/benchmarks/scale.py kills [--kills 10]                         driver and workers killed at random
    python lab/benchmarks/scale.py kills --engine ray --kills 2                      the same in an environment with Ray
    uv run python lab/benchmarks/scale.py sql [--rows 10000000]                       rates by agent, tool and policy

All commands take `--folder` (default: bylaw-scale in the temporary folder). For a million conversations, run the first
command with `--count 1000000`, then the others. The conversations come from the clinic's simulator. Beyond
`--distinct`, they are repeated with other ids. Each file is of one day, out of thirty. CPU seconds include the driver
and all its descendants, from their start. Wall time means little on a shared machine.

The plain loop is one process that reads, judges and writes the same tables and summary. The loop has no driver, shards
or parts, and cannot resume. It runs at the same time as the engine, because the speed of shared cores varies.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
from family import Family, children
from msgspec.structs import replace

from bylaw.audit.batch.query import Tables, ready_queries
from bylaw.audit.batch.run import LocalEngine, RayEngine, audit_in_shards
from bylaw.audit.batch.shard import HELD, SIZE
from bylaw.audit.batch.tables import TABLES, Rows, arrow, arrow_schema, write_batches
from bylaw.audit.output import dump
from bylaw.audit.request import Request
from bylaw.audit.run import Examiner, rarely_collecting
from bylaw.audit.summary import summarise
from bylaw.errors import RecordError
from bylaw.trace import Identities
from bylaw.trace.source import size_of
from bylaw_lab.clinic.simulator.generate import simulated
from bylaw_lab.clinic.simulator.world import build

EACH = 5000
"""The number of conversations for each seed and in each file."""
OPENING = b'"messages":[{'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("logs", "cost", "watch", "kills", "sql", "run", "plain"))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bylaw-scale")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--distinct", type=int, default=20_000)
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--shard", type=int, help="bytes; as an audit has it, for kills a quarter of that")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    given.shard = given.shard or (SIZE // 4 if given.what == "kills" else SIZE)
    match given.what:
        case "logs":
            return write_logs(given.folder, given.count, given.distinct)
        case "cost":
            return cost(given)
        case "kills":
            return kills(given)
        case "watch":
            return watch(given)
        case "run":
            return run(given, given.out)
        case "plain":
            plain_loop(request_for(given.folder, given.count), given.out)
            return 0
        case _:
            return sql(given)


def write_logs(folder: Path, count: int, distinct: int) -> int:
    """Write files of 5,000 conversations. After `distinct` files, earlier files are repeated with other ids."""
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
    """Return the beginning of the first message in a conversation, with a time on the day of the file."""
    return b'"messages":[{"time":"2025-04-%02dT09:00:00Z",' % (1 + number % 30)


def log_file(folder: Path, number: int) -> Path:
    return folder / "logs" / f"logs-{number:04}.jsonl"


def request_for(folder: Path, count: int) -> Request:
    files = tuple(log_file(folder, number) for number in range(-(-count // EACH)))
    if missing := [file for file in files if not file.is_file()]:
        raise SystemExit(f"{missing[0]} is not there: write the logs first")
    return Request(files, "clinic", folder / "clinic.sqlite")


def shards_of(given: Any) -> int:
    """Return the approximate number of shards in a run. A file has at least one."""
    return sum(-(-size_of(file) // int(given.shard)) for file in request_for(given.folder, given.count).files)


def run(given: Any, out: Path) -> int:
    """Run an engine once. The other commands start this in a separate process."""
    engine = RayEngine(given.workers) if given.engine == "ray" else LocalEngine(given.workers)
    audit_in_shards(request_for(given.folder, given.count), out, engine, size=given.shard)
    return 0


def started(given: Any, out: Path, *, engine: str = "", what: str = "run") -> "subprocess.Popen[str]":
    options = ["--folder", given.folder, "--count", given.count, "--engine", engine or given.engine]
    options += ["--workers", given.workers]
    command = [sys.executable, __file__, what, *map(str, options), "--shard", str(given.shard), "--out", str(out)]
    return subprocess.Popen(command, text=True)


def cost(given: Any) -> int:
    """Compare the CPU seconds and output of an engine and a plain loop that are started together."""
    plain, out = given.folder / "out-plain", given.folder / f"out-{given.engine}"
    is_same = True
    for _ in range(given.rounds):
        shutil.rmtree(plain, ignore_errors=True)
        shutil.rmtree(out, ignore_errors=True)
        loop = Family(started(given, plain, what="plain"))
        engine = Family(started(given, out))
        while loop.look() | engine.look():
            time.sleep(0.25)
        over = engine.total / loop.total - 1
        print(f"{given.count:,} conversations, {given.workers} workers, engine {given.engine}, {loaded()}")
        print(f"plain loop  {loop.total:8.1f} CPU s  {loop.wall:7.1f} s wall")
        print(f"engine      {engine.total:8.1f} CPU s  {engine.wall:7.1f} s wall, {over:+.1%} CPU; {engine.told()}")
        same = [same_rows(plain, out, table)[0] for table in TABLES]
        same.append((plain / "summary.json").read_bytes() == (out / "summary.json").read_bytes())
        print(f"tables and summary: {'the same' if all(same) else 'NOT THE SAME'}", flush=True)
        is_same = is_same and all(same)
    return 0 if is_same else 1


def watch(given: Any) -> int:
    """Run once, resuming an earlier run, and report the cost after each tenth of the shards."""
    out = given.folder / f"out-{given.engine}"
    shards = shards_of(given)
    engine = Family(started(given, out))
    tenth = 0
    while engine.look():
        if (made := made_parts(out)) * 10 // shards > tenth:
            tenth = made * 10 // shards
            print(f"{made} parts of about {shards}: {engine.total:.0f} CPU s, {engine.told()}; {loaded()}", flush=True)
        time.sleep(1)
    print(f"{given.count:,} conversations, {given.workers} workers, engine {given.engine}, {loaded()}")
    print(f"{engine.total:.1f} CPU s, {engine.wall:.1f} s wall; {engine.told()}")
    return engine.status


def loaded() -> str:
    return f"load {os.getloadavg()[0]:.1f}"


def plain_loop(request: Request, out: Path) -> None:
    """Judge every conversation in order, with all rows in memory, then write the tables and the summary."""
    examiner = Examiner(request)
    names = Identities()
    rows = Rows({policy.id: policy.severity for pack in examiner.shelf.packs for policy in pack.policies.values()})
    held: dict[str, list[Any]] = {table: [] for table in TABLES}

    def flush() -> None:
        for table, found in rows.take(in_part=False):
            held[table] += found.to_batches()

    with rarely_collecting():
        for ordinal, part in enumerate(examiner.examine_all(request)):
            assert not isinstance(part, RecordError)
            rows.add(replace(part, id=names.unique(part.id)), ordinal)
            if len(rows) == HELD:
                flush()
        flush()
    for table, batches in held.items():
        write_batches(iter(batches), arrow_schema(table), out / "tables" / table)
    dump(out / "summary.json", summarise(examiner.shelf, examiner.counts, request, [], 0))


def kills(given: Any) -> int:
    """Compare a run that is killed repeatedly at random times with an undisturbed run, row by row in every table.

    The undisturbed run always uses the local engine, and runs once.
    """
    whole, out = given.folder / "out-whole", given.folder / f"out-killed-{given.engine}"
    shutil.rmtree(out, ignore_errors=True)
    if not is_whole(whole, given.count):
        shutil.rmtree(whole, ignore_errors=True)
        if started(given, whole, engine="local").wait():
            return 1
    draw = random.Random(11)
    done = {"driver": 0, "worker": 0}
    shards = shards_of(given)
    while not (out / "summary.json").is_file():
        process = started(given, out)
        while process.poll() is None:
            left = given.kills - sum(done.values())
            # The kills come at random times, on average a tenth of the run apart, and sooner near the end of the run.
            wait = draw.uniform(0.2, 1.8) * shards / (given.kills + 1)
            parts = made_parts(out)
            while process.poll() is None and (left == 0 or made_parts(out) < parts + wait):
                time.sleep(0.2)
            if process.poll() is not None or not left:
                continue
            workers = children(process.pid)
            # Kill only Ray's workers. A cluster survives its drivers only if no driver started it.
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
    """Whether an earlier command stored the result of a run over this number of conversations."""
    path = out / "tables" / "schema.json"
    return path.is_file() and json.loads(path.read_bytes())["tables"]["conversations"]["rows"] == count


def made_parts(out: Path) -> int:
    return len(list(out.glob(".run/parts/[0-9a-f]*")))


def same_rows(one: Path, other: Path, table: str) -> tuple[bool, int]:
    """Whether two audits have the same rows in a table, and the number of rows."""

    def rows(out: Path) -> Any:
        found = arrow("dataset").dataset(out / "tables" / table, partitioning="hive").to_table()
        order = [("ordinal", "ascending"), *([("step", "ascending")] if "step" in found.column_names else [])]
        return found.sort_by(order).combine_chunks()

    left, right = rows(one), rows(other)
    # Equal rows may have their words in a different order in the dictionary.
    return left.equals(right) or left.to_pylist() == right.to_pylist(), left.num_rows


def sql(given: Any) -> int:
    """Measure the seconds of built-in queries over many calls. These are the calls of an audit with new ids and
    days.
    """
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
    """Repeat the tables until they have this many calls. JSON lines are left out, because rate queries do not read
    them.
    """
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
