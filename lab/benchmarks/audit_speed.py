"""Measures the time of a whole audit on one core, as a multiple of `json.loads` on the same bytes.

    uv run python lab/benchmarks/audit_speed.py [--rounds 5] [--count 1500] [--data ../shared/data/tau-airline]

The audit reads the files, judges every write call, settles it with the world, follows the rules, and writes
`calls.jsonl`, `conversations.jsonl`, `findings.jsonl` and `summary.json`. The time does not include unpacking gzip,
loading the pack and the world's database, or writing the report. Rounds of `json.loads` and of the audit alternate, so
that a busy machine affects both equally. The recorded runs are measured in their own format and as JSONL.
"""

import argparse
import gzip
import json
import shutil
import statistics
import tempfile
from pathlib import Path
from time import process_time
from typing import NamedTuple

from bylaw.audit.request import Request
from bylaw.audit.run import Examiner, audit
from bylaw.trace import sniff
from bylaw_lab.clinic.simulator.generate import write

AIRLINE = Path(__file__).parents[3] / "shared" / "data" / "tau-airline"
GOALS = {"tau-airline": 8, "clinic": 38}
"""The maximum multiple of `json.loads`, by pack."""


class Work(NamedTuple):
    name: str
    files: tuple[Path, ...]
    pack: str
    world: Path | None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=1500, help="simulated conversations for each of two seeds")
    parser.add_argument("--data", type=Path, default=AIRLINE)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bylaw-speed-") as folder:
        place = Path(folder)
        print(f"{'data':34} {'MB':>6} {'talks':>6} {'writes':>6} {'loads':>7} {'audit':>7} {'median':>7} {'best':>6}")
        works = [*recorded(given.data, place), *simulated(place, given.count)]
        is_met = [measure(work, given.rounds, place / "out") <= GOALS[work.pack] for work in works]
    print(f"median and best are times json.loads; the goals are {GOALS['tau-airline']} and {GOALS['clinic']}")
    return 0 if all(is_met) else 1


def simulated(folder: Path, count: int) -> list[Work]:
    write(folder / "clinic", seeds=(1, 2), count=count)
    logs = unpacked(folder / "clinic" / "logs.jsonl.gz", folder)
    return [
        Work("clinic, with its database", (logs,), "clinic", folder / "clinic" / "clinic.sqlite"),
        Work("clinic, hindsight", (logs,), "clinic", None),
    ]


def recorded(data: Path, folder: Path) -> list[Work]:
    """Return the recorded runs of the airline, in their own format and one per line. Empty if they are not
    available.
    """
    if not data.is_dir():
        return []
    files = tuple(unpacked(file, folder / "runs") for file in sorted(data.glob("tau*/runs/*")))
    lines = tuple(line for file in files if (line := as_lines(file, folder / "lines")) is not None)
    return [
        Work("airline, with its world", files, "tau-airline", data),
        Work("airline, hindsight", files, "tau-airline", None),
        Work("airline tau1 as JSONL, with world", lines, "tau-airline", data),
    ]


def unpacked(file: Path, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / file.name.removesuffix(".gz")
    data = file.read_bytes()
    target.write_bytes(gzip.decompress(data) if file.suffix == ".gz" else data)
    return target


def as_lines(file: Path, folder: Path) -> Path | None:
    """Write a tau1 file with one run per line. Return None for other files, which contain data about all their runs."""
    if sniff(file) != "tau1":
        return None
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{file.name}l"
    target.write_text("".join(json.dumps(run) + "\n" for run in json.loads(file.read_bytes())))
    return target


def measure(work: Work, rounds: int, out: Path) -> float:
    """Print one row and return the median ratio."""
    request = Request(work.files, work.pack, world=work.world)
    loads: list[float] = []
    audits: list[float] = []
    for _ in range(rounds):
        before = load_all(work.files)
        examiner = Examiner(request)
        for pack in examiner.shelf.packs:
            examiner.shelf.world_for(pack, next((f for f in work.files if sniff(f) in pack.name), work.files[0]))
        shutil.rmtree(out, ignore_errors=True)
        start = process_time()
        report = audit(request, out, examiner=examiner)
        audits.append(process_time() - start)
        loads.append((before + load_all(work.files)) / 2)
    ratios = [audit / load for audit, load in zip(audits, loads, strict=True)]
    size = sum(file.stat().st_size for file in work.files) / 1e6
    talks = sum(agent["trajectories"] for agent in report.summary["agents"])
    writes = sum(tool["calls"] for tool in report.summary["by_tool"].values())
    print(
        f"{work.name:34} {size:6.1f} {talks:6} {writes:6} {min(loads):7.3f} {min(audits):7.3f}"
        f" {statistics.median(ratios):7.2f} {min(ratios):6.2f}",
        flush=True,
    )
    return statistics.median(ratios)


def load_all(files: tuple[Path, ...]) -> float:
    """Return the CPU seconds of `json.loads`, which is called for each line if the file has lines."""
    start = process_time()
    for file in files:
        if file.suffix == ".jsonl":
            with file.open("rb") as lines:
                for line in lines:
                    json.loads(line)
        else:
            json.loads(file.read_bytes())
    return process_time() - start


if __name__ == "__main__":
    raise SystemExit(main())
