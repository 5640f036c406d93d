"""What a model's writes do wrong, by policy, and what stands in its thoughts where it fails.

uv run python lab/benchmarks/align_violations.py     # writes lab/results/align/violations.json and faults.json
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from align_changes import held_out_overrides
from align_logs import LOGS, Model, lines
from align_questions import held_out_questions, learned_policies

from bylaw.align.desk import Task, load_tasks
from bylaw.align.episode import Outcome
from bylaw.align.evaluation import world_of
from bylaw.align.matcher import Matcher
from bylaw.align.prompt import pack_named
from bylaw.align.rollout import play
from bylaw.engine.session import Session
from bylaw.engine.verdict import Verdict
from bylaw.trace.event import Call
from bylaw_lab.clinic.practice import Script, Scripted

KINDS = {
    "before": [Model(run, f"stage2-{seed}") for run, seed in ((8, 1), (9, 1), (10, 2), (11, 3), (12, 3))],
    "stage2": [Model(run, f"stage2-{seed}") for run, seed in ((13, 1), (13, 2), (14, 3))],
    "worked": [Model(run, f"worked-{seed}") for run, seed in ((13, 1), (13, 2), (14, 3))],
}
LATER = {name: [Model(15, f"{name}-{seed}") for seed in (1, 2, 3)] for name in ("stage2", "checked")}
"""Of these the conversations with a near-miss that came out well are kept too, and those under a changed policy."""


def policies(task: Task, outcome: Outcome, wanted: Verdict) -> Iterable[str]:
    """The policies that the writes of one conversation break, or nearly so, once for each write."""
    pack = pack_named(task.pack)
    session = Session(pack, world=world_of(pack, task.rows))
    for event in outcome.events:
        if isinstance(event, Call) and not event.refused and pack.schema.tools[event.tool].effect == "write":
            session.judge(event)
        session.observe(event)
    for verdict in session.settle():
        if verdict.determined == wanted:
            yield from (each.policy.id for each in verdict.policies if each.determined == wanted)


def by_policy(models: Sequence[Model], wanted: Verdict, files: Sequence[str]) -> dict[str, int]:
    """How often each policy was broken, or nearly so."""
    tasks = {task.id: task for task in load_tasks("test")}
    counted: Counter[str] = Counter()
    for model in models:
        for file in files:
            for line in lines(model.folder / f"{model.name}.{model.policy}.{file}.jsonl.gz"):
                outcome = msgspec.convert(line, Outcome)
                counted.update(policies(tasks[outcome.task], outcome, wanted))
    return dict(counted.most_common())


def recalled(models: Sequence[Model]) -> dict[str, int]:
    """Which policies thoughts state at questions that were never learned: the one asked of, or one that was."""
    reader, learned = Matcher(pack_named("clinic")), learned_policies("clinic")
    found: Counter[str] = Counter()
    for model in models:
        thoughts = model.all()["held_out"]["thoughts"]
        for question, thought in zip(held_out_questions("clinic"), thoughts, strict=True):
            text = thought.replace("<think>", "").replace("</think>", "")
            stated = reader.mentions(text).recalled
            kind = "its own" if question.policy in stated else "a learned one" if stated & learned else "other"
            found[kind] += 1
    return dict(found)


def disobeyed(models: Sequence[Model]) -> dict[str, int]:
    """Of the tasks under a changed policy that failed, those whose thoughts state the change word by word."""
    words = {case.task.id: case.new for case in held_out_overrides()}
    failed = [one for model in models for one in lines(model.folder / f"{model.name}.changed.failed.jsonl.gz")]
    stated = sum(any(words[one["task"]] in thought for thought in one["thoughts"]) for one in failed)
    return {"failed": len(failed), "stated": stated}


def scripted(script: Script) -> float:
    """How often a script that reads nothing does what a changed policy asks for."""
    tasks = [case.task for case in held_out_overrides()]
    outcomes = play(tasks, Scripted(script), policy="none")
    return sum(outcome.success for outcome in outcomes) / len(tasks)


def main() -> None:
    """Count, and write it down."""
    broken = {kind: by_policy(models, "violation", ["failed"]) for kind, models in KINDS.items()}
    (LOGS / "violations.json").write_text(json.dumps(broken, indent=1) + "\n", encoding="utf-8")
    faults: dict[str, Any] = {
        kind: {
            "near_misses": by_policy(models, "near_miss", ["failed", "near"]),
            "recalled": recalled(models),
            "disobeyed": disobeyed(models),
        }
        for kind, models in LATER.items()
    }
    faults["scripts"] = {script: scripted(script) for script in ("comply", "refuse")}
    (LOGS / "faults.json").write_text(json.dumps(faults, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
