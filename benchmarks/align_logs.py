"""The logs of the alignment experiment, as they lie in `docs/results/align`."""

import gzip
import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from bylaw.align.evaluation import Score
from bylaw.align.tasks import load_tasks
from bylaw.packs.clinic.tasks import Scenario

RESULTS = Path(__file__).parent.parent / "docs" / "results"
LOGS = RESULTS / "align"
FOURTH = LOGS / "run4"
FIFTH = LOGS / "run5"
SIXTH = LOGS / "run6"
RUNS = {1: LOGS / "before", 2: LOGS, 4: FOURTH, 5: FIFTH, 6: SIXTH}
"""Where the logs lie of five of the six times that a GPU was there, by run."""
THIRD = LOGS / "run3"
"""Run 3: stage 3 for three seeds by one recipe, played on the development tasks alone."""
SEEDS = (1, 2, 3)
Place = tuple[int, int]
"""A run and a seed."""
PLACES: tuple[Place, ...] = ((1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (4, 1), (4, 2), (4, 3))
COMPLIANCE = "stage3-compliance"
ALONE = "stage2_alone"
LAST = 16
"""Steps of stage 3 in run 3."""


def named(kind: str, seed: int) -> str:
    return kind if kind == "base" else f"{kind}-{seed}"


def summary(kind: str, place: Place) -> dict[str, Any]:
    path = RUNS[place[0]] / f"{named(kind, place[1])}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def tasks(kind: str, policy: str, place: Place) -> list[Score]:
    path = RUNS[place[0]] / f"{named(kind, place[1])}.{policy}.tasks.jsonl.gz"
    if not path.exists():
        return []
    return [msgspec.json.decode(line, type=Score) for line in gzip.decompress(path.read_bytes()).splitlines()]


def training(kind: str, place: Place) -> list[dict[str, Any]]:
    return lines_of(RUNS[place[0]] / f"{named(kind, place[1])}.train.jsonl")


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [line for line in records(path) if "loss" in line]


def records(path: Path) -> list[dict[str, Any]]:
    """The lines of a log, packed as it is kept here or as a training has just written it; none where it is not."""
    packed = path.with_name(f"{path.name}.gz")
    body = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in body.splitlines()]


def percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in lines)


def played(kind: str, policy: str) -> dict[Place, list[Score]]:
    """Every training of an arm that was played; the base model is one."""
    places = PLACES[:1] if kind == "base" else PLACES
    return {place: found for place in places if (found := tasks(kind, policy, place))}


def share(scores: Sequence[Score]) -> float:
    return sum(one.success for one in scores) / len(scores)


def middle(found: Sequence[dict[str, Any]], name: str) -> float:
    return sum(one[name] for one in found) / len(found)


def trainings() -> Iterator[tuple[str, str, Place]]:
    """Every arm that was evaluated: its title, kind and place."""
    for place in PLACES:
        for kind in ("base", "answers", "stage1", "stage2", ALONE, "stage3", COMPLIANCE):
            if (kind != "base" or place[1] == 1) and summary(kind, place):
                yield f"run {place[0]}, {named(kind, place[1])}", kind, place


def developed(kind: str, seed: int) -> dict[int, dict[str, float]]:
    """Of run 3, by steps of stage 3, whether each development task was passed."""
    found = json.loads((THIRD / f"{kind}-{seed}.development.json").read_text())
    return {int(step): {task: float(one) for task, one in each["each"].items()} for step, each in found.items()}


def grouped(passes: dict[str, float]) -> dict[str, list[float]]:
    """Tasks by pair of twins."""
    found: dict[str, list[float]] = {}
    for task, one in sorted(passes.items()):
        found.setdefault(task.rpartition("-")[0], []).append(one)
    return found


@cache
def rights(part: str) -> dict[str, str]:
    """By task, what is right for the errand in which it differs from its twin."""
    tasks = {task.id: task for task in load_tasks(part)}
    found: dict[str, str] = {}
    for task in tasks.values():
        assert isinstance(task, Scenario)
        twin = tasks[task.twin]
        assert isinstance(twin, Scenario)
        pairs = zip(task.errands, twin.errands, strict=True)
        mine, theirs = next((one.right, other.right) for one, other in pairs if one.right != other.right)
        found[task.id] = "refuse" if mine is None else "do" if theirs is None else "do, with another sum"
    return found
