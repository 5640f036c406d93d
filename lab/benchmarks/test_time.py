"""What the test command of the README takes on two cores: seconds by the clock, and of processor time.

    uv run python lab/benchmarks/test_time.py [PYTEST OPTION ...]

The clock tells the truth only where the machine does nothing else; processor time, children included, hardly minds. The
exit status is 1 where a test fails, or the clock passes the goal.
"""

import os
import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parents[2]
CORES = 2
GOAL_S = 300.0


def main() -> int:
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    os.sched_setaffinity(0, cores)
    started = perf_counter()
    tests = subprocess.run(["uv", "run", "pytest", "--cpu-time", "15", *sys.argv[1:]], cwd=ROOT, check=False)
    clock = perf_counter() - started
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = spent.ru_utime + spent.ru_stime
    print(f"{'by the clock':16} {clock:7.1f} s on {len(cores)} cores  (goal {GOAL_S:.0f})")
    print(f"{'processor time':16} {processor:7.1f} s, {processor / len(cores):.1f} a core")
    return tests.returncode or int(clock > GOAL_S)


if __name__ == "__main__":
    sys.exit(main())
