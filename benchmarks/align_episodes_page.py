"""The page of practice on whole conversations: what it came to, beside its control, and under the shield.

uv run python benchmarks/align_episodes_page.py     # writes docs/results/align-episodes.md
"""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bylaw.align.bootstrap import Interval, difference, interval, rate_difference

ROOT = Path(__file__).parent.parent
RUNS = ROOT / "docs" / "results" / "align"
PAGE = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")


class Trained(NamedTuple):
    """A seed of one run."""

    run: str
    seed: int

    def arm(self, kind: str) -> "Played":
        return Played(self.run, f"{kind}-{self.seed}")


class Played(NamedTuple):
    """One model's test."""

    run: str
    arm: str

    def summary(self) -> dict[str, Any]:
        return json.loads((RUNS / self.run / f"{self.arm}.json").read_text())

    def tasks(self) -> list[dict[str, Any]]:
        path = RUNS / self.run / f"{self.arm}.none.tasks.jsonl.gz"
        return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


FIRST, SECOND = Trained("run9", 1), Trained("run10", 2)
BOTH = (FIRST, SECOND)
THREE = (Trained("run8", 1), *BOTH)
"""Every seed with a stage 2, its control and the shield of its own run."""
RECIPES = {FIRST: "first", SECOND: "second"}


def main() -> None:
    """Write the page."""
    (ROOT / "docs" / "results" / "align-episodes.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """The page, from the logs."""
    return PAGE.format(
        table=table(),
        rollouts=rollouts(),
        shielded=shield_table(),
        first_stage2=points(gap([FIRST], "episodes", "stage2")),
        first_control=points(gap([FIRST], "episodes", "control")),
        second_stage2=points(gap([SECOND], "episodes", "stage2")),
        second_control=points(gap([SECOND], "episodes", "control")),
        control_three=points(gap(THREE, "control", "stage2")),
        control_each=", ".join(f"{100 * gap([one], 'control', 'stage2').mean:+.1f}" for one in THREE),
        live_three=points(gap(THREE, "shield_live-stage2", "stage2")),
        live_each=", ".join(f"{100 * gap([one], 'shield_live-stage2', 'stage2').mean:+.1f}" for one in THREE),
        live_seeds=points(over_seeds("shield_live-stage2", "stage2")),
        live_practised=points(gap(BOTH, "shield_live-episodes", "shield_live-stage2")),
        second_live=points(gap([SECOND], "shield_live-episodes", "shield_live-stage2")),
        **{
            f"{word}_{name}_{other}": points(rates([one], what, other))
            for word, what in (("near", "near_misses"), ("broken", "violations"))
            for one, name in RECIPES.items()
            for other in ("stage2", "control")
        },
        **counted(),
        **knowledge(),
        **refusing(),
        **{f"steps_{name}": _steps(one) for one, name in RECIPES.items()},
    )


def _steps(one: Trained) -> str:
    log = [json.loads(line) for line in (RUNS / one.run / "log.jsonl").read_text().splitlines()]
    done = next(line for line in log if line.get("arm") == f"episodes-{one.seed}" and "rollouts" in line)
    return f"{done['steps']} steps from {done['rollouts']} rollouts of {done['conversations']:,} conversations in all"


def successes(seeds: Sequence[Trained], kind: str) -> dict[str, list[float]]:
    """By seed and twins whether each came out well."""
    found: dict[str, list[float]] = {}
    for one in seeds:
        for task in one.arm(kind).tasks():
            found.setdefault(task["cluster"], []).append(float(task["success"]))
    return found


def gap(seeds: Sequence[Trained], kind: str, other: str) -> Interval:
    """pass@1 of one kind of model less that of another, paired by seed and task, twins together."""
    return difference(successes(seeds, kind), successes(seeds, other))


def over_seeds(kind: str, other: str) -> Interval:
    """The same where whole seeds are drawn: with three of them little more than their range."""
    gaps = {one.run: [100 * gap([one], kind, other).mean / 100] for one in THREE}
    return interval(gaps)


def rates(seeds: Sequence[Trained], what: str, other: str) -> Interval:
    """How often a write of the practised model is faulty, less the same of another."""

    def by_cluster(kind: str) -> dict[str, tuple[float, float]]:
        found: dict[str, tuple[float, float]] = {}
        for one in seeds:
            for task in one.arm(kind).tasks():
                faulty, writes = found.get(task["cluster"], (0.0, 0.0))
                found[task["cluster"]] = faulty + task[what], writes + task["writes"]
        return found

    return rate_difference(by_cluster("episodes"), by_cluster(other))


def points(found: Interval) -> str:
    return f"{100 * found.mean:+.1f} ({100 * found.low:+.1f} to {100 * found.high:+.1f})"


def table() -> str:
    """Every model of both runs on the test tasks."""
    rows = [
        "| recipe | model | pass@1 (95 %) | development | writes | near-misses a write (%) | violations a write (%) |",
        "|---" * 7 + "|",
    ]
    for one, name in RECIPES.items():
        for kind, title in (("stage2", "stage 2"), ("episodes", "**practised**"), ("control", "control")):
            each = one.arm(kind)
            found = each.summary()["none"]
            developed = json.loads((RUNS / one.run / f"{each.arm}.development.json").read_text())["passed"]
            cells = (f"{name}, seed {one.seed}", title, _passed(found), f"{developed:.1%}", str(found["writes"]))
            rows.append(f"| {' | '.join((*cells, *_shares(found)))} |")
    return "\n".join(rows)


def shield_table() -> str:
    """With and without the shield."""
    rows = [
        "| model | seed | pass@1 without | with | writes without | with | violations a write without (%) | with (%) "
        "| near-misses with (%) |",
        "|---" * 9 + "|",
    ]
    for seeds, kind, title in ((THREE, "stage2", "stage 2"), (BOTH, "episodes", "practised")):
        for one in seeds:
            plain, held = (one.arm(each).summary()["none"] for each in (kind, f"shield_live-{kind}"))
            cells = [title, f"{one.seed} ({one.run[3:]})", f"{plain['passed']['mean']:.1%}"]
            cells += [f"{held['passed']['mean']:.1%}", str(plain["writes"]), str(held["writes"])]
            cells += [_shares(plain)[1], _shares(held)[1], _shares(held)[0]]
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def rollouts() -> str:
    """What the conversations of each rollout came to."""
    rows = [
        "| recipe | rollout | came out well (%) | tasks with both ends (%) | wrong turns (%) | violations a write (%) "
        "| near-misses a write (%) | made-up facts, turns (%) | KL |",
        "|---" * 9 + "|",
    ]
    for one, name in RECIPES.items():
        path = RUNS / one.run / f"episodes-{one.seed}.train.jsonl.gz"
        for line in map(json.loads, gzip.decompress(path.read_bytes()).splitlines()):
            shares = ("passed", "differing", "wrong_turns", "violations", "near_misses", "made_up")
            cells = [name, str(line["rollout"]), *(f"{100 * line[each]:.1f}" for each in shares), f"{line['kl']:.4f}"]
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def counted() -> dict[str, str]:
    """Writes and violations of stage 2 over three seeds, without the shield and with it."""
    found: dict[str, str] = {}
    for name, kind in (("plain", "stage2"), ("held", "shield_live-stage2")):
        tasks = [task for one in THREE for task in one.arm(kind).tasks()]
        found[f"{name}_writes"] = f"{sum(task['writes'] for task in tasks):,}"
        found[f"{name}_violations"] = str(sum(task["violations"] for task in tasks))
    return found


def knowledge() -> dict[str, str]:
    """Accuracy on policies whose questions were never learned, above chance, with intervals over policies."""
    found: dict[str, str] = {}
    for kind in ("stage2", "episodes", "control"):
        for form, short in (("at once", "once"), ("after a thought", "thought")):
            clusters: dict[str, list[float]] = {}
            for one in BOTH:
                asked = one.arm(kind).summary()["held_out"][form]["each"]
                middle = sorted(each["leaning"] for each in asked)[len(asked) // 2]
                for each in asked:
                    right = (each["leaning"] >= middle) == each["answer"]
                    clusters.setdefault(each["policy"], []).append(float(right) - 0.5)
            found[f"{kind}_{short}"] = points(interval(clusters))
            found["questions"], found["policies"] = str(len(asked)), str(len(clusters))
    return found


def refusing() -> dict[str, str]:
    """pass@1 of tasks with something to refuse, and of those with nothing, before practice and after it."""
    from bylaw.align.tasks import load_tasks
    from bylaw.packs.clinic.tasks import Scenario

    tasks = [task for task in load_tasks("test") if isinstance(task, Scenario)]
    sides = {task.id: any(errand.right is None for errand in task.errands) for task in tasks}
    found: dict[str, str] = {}
    for one, name in RECIPES.items():
        for kind in ("stage2", "episodes"):
            played = one.arm(kind).tasks()
            for side, word in ((True, "refuse"), (False, "do")):
                some = [task["success"] for task in played if sides[task["task"]] is side]
                found[f"{name}_{kind}_{word}"] = f"{100 * sum(some) / len(some):.1f}"
    return found


def _passed(each: dict[str, Any]) -> str:
    return "{mean:.1%} ({low:.1%} to {high:.1%})".format(**each["passed"])


def _shares(each: dict[str, Any]) -> list[str]:
    return [f"{100 * each[name]:.1f}" for name in ("near_miss_rate", "violation_rate")]


if __name__ == "__main__":
    main()
