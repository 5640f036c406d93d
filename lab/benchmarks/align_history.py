"""The short history of the alignment runs before the last, from their logs.

uv run python lab/benchmarks/align_history.py     # writes lab/results/pages/align-history.md
"""

import json
from collections.abc import Sequence
from pathlib import Path

from align_logs import LOGS, RESULTS, Model, gap, log_of, passed, percents, points, rate_gap, shares, table

PAGE = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
REWARDS = {
    "stage2-1": "stage 2",
    "stage3-tf-1": "+ turn and format",
    "stage3-tf_pr-1": "+ policy recall",
    "stage3-tf_pr_hp-1": "+ made-up policies",
    "stage3-1": "+ length (stage 3)",
    "stage3-compliance-1": "stage 3 + verified compliance",
    "stage2_unfiltered-1": "stage 2, faults planted in its thoughts",
    "stage3_unfiltered-1": "stage 3 from it",
}
EIGHTH = {"stage2-1": "stage 2", "mended-1": "mended", "own-1": "own", "control-1": "control"}


def main() -> None:
    """Write the page."""
    (RESULTS / "align-history.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """The page, from the logs."""
    second, third = some(6, "stage2"), some(6, "stage3")
    answers = [Model(1, "answers-1"), *some(6, "answers", (2, 3))]
    seventh = [Model(7, name) for name in ("stage2-1", "control1-1", "practice1-1")]
    return PAGE.format(
        stage1=percents([*some(1, "stage1", (1,), "context"), *some(2, "stage1", (1, 2, 3), "context")]),
        stage2=percents([*some(1, "stage2", (1, 2)), *some(2, "stage2"), *some(4, "stage2")]),
        base=percents([Model(1, "base", "context")]),
        third_runs=third_runs(),
        sixth_1=percents(some(6, "stage1", policy="context")),
        sixth_2=percents(second),
        sixth_3=percents(third),
        answers=percents(answers),
        thoughts=points(gap(second, answers)),
        reinforced=points(gap(third, second)),
        rewards=rewards(),
        seventh=percents(seventh),
        seventh_gap=points(gap(seventh[2:], seventh[1:2])),
        eighth=eighth(),
        eighth_agent=points(gap([Model(8, "stage2-1").held("agent")], [Model(8, "stage2-1")])),
        whole=whole(),
        stopped=repeated(Model(8, "stage2-1").held("agent")),
        override=overridden(),
        known=known(),
        **{f"steps_{run}": steps(run, seed) for run, seed in ((9, 1), (10, 2))},
    )


def some(run: int, kind: str, seeds: Sequence[int] = (1, 2, 3), policy: str = "none") -> list[Model]:
    """The seeds of one arm."""
    return [Model(run, f"{kind}-{seed}", policy) for seed in seeds]


def third_runs() -> str:
    """What stage 3 over single turns did in the runs before the sixth, beside its stage 2."""
    rows = [
        [1, "1e-5, 23 steps", percents(some(1, "stage2", (2,))), percents(some(1, "stage3", (2,)))],
        [2, "2e-5, 22 steps", percents(some(2, "stage2", (3,))), percents(some(2, "stage3", (3,)))],
        ["3, development tasks", "1e-5, 16 steps", developed("stage2"), developed("stage3")],
        ["5, seed 1", "turns where twins part", percents(some(5, "stage2", (1,))), percents(some(5, "stage3", (1,)))],
    ]
    return table(["run", "steps", "stage 2", "stage 3"], rows)


def developed(kind: str) -> str:
    """Of run 3, pass@1 on the development tasks after the last step."""
    found = [json.loads((LOGS / "run3" / f"{kind}-{seed}.development.json").read_text()) for seed in (1, 2, 3)]
    last = [each[max(each, key=int)] for each in found]
    return ", ".join(f"{100 * sum(one['each'].values()) / len(one['each']):.1f}" for one in last)


def rewards() -> str:
    """The paper's tables 5 and 4: rewards one after the other, and thoughts with faults."""
    rows: list[list[str]] = []
    for name, title in REWARDS.items():
        model = Model(6, name)
        told = model.found()["hallucination"]
        stated = f"{told['made_up']} of {told['policies_stated'] + told['made_up']:,}"
        less = points(gap([model], [Model(6, "stage2-1")])) if name != "stage2-1" else ""
        rows.append([title, passed(model), less, stated, *shares(model)[1:]])
    head = ["run 6, seed 1", "pass@1", "less stage 2", "made-up policies of those stated"]
    return table([*head, "violations a write (%)", "near-misses a write (%)"], rows)


def eighth() -> str:
    """Practice on the model's own conversations, put right."""
    rows = [[title, passed(Model(8, name)), *shares(Model(8, name))] for name, title in EIGHTH.items()]
    head = ["run 8, seed 1", "pass@1", "writes", "violations a write (%)", "near-misses a write (%)"]
    return table(head, rows)


def whole() -> str:
    """The first recipe of practice on whole conversations."""
    second, practised, control = (Model(9, f"{kind}-1") for kind in ("stage2", "episodes", "control"))
    less = [
        f"{name} {points(gap([practised], [other]))}" for name, other in (("stage 2", second), ("control", control))
    ]
    broken = points(rate_gap([practised], [second], "violations"))
    each = percents([second, practised, control])
    return f"{each} %; practised less {', less '.join(less)}; violations a write {broken}"


def repeated(model: Model) -> str:
    """Of the calls that were stopped in conversations that failed, those that are the call before once more."""
    stopped = same = 0
    for events in model.failed():
        calls = [each for each in events if "arguments" in each]
        for place, call in enumerate(calls):
            if call["refused"]:
                earlier = calls[place - 1] if place else {}
                stopped += 1
                same += (earlier.get("tool"), earlier.get("arguments")) == (call["tool"], call["arguments"])
    return f"{same} of {stopped}"


def overridden() -> str:
    """pass@1 where the prompt replaces a policy by its contrary."""
    models = {"stage 1": Model(6, "stage1-1"), "stage 2": Model(6, "stage2-1"), "stage 3": Model(6, "stage3-1")}
    return ", ".join(f"{name} {100 * model.all()['override']['passed']:.1f} %" for name, model in models.items())


def known() -> str:
    """The best of six forms of the knowledge test, by seed."""
    found = [max(form["balanced"] for form in model.all()["knowledge"].values()) for model in some(6, "stage3")]
    return ", ".join(f"{100 * each:.1f}" for each in found)


def steps(run: int, seed: int) -> str:
    """How much practice on whole conversations there was."""
    done = next(line for line in log_of(run) if line.get("arm") == f"episodes-{seed}" and "rollouts" in line)
    return f"{done['steps']} steps from {done['conversations']:,} conversations"


if __name__ == "__main__":
    main()
