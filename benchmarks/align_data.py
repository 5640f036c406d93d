"""The rows of stages 1 and 2 from a file of tasks, on all cores: what `bylaw align data --times 3` writes, in seconds.

python benchmarks/align_data.py TASKS.jsonl.gz FOLDER                 # stage1.jsonl and stage2.jsonl
python benchmarks/align_data.py TASKS.jsonl.gz FOLDER --questions     # with yes/no questions on half of the policies
python benchmarks/align_data.py TASKS.jsonl.gz FOLDER --as practice   # practice.jsonl alone, as for stage 2
"""

import argparse
import gzip
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec

from bylaw.align.dataset import SHAPES, conversation_row
from bylaw.align.gold import CannotPassError, gold
from bylaw.align.knowledge_rows import question_rows
from bylaw.packs.clinic.tasks import Scenario

SETS = ("stage1", "stage2")


def rows(line: bytes) -> tuple[bytes, ...] | None:
    """A task's row in each set; None where the caller contradicts themselves."""
    try:
        talk = gold(msgspec.json.decode(line, type=Scenario))
    except CannotPassError:
        return None
    return tuple(msgspec.json.encode(conversation_row("clinic", talk, SHAPES[name])) + b"\n" for name in SETS)


def main() -> None:
    """Write both sets, or the second by another name."""
    options = argparse.ArgumentParser()
    options.add_argument("tasks", type=Path)
    options.add_argument("folder", type=Path)
    options.add_argument("--questions", action="store_true")
    options.add_argument("--as", dest="name", default="")
    given = options.parse_args()
    lines = gzip.decompress(given.tasks.read_bytes()).splitlines()
    given.folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(multiprocessing.cpu_count()) as pool:
        found = [each for each in pool.map(rows, lines, chunksize=32) if each is not None]
    for place, name in enumerate(SETS):
        asked = question_rows("clinic", SHAPES[name]) if given.questions else []
        more = b"".join(msgspec.json.encode(row) + b"\n" for row in asked)
        if not given.name or name == SETS[-1]:
            path = given.folder / f"{given.name or name}.jsonl"
            path.write_bytes(b"".join(each[place] for each in found) + more)
    print(f"{len(found)} of {len(lines)} tasks")


if __name__ == "__main__":
    main()
