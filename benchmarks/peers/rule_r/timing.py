"""Times one package on the traces of rule R; run inside the package's own environment.

A package's script gives `decide(line) -> bool`: one trace as a line of JSON in, whether the cancellation is allowed
out. Decoding the line is part of the work, and so is whatever the package needs anew for each conversation.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

SECONDS = 1.0


def measure(decide: Callable[[bytes], bool]) -> None:
    """Print what was decided of each of the first lines, and the traces per CPU second: the best of several rounds."""
    lines = Path(sys.argv[1]).read_bytes().splitlines()
    decided: list[bool | str] = []
    for line in lines[:8]:
        try:
            decided.append(decide(line))
        except Exception as error:
            decided.append(f"{type(error).__name__}: {str(error)[:80]}")
    rates: list[float] = []
    if all(isinstance(each, bool) for each in decided):
        rates.extend(_round(decide, lines) for _ in range(int(sys.argv[2])))
    print(json.dumps({"decided": decided, "rates": rates}))


def _round(decide: Callable[[bytes], bool], lines: list[bytes]) -> float:
    start, done = time.process_time(), 0
    while (taken := time.process_time() - start) < SECONDS:
        for line in lines[done % len(lines) :][:50]:
            decide(line)
            done += 1
    return done / taken


def calls_of(line: bytes) -> list[tuple[str, dict[str, object], object]]:
    """Tool, arguments and result text of each call of a trace: what a host would hand to a package."""
    trace = json.loads(line)
    results = {m["tool_call_id"]: m["content"] for m in trace["messages"] if m["role"] == "tool"}
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"]), results.get(call["id"]))
        for message in trace["messages"]
        for call in message.get("tool_calls", ())
    ]
