"""Rows that a model makes for itself: what it does on practice tasks, put right or picked out."""

import gzip
import json
import random
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from align_arms import Arm

from bylaw.align.dataset import Row, tools_text
from bylaw.align.episode import Episode
from bylaw.align.practice import corrections
from bylaw.packs.clinic.tasks import Scenario

GOLD = 0.25
"""Gold conversations beside every row of practice, so that nothing is unlearned."""
TRIES = 6
"""Times that a task is tried which a model fails."""
KEPT = 2
"""Of these, conversations that came out well and are learned."""


@cache
def practice_tasks(file: str) -> tuple[Scenario, ...]:
    """The tasks to practise on, none of which any stage has learned from."""
    lines = gzip.decompress(Path(file).read_bytes()).splitlines()
    return tuple(msgspec.json.decode(line, type=Scenario) for line in lines)


def roll_out(experiment: Any, arm: Arm) -> None:
    """Play practice tasks with a model, and write the rows that come of it into the work folder."""
    tasks = practice_tasks(experiment.practice)[slice(*arm.draws)]
    if arm.makes == "successes":
        failed = set((experiment.work / f"corrected1-{arm.seed}.failed").read_text().split())
        tasks = tuple(task for task in tasks if task.id in failed for _ in range(TRIES))
    player = experiment.player
    player.generator.forget()
    player.temperature, player.seed = (1.0, arm.seed) if arm.makes == "successes" else (0.0, 0)
    episodes = [Episode(task, policy="none") for task in tasks]
    try:
        player.converse(episodes)
    finally:
        player.temperature = 0.0
    talks = [[each["content"] for each in one.messages if each["role"] == "assistant"] for one in episodes]
    passed = [episode.outcome().success for episode in episodes]
    found = list(experiment.pool.map(_corrected, tasks, talks, passed, chunksize=8))
    rows = [row for each in found for row in each]
    kinds = Counter(row["kind"] for row in rows)
    if arm.makes == "successes":
        rows = _picked(tasks, episodes, passed, found)
    else:
        rows += experiment.look_ups
    path = experiment.work / f"{arm.name}.jsonl"
    path.with_suffix(".failed").write_text("\n".join(task.id for task, ok in zip(tasks, passed, strict=True) if not ok))
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    told = {
        "tasks": len(tasks),
        "passed": sum(passed) / len(passed),
        "rows": len(rows),
        "kinds": dict(kinds.most_common()),
    }
    experiment.log(arm=arm.name, **told)
    (experiment.logs / f"{arm.name}.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def _corrected(task: Scenario, outputs: list[str], passed: bool) -> list[Row]:
    return [each.row() for each in corrections(task, outputs, passed=passed)]


def _picked(tasks: Any, episodes: list[Episode], passed: list[bool], corrected: list[list[Row]]) -> list[Row]:
    """Conversations that came out well, and in which no look-up was left out."""
    kept: Counter[str] = Counter()
    rows: list[Row] = []
    for task, episode, ok, wrong in zip(tasks, episodes, passed, corrected, strict=True):
        if ok and not wrong and kept[task.id] < KEPT:
            kept[task.id] += 1
            messages = [*episode.messages]
            while messages[-1]["role"] != "assistant":
                messages.pop()
            rows.append({"messages": messages, "tools": tools_text("clinic"), "id": f"{task.id}/own{kept[task.id]}"})
    return rows


def mixed(experiment: Any, arm: Arm) -> list[dict[str, Any]]:
    """The rows of an arm of practice with gold conversations among them, or as many gold ones alone; registered as
    tokens, for the trainer takes them by the list they stand for."""
    from datasets import concatenate_datasets

    from bylaw.align.training.dialect import Dialect
    from bylaw.align.training.preset import PRESETS

    names = arm.data.removeprefix("gold of ").split()
    rows = [json.loads(line) for name in names for line in (experiment.work / f"{name}.jsonl").open("rb")]
    gold, _ = experiment.tokens[id(experiment.rows["stage2"])]
    drawn = random.Random(f"{arm.data}/{arm.seed}")
    beside = round(GOLD * len(rows))
    if arm.data.startswith("gold of "):
        data = gold.select(drawn.sample(range(len(gold)), min(len(gold), len(rows) + beside)))
        left_out = 0
    else:
        dialect = Dialect(experiment.tokenizer)
        own, left_out = experiment.plain_examples(rows, dialect, PRESETS[experiment.preset].supervised.longest)
        others = gold.select(drawn.sample(range(len(gold)), beside))
        data = concatenate_datasets([own.cast(gold.features), others.select_columns(own.column_names)])
    stand: list[dict[str, Any]] = [{} for _ in range(len(data))]
    experiment.tokens[id(stand)] = data, left_out
    experiment.kept.append(stand)
    return stand
