"""Checks the gold actions of the verified tasks with the airline's guards, applying them to the database in order.

python lab/benchmarks/airline_gold.py ../shared/data/tau-airline
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bylaw.engine.session import Session
from bylaw.engine.settlement import CallVerdict
from bylaw.pack import Pack, load_pack
from bylaw.packs.tau_airline import open_tasks, open_world, tools
from bylaw.packs.tau_airline.lookup import Refusal
from bylaw.packs.tau_airline.tasks import Task
from bylaw.packs.tau_airline.world import AirlineWorld
from bylaw.trace import Call, Result


class GoldVerdict(NamedTuple):
    """The database's verdict on one gold write under one policy."""

    task: str
    tool: str
    policy: str
    world: str
    because: str


def exceptions() -> dict[tuple[str, str], str]:
    """Gold actions that violate the written policy, by task and policy, with the violated line and the reason."""
    return {
        (
            "33",
            "bags-fee",
        ): "line 93: a gold member's economy passenger has three free bags, the gold action charges two",
        ("39", "cancel-ground"): "line 147: MSJ4OA is insured, but the user gives up the seat for someone else, "
        "which is neither health nor weather",
    }


def settle_gold(pack: Pack, base: AirlineWorld, task: Task) -> list[CallVerdict]:
    """Return the verdicts on the gold writes of a task. Each write is applied before the next one is judged."""
    world, session = base.fork(), Session(pack, world=base)
    for turn, action in enumerate(task.actions):
        call = Call(action.name, action.arguments, turn=turn)
        if pack.schema.tools[action.name].effect == "write":
            session.judge(call)
        session.observe(call)
        answer = tools.answer(world, action.name, action.arguments)
        refused = isinstance(answer, Refusal)
        text = answer.text if refused else answer if isinstance(answer, str) else json.dumps(answer)
        session.observe(Result(2 * turn, text, error=refused))
    return session.settle()


def judge_gold(data: Path) -> list[GoldVerdict]:
    """Return the verdict of every policy on every gold write in the verified tasks."""
    pack = load_pack("tau-airline/tau2")
    base = open_world(data).named("tau2")["db.json"]
    return list(_judged(pack, base, data))


def _judged(pack: Pack, base: AirlineWorld, data: Path) -> Iterator[GoldVerdict]:
    for name, task in open_tasks(data / "tau2/tasks-verified.json").tasks.items():
        for verdict in settle_gold(pack, base, task):
            for policy in verdict.policies:
                world = "user decides" if policy.world == "undetermined" and policy.asks else policy.world
                yield GoldVerdict(name, verdict.made.call.tool, policy.policy.id, world, policy.because)


if __name__ == "__main__":
    judged = judge_gold(Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data/tau-airline"))
    print(f"{len(judged)} judgements, {sum(verdict.world == 'permit' for verdict in judged)} permit")
    for verdict in judged:
        if verdict.world != "permit":
            named = exceptions().get((verdict.task, verdict.policy), "")
            print(f"task {verdict.task}: {verdict.tool}: {verdict.policy}: {verdict.world}; {named or verdict.because}")
