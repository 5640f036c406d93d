"""Times one package on the traces of rule R. Run it in the package's own environment.

A script for a package defines `decide(line) -> bool`. It takes one trace as a line of JSON and returns whether the
cancellation is allowed. The time includes decoding the line, and everything that the package repeats for each
conversation. With `parsed` as the last argument, the traces are decoded before, as in a live application.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SECONDS = 1.0


def measure(decide: Callable[[Any], bool]) -> None:
    """Print the decisions on the first lines, and the traces per CPU second in the best of several rounds."""
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
    """Return the mean microseconds per trace. The fastest of many times for each trace is used, to exclude
    other load.
    """
    best = [float("inf")] * len(lines)
    until = time.process_time() + SECONDS
    while time.process_time() < until:
        for place, line in enumerate(lines):
            start = time.perf_counter_ns()
            decide(line)
            best[place] = min(best[place], time.perf_counter_ns() - start)
    return sum(best) / len(best) / 1_000


def trace_of(line: Any) -> dict[str, Any]:
    return line if isinstance(line, dict) else json.loads(line)


def calls_of(line: Any) -> list[tuple[str, dict[str, object], object]]:
    """Return the tool, arguments and result text of each call in a trace, as an application would pass them."""
    trace = trace_of(line)
    results = {m["tool_call_id"]: m["content"] for m in trace["messages"] if m["role"] == "tool"}
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"]), results.get(call["id"]))
        for message in trace["messages"]
        for call in message.get("tool_calls", ())
    ]
