"""Measures a nightly run over one per cent of new conversations: the logs it opens, and its cost.

    uv run python lab/benchmarks/scale_nightly.py [--count 20000] [--logs 100] [--folder DIR]

The conversations come from `scale.py logs`, in `--logs` logs. The first run gets all logs except the last, the second
and the third get all logs, and the fourth also gets a log with corrections of one conversation in a hundred. All runs
judge in one process, which records every opened file.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bylaw.audit.batch.run import Outcome
from bylaw.audit.batch.shard import Job, Judge, Shard
from bylaw.audit.batch.update import update
from bylaw.audit.request import Request

opened: set[str] = set()


class Here:
    def run(self, job: Job, shards: Iterator[Shard]) -> Iterator[Outcome]:
        judge = Judge(job)
        for shard in shards:
            yield Outcome(shard, judge.judge(shard))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bylaw-scale")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--logs", type=int, default=100)
    given = parser.parse_args()
    nightly, out = given.folder / "nightly", given.folder / "out-nightly"
    for each in (nightly, out):
        shutil.rmtree(each, ignore_errors=True)
    nightly.mkdir()
    logs = split(given.folder / "logs", nightly, given.count, given.logs)
    corrected = nightly / "corrected.jsonl"
    lines = [line for log in logs for line in log.read_bytes().splitlines(keepends=True)]
    corrected.write_bytes(b"".join(lines[::100]))
    sys.addaudithook(note)
    total = sum(log.stat().st_size for log in logs)
    print("run                  logs given  opened  bytes of logs opened  CPU s  replaced  conversations held")
    is_fine = True
    for name, files, most in (
        ("all but one per cent", logs[:-1], 1.0),
        ("one per cent new", logs, 1.5 / given.logs),
        ("nothing new", logs, 0.0),
        ("one per cent again", [*logs, corrected], 1.5 / given.logs),
    ):
        opened.clear()
        start = time.process_time()
        added = update(Request(tuple(files), "clinic", given.folder / "clinic.sqlite"), out, Here())
        used = time.process_time() - start
        read = [log for log in files if str(log) in opened]
        share = sum(log.stat().st_size for log in read) / total
        print(
            f"{name:21} {len(files):9} {len(read):7} {share:21.2%} {used:6.1f} {added.replaced:9,} {added.held:19,}",
            flush=True,
        )
        is_fine = is_fine and share <= most
    held = json.loads((out / "tables" / "schema.json").read_bytes())["tables"]["conversations"]["rows"]
    return 0 if is_fine and held == given.count else 1


def split(source: Path, target: Path, count: int, logs: int) -> list[Path]:
    """Divide the first conversations of some logs into logs of equal length."""
    lines = (line for file in sorted(source.glob("*.jsonl")) for line in file.open("rb"))
    made: list[Path] = []
    for number in range(logs):
        made.append(target / f"log-{number:03}.jsonl")
        made[-1].write_bytes(b"".join(next(lines) for _ in range(count // logs)))
    return made


def note(event: str, about: tuple[object, ...]) -> None:
    if event == "open":
        opened.add(str(about[0]))


if __name__ == "__main__":
    raise SystemExit(main())
