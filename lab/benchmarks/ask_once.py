"""Counts how often agents ask a customer: four scripted agents at two desks, with and without the shield, in five ways
of reaching the tools.

    uv run python lab/benchmarks/ask_once.py [WAY...] [--count 2] [--folder DIR]

A way is how an agent reaches its tools. One agent calls at once, one looks up first, one asks in its own words, and one
follows `Shield.instructions()`. With the shield, the last agent must need no more customer messages than without it,
and each other agent at most one more per conversation. Every task must be completed, and no write may run without a
yes. LangGraph and the OpenAI Agents SDK have their own environments, as in `lanes.py`. The exit status is 1 if the
target is missed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from asking.agents import KINDS
from asking.desks import clinic_scene, phone_scene
from asking.ways import HttpTalk, McpTalk, PythonTalk, play, told
from lanes import LANES, prepare

WAYS = ("python", "http", "mcp", "langgraph", "openai-agents")
ELSEWHERE = {"langgraph": "langchain", "openai-agents": "openai-agents"}
"""Ways that need the environment of a lane."""
HEAD = ("way", "desk", "agent", "tasks", "messages", "shielded", "most more", "done", "shielded", "no yes", "shielded")


def talk_of(way: str) -> Any:
    """Return the function that opens a conversation. A framework is imported only where it is installed."""
    match way:
        case "langgraph":
            from asking.langgraph_way import LangGraphTalk

            return LangGraphTalk
        case "openai-agents":
            from asking.agents_sdk_way import AgentsTalk

            return AgentsTalk
        case _:
            return {"python": PythonTalk, "http": HttpTalk, "mcp": McpTalk}[way]


def rows_of(way: str, count: int, folder: Path) -> list[dict[str, Any]]:
    """Run every conversation of a way, here or in the environment that it needs."""
    if way not in ELSEWHERE:
        return play(talk_of(way), (clinic_scene(count), phone_scene(count)))
    lane = ELSEWHERE[way]
    python = prepare(lane, LANES[lane], folder / lane, fresh=False)
    command = [python, Path(__file__), "--only", way, "--count", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"})
    if done.returncode:
        sys.exit(f"{way}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def lines(rows: Sequence[dict[str, Any]]) -> Iterable[tuple[tuple[str, ...], str]]:
    """Return the table, and the faults in each line."""
    for way, desk, agent in dict.fromkeys((each["way"], each["desk"], each["agent"]) for each in rows):
        mine = [each for each in rows if (each["way"], each["desk"], each["agent"]) == (way, desk, agent)]
        bare, shielded = ([each for each in mine if each["shield"] is on] for on in (False, True))
        pairs = list(zip(bare, shielded, strict=True))
        more = max(after["messages"] - before["messages"] for before, after in pairs)
        counts = [
            sum(each[key] for each in part) for key in ("messages", "done", "no_yes") for part in (bare, shielded)
        ]
        allowed = 0 if agent == KINDS[-1] else 1
        wrong = [
            *([f"{more} more messages of the customer, {allowed} allowed"] if more > allowed else []),
            *(
                ["not every task is completed as without the shield"]
                if any(b["done"] != a["done"] for b, a in pairs)
                else []
            ),
            *([f"{counts[5]} writes without a yes"] if counts[5] else []),
        ]
        texts = (way, desk, agent, len(bare), counts[0], counts[1], f"{more:+}", counts[2], counts[3], *counts[4:])
        yield tuple(map(str, texts)), "; ".join(wrong)


def main() -> int:
    """Print the table. Return 1 if the target is missed, otherwise 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ways", nargs="*", metavar="WAY", help=f"of {', '.join(WAYS)}; all by default")
    parser.add_argument("--count", type=int, default=2, help="tasks of each write of the clinic")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bylaw-lanes")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        print(told(play(talk_of(given.only), (clinic_scene(given.count), phone_scene(given.count)))))
        return 0
    if unknown := sorted(set(given.ways) - set(WAYS)):
        parser.error(f"no such way: {', '.join(unknown)}")
    rows: list[dict[str, Any]] = []
    for way in given.ways or WAYS:
        rows += [{"way": way, **each} for each in rows_of(way, given.count, given.folder)]
    found = list(lines(rows))
    for line in (HEAD, ("---",) * len(HEAD), *(texts for texts, _ in found)):
        print(f"| {' | '.join(line)} |")
    faults = [f"{', '.join(texts[:3])}: {wrong}" for texts, wrong in found if wrong]
    print("\n".join(faults or ["every customer is asked as often as promised"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
