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
            "DPO was not measured: its longest run was cut off at step 27 of 32. Its 256 pairs set the model's first "
            "turn that differs from the expert's against the expert's turn, both with thoughts. It began from the "
            "fourth of four models that were trained in stage 2 with TRL, without stage 1, on conversations with "
            "worked thoughts. The first three had one pass over 4,096 conversations (128, 128 and 256 steps), which "
            "were sorted by length over 32 steps in the first two models and over 50 in the third. They passed "
            f"{listed(short)} %. {rate(short, 'violations')} writes were violations and "
            f"{rate(short, 'near_misses')} near-misses.",
            "",
            "For the fourth model, each step drew its 32 conversations at random from 6,540 (130 steps, otherwise the "
            "settings of the first two models). On the first 300 tasks:",
            "",
            "| | passed (%) | violations per write | near-misses per write | the fourth model passed |",
            "|---|---|---|---|---|",
            *(f"| {name} | {row(model, drawn)} |" for name, model in zip(("first", "second"), short, strict=False)),
            f"| fourth | {row(drawn, drawn)} |",
            "",
            "The runs before run 16 were trained by kernels of our own, removed since: see the repository's history at "
            "5a1fce7c (`lab/src/bylaw_lab/training`), run 15 at 1e4f2de6. Run 16 was trained by `bylaw align train` "
            "and played by these kernels.",
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


def shield_row(model: Model) -> str:
    """Return the results of one model with and without the shield."""
    held = model.shielded()
    cells = [passed(model), passed(held), f"{count([model], 'writes'):,}"]
    cells += [str(count([model], what)) for what in ("violations", "near_misses")]
    cells += [f"{count([held], 'violations')}, {count([held], 'near_misses')} of {count([held], 'writes'):,}"]
    return " | ".join(cells)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
