"""The logs of the alignment experiment, as they lie in `lab/results/pages/align`, and what is counted of them."""

import gzip
import json
from collections.abc import Callable, Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from align_rates import over_trainings, rate_difference, rate_ratio

from bylaw.align.bootstrap import Interval, difference

RESULTS = Path(__file__).parents[2] / "lab" / "results" / "pages"
LOGS = Path(__file__).parents[1] / "results" / "align"


class Model(NamedTuple):
    """One model of a run, as it was played on the test tasks."""

    run: int
    name: str
    """The arm, with its seed."""
    policy: str = "none"
    """Where the handbook is: in the prompt (`context`) or nowhere."""

    @property
    def folder(self) -> Path:
        return LOGS / f"run{self.run}"

    def all(self) -> dict[str, Any]:
        """Its summary."""
        return json.loads((self.folder / f"{self.name}.json").read_text())

    def found(self) -> dict[str, Any]:
        """What it did on the test tasks."""
        return self.all()[self.policy]

    def tasks(self) -> list[dict[str, Any]]:
        """What became of each test task."""
        return lines(self.folder / f"{self.name}.{self.policy}.tasks.jsonl.gz")

    def training(self) -> list[dict[str, Any]]:
        """The lines of its training."""
        return lines(self.folder / f"{self.name}.train.jsonl.gz")

    def developed(self) -> float:
        """pass@1 on the development tasks."""
        return json.loads((self.folder / f"{self.name}.development.json").read_text())["passed"]

    def failed(self) -> list[list[dict[str, Any]]]:
        """The events of every test conversation that failed."""
        return [one["events"] for one in lines(self.folder / f"{self.name}.{self.policy}.failed.jsonl.gz")]

    def some(self, ids: Collection[str]) -> list[dict[str, Any]]:
        """What became of some of the test tasks."""
        return [task for task in self.tasks() if task["task"] in ids]

    def held(self, how: str) -> "Model":
        """The same under a shield; `how` says who makes the look-ups."""
        return self._replace(name=f"shield_{how}-{self.name}")


@cache
def lines(path: Path) -> list[dict[str, Any]]:
    """The records of a packed log."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def log_of(run: int) -> list[dict[str, Any]]:
    """What a run said as it went on."""
    return [json.loads(line) for line in (LOGS / f"run{run}" / "log.jsonl").read_text().splitlines()]


def gap(ones: Sequence[Model], others: Sequence[Model]) -> Interval:
    """pass@1 of some models less that of others, paired by training and task, twins together."""
    return difference(_by_cluster(ones, _success), _by_cluster(others, _success))


def rate_gap(ones: Sequence[Model], others: Sequence[Model], what: str) -> Interval:
    """How often a write is faulty, less the same of others; paired in the same way."""
    return rate_difference(_faulty(ones, what), _faulty(others, what))


def rate_share(ones: Sequence[Model], others: Sequence[Model], *what: str) -> str:
    """How often a write is faulty in any of these ways, as a share of the same of others."""
    return part(rate_ratio(_faulty(ones, *what), _faulty(others, *what)))


def over(ones: Sequence[Model], others: Sequence[Model], *what: str, is_share: bool = False) -> Interval:
    """pass@1 of some trainings less that of others, or how often their writes are faulty; over trainings and tasks."""
    made = (_faulty([model], *what) if what else _passed(model) for model in (*ones, *others))
    rates = list(made)
    return over_trainings(rates[: len(ones)], rates[len(ones) :], is_share=is_share)


def _passed(model: Model) -> dict[str, tuple[float, float]]:
    return {name: (sum(each), float(len(each))) for name, each in _by_cluster([model], _success).items()}


def _success(task: dict[str, Any]) -> float:
    return float(task["success"])


def _by_cluster(models: Sequence[Model], value: Callable[[dict[str, Any]], float]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for model in models:
        for task in model.tasks():
            found.setdefault(task["cluster"], []).append(value(task))
    return found


def _faulty(models: Sequence[Model], *what: str) -> dict[str, tuple[float, float]]:
    faulty = _by_cluster(models, lambda task: sum(task[each] for each in what))
    writes = _by_cluster(models, lambda task: task["writes"])
    return {cluster: (sum(faulty[cluster]), sum(writes[cluster])) for cluster in faulty}


def count(models: Sequence[Model], what: str) -> int:
    """Writes, near-misses or violations of some models together."""
    return sum(task[what] for model in models for task in model.tasks())


def points(found: Interval) -> str:
    """A difference in points, with its interval."""
    return f"{100 * found.mean:+.1f} ({100 * found.low:+.1f} to {100 * found.high:+.1f})"


def part(found: Interval) -> str:
    """A share, with its interval."""
    return f"{found.mean:.2f} ({found.low:.2f} to {found.high:.2f})"


def percents(models: Sequence[Model]) -> str:
    """pass@1 of each."""
    return ", ".join(f"{100 * model.found()['passed']['mean']:.1f}" for model in models)


def passed(model: Model) -> str:
    """pass@1 with its interval over tasks."""
    return "{:.1f} ({:.1f} to {:.1f})".format(
        *(100 * model.found()["passed"][name] for name in ("mean", "low", "high"))
    )


def shares(model: Model) -> list[str]:
    """Writes, and what part of them is a violation or a near-miss, in percent."""
    found = model.found()
    return [f"{found['writes']:,}", *(f"{100 * found[name]:.1f}" for name in ("violation_rate", "near_miss_rate"))]


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in (head, ["---"] * len(head), *rows))
