"""The rows of stages 1 and 2 from a file of tasks, on all cores: what `bylaw align data --times 3` writes, in seconds.

python benchmarks/align_data.py TASKS.jsonl.gz FOLDER                 # stage1.jsonl and stage2.jsonl
python benchmarks/align_data.py TASKS.jsonl.gz FOLDER --questions     # with yes/no questions on half of the policies
python benchmarks/align_data.py TASKS.jsonl.gz FOLDER --only reads    # the thoughts of stage 2 with the handbook read
python benchmarks/align_data.py TASKS.jsonl.gz FOLDER --only stage2 --as practice
"""

import argparse
import gzip
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import msgspec

from bylaw.align.dataset import SHAPES, Shape, conversation_row
from bylaw.align.gold import CannotPassError, gold
from bylaw.align.knowledge_rows import question_rows
from bylaw.packs.clinic.tasks import Scenario

SETS = {"stage1": SHAPES["stage1"], "stage2": SHAPES["stage2"], "reads": Shape("context", thoughts=True)}


def rows(line: bytes, names: list[str]) -> tuple[bytes, ...] | None:
    """A task's row in each set; None where the caller contradicts themselves."""
    try:
        talk = gold(msgspec.json.decode(line, type=Scenario))
    except CannotPassError:
        return None
    return tuple(msgspec.json.encode(conversation_row("clinic", talk, SETS[name])) + b"\n" for name in names)


def main() -> None:
    """Write the sets."""
    options = argparse.ArgumentParser()
    options.add_argument("tasks", type=Path)
    options.add_argument("folder", type=Path)
    options.add_argument("--questions", action="store_true")
    options.add_argument("--only", default="stage1,stage2", help="which sets")
    options.add_argument("--as", dest="name", default="", help="what to call the one set")
    given = options.parse_args()
    lines = gzip.decompress(given.tasks.read_bytes()).splitlines()
    given.folder.mkdir(parents=True, exist_ok=True)
    names = given.only.split(",")
    with ProcessPoolExecutor(multiprocessing.cpu_count()) as pool:
        found = [each for each in pool.map(partial(rows, names=names), lines, chunksize=32) if each is not None]
    for place, name in enumerate(names):
        asked = question_rows("clinic", SETS[name]) if given.questions else []
        more = b"".join(msgspec.json.encode(row) + b"\n" for row in asked)
        path = given.folder / f"{given.name or name}.jsonl"
        path.write_bytes(b"".join(each[place] for each in found) + more)
    print(f"{len(found)} of {len(lines)} tasks")


if __name__ == "__main__":
    main()
