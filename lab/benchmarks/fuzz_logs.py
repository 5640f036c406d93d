"""Mutates logs of every format and reads them: no traceback, no hang, no lost neighbour.

    uv run python lab/benchmarks/fuzz_logs.py [--count 100000] [--first 0]

A case is decided by its number alone, so pieces of a long run can be run one by one and a finding again.
"""

import argparse
import gzip
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bylaw.errors import BylawError, RecordError
from bylaw.trace import Result, Trajectory, read

FIXTURES = Path(__file__).parents[2] / "tests" / "fixtures"
ODD: list[Any] = [
    *(None, 0, -1, 10**400, 1.5, True, "", "x", "{", "[]", '{"a": 1}', "{'a': None}", "a='b' c=", "\ud800", "\0"),
    *([], [None], [[]], {}, {"type": "text"}, {"role": "tool"}, {"": {}}),
]
MEMORY = Path("/dev/shm")
"""A folder that is no disk, where there is one."""
SLOW = 5.0
"""Seconds of processor time that no small log may take."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    logs = [
        [(record, json.dumps(record)) for record in records]
        for path in sorted(FIXTURES.glob("*/*.json*"))
        if (records := records_of(path))
    ]
    findings = 0
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        for number in range(given.first, given.first + given.count):
            if found := examine(number, logs, Path(folder) / "log"):
                findings += 1
                print(f"case {number}: {found}", flush=True)
    print(f"{given.count:,} mutated logs of {len(logs)} files, {findings} findings")
    return 1 if findings else 0


def records_of(path: Path) -> list[Any]:
    """The records of a fixture, the first few of a long one."""
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    try:
        return [json.loads(line) for line in data.splitlines()][:12]
    except ValueError:
        return [json.loads(data)]


def examine(number: int, logs: list[list[tuple[Any, str]]], path: Path) -> str:
    """What is wrong with how one mutated log is read; empty where nothing is."""
    rng = random.Random(number)
    chosen = rng.choice(logs)
    records = [record for record, _ in chosen]
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(records))
        records[at] = spoil(records[at], rng)
    # Writing JSON takes longer than spoiling it: what was left as it is keeps its text.
    lines = [
        text if record is kept else json.dumps(record) for record, (kept, text) in zip(records, chosen, strict=True)
    ]
    neighbours = is_by_record(records) and rng.random() < 0.5
    if neighbours:
        lines = [good("first"), *lines, good("last")]
    text = "\n".join(lines) if rng.random() < 0.8 else "[" + ",".join(lines) + "]"
    data = bytearray(text.encode())
    if not neighbours and rng.random() < 0.3:
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        del data[rng.randint(len(data) // 2, len(data)) :]
    path.write_bytes(gzip.compress(bytes(data), 1) if rng.random() < 0.2 else bytes(data))
    start = time.process_time()
    found: list[Trajectory | RecordError] = []
    try:
        for each in read(path):
            found.append(each)
            if isinstance(each, Trajectory):
                _ = [event.value() for event in each.events if isinstance(event, Result)]
    except BylawError:
        if neighbours:
            return "a neighbour is lost: nothing was read"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if time.process_time() - start > SLOW:
        return "slow"
    ids = {each.id for each in found if isinstance(each, Trajectory)}
    return "a neighbour is lost" if neighbours and not {"first", "last"} <= ids else ""


def is_by_record(records: list[Any]) -> bool:
    """Whether a log is one of chat messages, of which a plain conversation can be a neighbour."""
    return all(isinstance(each, dict) and isinstance(each.get("messages"), list) for each in records) and all(
        "role" in message for each in records for message in each["messages"] if isinstance(message, dict)
    )


def good(name: str) -> str:
    return json.dumps({"id": name, "messages": [{"role": "user", "content": "hi"}]})


def spoil(value: Any, rng: random.Random) -> Any:
    """`value` with something somewhere in it replaced, repeated, moved or taken away."""
    if isinstance(value, dict) and value and rng.random() < 0.93:
        key = rng.choice(list(value))
        roll = rng.random()
        if roll < 0.06:
            return {name: each for name, each in value.items() if name != key}
        if roll < 0.12:
            return {**value, rng.choice(list(value)): value[key]}
        return {**value, key: spoil(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.93:
        at = rng.randrange(len(value))
        roll = rng.random()
        if roll < 0.06:
            return [*value[:at], value[at], *value[at:]]
        if roll < 0.12:
            return value[:at] + value[at + 1 :]
        return [*value[:at], spoil(value[at], rng), *value[at + 1 :]]
    if isinstance(value, str) and value[:1] in ("[", "{") and rng.random() < 0.7:
        try:
            return json.dumps(spoil(json.loads(value), rng))
        except ValueError:
            pass
    return rng.choice(ODD)


if __name__ == "__main__":
    sys.exit(main())
