"""Counts how often agents ask a customer: four scripted agents at two desks, with and without the shield, in three
ways of reaching the tools.

    uv run python lab/benchmarks/ask_once.py [WAY...] [--count 2]

A way is how an agent reaches its tools. One agent calls at once, one looks up first, one asks in its own words, and one
follows `Shield.instructions()`. With the shield, the last agent must need no more customer messages than without it,
and each other agent at most one more per conversation. Every task must be completed, and no write may run without a
yes. The exit status is 1 if the target is missed.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from asking.agents import KINDS
from asking.desks import clinic_scene, phone_scene
from asking.ways import HttpTalk, McpTalk, PythonTalk, play

WAYS = {"python": PythonTalk, "http": HttpTalk, "mcp": McpTalk}
HEAD = ("way", "desk", "agent", "tasks", "messages", "shielded", "most more", "done", "shielded", "no yes", "shielded")


def lines(rows: Sequence[dict[str, Any]]) -> Iterable[tuple[tuple[str, ...], str]]:
    """Return the table and the faults in each line."""
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
    given = parser.parse_args()
    if unknown := sorted(set(given.ways) - set(WAYS)):
        parser.error(f"no such way: {', '.join(unknown)}")
    scenes = (clinic_scene(given.count), phone_scene(given.count))
    rows = [{"way": way, **row} for way in given.ways or WAYS for row in play(WAYS[way], scenes)]
    found = list(lines(rows))
    for line in (HEAD, ("---",) * len(HEAD), *(texts for texts, _ in found)):
        print(f"| {' | '.join(line)} |")
    faults = [f"{', '.join(texts[:3])}: {wrong}" for texts, wrong in found if wrong]
    print("\n".join(faults or ["every customer is asked as often as promised"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
