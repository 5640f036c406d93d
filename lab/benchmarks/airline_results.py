"""Audits every airline run and writes the results page.

    python lab/benchmarks/airline_results.py ../shared/data/tau-airline [--out OUT] [--page FILE]

The command audits the runs of both benchmarks with their databases and takes outcomes from the verified gold actions.
It also checks the gold actions, replays every recorded call, and measures the time. The table of agreement comes from
`lab/results/tau-airline-agreement.csv`. A reader fills in this file after reading the output of
`lab/benchmarks/airline_draw.py`.
"""

import argparse
import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from airline_gold import exceptions, judge_gold
from airline_pages import Page, agreement_table, rows_of_agents
from airline_replay import differences, equal

from bylaw.audit.request import Request
from bylaw.audit.run import Examiner, audit, read_calls
from bylaw.packs.tau_airline import open_tasks, open_world
from bylaw.trace import Identities, Trajectory, read

TASKS = "tau2/tasks-verified.json"


def run_files(data: Path) -> list[Path]:
    """Return the files of runs, those of tau-bench before those of tau2-bench."""
    return [*sorted(data.glob("tau1/runs/*.json*")), *sorted(data.glob("tau2/runs/*.json*"))]


def conversations(files: list[Path]) -> Iterator[tuple[str, Path, Trajectory]]:
    """Yield every conversation under its name in the audit."""
    identities = Identities()
    for file in files:
        for trajectory in read(file):
            if isinstance(trajectory, Trajectory):
                yield identities.unique(trajectory.id), file, trajectory


def outcomes(data: Path) -> tuple[dict[str, dict[str, bool | None]], tuple[int, int]]:
    """Return the three outcomes of each conversation, and the number of recorded results that the world reproduces."""
    worlds, tasks = open_world(data), open_tasks(data / TASKS)
    found: dict[str, dict[str, bool | None]] = {}
    same = total = 0
    for name, file, trajectory in conversations(run_files(data)):
        world = worlds.for_runs(file)[1].fork()
        for _, recorded, answer in differences(trajectory, world):
            total += 1
            same += equal(recorded, answer)
        gold = tasks.outcome(trajectory, world)
        reward = trajectory.details.get("reward")
        found[name] = {
            "gold": None if gold is None else gold.good,
            "db_match": trajectory.details.get("db_match"),
            "reward": None if reward is None else reward >= 1,
        }
    return found, (same, total)


def speed(data: Path) -> dict[str, float]:
    """Return the CPU seconds of the whole audit with and without a world, and those of `json.loads` on the
    same bytes.
    """
    with TemporaryDirectory() as folder:
        plain: list[Path] = []
        for number, file in enumerate(run_files(data)):
            content = file.read_bytes()
            target = Path(folder) / f"{number:02}-{file.name.removesuffix('.gz')}"
            target.write_bytes(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
            plain.append(target)
        texts = [file.read_bytes() for file in plain]
        started = time.process_time()
        for text in texts:
            json.loads(text)
        loads = time.process_time() - started
        timed = {"bytes": float(sum(map(len, texts))), "json.loads": loads}
        del texts
        for name, world in (("audit with world", data), ("audit without world", None)):
            request = Request(tuple(plain), "tau-airline", world=world)
            started = time.process_time()
            Examiner(request)
            start_up = time.process_time() - started
            audit(request, Path(folder) / "out")
            timed.setdefault("start-up, not counted below", start_up)
            timed[name] = time.process_time() - started - 2 * start_up
    return timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=Path("../shared/data/tau-airline"))
    parser.add_argument("--out", type=Path, default=Path("out/tau-airline"))
    parser.add_argument("--page", type=Path, default=Path("lab/results/pages/tau-airline.md"))
    given = parser.parse_args()
    request = Request(tuple(run_files(given.data)), "tau-airline", world=given.data, tasks=given.data / TASKS)
    report = audit(request, given.out)
    calls = list(read_calls(given.out))
    found, replayed = outcomes(given.data)
    page = Page()
    page.intro(report.summary)
    page.table2(rows_of_agents(report.summary))
    page.figure4(report.summary)
    page.missed(calls)
    page.ten(calls)
    page.unseen(calls)
    page.violations(calls, found)
    page.gold(judge_gold(given.data), exceptions())
    page.outcomes(found, calls)
    page.changed_policy(report.summary)
    page.agreement(agreement_table(Path(__file__).parents[1] / "results" / "tau-airline-agreement.csv"))
    page.measured(replayed, speed(given.data))
    given.page.parent.mkdir(parents=True, exist_ok=True)
    given.page.write_text(page.text(), encoding="utf-8")
    print(f"wrote {given.page}")


if __name__ == "__main__":
    main()
