"""Tables of the alignment experiment that more than one page has."""

from collections.abc import Mapping, Sequence
from typing import Any

from align_logs import COMPLIANCE, Place, percent, rights, share, summary, table, tasks, training

SIDES = ("refuse", "do", "do, with another sum")
Model = tuple[str, Place]
"""The kind of an arm, and the run and seed of one training of it."""

ARMS = {
    "a": ("base, policy in the prompt (a)", "base", "context", "Qwen-2.5-32B: 43.00"),
    "bare": ("base, without", "base", "none", ""),
    "b": ("stage 1, policy in the prompt (b)", "stage1", "context", ""),
    "c": ("answers only, without (c)", "answers", "none", ""),
    "d": ("stage 2, without (d)", "stage2", "none", "PA2: 50.01"),
    "compliance": ("stage 3 with verified compliance, without", COMPLIANCE, "none", ""),
}
"""Arms that more than one page shows: title, model, where the policy is, and what the paper has."""


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def policy_of(kind: str) -> str:
    return "context" if kind.startswith("stage1") else "none"


def sides(models: Mapping[str, Model]) -> str:
    """pass@1 where it is right to refuse and where it is right to do it, and what it has to do with writes."""
    known, rows = rights("test"), list[list[Any]]()
    for title, (kind, place) in models.items():
        policy = policy_of(kind)
        scores, found = tasks(kind, policy, place), summary(kind, place)[policy]
        cells = [percent(share(scores))]
        cells += [percent(mean([float(one.success) for one in scores if known[one.task] == side])) for side in SIDES]
        cells += [percent(found["database"]), percent(found["told"]), str(found["writes"])]
        cells += [percent(found["near_miss_rate"]), percent(found["violation_rate"]), made_up(kind, place)]
        rows.append([title, *cells])
    head = ["model", "pass@1", "right to refuse", "right to do", "right to do, with another sum than the twin"]
    head += ["records right", "user told", "writes", "near-misses a write (%)", "violations a write (%)"]
    return table([*head, "made-up policies of those stated"], rows)


def made_up(kind: str, place: Place) -> str:
    """How many of the policies that thoughts state there are not."""
    found = summary(kind, place)[policy_of(kind)]["hallucination"]
    stated = found["policies_stated"] + found["made_up"]
    return f"{found['made_up']} of {stated:,}" if found["thoughts"] else ""


def changed(pairs: Mapping[str, tuple[Model, Model]]) -> str:
    """Tasks that the second of two models passes and the first does not, and the reverse, by what is right."""
    known, rows = rights("test"), list[list[Any]]()
    for title, pair in pairs.items():
        before, after = ({one.task: one.success for one in tasks(kind, "none", place)} for kind, place in pair)
        cells: list[str] = []
        for side in SIDES:
            mine = [task for task, said in known.items() if said == side]
            won = sum(after[task] and not before[task] for task in mine)
            lost = sum(before[task] and not after[task] for task in mine)
            cells.append(f"+{won}, -{lost} of {len(mine)}")
        rows.append([title, *cells])
    head = ["stage 3 beside stage 2: tasks won and lost", "right to refuse", "right to do", "right to do, another sum"]
    return table(head, rows)


def rollouts(places: Sequence[Place]) -> str:
    """Stage 3, rollout by rollout: rewards of turns that were not learned from before."""
    found = [[line for line in training("stage3", place) if "reward" in line] for place in places]
    rows: list[list[str]] = []
    for lines in zip(*found, strict=True):
        cells = [", ".join(f"{line['reward']:.3f}" for line in lines)]
        cells += [
            f"{mean([line[name] for line in lines]):.3f}" for name in ("reward", "reward/turn", "reward/policy_recall")
        ]
        cells += [percent(mean([line["learned_from"] for line in lines]))]
        rows.append([f"before step {lines[0]['step']}", *cells])
    return table(["rollout", "reward, by seed", "mean", "turn", "policy recall", "prompts learned from (%)"], rows)
