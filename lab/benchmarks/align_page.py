"""Computes the published figures on alignment from the stored logs of the runs.

uv run python lab/benchmarks/align_page.py     # writes lab/results/pages/align.md
"""

import gzip
import json
import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

LAB = Path(__file__).parents[1]
LOGS = LAB / "results" / "align"
PAGE = LAB / "results" / "pages" / "align.md"
WORKED = ((13, 1), (13, 2), (14, 3))
CHECKED = ((15, 1), (15, 2), (15, 3))
SHORT = ((16, 1), (16, 2), (16, 3))
DRAWN = (16, 1)
BETA = 0.1
ROUNDS = 2000


class Model(NamedTuple):
    """The results of one model on the test tasks."""

    run: int
    name: str
    policy: str = "none"
    """Where the handbook is: in the prompt (`context`), or nowhere (`none`)."""

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads((LOGS / f"run{self.run}" / f"{self.name}.json").read_text())[self.policy]

    def shielded(self) -> "Model":
        """Return the results of the same model with a shield that shows missing look-ups."""
        return self._replace(name=f"shield_show-{self.name}")


LAST = {
    "stage 1, handbook in the prompt": Model(14, "stage1-1", "context"),
    "stage 2, plain thoughts": Model(14, "stage2-3"),
    "stage 2, worked thoughts": Model(14, "worked-3"),
    "stage 2, worked thoughts and left-out look-ups": Model(14, "asked-3"),
    "stage 2, handbook in the prompt": Model(14, "reads-3", "context"),
    "stage 2 without stage 1": Model(14, "alone-3"),
}
"""All models from the last run that were also tested with a shield."""


DPO = {
    "stage 2, 430 steps": Model(17, "stage2-1"),
    "DPO, expert's turns": Model(17, "expert-1"),
    "stage 2, 400 steps": Model(17, "stage2-2"),
    "DPO, own turns, seed 1": Model(17, "own-1"),
    "DPO, own turns, seed 2": Model(17, "own-2"),
    "DPO, own turns, seed 3": Model(17, "own-3"),
}


@cache
def tasks(model: Model) -> dict[str, list[dict[str, Any]]]:
    """Return the outcomes of the test tasks by cluster. Both tasks of a pair are in one cluster."""
    path = LOGS / f"run{model.run}" / f"{model.name}.{model.policy}.tasks.jsonl.gz"
    found: dict[str, list[dict[str, Any]]] = {}
    for line in gzip.decompress(path.read_bytes()).splitlines():
        task = json.loads(line)
        found.setdefault(task["cluster"], []).append(task)
    return found


def count(models: Sequence[Model], what: str) -> int:
    """Add up the writes, near-misses or violations of several models."""
    return sum(task[what] for model in models for cluster in tasks(model).values() for task in cluster)


def passed(model: Model) -> str:
    return f"{100 * model.summary['passed']['mean']:.1f}"


def difference(ones: Sequence[Model], others: Sequence[Model]) -> str:
    """Return the difference in pass@1 between two groups of trained models, in points."""
    return interval(ones, others, "success", "", lambda one, other: 100 * (one - other), "+.1f")


def share(ones: Sequence[Model], others: Sequence[Model], what: str) -> str:
    """Return the ratio between the rates of two groups: violations or near-misses per write."""
    return interval(ones, others, what, "writes", lambda one, other: one / other if other else 0.0, ".2f")


def interval(
    ones: Sequence[Model],
    others: Sequence[Model],
    hits: str,
    of: str,
    compare: Callable[[float, float], float],
    form: str,
) -> str:
    """Compare two rates. The range contains the middle 95% of paired bootstrap rounds over trained models and
    clusters.
    """
    pairs = [(column(one, hits, of), column(other, hits, of)) for one, other in zip(ones, others, strict=True)]
    names = list(pairs[0][0])
    rng = random.Random(0)

    def rate(columns: Sequence[dict[str, tuple[float, float]]], drawn: Sequence[str]) -> float:
        cells = [each[name] for each in columns for name in drawn]
        return sum(hit for hit, _ in cells) / max(sum(total for _, total in cells), 1)

    def once(trainings: Sequence[Any], drawn: Sequence[str]) -> float:
        return compare(rate([one for one, _ in trainings], drawn), rate([other for _, other in trainings], drawn))

    rounds = (once(rng.choices(pairs, k=len(pairs)), rng.choices(names, k=len(names))) for _ in range(ROUNDS))
    low, *_, high = sorted(rounds)[int(0.025 * ROUNDS) : int(0.975 * ROUNDS)]
    return f"{once(pairs, names):{form}} ({low:{form}} to {high:{form}})"


def column(model: Model, hits: str, of: str) -> dict[str, tuple[float, float]]:
    """Return counts by cluster: how often an event occurred, and in how many cases. If `of` is empty, the cases are
    tasks.
    """
    return {
        name: (float(sum(task[hits] for task in cluster)), float(sum(task[of] if of else 1 for task in cluster)))
        for name, cluster in tasks(model).items()
    }


def arm(name: str, places: Sequence[tuple[int, int]]) -> list[Model]:
    return [Model(run, f"{name}-{seed}") for run, seed in places]


def page() -> str:
    plain, worked = arm("stage2", WORKED), arm("worked", WORKED)
    control, checked = arm("stage2", CHECKED), arm("checked", CHECKED)
    short = arm("short", SHORT)
    [drawn] = arm("drawn", [DRAWN])
    first, expert, second, *own = DPO.values()
    last = list(LAST.values())
    shielded = [model.shielded() for model in last]
    reads, showing = LAST["stage 2, handbook in the prompt"], LAST["stage 2, worked thoughts"]
    return "\n".join(
        [
            "# Alignment: figures from the stored runs",
            "",
            "<!-- Written by lab/benchmarks/align_page.py; do not edit by hand. -->",
            "",
            "500 unseen tasks for each model. Intervals are 95 %, over trainings and pairs of twin tasks.",
            "",
            "| | plain thoughts | worked thoughts | difference |",
            "|---|---|---|---|",
            f"| passed (%) | {listed(plain)} | {listed(worked)} | {difference(worked, plain)} points |",
            f"| violations per write | {rate(plain, 'violations')} | {rate(worked, 'violations')} "
            f"| {share(worked, plain, 'violations')} of before |",
            f"| near-misses per write | {rate(plain, 'near_misses')} | {rate(worked, 'near_misses')} "
            f"| {share(worked, plain, 'near_misses')} of before |",
            "",
            f"Rows made against near-misses, three further trainings: {share(checked, control, 'near_misses')} of the "
            f"control's near-misses per write; passed {listed(checked)} against {listed(control)}.",
            "",
            f"Handbook in the prompt and plain thoughts: {passed(reads)} % passed, {reads.summary['words']:,.0f} words "
            f"a task. Worked thoughts without the handbook: {passed(showing)} %, "
            f"{showing.summary['words']:,.0f} words.",
            "",
            "| model | passed (%) | with shield | writes | violations | near-misses | with shield |",
            "|---|---|---|---|---|---|---|",
            *(f"| {name} | {shield_row(model)} |" for name, model in LAST.items()),
            f"| all | | | {count(last, 'writes'):,} | {count(last, 'violations')} | {count(last, 'near_misses')} "
            f"| {count(shielded, 'violations')}, {count(shielded, 'near_misses')} of {count(shielded, 'writes'):,} |",
            "",
            "## DPO (run 17)",
            "",
            "Both stage 2 models (one recipe, 430 and 400 steps) learned from conversations with worked thoughts, "
            "without stage 1. From each, DPO (learning rate 5e-6, beta 0.1, weight 1 for imitation, 16 pairs a step, "
            "two epochs) had pairs of turns with thoughts. The pairs of the first set the expert's turn against the "
            "model's first turn that differs from it, in tasks with a violation, a near-miss or another failure (344 "
            "pairs). The machine was lost before seeds 2 and 3 were tested. The pairs of the second, chosen after that "
            "result, are two turns that this model drew for the same prompts: one does the same as the expert, the "
            "other does not (246 pairs).",
            "",
            "| model | passed (%) | violations per write | near-misses per write | policies a turn | faulty turns |",
            "|---|---|---|---|---|---|",
            *(f"| {name} | {dpo_row(model)} |" for name, model in DPO.items()),
            "",
            f"Own turns against their stage 2: {difference(own, [second] * 3)} points, "
            f"{share(own, [second] * 3, 'violations')} times the violations per write, "
            f"{share(own, [second] * 3, 'near_misses')} times the near-misses. Expert's turns: "
            f"{difference([expert], [first])} points, {share([expert], [first], 'violations')} and "
            f"{share([expert], [first], 'near_misses')} times.",
            "",
            "In the last eight steps, the log-probability of a whole turn had changed from stage 2 by:",
            "",
            "| | preferred turn | other turn | pairs in the right order at the end |",
            "|---|---|---|---|",
            *(f"| {name} | {learned(model)} |" for name, model in DPO.items() if model.name.startswith(("own", "exp"))),
            "",
            "## Steps in stage 2 (run 16)",
            "",
            "Three models had one pass over 4,096 conversations that were sorted by length over 32 or 50 steps (128, "
            f"128 and 256 steps). They passed {listed(short)} %. A fourth model drew its conversations at random from "
            "6,540 (130 steps). On the first 300 tasks, with the models of run 17:",
            "",
            "| steps | passed (%) | violations per write | near-misses per write | 130 steps against it |",
            "|---|---|---|---|---|",
            *(f"| {steps} | {row(model, drawn)} |" for steps, model in ((430, first), (400, second), (130, drawn))),
            "",
            "The runs before run 16 were trained by kernels of our own, removed since: see the repository's history at "
            "5a1fce7c (`lab/src/bylaw_lab/training`), run 15 at 1e4f2de6. Runs 16 and 17 were trained by `bylaw align "
            "train` and played by these kernels.",
            "",
        ]
    )


def listed(models: Sequence[Model]) -> str:
    return ", ".join(map(passed, models))


def rate(models: Sequence[Model], what: str) -> str:
    """Return a count, and the number of writes of all trained models."""
    return f"{count(models, what)} of {count(models, 'writes'):,}"


def row(model: Model, other: Model) -> str:
    """Return the results of one model on the tasks of another model, and the difference between the two models."""
    played = [task for name in tasks(other) for task in tasks(model)[name]]
    total = {what: sum(task[what] for task in played) for what in ("success", "writes", "violations", "near_misses")}
    cells = [f"{100 * total['success'] / len(played):.1f}"]
    cells += [f"{total[what]} of {total['writes']}" for what in ("violations", "near_misses")]
    return " | ".join([*cells, "" if model == other else f"{difference([other], [model])} points"])


def dpo_row(model: Model) -> str:
    cells = [passed(model), rate([model], "violations"), rate([model], "near_misses")]
    cells += [f"{count([model], 'recalled') / count([model], 'turns'):.2f}", str(count([model], "faults"))]
    return " | ".join(cells)


def learned(model: Model) -> str:
    """Return how DPO changed the log-probabilities of both turns, and the share of pairs in the right order."""
    raw = gzip.decompress((LOGS / f"run{model.run}" / f"{model.name}.metrics.jsonl.gz").read_bytes())
    steps = [line for line in map(json.loads, raw.splitlines()) if "rewards/chosen" in line]

    def mean(name: str) -> float:
        return sum(line[name] for line in steps[-8:]) / 8

    # A reward is the change multiplied by beta.
    changes = [f"{mean(f'rewards/{side}') / BETA:+.1f}" for side in ("chosen", "rejected")]
    return " | ".join([*changes, f"{100 * mean('rewards/accuracies'):.0f} %"])


def shield_row(model: Model) -> str:
    """Return the results of one model with and without the shield."""
    held = model.shielded()
    cells = [passed(model), passed(held), f"{count([model], 'writes'):,}"]
    cells += [str(count([model], what)) for what in ("violations", "near_misses")]
    cells += [f"{count([held], 'violations')}, {count([held], 'near_misses')} of {count([held], 'writes'):,}"]
    return " | ".join(cells)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
