"""Draw flagged and unflagged write calls of an audit by seed, and print each with what came before it.

    python lab/benchmarks/airline_draw.py OUT RUNS... [--seed 7] [--each 50] [--tool NAME]

OUT is the folder of an audit, RUNS the files it was made from. Drawn over all agents: each agent in turn gives one
call until enough are drawn. Reading each against its transcript is how agreement with a reader is measured.
"""

import argparse
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

from bylaw.trace import Call, Identities, Message, Result, Trajectory, read

FLAGGED = ("violation", "near_miss", "uninformed")


def draw(calls: list[dict[str, Any]], each: int, seed: int) -> list[dict[str, Any]]:
    """`each` calls, every agent in turn, in an order that only the seed decides."""
    by_agent: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for call in calls:
        by_agent[call["agent"]].append(call)
    chance = random.Random(seed)
    for name in sorted(by_agent):
        chance.shuffle(by_agent[name])
    drawn: list[dict[str, Any]] = []
    while len(drawn) < each and any(by_agent.values()):
        for name in sorted(by_agent):
            if by_agent[name] and len(drawn) < each:
                drawn.append(by_agent[name].pop())
    return drawn


def transcript(trajectory: Trajectory, step: int, width: int = 1500) -> str:
    """Everything before a step, a line an event, long results cut; then the call at that step and its result."""
    lines: list[str] = []
    for position, event in enumerate(trajectory.events):
        if position > step and not (isinstance(event, Result) and event.call == step):
            continue
        mark = ">>" if position == step else "  "
        match event:
            case Message():
                text = f"{event.by}: {event.text}"
            case Call():
                text = f"CALL {event.tool} {json.dumps(event.arguments)}"
            case Result():
                content = event.content if isinstance(event.content, str) else bytes(event.content).decode()
                text = f"RESULT of {event.call}: {content}"
        lines.append(f"{mark} {position:3} {text[:width]}{' ...' if len(text) > width else ''}")
    return "\n".join(lines)


def reasons(call: dict[str, Any]) -> str:
    """What the audit says of the call, a line a policy that speaks against it."""
    lines = [f"strict {call['strict']}, determined {call['determined']}, executed {call['executed']}"]
    for policy in call["policies"]:
        if policy["strict"] != "compliant" or policy["missing"]:
            missing = [f"{m['entity']}{m['key']}.{m['field']} ({m['reason']})" for m in policy["missing"]]
            lines.append(f"  {policy['id']}: {policy['strict']}; {policy['because']}; missing {missing}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--each", type=int, default=50)
    parser.add_argument("--tool")
    given = parser.parse_args()
    calls = [json.loads(line) for line in (given.out / "calls.jsonl").read_text().splitlines()]
    calls = [call for call in calls if call["executed"] is not False and given.tool in (None, call["tool"])]
    flagged = draw([call for call in calls if call["strict"] in FLAGGED], given.each, given.seed)
    unflagged = draw([call for call in calls if call["strict"] not in FLAGGED], given.each, given.seed)
    wanted = {call["trajectory"] for call in flagged + unflagged}
    found: dict[str, Trajectory] = {}
    identities = Identities()
    for file in given.runs:
        for trajectory in read(file):
            if isinstance(trajectory, Trajectory):
                name = identities.unique(trajectory.id)
                if name in wanted:
                    found[name] = trajectory
    for title, drawn in (("flagged", flagged), ("unflagged", unflagged)):
        for number, call in enumerate(drawn, 1):
            print(f"\n======== {title} {number}: {call['trajectory']} step {call['step']}", call["agent"], call["tool"])
            print(transcript(found[call["trajectory"]], call["step"]))
            print(reasons(call))


if __name__ == "__main__":
    main()
