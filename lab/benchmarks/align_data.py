"""The rows of stages 1 and 2 from a file of tasks, on all cores: what `bylaw align data --times 3` writes, in seconds.

python lab/benchmarks/align_data.py TASKS.jsonl.gz FOLDER               # stage1.jsonl and stage2.jsonl
python lab/benchmarks/align_data.py TASKS.jsonl.gz FOLDER --questions   # with yes/no questions on half of the policies
python lab/benchmarks/align_data.py TASKS.jsonl.gz FOLDER --only reads  # the thoughts of stage 2 with the handbook read
python lab/benchmarks/align_data.py TASKS.jsonl.gz FOLDER --only worked # those of stage 2 with their working
python lab/benchmarks/align_data.py TASKS.jsonl.gz FOLDER --only asked  # those, and beginnings that lack a look-up
python lab/benchmarks/align_data.py TASKS.jsonl.gz FOLDER --only checked  # those, and announcements made too early
python lab/benchmarks/align_data.py TASKS.jsonl.gz FOLDER --changes       # with conversations under changed policies
python lab/benchmarks/align_data.py TASKS.jsonl.gz FOLDER --only stage2 --as practice
python lab/benchmarks/align_data.py TASKS.jsonl.gz FOLDER --tokens MODEL  # as tokens of that model, in place of text
"""

import argparse
import gzip
import multiprocessing
import random
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import msgspec
from align_changes import Changed, changed_tasks, override_row
from align_practice import hasty, without_look_up
from align_questions import question_rows

from bylaw.align.dataset import SHAPES, Row, Shape, conversation_row
from bylaw.align.gold import CannotPassError, gold
from bylaw_lab.clinic.tasks import Scenario

PART = 256
"""Rows that are made tokens of at once."""
LOOK_UPS = 6
"""Of these many turns at the beginning of a conversation, one look-up may be left out."""
WORKED = frozenset({"worked", "asked", "checked"})
"""Sets whose thoughts show their working."""
SHARE = 0.25
"""Of the pairs of twins, those with a beginning that lacks a look-up, and those with an announcement too early."""
SETS = {
    "stage1": SHAPES["stage1"],
    "stage2": SHAPES["stage2"],
    "worked": SHAPES["stage2"],
    "asked": SHAPES["stage2"],
    "checked": SHAPES["stage2"],
    "reads": Shape("context", thoughts=True),
}


def rows(line: bytes, names: list[str]) -> list[list[bytes]] | None:
    """A task's rows in each set; None where the caller contradicts themselves."""
    task = msgspec.json.decode(line, type=Scenario)
    try:
        talks = {working: gold(task, working=working) for working in {name in WORKED for name in names}}
    except CannotPassError:
        return None
    found = [[conversation_row("clinic", talks[name in WORKED], SETS[name])] for name in names]
    lacking = lacking_row(task) if {"asked", "checked"} & set(names) else None
    early = hasty_row(task) if "checked" in names else None
    for name, each in zip(names, found, strict=True):
        each += [lacking] if lacking is not None and name in ("asked", "checked") else []
        each += [early] if early is not None and name == "checked" else []
    return [[msgspec.json.encode(row) + b"\n" for row in each] for each in found]


def lacking_row(task: Scenario) -> Row | None:
    """For some pairs of twins, a beginning that lacks a look-up, with that look-up as the turn to learn."""
    rng = random.Random(f"lacking/{task.id[:-2]}")
    if rng.random() >= SHARE:
        return None
    places = rng.sample(range(LOOK_UPS), LOOK_UPS)
    found = (without_look_up(task, which, working=True) for which in places)
    return next((each.row() for each in found if each is not None), None)


def hasty_row(task: Scenario) -> Row | None:
    """For some pairs of twins, a change that is announced too early: before the last look-up, or before any of them."""
    rng = random.Random(f"hasty/{task.id[:-2]}")
    if rng.random() >= SHARE:
        return None
    places = list(range(LOOK_UPS))[::-1] if rng.random() < 0.5 else rng.sample(range(LOOK_UPS), LOOK_UPS)
    return next((each for which in places if (each := hasty(task, which, working=True)) is not None), None)


def changed_rows(changed: Changed, names: list[str]) -> list[bytes] | None:
    """A task under a changed policy in each set; None where the caller contradicts themselves."""
    found = [override_row(changed, SETS[name], working=name in WORKED) for name in names]
    return [msgspec.json.encode(row) + b"\n" for row in found if row is not None] or None


def tokens(lines: list[bytes], model: str) -> tuple[list[list[int]], list[list[int]]]:
    """Rows as tokens and labels."""
    from transformers import AutoTokenizer

    from bylaw.align.training.dialect import Dialect

    dialect = Dialect(AutoTokenizer.from_pretrained(model))
    decoded = map(msgspec.json.decode, lines)
    made = [
        dialect.example(row["messages"], last_alone=row.get("learn") == "last", unlearned=row.get("unlearned", ()))
        for row in decoded
    ]
    return [ids for ids, _ in made], [labels for _, labels in made]


def write_tokens(path: Path, lines: list[bytes], model: str, pool: ProcessPoolExecutor) -> None:
    """A set as the tokens of a model."""
    import pyarrow
    from pyarrow import parquet

    parts = [lines[start : start + PART] for start in range(0, len(lines), PART)]
    found = list(pool.map(partial(tokens, model=model), parts))
    columns = {
        name: pyarrow.array([row for part in found for row in part[place]], pyarrow.list_(pyarrow.int32()))
        for place, name in enumerate(("input_ids", "labels"))
    }
    parquet.write_table(pyarrow.table(columns), path, compression="zstd")


def main() -> None:
    """Write the sets."""
    options = argparse.ArgumentParser()
    options.add_argument("tasks", type=Path)
    options.add_argument("folder", type=Path)
    options.add_argument("--questions", action="store_true")
    options.add_argument("--changes", action="store_true")
    options.add_argument("--only", default="stage1,stage2", help="which sets")
    options.add_argument("--as", dest="name", default="", help="what to call the one set")
    options.add_argument("--tokens", default="", metavar="MODEL", help="write tokens of the model in this folder")
    given = options.parse_args()
    lines = gzip.decompress(given.tasks.read_bytes()).splitlines()
    given.folder.mkdir(parents=True, exist_ok=True)
    names = given.only.split(",")
    with ProcessPoolExecutor(multiprocessing.cpu_count()) as pool:
        found = [each for each in pool.map(partial(rows, names=names), lines, chunksize=32) if each is not None]
        changed: list[list[bytes]] = []
        if given.changes:
            tasks = [msgspec.json.decode(line, type=Scenario) for line in lines]
            told = pool.map(partial(changed_rows, names=names), changed_tasks(tasks), chunksize=8)
            changed = [each for each in told if each is not None]
        for place, name in enumerate(names):
            asked = question_rows("clinic", SETS[name], is_worked=name in WORKED) if given.questions else []
            made = [row for each in found for row in each[place]]
            kinds = [len(made), len(asked), len(changed)]
            made += [msgspec.json.encode(row) + b"\n" for row in asked]
            made += [each[place] for each in changed]
            print(name, "rows of conversations, questions, changes:", *kinds, flush=True)
            path = given.folder / (given.name or name)
            if given.tokens:
                write_tokens(path.with_suffix(".tokens.parquet"), made, given.tokens, pool)
            else:
                path.with_suffix(".jsonl").write_bytes(b"".join(made))
    print(f"{len(found)} of {len(lines)} tasks")


if __name__ == "__main__":
    main()
