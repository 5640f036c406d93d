"""Times one package on the traces of rule R; run inside the package's own environment.

A package's script gives `decide(line) -> bool`: one trace as a line of JSON in, whether the cancellation is allowed
out. Decoding the line is part of the work, and so is whatever the package needs anew for each conversation. With
`parsed` as the last argument the traces are decoded before: what a live host has in hand.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SECONDS = 1.0


def measure(decide: Callable[[Any], bool]) -> None:
    """Print what was decided of each of the first lines, and the traces per CPU second: the best of several rounds."""
    lines: list[Any] = list(Path(sys.argv[1]).read_bytes().splitlines())
    if sys.argv[3:] == ["parsed"]:
        lines = [json.loads(line) for line in lines]
    decided: list[bool | str] = []
    for line in lines[:8]:
        try:
            decided.append(decide(line))
        except Exception as error:
            decided.append(f"{type(error).__name__}: {str(error)[:80]}")
    rates: list[float] = []
    quickest: list[float] = []
    if all(isinstance(each, bool) for each in decided):
        for _ in range(int(sys.argv[2])):
            rates.append(_round(decide, lines))
            quickest.append(_quickest(decide, lines[:40]))
    print(json.dumps({"decided": decided, "rates": rates, "quickest": quickest}))


def _round(decide: Callable[[Any], bool], lines: list[Any]) -> float:
    start, done = time.process_time(), 0
    while (taken := time.process_time() - start) < SECONDS:
        for line in lines[done % len(lines) :][:50]:
            decide(line)
            done += 1
    return done / taken


def _quickest(decide: Callable[[Any], bool], lines: list[Any]) -> float:
    """Microseconds a trace where each counts by its quickest time of many: what a busy machine adds is left out."""
    best = [float("inf")] * len(lines)
    until = time.process_time() + SECONDS
    while time.process_time() < until:
        for place, line in enumerate(lines):
            start = time.perf_counter_ns()
            decide(line)
            best[place] = min(best[place], time.perf_counter_ns() - start)
    return sum(best) / len(best) / 1_000


def trace_of(line: Any) -> dict[str, Any]:
    """A trace, decoded where it is not yet."""
    return line if isinstance(line, dict) else json.loads(line)


def calls_of(line: Any) -> list[tuple[str, dict[str, object], object]]:
    """Tool, arguments and result text of each call of a trace: what a host would hand to a package."""
    trace = trace_of(line)
    results = {m["tool_call_id"]: m["content"] for m in trace["messages"] if m["role"] == "tool"}
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"]), results.get(call["id"]))
        for message in trace["messages"]
        for call in message.get("tool_calls", ())
    ]
