"""Practice on whole conversations as an arm of the alignment experiment: the tasks a model fails, what it learns."""

import gzip
import json
import time
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from align_arms import TRIED, Arm

from bylaw.align.episode import Episode
from bylaw_lab.clinic.tasks import Scenario


@cache
def practice_tasks(file: str) -> tuple[Scenario, ...]:
    """The tasks to practise on, none of which any stage has learned from."""
    lines = gzip.decompress(Path(file).read_bytes()).splitlines()
    return tuple(msgspec.json.decode(line, type=Scenario) for line in lines)


def try_tasks(experiment: Any, arm: Arm) -> None:
    """Play practice tasks once, as in practice itself, and write down which of them failed."""
    from align_conversations import Episodes

    tasks = practice_tasks(experiment.practice)[: experiment.asked or TRIED]
    began = time.monotonic()
    player = experiment.player
    player.generator.forget()
    player.temperature, player.seed = Episodes(**experiment.episodes).temperature, arm.seed
    tried = [Episode(task, policy="none") for task in tasks]
    try:
        player.converse(tried)
    finally:
        player.temperature, player.seed = 0.0, 0
    failed = {task.id: 0.0 if each.outcome().success else 1.0 for task, each in zip(tasks, tried, strict=True)}
    told = {"tasks": len(tasks), "failed": sum(failed.values()), "each": failed}
    (experiment.logs / f"{arm.name}.json").write_text(json.dumps(told) + "\n", encoding="utf-8")
    seconds = round(time.monotonic() - began, 1)
    experiment.log(arm=arm.name, tasks=len(tasks), failed=told["failed"], seconds=seconds)


def practise_episodes(experiment: Any, arm: Arm, folder: Path, seconds: float) -> None:
    """Train an arm for as many rollouts as its settings say, or as many as there is time for."""
    import torch
    from align_conversations import Episodes, Practice
    from transformers import AutoModelForCausalLM

    from bylaw_lab.training.shared_prefix import share_prefix

    began = time.monotonic()
    start = experiment.work / arm.start
    settings = Episodes(**experiment.episodes)
    experiment.load(start)
    cuda = torch.cuda.is_available()
    model: Any = AutoModelForCausalLM.from_pretrained(start, dtype=torch.bfloat16 if cuda else torch.float32)
    model = model.to("cuda") if cuda else model
    share_prefix(model)
    lines: list[dict[str, Any]] = []

    def log(line: dict[str, Any]) -> None:
        lines.append(line)
        experiment.log(arm=arm.name, **line)
        with (experiment.logs / f"{arm.name}.train.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    failures = json.loads((experiment.logs / f"tried-{arm.seed}.json").read_text())["each"]
    tasks = practice_tasks(experiment.practice)[: experiment.asked or TRIED]
    practice = Practice(model, experiment.player, settings, seed=arm.seed, pool=experiment.pool, log=log)
    practice.run(tasks, failures, began + seconds)
    model.save_pretrained(folder)
    experiment.tokenizer.save_pretrained(folder)
    done = {
        "stage": 3,
        "seed": arm.seed,
        "steps": practice.steps,
        "rollouts": practice.rollouts,
        "conversations": sum(line["conversations"] for line in lines),
        "seconds": round(time.monotonic() - began, 2),
        "given": round(seconds, 1),
        "settings": experiment.episodes,
    }
    (folder / "run.json").write_text(json.dumps(done, indent=1) + "\n", encoding="utf-8")
    del model, practice
    experiment.clean()
    experiment.log(arm=arm.name, **done)
