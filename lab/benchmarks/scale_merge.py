"""Measures how long a nightly run takes to merge new rows into existing ones, without reading and judging logs.

    uv run python lab/benchmarks/scale_merge.py [--held 2000000] [--new 66666] [--replaced 0.01] [--days 90]

There are `--held` conversations over `--days`, each with three compliant calls. One in twenty has a finding with its
record. `--new` conversations are of the last day, and a share of them replaces conversations of any day. The rows are
generated, not judged, so only the merge is timed, on one core. The time is also extrapolated to 300 million rows.
"""

import argparse
import json
import os
import shutil
import tempfile
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bylaw.audit.batch import update as nightly
from bylaw.audit.batch.run import Outcome
from bylaw.audit.batch.shard import Job, Shard
from bylaw.audit.batch.tables import COUNTS, TABLES, WRITTEN, arrow_schema
from bylaw.audit.request import Request

CALLS, FLAGGED = 3, 20
"""The number of calls in each conversation, and the number of conversations for each conversation with a finding."""
AT_ONCE = 1 << 17
RECORD = json.dumps({"agent": "bot", "policies": [{"id": "late-cancel-fee", "because": "the fee is $40.00"}] * 4})
POLICIES = [
    {"policy": f"policy-{n}", "severity": "high", "strict": "compliant", "determined": "compliant"} for n in range(3)
]
NUMBERS = [["agent", "bot", "trajectories", 1], ["tool", "cancel_appointment", "calls", CALLS]]
COUNTED = json.dumps({"numbers": NUMBERS, "evidence": {}, "limited": [], "faults": [], "times": []})


class Clock:
    """Calls a function and records how long the last call took."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.wall = self.cpu = 0.0

    def __call__(self, *arguments: Any) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            return self._function(*arguments)
        finally:
            self.wall, self.cpu = time.perf_counter() - wall, time.process_time() - cpu


class Made:
    """Replaces the workers. Every shard is a range of generated conversations."""

    def __init__(self, names: list[range], days: int, total: int) -> None:
        self._names, self._days, self._total = names, days, total
        """The numbers that identify the conversations."""

    def run(self, job: Job, shards: Any) -> Any:
        (shard,) = shards
        yield Outcome(shard, self._write(job, shard))

    def _write(self, job: Job, shard: Shard) -> int:
        folder = job.part(shard)
        folder.mkdir(parents=True)
        count = sum(map(len, self._names))
        first = date.today() - timedelta(days=self._days)
        writers = {
            name: pq.ParquetWriter(folder / f"{name}.parquet", arrow_schema(name, in_part=True), **WRITTEN)
            for name in (COUNTS, *TABLES)
        }
        place = 0
        for named in self._names:
            for at in range(0, len(named), AT_ONCE):
                numbers = named[at : at + AT_ONCE]
                days = [first + timedelta(days=number * self._days // self._total) for number in numbers]
                for name, writer in writers.items():
                    writer.write_table(rows_of(name, numbers, days, place))
                place += len(numbers)
        for writer in writers.values():
            writer.close()
        numbers = [[*key, number * count] for *key, number in NUMBERS]
        whole = {"numbers": numbers, "evidence": {}, "limited": [], "faults": [], "times": [0.0, 1.0]}
        (folder / "entry.json").write_text(json.dumps({"conversations": count, "faults": [], "counts": whole}))
        return count


def rows_of(name: str, numbers: range, days: list[date], place: int) -> pa.Table:
    """Return the rows of these conversations, starting at this position."""
    each = {"conversations": 1, COUNTS: 1, "calls": CALLS, "findings": 1, "missing_facts": 1, "open_questions": 0}[name]
    chosen = [n for n in range(len(numbers)) if name not in ("findings", "missing_facts") or n % FLAGGED == 0]
    at = [n for n in chosen for _ in range(each)]
    size = len(at)
    values: dict[str, Any] = {
        "conversation": [f"conversation-{numbers[n]:012x}" for n in at],
        "ordinal": [place + n for n in at],
        "day": [days[n] for n in at],
        COUNTS: [COUNTED] * size,
        "started": [datetime.fromtimestamp(0, UTC)] * size,
        "ended": [datetime.fromtimestamp(1, UTC)] * size,
        "policies": [POLICIES if name == "calls" else []] * size,
        "record": [RECORD * 8 if n % FLAGGED == 0 else None for n in at],
    }
    schema = arrow_schema(name, in_part=True)
    columns = [pa.array(values[field.name] if field.name in values else [None] * size, field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held", type=int, default=2_000_000)
    parser.add_argument("--new", type=int, default=66_666)
    parser.add_argument("--replaced", type=float, default=0.01)
    parser.add_argument("--days", type=int, default=90)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bylaw-merge")
    given = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    shutil.rmtree(given.folder, ignore_errors=True)
    given.folder.mkdir(parents=True)
    again = int(given.new * given.replaced)
    step = max(given.held // max(again, 1), 1)
    repeated = range(0, again * step, step)
    fresh = range(given.held, given.held + given.new - again)
    clock, held, rows = Clock(nightly._merge), 0, 0
    nightly._merge = clock
    for name, ranges in (("held", [range(given.held)]), ("new", [repeated, fresh])):
        log = given.folder / f"{name}.jsonl"
        log.write_text("{}\n")
        engine = Made(ranges, given.days, given.held + given.new)
        start = time.perf_counter()
        added = nightly.update(Request((log,), "clinic"), given.folder / "state", engine)
        total = time.perf_counter() - start
        files = [*(given.folder / "state").rglob("*.parquet")]
        held, rows = rows, sum(pq.read_metadata(file).num_rows for file in files)
        print(
            f"{name}: {added.held:,} conversations held, {added.replaced:,} replaced; {rows:,} rows in {len(files):,}"
            f" files. Merge: {clock.wall:.1f} s, {clock.cpu:.1f} s of CPU (of {total:.0f} s with making rows)",
            flush=True,
        )
    print(f"300 million held rows at this rate: {clock.cpu * 300e6 / held / 60:.1f} min of CPU")


if __name__ == "__main__":
    main()
