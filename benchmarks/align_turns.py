"""The turns of stage 3 of run 5: turns as they come, and beside them turns where twins part.

    python benchmarks/align_turns.py data/rl.jsonl parting/rl.jsonl mixed/rl.jsonl.gz --parting 2048

Takes all of the first file and as many of the second as asked for, drawn at random from those that the first has not.
Prints how many there are, by what is right to do.
"""

import argparse
import gzip
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from bylaw.align.training.data import training_rows


def main() -> None:
    options = argparse.ArgumentParser()
    for name in ("natural", "twins", "out"):
        options.add_argument(name, type=Path)
    options.add_argument("--parting", type=int, default=2048)
    given = options.parse_args()
    natural = training_rows(given.natural, 3)
    known = {_key(row) for row in natural}
    fresh = [row for row in training_rows(given.twins, 3) if _key(row) not in known]
    drawn = sorted(random.Random(0).sample(range(len(fresh)), given.parting))
    parts = {"as they come": natural, "where twins part": [fresh[place] for place in drawn]}
    with gzip.open(given.out, "wb", 6) as file:
        for rows in parts.values():
            file.writelines(msgspec.json.encode(row) + b"\n" for row in rows)
    counts = {name: Counter(row["purpose"] for row in rows) for name, rows in parts.items()}
    print(json.dumps(counts))


def _key(row: dict[str, Any]) -> bytes:
    return msgspec.json.encode([row["prompt"], row["expected"]])


if __name__ == "__main__":
    main()
