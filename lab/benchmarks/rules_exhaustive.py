"""The engine against its slow twin, in full: every formula of up to five parts over two predicates on every trace of up
to five steps, then random larger formulas.

    python lab/benchmarks/rules_exhaustive.py [--size 5] [--length 5] [--random 100000] [--processes 1]

The test suite runs a slice of this. Prints how much was compared and every difference; the exit status is 1 if any.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterator
from itertools import islice
from multiprocessing import Pool
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bylaw.rule.formula import Formula
from bylaw.rule.lines import evaluate_formula
from bylaw.rule.monitor import program
from tests.rule.temporal.formulas import every_formula, every_step, random_formula, random_trace
from tests.rule.temporal.meaning import Step, holds


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--size", type=int, default=5)
    options.add_argument("--length", type=int, default=5)
    options.add_argument("--random", type=int, default=100_000)
    options.add_argument("--processes", type=int, default=1)
    chosen = options.parse_args()
    differences = 0
    start = time.perf_counter()
    with Pool(chosen.processes) as pool:
        for size in range(1, chosen.size + 1):
            jobs = ((size, part, 64, chosen.length) for part in range(64))
            formulas = compared = 0
            for done, checks, found in pool.imap_unordered(_small, jobs):
                formulas, compared = formulas + done, compared + checks
                differences += len(found)
                print(*found, sep="\n", end="")
            print(
                f"size {size}: {formulas:,} formulas, {compared:,} comparisons, {time.perf_counter() - start:.0f} s",
                flush=True,
            )
        seeds = ((seed, chosen.random // 100) for seed in range(100))
        checks = 0
        for found in pool.imap_unordered(_random, seeds):
            checks += chosen.random // 100
            differences += len(found)
            print(*found, sep="\n", end="")
        print(f"random: {checks:,} formulas of 6 to 16 parts, {time.perf_counter() - start:.0f} s")
    print(f"{differences} differences")
    return 1 if differences else 0


def _small(job: tuple[int, int, int, int]) -> tuple[int, int, list[str]]:
    """Every formula of one size whose place is `part` modulo `parts`."""
    size, part, parts, longest = job
    formulas = checks = 0
    found: list[str] = []
    for formula in islice(every_formula(size), part, None, parts):
        formulas += 1
        for trace, value in _walk(formula, longest):
            checks += 1
            if holds(formula, trace) != value:
                found.append(f"{formula} on {trace}: the engine says {value}\n")
    return formulas, checks, found


def _walk(formula: Formula, longest: int) -> Iterator[tuple[list[Step], bool]]:
    """Every trace and the engine's value, each step read once for all traces that share it."""
    ready = program.__wrapped__(formula)
    face = ready.pair.plain
    letters = [(step, ready.letters(step)[0]) for step in every_step()]
    waiting: list[tuple[list[Step], int]] = [([], face.start)]
    while waiting:
        trace, state = waiting.pop()
        for step, letter in letters:
            more, after = [*trace, step], face.move(state, letter)
            yield more, face.accepts(after)
            if len(more) < longest:
                waiting.append((more, after))


def _random(job: tuple[int, int]) -> list[str]:
    seed, count = job
    dice = random.Random(seed)
    found: list[str] = []
    for _ in range(count):
        formula = random_formula(dice, dice.randint(6, 16), "abc")
        trace = random_trace(dice, 8, "abc")
        if evaluate_formula(formula, trace).holds != holds(formula, trace):
            found.append(f"{formula} on {trace}\n")
    return found


if __name__ == "__main__":
    sys.exit(main())
