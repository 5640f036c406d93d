"""Makes `docs/results/align.md` and its plots from the logs in `docs/results/align`, and from nothing else.

python benchmarks/align_page.py
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from align_chart import chart
from align_claims import near, points
from align_logs import (
    FIFTH,
    PLACES,
    RESULTS,
    SEEDS,
    Place,
    middle,
    percent,
    rights,
    share,
    summary,
    table,
    tasks,
    training,
)

from bylaw.align.bootstrap import Interval, difference, interval
from bylaw.align.evaluation import Score, clusters

RUN = 5
OURS = tuple((RUN, seed) for seed in SEEDS)
BESIDE: dict[str, Place] = {"base": (1, 1), "stage1": (RUN, 1), "answers": (1, 1), "stage2": (RUN, 1)}
"""What stage 3 of run 5 is compared with: the models it was trained from, and run 1 for what was not run again."""
ARMS = (
    ("base, policy in the prompt (a)", "base", "context", PLACES[:1], "Qwen-2.5-32B: 43.00"),
    ("base, without", "base", "none", PLACES[:1], ""),
    ("stage 1, policy in the prompt (b)", "stage1", "context", (*PLACES, *OURS), ""),
    ("answers only, without (c)", "answers", "none", PLACES, ""),
    ("stage 2, without (d)", "stage2", "none", (*PLACES, *OURS), "PA2: 50.01"),
    ("**stage 3, without** (run 5)", "stage3", "none", OURS, "PA3: 53.75"),
    ("stage 3 by the recipes of runs 1 and 2, without", "stage3", "none", PLACES, ""),
)
AIMS = (
    ("ahead of (a), the base model with the policy in its prompt", "base", "context", 0.0),
    ("within 5 points of (b), stage 1 with the policy in its prompt, or ahead", "stage1", "context", -5.0),
    ("ahead of (c), answers only", "answers", "none", 0.0),
    ("ahead of (d), stage 2", "stage2", "none", 0.0),
)
FORMS = {"plain": "by itself", "desk": "at the desk", "shown": "after four others with their answers"}
WORDS = ("words", "words_without_tools", "output_words")
SIDES = ("refuse", "do", "do, with another sum")
TITLES = {"stage1-1": "stage 1", "stage2-1": "stage 2"} | {f"stage3-{k}": f"stage 3, seed {k}" for k in SEEDS}
"""The models of run 5."""


def results() -> str:
    """The paper's tables 1 and 2, with ours beside them."""
    rows: list[list[Any]] = []
    for title, kind, policy, places, paper in ARMS:
        found = {place: scores for place in places if (scores := tasks(kind, policy, place))}
        shown = [summary(kind, place)[policy] for place in found]
        whole = interval(clusters(*found.values()))
        cells = [", ".join(percent(share(scores)) for scores in found.values())]
        cells.append(f"{percent(whole.mean)} ({percent(whole.low)} to {percent(whole.high)})")
        cells += [f"{middle(shown, name):,.0f}" for name in WORDS]
        cells += [percent(middle(shown, name)) for name in ("seen", "novel")]
        rows.append([title, *cells, paper])
    head = ["arm", "each training", "mean (95 %)", "words a task", "without the lines that tell the tools"]
    return table([*head, "output words", "seen", "novel", "the paper, pass@1"], rows)


def gaps(kind: str, policy: str, place: Place | None = None) -> dict[str, Interval]:
    """Stage 3 of run 5 less another arm, for all its seeds together and by seed."""
    other = tasks(kind, policy, place or BESIDE[kind])
    mine = {seed: tasks("stage3", "none", (RUN, seed)) for seed in SEEDS}
    together = difference(clusters(*mine.values()), clusters(*[other] * len(mine)))
    each = {f"seed {seed}": difference(clusters(scores), clusters(other)) for seed, scores in mine.items()}
    return {"all": together, **each}


def claims() -> str:
    """What we set out to show, and whether it came out."""
    rows = [[f"stage 3 {title}", *held(kind, policy, least)] for title, kind, policy, least in AIMS]
    mine, theirs = words("stage3", "none", OURS), words("stage1", "context", (BESIDE["stage1"],))
    less = [100 * (1 - one / other) for one, other in zip(mine, theirs, strict=True)]
    told = f"{less[0]:.1f} % fewer, {less[1]:.1f} % without the lines that tell the tools"
    rows.append(["at least 40 % fewer words than (b)", "**yes**" if less[0] >= 40 else "**no**", told])
    rows.append(["knowledge test 20 points over chance, and ahead of stage 1", *knows()])
    rows.append(["fewer near-misses a write with the verified-compliance term", *near()])
    rows.append(["three training seeds of each", *seeds()])
    return table(["claim", "came out", "points in pass@1 (95 %), or what was measured"], rows)


def held(kind: str, policy: str, least: float) -> list[str]:
    found = gaps(kind, policy)
    every = [100 * one.low > least for one in found.values()]
    word = "**yes**" if all(every) else "**no**" if 100 * found["all"].high < least else "**not shown**"
    if every[0] and not all(every):
        word = "**yes**, over all seeds"
    shown = "; ".join(f"{name}: {points(one)}" for name, one in found.items())
    if kind == "stage1":
        best = max(
            (place for place in PLACES if tasks(kind, policy, place)),
            key=lambda place: share(tasks(kind, policy, place)),
        )
        beside = points(gaps(kind, policy, best)["all"])
        shown += f". Beside the best training of (b), run {best[0]}, seed {best[1]}: {beside}"
    return [word, shown]


def words(kind: str, policy: str, places: Sequence[Place]) -> list[float]:
    return [middle([summary(kind, place)[policy] for place in places], name) for name in WORDS[:2]]


def knows() -> list[str]:
    best = [
        max(one["balanced"] for one in summary(kind, (RUN, 1))["knowledge"].values()) for kind in ("stage3", "stage1")
    ]
    told = f"the best of six forms, at the median: stage 3 {percent(best[0])} %, stage 1 {percent(best[1])} %"
    return ["**yes**" if best[0] >= 0.7 and best[0] > best[1] else "**no**", told]


def seeds() -> list[str]:
    counts = {
        title: len({place[1] for place in places if tasks(kind, policy, place)})
        for title, kind, policy, places, _ in ARMS[2:6]
    }
    told = "; ".join(f"{title.replace('*', '')}: {count}" for title, count in counts.items())
    word = "**yes**" if min(counts.values()) >= len(SEEDS) else "**no**"
    return [word, f"{told}. The three of stage 3 begin from one stage 2"]


def sides() -> str:
    """pass@1 where it is right to refuse and where it is right to do it, and what it has to do with writes."""
    known, rows = rights("test"), list[list[Any]]()
    for name, title in TITLES.items():
        kind, seed = name.split("-")
        policy = "context" if kind == "stage1" else "none"
        scores, found = tasks(kind, policy, (RUN, int(seed))), summary(kind, (RUN, int(seed)))[policy]
        cells = [percent(mean([float(one.success) for one in scores if known[one.task] == side])) for side in SIDES]
        cells += [percent(found["database"]), percent(found["told"]), str(found["writes"])]
        cells += [percent(found["near_miss_rate"]), percent(found["violation_rate"])]
        made_up = found["hallucination"]
        stated = made_up["policies_stated"] + made_up["made_up"]
        rows.append(
            [
                title,
                percent(share(scores)),
                *cells,
                f"{made_up['made_up']} of {stated:,}" if made_up["thoughts"] else "",
            ]
        )
    head = [
        "model",
        "pass@1",
        "right to refuse",
        "right to do",
        "right to do, with another sum than the twin",
        "records right",
    ]
    head += [
        "user told",
        "writes",
        "near-misses a write (%)",
        "violations a write (%)",
        "made-up policies of those stated",
    ]
    return table(head, rows)


def changed() -> str:
    """By seed of stage 3, tasks that it passes and stage 2 does not, and the reverse, by what is right."""
    known, rows = rights("test"), list[list[Any]]()
    before = {one.task: one.success for one in tasks("stage2", "none", (RUN, 1))}
    for seed in SEEDS:
        after = {one.task: one.success for one in tasks("stage3", "none", (RUN, seed))}
        cells: list[str] = []
        for side in SIDES:
            mine = [task for task, said in known.items() if said == side]
            won = sum(after[task] and not before[task] for task in mine)
            lost = sum(before[task] and not after[task] for task in mine)
            cells.append(f"+{won}, -{lost} of {len(mine)}")
        rows.append([f"seed {seed}", *cells])
    return table(
        ["stage 3 beside stage 2: tasks won and lost", "right to refuse", "right to do", "right to do, another sum"],
        rows,
    )


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def rollouts() -> str:
    """Stage 3, rollout by rollout: rewards of turns that were not learned from before."""
    found = [[line for line in training("stage3", place) if "reward" in line] for place in OURS]
    rows: list[list[str]] = []
    for lines in zip(*found, strict=True):
        cells = [", ".join(f"{line['reward']:.3f}" for line in lines)]
        cells += [
            f"{mean([line[name] for line in lines]):.3f}" for name in ("reward", "reward/turn", "reward/policy_recall")
        ]
        cells += [percent(mean([line["learned_from"] for line in lines]))]
        rows.append([f"before step {lines[0]['step']}", *cells])
    return table(["rollout", "reward, by seed", "mean", "turn", "policy recall", "prompts learned from (%)"], rows)


def knowledge() -> str:
    papers = {"stage1-1": "51.02", "stage2-1": "69.39", "stage3-1": "71.43"}
    rows: list[list[str]] = []
    for name, paper in papers.items():
        kind, seed = name.split("-")
        found = summary(kind, (RUN, int(seed)))["knowledge"]
        cells = [percent(found[f"{form}{after}"]["balanced"]) for form in FORMS for after in ("", ", recalled")]
        states = percent(found["plain, recalled"]["states_the_policy"])
        rows.append([TITLES[name], *cells, f"{found['plain']['mass']:.0e}", states, paper])
    head = [f"{form}{after}" for form in FORMS.values() for after in ("", ", after a thought")]
    return table(["model", *head, "probability of Yes or No", "thoughts that state the policy (%)", "the paper"], rows)


def overrides() -> str:
    found = {name: summary(*_at(name))["override"] for name in TITLES if "override" in summary(*_at(name))}
    return "; ".join(f"{TITLES[name]} {percent(one['passed'])} %" for name, one in found.items())


def _at(name: str) -> tuple[str, Place]:
    kind, seed = name.split("-")
    return kind, (RUN, int(seed))


def seconds() -> str:
    rows: list[list[Any]] = []
    for name, title in TITLES.items():
        lines, found = training(*_at(name)), summary(*_at(name))
        played = sum(found[policy]["seconds"] for policy in ("context", "none") if policy in found)
        skipped = sum(line["grad_norm"] != line["grad_norm"] for line in lines)
        rows.append([title, lines[-1]["step"], skipped, f"{found['training']['seconds']:.0f}", f"{played:.0f}"])
    return table(["model", "steps", "steps not taken", "training, s", "playing the test tasks, s"], rows)


def curves() -> None:
    losses = {
        TITLES[name]: [(line["step"], line["loss"]) for line in training(*_at(name))]
        for name in ("stage1-1", "stage2-1")
    }
    chart(FIFTH / "loss.svg", "Loss of stages 1 and 2, by step", losses, 0.0, 0.4)
    for name, field, title, low, high in (
        ("reward", "reward", "Stage 3: mean reward of the answers tried, by step", 4.5, 4.9),
        ("drift", "kl", "Stage 3: how far it went from stage 2 (KL a token), by step", 0.0, 0.002),
    ):
        lines = {
            f"seed {seed}": [(line["step"], line[field]) for line in training("stage3", (RUN, seed)) if field in line]
            for seed in SEEDS
        }
        chart(FIFTH / f"{name}.svg", title, lines, low, high)


def numbers() -> dict[str, str]:
    """The numbers that sentences tell."""
    third = [tasks("stage3", "none", place) for place in OURS]
    rewards = [[line["reward"] for line in training("stage3", place) if "reward" in line] for place in OURS]
    violated = [
        summary(kind, place)["none"]["violation_rate"]
        for kind, place in (("stage2", (RUN, 1)), *(("stage3", one) for one in OURS))
    ]
    played: dict[str, list[Score]] = {
        "stage1": tasks("stage1", "context", (RUN, 1)),
        "stage2": tasks("stage2", "none", (RUN, 1)),
    }
    played["answers"] = tasks("answers", "none", (1, 1))
    return {
        "third_each": ", ".join(percent(share(one)) for one in third),
        "third_mean": percent(mean([share(one) for one in third])),
        "behind": points(gaps("stage2", "none")["all"]),
        "first_reward": f"{mean([one[0] for one in rewards]):.3f}",
        "last_reward": f"{mean([one[-1] for one in rewards]):.3f}",
        "most_kl": f"{max(line['kl'] for place in OURS for line in training('stage3', place) if 'kl' in line):.4f}",
        "broke_before": percent(violated[0]),
        "broke_after": ", ".join(map(percent, violated[1:])),
        **{name: percent(share(scores)) for name, scores in played.items()},
    }


def main() -> None:
    curves()
    text = (Path(__file__).parent / "align_page.md").read_text(encoding="utf-8")
    tables = (results, claims, sides, changed, rollouts, knowledge, overrides, seconds)
    lease = json.loads((FIFTH / "lease.json").read_text())
    decoding = json.loads((FIFTH / "decoding.json").read_text())
    filled = text.format(**{one.__name__: one() for one in tables}, **numbers(), **lease, decoding=decoding)
    (RESULTS / "align.md").write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
