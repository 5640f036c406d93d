"""Replays every recorded tool call in the airline's world and compares the results with the recorded ones.

python lab/benchmarks/airline_replay.py ../shared/data/tau-airline

If the recorded result is JSON, it is compared as data, otherwise as text.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bylaw.packs.tau_airline import open_world, tools
from bylaw.packs.tau_airline.lookup import Refusal
from bylaw.packs.tau_airline.world import AirlineWorld
from bylaw.trace import Call, Result, Trajectory, read


def differences(trajectory: Trajectory, world: AirlineWorld) -> Iterator[tuple[Call, Any, Any]]:
    """Yield every recorded result in order, with its call and the result in the world."""
    results = {event.call: event for event in trajectory.events if isinstance(event, Result)}
    for step, event in enumerate(trajectory.events):
        if isinstance(event, Call) and step in results and not event.fault:
            answer = tools.answer(world, event.tool, event.arguments)
            yield event, results[step], answer.text if isinstance(answer, Refusal) else answer


def equal(recorded: Result, answer: Any) -> bool:
    text = recorded.content if isinstance(recorded.content, str) else bytes(recorded.content).decode()
    return text == answer if isinstance(answer, str) else recorded.value() == answer


def replay(folder: Path) -> int:
    """Replay the runs in `folder` and print how many results are equal."""
    worlds = open_world(folder)
    total, same, conversations, started = 0, 0, 0, time.perf_counter()
    by_tool: Counter[str] = Counter()
    for file in sorted(folder.glob("**/runs/*.json.gz")):
        name, world = worlds.for_runs(file)
        differing = 0
        for trajectory in read(file):
            if not isinstance(trajectory, Trajectory):
                continue
            conversations += 1
            for call, recorded, answer in differences(trajectory, world.fork()):
                total += 1
                if equal(recorded, answer):
                    same += 1
                else:
                    differing += 1
                    by_tool[call.tool] += 1
                    print(f"{trajectory.id} {call.tool}({call.arguments})")
                    print(f"  recorded {recorded.content}\n  answer   {answer}")
        print(f"{file.parent.parent.name}/{file.name}: {name}, {differing} differ")
    seconds = time.perf_counter() - started
    print(f"{conversations} conversations, {total} results, {same} equal ({same / max(total, 1):.4%}), {seconds:.1f} s")
    for tool, count in by_tool.most_common():
        print(f"  {tool}: {count} differ")
    return 0 if total and same / total >= 0.999 else 1


if __name__ == "__main__":
    sys.exit(replay(Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data/tau-airline")))
