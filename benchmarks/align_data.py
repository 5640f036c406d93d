"""The rows of stages 1 and 2 from a file of tasks, on all cores: what `bylaw align data --times 3` writes, in seconds.

python benchmarks/align_data.py TASKS.jsonl.gz FOLDER
"""

import gzip
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec

from bylaw.align.dataset import SHAPES, conversation_row
from bylaw.align.gold import CannotPassError, gold
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
    """Write both sets."""
    lines = gzip.decompress(Path(sys.argv[1]).read_bytes()).splitlines()
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(multiprocessing.cpu_count()) as pool:
        found = [each for each in pool.map(rows, lines, chunksize=32) if each is not None]
    for place, name in enumerate(SETS):
        (folder / f"{name}.jsonl").write_bytes(b"".join(each[place] for each in found))
    print(f"{len(found)} of {len(lines)} tasks")


if __name__ == "__main__":
    main()
