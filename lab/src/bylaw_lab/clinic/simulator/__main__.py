"""`python -m bylaw_lab.clinic.simulator`: write simulated conversations with the truth about them, or show what they
cover.
"""

import argparse
import sys

from bylaw_lab.clinic.simulator.coverage import Coverage
from bylaw_lab.clinic.simulator.generate import simulate, write


def main() -> int:
    """Write the files to the given folder or, without a folder, print the table of cells. Return the exit status: 1 if
    a quota is missed.
    """
    parser = argparse.ArgumentParser(prog="python -m bylaw_lab.clinic.simulator", description=main.__doc__)
    parser.add_argument("folder", nargs="?", help="where to write logs, truth, labels and database")
    parser.add_argument("--seeds", type=int, default=10, help="how many seeds, counted from 1")
    parser.add_argument("--count", type=int, default=500, help="conversations of each seed")
    given = parser.parse_args()
    seeds = range(1, given.seeds + 1)
    if given.folder:
        write(given.folder, seeds=seeds, count=given.count)
        return 0
    coverage = Coverage(truth for seed in seeds for _, truth in simulate(seed, given.count))
    sys.stdout.write("\n".join(coverage.lines()) + "\n")
    return 1 if coverage.short() else 0


if __name__ == "__main__":
    sys.exit(main())
