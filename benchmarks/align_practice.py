"""Rows that a model makes for itself: its own conversations about practice tasks, picked out or brought to a good end.

Three sets of equally many rows, each then mixed with as many gold conversations of stage 2:

- `mended`: one conversation of every task: as it is where it was right, else with the careful agent from the first
  mistake on; and, where what the mistake did can be made good, once more with the mistake left in and not learned.
- `own`: of the tasks that some try failed, the tries that came out well and one that did not, mended; then tries at
  the other tasks, until there are as many.
- `control`: the careful agent's own conversations about the same tasks.
"""

import gzip
import json
import random
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from align_arms import RECIPES, Arm

from bylaw.align.dataset import SHAPES, Row, conversation_row
from bylaw.align.episode import Episode
from bylaw.align.gold import CannotPassError, gold
from bylaw.align.mended import Mended, mend
from bylaw.packs.clinic.tasks import Scenario

TRIES = 2
"""Times that each task is played."""
TEMPERATURE = 0.8
KEPT = 2
"""Of a task that some try failed, tries that came out well and are learned."""


class Try(msgspec.Struct, frozen=True):
    """One conversation, and what is to be learned of it."""

    task: str
    passed: bool
    mended: Mended | None
    """As it is, or brought to a good end; None where that cannot be."""
    recovered: Mended | None
    """With the mistake left in."""
    fault: str = ""

    @property
    def is_right(self) -> bool:
        """Whether it came out well and nothing was left out."""
        return self.mended is not None and self.mended.mistake is None


@cache
def practice_tasks(file: str) -> tuple[Scenario, ...]:
    """The tasks to practise on, none of which any stage has learned from."""
    lines = gzip.decompress(Path(file).read_bytes()).splitlines()
    return tuple(msgspec.json.decode(line, type=Scenario) for line in lines)


def roll_out(experiment: Any, arm: Arm) -> None:
    """Play practice tasks with a model, and write the rows that come of it into the work folder."""
    tasks = practice_tasks(experiment.practice)[slice(*arm.draws)][: experiment.asked]
    drawn = [task for task in tasks for _ in range(TRIES)]
    player = experiment.player
    player.generator.forget()
    player.temperature, player.seed = TEMPERATURE, arm.seed
    episodes = [Episode(task, policy="none") for task in drawn]
    try:
        player.converse(episodes)
    finally:
        player.temperature, player.seed = 0.0, 0
    experiment.log(arm=arm.name, played=len(episodes))
    talks = [[each["content"] for each in one.messages if each["role"] == "assistant"] for one in episodes]
    passed = [episode.outcome().success for episode in episodes]
    tries = list(experiment.pool.map(tried, drawn, talks, passed, chunksize=8))
    sets = {
        "mended": mended_rows(tries),
        "own": own_rows(tries, random.Random(f"own/{arm.seed}")),
        "control": [row for row in experiment.pool.map(gold_row, tasks, chunksize=8) if row is not None],
    }
    count = len(sets["mended"])
    for name in RECIPES:
        rows = sets[name][:count]
        path = experiment.work / f"{name}-{arm.seed}.jsonl"
        path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    told = report(tries) | {"rows": count, "made": {name: len(rows) for name, rows in sets.items()}}
    experiment.log(arm=arm.name, **told)
    (experiment.logs / f"{arm.name}.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def tried(task: Scenario, outputs: list[str], passed: bool) -> Try:
    """One conversation, mended. A fault of ours in one of them must not cost the run."""
    try:
        mended = mend(task, outputs, passed=passed)
        is_wrong = mended is not None and mended.mistake is not None
        recovered = mend(task, outputs, passed=passed, keeps_mistake=True) if is_wrong else None
    except Exception as error:
        return Try(task.id, passed, None, None, repr(error)[:200])
    return Try(task.id, passed, mended, recovered)


def mended_rows(tries: Sequence[Try]) -> list[Row]:
    """Of every task its first try."""
    first = tries[::TRIES]
    rows = [each.mended.row() for each in first if each.mended is not None]
    return rows + [each.recovered.row() for each in first if each.recovered is not None]


def own_rows(tries: Sequence[Try], drawn: random.Random) -> list[Row]:
    """The tries at tasks that some try failed; then those at others, in any order."""
    hard: list[Row] = []
    easy: list[Row] = []
    for start in range(0, len(tries), TRIES):
        some = tries[start : start + TRIES]
        right = [each.mended.row() for each in some if each.is_right and each.mended]
        wrong = [each.mended.row() for each in some if not each.is_right and each.mended]
        if wrong:
            hard += [*right[:KEPT], wrong[0]]
        else:
            easy += right[:1]
    drawn.shuffle(easy)
    return hard + easy


def gold_row(task: Scenario) -> Row | None:
    """The careful agent's conversation."""
    try:
        return conversation_row("clinic", gold(task), SHAPES["stage2"])
    except CannotPassError:
        return None


def report(tries: Sequence[Try]) -> dict[str, Any]:
    """What became of the tries."""
    first = tries[::TRIES]
    wrong = [each.mended.mistake for each in first if each.mended is not None and each.mended.mistake is not None]
    return {
        "tasks": len(first),
        "tries": len(tries),
        "passed": sum(each.passed for each in tries) / len(tries),
        "right": sum(each.is_right for each in first),
        "mended": len(wrong),
        "recovered": sum(each.recovered is not None for each in first),
        "not_mended": sum(each.mended is None and not each.fault for each in first),
        "faults": dict(Counter(each.fault for each in tries if each.fault)),
        "hard": sum(
            not all(each.is_right for each in tries[start : start + TRIES]) for start in range(0, len(tries), TRIES)
        ),
        "kinds": dict(Counter(f"{each.did} for {each.right}" for each in wrong).most_common()),
    }


def mixed(experiment: Any, arm: Arm) -> list[dict[str, Any]]:
    """The rows of an arm with as many gold conversations among them, registered as tokens: the trainer takes them by
    the list they stand for. All arms of a seed have the same gold ones, and equally many rows."""
    from datasets import concatenate_datasets

    from bylaw.align.training.dialect import Dialect
    from bylaw.align.training.preset import PRESETS

    path = experiment.work / f"{arm.data.removeprefix('rows of ')}.jsonl"
    rows = [json.loads(line) for line in path.open("rb")]
    count = sum(1 for _ in (experiment.work / f"mended-{arm.seed}.jsonl").open("rb"))
    gold, _ = experiment.tokens[id(experiment.rows["stage2"])]
    picked = random.Random(f"gold/{arm.seed}").sample(range(len(gold)), min(len(gold), 2 * count))
    own, left_out = experiment.plain_examples(
        rows, Dialect(experiment.tokenizer), PRESETS[experiment.preset].supervised.longest
    )
    others = gold.select(picked[: 2 * count - len(own)])
    data = concatenate_datasets([own.cast(gold.features), others.select_columns(own.column_names)])
    stand: list[dict[str, Any]] = [{} for _ in range(len(data))]
    experiment.tokens[id(stand)] = data, left_out
    experiment.kept.append(stand)
    return stand
