"""Makes `docs/results/align.md` and its plots from the logs in `docs/results/align`, and from nothing else.

python benchmarks/align_page.py
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from align_chart import chart
from align_logs import (
    FIFTH,
    RESULTS,
    SEEDS,
    Place,
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

SHORT, COMPLIANCE = "stage3_short", "stage3-compliance"
ARMS = (
    ("base, policy in the prompt (a)", "base", "context", "Qwen-2.5-32B: 43.00"),
    ("base, without", "base", "none", ""),
    ("stage 1, policy in the prompt (b)", "stage1", "context", ""),
    ("answers only, without (c)", "answers", "none", ""),
    ("stage 2, without (d)", "stage2", "none", "PA2: 50.01"),
    ("**stage 3, without**", "stage3", "none", "PA3: 53.75"),
)
AIMS = (
    ("ahead of (a), the base model with the policy in its prompt", "base", "context", 0.0),
    ("within 5 points of (b), stage 1 with the policy in its prompt, or ahead", "stage1", "context", -5.0),
    ("ahead of (c), answers only", "answers", "none", 0.0),
    ("ahead of (d), stage 2", "stage2", "none", 0.0),
)
FORMS = ("plain", "plain, recalled", "desk", "desk, recalled")
FORM_NAMES = ("by itself", "by itself, after a thought", "at the desk", "at the desk, after a thought")
NAMES = {
    "base": "base",
    "stage1": "stage 1",
    "answers": "answers only",
    "stage2": "stage 2",
    "stage3": "stage 3",
    SHORT: "stage 3, {few} steps",
    COMPLIANCE: "stage 3 with verified compliance, {few} steps",
    "stage3-tf": "stage 3 with TF alone, {few} steps",
    "stage3-tf_pr": "stage 3 with TF + PR, {few} steps",
    "stage3-tf_pr_hp": "stage 3 with TF + PR + HP, {few} steps",
    "stage2_unfiltered": "stage 2, unfiltered thoughts",
    "stage3_unfiltered": "stage 3, unfiltered thoughts, {few} steps",
}


def place(kind: str, seed: int) -> Place:
    """Where a training's logs lie: run 5, or run 1 for what was not run again."""
    return (1, 1) if kind == "base" or (kind, seed) == ("answers", 1) else (5, seed)


def scores(kind: str, policy: str) -> dict[int, list[Score]]:
    """By seed what became of the test tasks, where they were played; the base model stands for every seed."""
    return {seed: found for seed in SEEDS if (found := tasks(kind, policy, place(kind, seed)))}


def few() -> int:
    """Steps of the arms with other rewards."""
    arms = [one["arm"] for one in (summary(SHORT, (5, seed)) for seed in SEEDS) if one]
    return arms[0]["step"] if arms else 12


def said(kind: str) -> str:
    return NAMES[kind].format(few=few())


def results() -> str:
    """The paper's tables 1 and 2, with ours beside them."""
    rows: list[list[Any]] = []
    for title, kind, policy, paper in ARMS:
        found = scores(kind, policy)
        seeds = SEEDS[:1] if kind == "base" else SEEDS
        cells = [percent(share(found[seed])) if seed in found and seed in seeds else "" for seed in SEEDS]
        if not found:
            rows.append([title, *cells, *[""] * 6, paper])
            continue
        whole = interval(clusters(*(found[seed] for seed in seeds if seed in found)))
        shown = [summary(kind, place(kind, seed))[policy] for seed in seeds if seed in found]
        rest = [f"{percent(whole.mean)} ({percent(whole.low)} to {percent(whole.high)})"]
        rest += [f"{mean([one[name] for one in shown]):,.0f}" for name in WORDS]
        rest += [percent(mean([one[name] for one in shown])) for name in ("seen", "novel")]
        rows.append([title, *cells, *rest, paper])
    head = ["arm", *(f"seed {seed}" for seed in SEEDS), "mean (95 %)", "words a task", "without the tools' lines"]
    return table([*head, "output words", "seen", "novel", "the paper, pass@1"], rows)


WORDS = ("words", "words_without_tools", "output_words")


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def gaps(one: tuple[str, str], other: tuple[str, str]) -> dict[str, Interval]:
    """The difference in pass@1 of two arms by seed, and for all seeds together."""
    mine, theirs = scores(*one), scores(*other)
    both = [seed for seed in mine if seed in theirs]
    found = {f"seed {seed}": difference(clusters(mine[seed]), clusters(theirs[seed])) for seed in both}
    if len(both) > 1:
        pooled = [clusters(*(each[seed] for seed in both)) for each in (mine, theirs)]
        found["together"] = difference(*pooled)
    return found


def points(found: Interval) -> str:
    return f"{100 * found.mean:+.1f} ({100 * found.low:+.1f} to {100 * found.high:+.1f})"


def claims() -> str:
    """What we set out to show, and whether it came out."""
    rows = [[f"stage 3 {title}", *held("stage3", kind, policy, least)] for title, kind, policy, least in AIMS]
    rows.append(["at least 40 % fewer words than (b)", *fewer()])
    rows.append(["knowledge test 20 points over chance, and ahead of stage 1", *knows()])
    rows.append(["fewer near-misses a write with the verified-compliance term", *near()])
    rows += [
        [f"(beside it: stage 2 {title})", *held("stage2", kind, policy, least)]
        for title, kind, policy, least in AIMS[:3]
    ]
    return table(["claim", "came out", "points in pass@1 (95 %), or what was measured"], rows)


def held(mine: str, kind: str, policy: str, least: float) -> list[str]:
    found = gaps((mine, "none"), (kind, policy))
    if not found:
        return ["**not run**", ""]
    every = found.get("together") or next(iter(found.values()))
    seeds = [one for name, one in found.items() if name != "together"]
    if 100 * every.low > least:
        word = "**yes**" if all(100 * one.low > least for one in seeds) else "**yes**, over all seeds"
    else:
        word = "**no**" if 100 * every.high < least else "**not shown**"
    return [word, "; ".join(f"{name} {points(one)}" for name, one in reversed(found.items()))]


def fewer() -> list[str]:
    pairs = [(summary("stage3", (5, seed)).get("none"), summary("stage1", (5, seed)).get("context")) for seed in SEEDS]
    known = [pair for pair in pairs if all(pair)]
    if not known:
        return ["**not run**", ""]
    less, bare = (
        100 * (1 - mean([mine[name] for mine, _ in known]) / mean([other[name] for _, other in known]))
        for name in WORDS[:2]
    )
    return [
        "**yes**" if less >= 40 else "**no**",
        f"{less:.1f} % fewer, {bare:.1f} % without the lines that tell the tools",
    ]


def knows() -> list[str]:
    best = {
        kind: {
            seed: max(known[form]["balanced"] for form in FORMS)
            for seed in SEEDS
            if (known := summary(kind, (5, seed)).get("knowledge"))
        }
        for kind in ("stage3", "stage1")
    }
    if not all(best.values()):
        return ["**not run**", ""]
    mine, theirs = (mean(list(each.values())) for each in best.values())
    shown = "; ".join(
        f"{NAMES[kind]} {', '.join(map(percent, each.values()))} (seed {', '.join(map(str, each))})"
        for kind, each in best.items()
    )
    return ["**yes**" if mine >= 0.7 and mine > theirs else "**no**", f"the best of four forms, at the median: {shown}"]


def near() -> list[str]:
    """Near-misses over all seeds where both were played, at equal steps."""
    arms = (("with it", COMPLIANCE), ("without", SHORT), ("stage 2", "stage2"))
    both = [seed for seed in SEEDS if all(scores(kind, "none").get(seed) for _, kind in arms)]
    if not both:
        return ["**not run**", ""]
    found = {kind: [one for seed in both for one in scores(kind, "none")[seed]] for _, kind in arms}
    parts: list[str] = []
    for title, kind in arms:
        made, missed, broken = (sum(getattr(one, name) for one in found[kind]) for name in WRITES)
        shares = f"{percent(missed / made)} %; {percent(broken / made)} % break a policy"
        parts.append(f"{title} {missed} of {made:,} writes ({shares})")
    gap = difference(*(per_task(found[kind]) for kind in (COMPLIANCE, SHORT)))
    word = "**yes**" if gap.high < 0 else "**no**" if gap.low > 0 else "**not shown**"
    shown = f"{gap.mean:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})"
    seeds = ", ".join(map(str, both))
    return [word, f"seed {seeds}, {few()} steps: {'; '.join(parts)}. Near-misses a task: {shown}"]


WRITES = ("writes", "near_misses", "violations")


def per_task(found: Sequence[Score]) -> dict[str, list[float]]:
    grouped: dict[str, list[float]] = {}
    for one in found:
        grouped.setdefault(one.cluster, []).append(float(one.near_misses))
    return grouped


def sides() -> str:
    """pass@1 before and after stage 3, where it is right to refuse and where it is right to do it."""
    known, rows = rights("test"), list[list[str]]()
    for kind in ("answers", "stage1", "stage2", "stage3"):
        policy = "context" if kind == "stage1" else "none"
        for seed, found in scores(kind, policy).items():
            cells = [
                percent(mean([float(one.success) for one in found if known[one.task] == side]))
                for side in ("refuse", "do", "do, with another sum")
            ]
            rows.append([f"{NAMES[kind]}, seed {seed}", percent(share(found)), *cells])
    head = ["model", "pass@1", "right to refuse", "right to do", "right to do, with another sum than the twin"]
    return table(head, rows)


def rollouts() -> str:
    """Stage 3, rollout by rollout: rewards of turns that were not learned from before."""
    found = {seed: [line for line in training("stage3", (5, seed)) if "reward" in line] for seed in SEEDS}
    rows: list[list[str]] = []
    for number in range(max(map(len, found.values()), default=0)):
        lines = [lines[number] for lines in found.values() if len(lines) > number]
        cells = [", ".join(f"{line['reward']:.3f}" for line in lines)]
        cells += [
            f"{mean([line[name] for line in lines]):.3f}" for name in ("reward", "reward/turn", "reward/policy_recall")
        ]
        cells += [percent(mean([line["learned_from"] for line in lines])), f"{max(line['kl'] for line in lines):.4f}"]
        rows.append([f"before step {lines[0]['step']}", *cells])
    head = ["rollout", "reward, by seed", "mean", "turn", "policy recall", "prompts learned from (%)", "most KL"]
    return table(head, rows)


def development() -> str:
    """Which number of steps was picked, on the development tasks."""
    rows: list[list[str]] = []
    for seed in SEEDS:
        path = FIFTH / f"stage3-{seed}.development.json"
        if path.exists():
            rows.append([f"seed {seed}", *(percent(one["passed"]) for one in json.loads(path.read_text()).values())])
    steps = [f"{step} steps" for step in json.loads((FIFTH / "stage3-1.development.json").read_text())]
    return table(["stage 3 on the development tasks", *steps], rows)


def others() -> str:
    """The paper's tables 5 and 4, and what lies beyond it."""
    rows: list[list[str]] = []
    for title, kind, paper in (
        ("stage 2", "stage2", "50.01"),
        ("stage 2 + TF", "stage3-tf", "48.46"),
        ("stage 2 + TF + PR", "stage3-tf_pr", "49.26"),
        ("stage 2 + TF + PR + HP", "stage3-tf_pr_hp", "52.97"),
        ("stage 2 + TF + PR + HP + LP (stage 3)", SHORT, "53.75"),
        ("stage 3 with verified compliance", COMPLIANCE, ""),
        ("stage 2, unfiltered thoughts", "stage2_unfiltered", "49.04"),
        ("stage 3, unfiltered thoughts", "stage3_unfiltered", "48.80"),
    ):
        found = scores(kind, "none").get(1)
        gap = points(gaps((kind, "none"), ("stage2", "none"))["seed 1"]) if found and kind != "stage2" else ""
        rows.append([title, percent(share(found)) if found else "", gap, paper])
    return table([f"arm (seed 1, {few()} steps of stage 3)", "pass@1", "less stage 2 (95 %)", "the paper"], rows)


def writes() -> str:
    """What went wrong in the tasks."""
    rows: list[list[Any]] = []
    for kind in NAMES:
        for seed in SEEDS[:1] if kind == "base" else SEEDS:
            for policy in ("context", "none"):
                found = summary(kind, place(kind, seed)).get(policy)
                if not found:
                    continue
                stated = found["hallucination"]["policies_stated"] + found["hallucination"]["made_up"]
                rate = f"{found['hallucination']['made_up']} of {stated:,}" if stated else ""
                cells = [percent(found["database"]), percent(found["told"]), found["writes"]]
                cells += [
                    percent(found[name]) if found["writes"] else "" for name in ("near_miss_rate", "violation_rate")
                ]
                where = ", policy in the prompt" if policy == "context" else ""
                rows.append([f"{said(kind)}{'' if kind == 'base' else f', seed {seed}'}{where}", *cells, rate])
    head = ["arm", "records right", "user told", "writes", "near-misses a write (%)", "violations a write (%)"]
    return table([*head, "made-up policies of those stated"], rows)


def knowledge() -> str:
    papers = {"stage1": "51.02", "stage2": "69.39", "stage3": "71.43"}
    rows: list[list[str]] = []
    for kind in ("stage1", "stage2", "stage3"):
        for seed in SEEDS:
            if not (found := summary(kind, (5, seed)).get("knowledge")):
                continue
            cells = [f"{percent(found[form]['accuracy'])} / {percent(found[form]['balanced'])}" for form in FORMS]
            states = [percent(found[form].get("states_the_policy")) for form in FORMS if "recalled" in form]
            rows.append(
                [
                    f"{NAMES[kind]}, seed {seed}",
                    *cells,
                    f"{found['plain']['mass']:.0e}",
                    " / ".join(states),
                    papers[kind],
                ]
            )
    head = ["arm", *FORM_NAMES, "probability of Yes or No, by itself", "thoughts that state the policy asked about"]
    return table([*head, "the paper"], rows)


def overrides() -> str:
    rows = [
        [f"{NAMES[kind]}, seed {seed}", percent(found["passed"]), str(found["tasks"])]
        for kind in ("stage1", "stage2", "stage3")
        for seed in SEEDS
        if (found := summary(kind, (5, seed)).get("override"))
    ]
    return table(["arm", "passed", "tasks"], rows)


def seconds() -> str:
    rows: list[list[Any]] = []
    for kind in NAMES:
        for seed in SEEDS:
            found = summary(kind, (5, seed))
            lines = training(kind, (5, seed))
            played = [found[policy]["seconds"] for policy in ("context", "none") if policy in found]
            if not lines and not played:
                continue
            skipped = sum(line["grad_norm"] != line["grad_norm"] for line in lines) if lines else ""
            trained = f"{lines[-1]['seconds']:.0f}" if lines else ""
            rows.append(
                [
                    f"{said(kind)}, seed {seed}",
                    lines[-1]["step"] if lines else "",
                    skipped,
                    trained,
                    f"{sum(played):.0f}" if played else "",
                ]
            )
    return table(["arm", "steps", "steps not taken", "training, s", "playing the test tasks, s"], rows)


def curves() -> None:
    losses = {
        f"{NAMES[kind]}, seed {seed}": [(line["step"], line["loss"]) for line in training(kind, (5, seed))]
        for kind, seed in (("answers", 2), ("stage1", 1), ("stage2", 1))
    }
    chart(FIFTH / "loss.svg", "Loss of the supervised arms, by step", {n: p for n, p in losses.items() if p}, 0.0, 0.4)
    arms = {f"seed {seed}": training("stage3", (5, seed)) for seed in SEEDS}
    arms |= {"compliance": training(COMPLIANCE, (5, 1))}
    for name, field, title, low, high in (
        ("reward", "reward", "Stage 3: mean reward of the answers tried, by step", 4.0, 5.0),
        ("drift", "kl", "Stage 3: how far it went from stage 2 (KL a token), by step", 0.0, 0.005),
    ):
        lines = {
            said: [(line["step"], line[field]) for line in found if field in line]
            for said, found in arms.items()
            if found
        }
        chart(FIFTH / f"{name}.svg", title, lines, low, high)


def main() -> None:
    curves()
    text = (Path(__file__).parent / "align_page.md").read_text(encoding="utf-8")
    tables = (results, claims, sides, rollouts, development, others, writes, knowledge, overrides, seconds)
    lease = json.loads((FIFTH / "lease.json").read_text())
    decoding = json.loads((FIFTH / "decoding.json").read_text())
    filled = text.format(**{one.__name__: one() for one in tables}, few=few(), lease=lease, decoding=decoding)
    (RESULTS / "align.md").write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
