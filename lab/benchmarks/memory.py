"""The memory an audit takes, whatever the number of conversations: the peak of its process at several sizes.

    uv run python lab/benchmarks/memory.py [--sizes 10000,100000] [--full] [--jobs 1]

A few hundred simulated conversations are repeated under ids of their own until there are enough; `--full` adds a
million (some gigabytes on disk, thrown away afterwards).
"""

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bylaw_lab.clinic.simulator.generate import simulated

GOAL = 300
CHILD = """
import resource, sys, time
from pathlib import Path
from bylaw.audit.request import Request
from bylaw.audit.run import audit

if __name__ == "__main__":
    start = time.process_time()
    report = audit(Request((Path(sys.argv[1]),), "clinic", jobs=int(sys.argv[3])), Path(sys.argv[2]))
    taken = time.process_time() - start
    talks = sum(agent["trajectories"] for agent in report.summary["agents"])
    own, workers = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(talks, max(own, workers) / 1024, taken)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000")
    parser.add_argument("--full", action="store_true", help="a million as well")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")] + ([1_000_000] if given.full else [])
    found: list[tuple[int, float]] = []
    with tempfile.TemporaryDirectory(prefix="bylaw-memory-") as folder:
        script = Path(folder) / "child.py"
        script.write_text(CHILD)
        print(f"{'conversations':>13} {'MB at most':>10} {'CPU s':>8}")
        for size in sizes:
            logs = repeated(Path(folder) / f"logs-{size}.jsonl.gz", size)
            done = subprocess.run(
                [sys.executable, str(script), str(logs), str(Path(folder) / f"out-{size}"), str(given.jobs)],
                capture_output=True,
                text=True,
                check=True,
            )
            talks, peak, taken = done.stdout.split()
            print(f"{int(talks):13,} {float(peak):10.0f} {float(taken):8.1f}", flush=True)
            found.append((int(talks), float(peak)))
    (few, low), (many, high) = found[0], found[-1]
    each = (high - low) / (many - few) if many > few else 0.0
    million = high if many >= 1_000_000 else high + each * (1_000_000 - many)
    print(f"{each * 1e6:.0f} bytes more a conversation; a million would take {million:.0f} MB, the goal is {GOAL}")
    return 0 if million <= GOAL else 1


def repeated(file: Path, size: int) -> Path:
    """A gzip file of `size` conversations without ids: each is then named by its place, and all names differ."""
    talks = [{k: v for k, v in made.record.items() if k != "id"} for made in simulated(1, 500)]
    block = gzip.compress(b"".join(json.dumps(talk).encode() + b"\n" for talk in talks), mtime=0)
    with file.open("wb") as out:
        for _ in range(size // len(talks)):
            out.write(block)
    return file


if __name__ == "__main__":
    raise SystemExit(main())
