"""Which policies a model's writes break: the audit's word on every test conversation that failed, by policy.

uv run python benchmarks/align_violations.py     # writes docs/results/align/violations.json
"""

import json
from collections import Counter
from collections.abc import Iterable

import msgspec
from align_logs import LOGS, Model, lines

from bylaw.align.episode import Outcome
from bylaw.align.near_miss import world_of
from bylaw.align.prompt import pack_named
from bylaw.align.scene import Task
from bylaw.align.tasks import load_tasks
from bylaw.engine.session import Session
from bylaw.trace.event import Call

KINDS = {
    "before": [Model(run, f"stage2-{seed}") for run, seed in ((8, 1), (9, 1), (10, 2), (11, 3), (12, 3))],
    "stage2": [Model(run, f"stage2-{seed}") for run, seed in ((13, 1), (13, 2), (14, 3))],
    "worked": [Model(run, f"worked-{seed}") for run, seed in ((13, 1), (13, 2), (14, 3))],
}


def broken(task: Task, outcome: Outcome) -> Iterable[str]:
    """The policies that the writes of one conversation break, once for each write."""
    pack = pack_named(task.pack)
    session = Session(pack, world=world_of(pack, task.rows))
    for event in outcome.events:
        if isinstance(event, Call) and not event.refused and pack.schema.tools[event.tool].effect == "write":
            session.judge(event)
        session.observe(event)
    for verdict in session.settle():
        yield from (each.policy.id for each in verdict.policies if each.determined == "violation")


def main() -> None:
    """Count, and write it down."""
    tasks = {task.id: task for task in load_tasks("test")}
    found: dict[str, dict[str, int]] = {}
    for kind, models in KINDS.items():
        counted: Counter[str] = Counter()
        for model in models:
            for line in lines(model.folder / f"{model.name}.{model.policy}.failed.jsonl.gz"):
                outcome = msgspec.convert(line, Outcome)
                counted.update(broken(tasks[outcome.task], outcome))
        found[kind] = dict(counted.most_common())
    (LOGS / "violations.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
