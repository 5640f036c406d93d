"""Makes `docs/results/align.md` and its plots from the logs in `docs/results/align`, and from nothing else.

python benchmarks/align_page.py
"""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bylaw.align.bootstrap import Interval, difference
from bylaw.align.evaluation import Score, clusters

RESULTS = Path(__file__).parent.parent / "docs" / "results"
LOGS = RESULTS / "align"
SEEDS = (1, 2, 3)
COLOURS = ("#2f6fb0", "#c2571a", "#2b8a57", "#8a4fb0")


def summary(arm: str) -> dict[str, Any]:
    path = LOGS / f"{arm}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def tasks(arm: str, policy: str) -> list[Score]:
    path = LOGS / f"{arm}.{policy}.tasks.jsonl.gz"
    if not path.exists():
        return []
    return [msgspec.json.decode(line, type=Score) for line in gzip.decompress(path.read_bytes()).splitlines()]


def training(arm: str) -> list[dict[str, Any]]:
    path = LOGS / f"{arm}.train.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for text in lines if "loss" in (line := json.loads(text))]


def percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in lines)


def passed() -> str:
    """Table 1 of the paper, with ours beside it."""
    arms = [
        ("base, policy in the prompt (a)", "base", "context", "Qwen-2.5-32B: 43.00"),
        ("base, without", "base", "none", ""),
        ("answers only, without (c)", "answers", "none", ""),
        ("stage 1, policy in the prompt (b)", "stage1", "context", ""),
        ("stage 1, without", "stage1", "none", "PA1: 37.93"),
        ("stage 2, without (d)", "stage2", "none", "PA2: 50.01"),
        ("stage 3, without", "stage3", "none", "PA3: 53.75"),
    ]
    rows: list[list[Any]] = []
    for title, kind, policy, paper in arms:
        names = ["base"] if kind == "base" else [f"{kind}-{seed}" for seed in SEEDS]
        found = [summary(name).get(policy) for name in names]
        cells = [percent(one["passed"]["mean"]) if one else "" for one in found]
        cells += [""] * (3 - len(cells))
        shown = next((one for one in found if one), None)
        span = f"{percent(shown['passed']['low'])} to {percent(shown['passed']['high'])}" if shown else ""
        rest = ["", "", "", "", "", ""]
        if shown:
            rest = [
                f"{shown['words']:,.0f}",
                f"{shown['words_without_tools']:,.0f}",
                f"{shown['output_words']:,.0f}",
                percent(shown["seen"]),
                percent(shown["novel"]),
                f"{shown['turns']:.1f}",
            ]
        rows.append([title, *cells, span, *rest, paper])
    head = ["arm", "seed 1", "seed 2", "seed 3", "95 % (first seed run)", "words", "without tools", "output words"]
    return table([*head, "seen", "novel", "turns", "the paper, pass@1"], rows)


COMPARED = (
    ("stage 3 without - base in the prompt (a)", ("stage3", "none"), ("base", "context")),
    ("stage 3 without - stage 1 in the prompt (b)", ("stage3", "none"), ("stage1", "context")),
    ("stage 3 without - answers only (c)", ("stage3", "none"), ("answers", "none")),
    ("stage 3 without - stage 2 without (d)", ("stage3", "none"), ("stage2", "none")),
    ("stage 2 without - stage 1 in the prompt (b)", ("stage2", "none"), ("stage1", "context")),
    ("stage 2 without - answers only (c)", ("stage2", "none"), ("answers", "none")),
    ("stage 1 in the prompt - stage 1 without", ("stage1", "context"), ("stage1", "none")),
    ("stage 3 with verified compliance - stage 3", ("stage3-compliance", "none"), ("stage3", "none")),
)


def named(kind: str, seed: int) -> str:
    return kind if kind == "base" else f"{kind}-{seed}"


def gaps(one: tuple[str, str], other: tuple[str, str]) -> list[tuple[str, Interval]]:
    """The difference in pass@1 of two arms for each seed of the first; the other's seed is the same, or 1."""
    found: list[tuple[str, Interval]] = []
    for seed in SEEDS:
        mine = tasks(named(one[0], seed), one[1])
        for against in dict.fromkeys((seed, 1)):
            if mine and (theirs := tasks(named(other[0], against), other[1])):
                which = f"{seed}" if other[0] == "base" or against == seed else f"{seed}, against {against}"
                found.append((which, difference(clusters(mine), clusters(theirs))))
                break
    return found


def differences() -> str:
    rows = [
        [title, which, f"{100 * found.mean:+.1f}", f"{100 * found.low:+.1f} to {100 * found.high:+.1f}"]
        for title, one, other in COMPARED
        for which, found in gaps(one, other)
    ]
    return table(["difference in pass@1, points", "seed", "mean", "95 %, paired by task, twins together"], rows)


def halves() -> str:
    rows: list[list[Any]] = []
    for arm, found in measured():
        name, policy = arm
        made_up = found["hallucination"]
        stated = made_up["policies_stated"] + made_up["made_up"]
        rate = f"{made_up['made_up']} of {stated:,}" if made_up["thoughts"] else ""
        cells = [percent(found["database"]), percent(found["told"]), f"{found['faults']:.2f}", found["writes"]]
        writes = [percent(found["near_miss_rate"]), percent(found["violation_rate"])] if found["writes"] else ["", ""]
        rows.append([f"{name}, {'policy in the prompt' if policy == 'context' else 'without'}", *cells, *writes, rate])
    head = ["arm", "records right", "user told", "faults a task", "writes", "near-misses a write", "violations a write"]
    return table([*head, "made-up policies of those stated"], rows)


ARMS = (
    "base",
    *(f"{kind}-{seed}" for seed in SEEDS for kind in ("answers", "stage1", "stage2", "stage3")),
    "stage3-compliance-1",
    "stage3-tf-1",
    "stage3-tf_pr-1",
    "stage3-tf_pr_hp-1",
)


def measured() -> list[tuple[tuple[str, str], dict[str, Any]]]:
    """Every arm that was played, with the policy in the prompt or without."""
    pairs = [(arm, policy) for arm in ARMS for policy in ("context", "none")]
    return [(pair, found) for pair in pairs if (found := summary(pair[0]).get(pair[1]))]


def others() -> str:
    """The paper's tables 5 and 4, and what lies beyond it."""
    rows: list[list[str]] = []
    for title, arm, paper in (
        ("stage 2 + TF", "stage3-tf-1", "48.46"),
        ("stage 2 + TF + PR", "stage3-tf_pr-1", "49.26"),
        ("stage 2 + TF + PR + HP", "stage3-tf_pr_hp-1", "52.97"),
        ("stage 2 + TF + PR + HP + LP (stage 3, seed 2)", "stage3-2", "53.75"),
        ("stage 3 with verified compliance", "stage3-compliance-1", ""),
        ("stage 2 without stage 1", "stage2_alone-1", "(table 3)"),
        ("stage 2, unfiltered thoughts", "stage2_unfiltered-1", "49.04"),
        ("stage 3, unfiltered thoughts", "stage3_unfiltered-1", "48.80"),
    ):
        found = summary(arm).get("none")
        rows.append([title, percent(found["passed"]["mean"]) if found else "", paper])
    return table(["arm", "pass@1", "the paper"], rows)


def overrides() -> str:
    rows = [
        [arm, percent(found["passed"]), str(found["tasks"])] for arm in ARMS if (found := summary(arm).get("override"))
    ]
    return table(["arm", "passed", "tasks"], rows)


def knowledge() -> str:
    papers = {"stage1-1": "51.02", "stage2-1": "69.39", "stage3-2": "71.43", "stage2_alone-1": "67.35"}
    rows: list[list[str]] = []
    for arm in (*ARMS, "stage2_alone-1"):
        if found := summary(arm).get("knowledge"):
            cells = [percent(found[name]) for name in ("accuracy", "balanced", "yes_rate")]
            rows.append([arm, *cells, papers.get(arm, "")])
    return table(["arm", "accuracy", "at the median", "says yes", "the paper"], rows)


def chart(path: Path, title: str, lines: dict[str, list[tuple[float, float]]], low: float, high: float) -> None:
    """A line chart as SVG."""
    wide, tall, left, top = 640, 260, 46, 34
    last = max(x for points in lines.values() for x, _ in points)

    def at(x: float, y: float) -> str:
        part = (min(max(y, low), high) - low) / (high - low)
        return f"{left + (wide - left - 120) * x / last:.1f},{top + (tall - top - 30) * (1 - part):.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" font-family="sans-serif" font-size="11">',
        f'<rect width="{wide}" height="{tall}" fill="#ffffff"/>',
        f'<text x="{left}" y="18" font-size="13" fill="#222222">{title}</text>',
    ]
    for step in range(5):
        value = low + (high - low) * step / 4
        x, y = at(0, value).split(",")
        end = at(last, value).split(",")[0]
        parts.append(f'<line x1="{x}" y1="{y}" x2="{end}" y2="{y}" stroke="#dddddd"/>')
        parts.append(f'<text x="{left - 6}" y="{float(y) + 4}" text-anchor="end" fill="#555555">{value:.2f}</text>')
    parts.append(f'<text x="{left}" y="{tall - 8}" fill="#555555">step 1</text>')
    parts.append(
        f'<text x="{at(last, low).split(",")[0]}" y="{tall - 8}" text-anchor="end" fill="#555555">{last:.0f}</text>'
    )
    for place, (name, points) in enumerate(lines.items()):
        colour = COLOURS[place % len(COLOURS)]
        path_of = " ".join(at(x, y) for x, y in points)
        parts.append(f'<polyline points="{path_of}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        parts.append(f'<text x="{wide - 112}" y="{top + 14 + 16 * place}" fill="{colour}">{name}</text>')
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


def curves() -> None:
    supervised = {
        arm: [(line["step"], line["loss"]) for line in training(arm)] for arm in ("answers-1", "stage1-1", "stage2-1")
    }
    chart(LOGS / "loss.svg", "Loss of the supervised arms, by step", supervised, 0.0, 0.4)
    steps = training("stage3-2")
    rewards = {
        name: [(line["step"], line[key]) for line in steps]
        for name, key in (("total", "reward"), ("turn", "reward/turn"), ("policy recall", "reward/policy_recall"))
    }
    chart(LOGS / "reward.svg", "Stage 3: mean reward of the answers tried, by step", rewards, 0.0, 5.0)


def seconds() -> str:
    rows = [[arm, *cells] for arm in ARMS if any(cells := _times(arm))]
    return table(["arm", "steps", "steps not taken", "training", "playing the test tasks"], rows)


def _times(arm: str) -> list[Any]:
    found = summary(arm)
    played = sum(found[policy]["seconds"] for policy in ("context", "none") if policy in found)
    lines = training(arm)
    log = [json.loads(text) for text in (LOGS / "log.jsonl").read_text().splitlines()]
    trained = [line["trained"] for line in log if line.get("arm") == arm and "trained" in line]
    return [
        lines[-1]["step"] if lines else "",
        sum(line["grad_norm"] != line["grad_norm"] for line in lines) if lines else "",
        f"{trained[-1]:.0f}" if trained else "",
        f"{played:.0f}" if played else "",
    ]


def claims() -> str:
    """What we set out to show, and whether it came out; nothing where it was not measured."""
    rows: list[list[str]] = []
    aims: tuple[tuple[str, tuple[str, str], float], ...] = (
        ("stage 3 ahead of (a), the base model with the policy in its prompt", ("base", "context"), 0.0),
        ("stage 3 within 5 points of (b), stage 1 with the policy in its prompt", ("stage1", "context"), -5.0),
        ("stage 3 ahead of (c), answers only", ("answers", "none"), 0.0),
        ("stage 3 ahead of (d), stage 2", ("stage2", "none"), 0.0),
    )
    for title, other, least in aims:
        found = gaps(("stage3", "none"), other)
        said = [f"{100 * one.mean:+.1f} points, {100 * one.low:+.1f} to {100 * one.high:+.1f}" for _, one in found]
        if not found:
            rows.append([title, "not measured"])
        elif all(100 * one.low > least for _, one in found):
            rows.append([title, f"**yes**: {'; '.join(said)}"])
        else:
            word = "**no**" if all(100 * one.mean <= least for _, one in found) else "**not shown**"
            rows.append([title, f"{word}: {'; '.join(said)}"])
    rows.append(["at least 40 % fewer words than (b)", _fewer()])
    rows.append(["knowledge test 20 points over chance, and ahead of stage 1", _knows()])
    rows.append(["fewer near-misses a write with the verified-compliance term", _near()])
    rows.append(["three training seeds", _seeds()])
    return table(["claim", "outcome"], rows)


def headline() -> dict[str, str]:
    """The numbers of the first paragraph."""
    arms = {"stage2_1": ("stage2-1", "none"), "stage2_2": ("stage2-2", "none"), "stage3_2": ("stage3-2", "none")}
    arms |= {"stage1_context": ("stage1-1", "context"), "answers": ("answers-1", "none")}
    means = {name: summary(arm)[policy]["passed"]["mean"] for name, (arm, policy) in arms.items()}
    apart = percent(abs(means["stage2_1"] - means["stage2_2"]))
    return {**{name: percent(mean) for name, mean in means.items()}, "between_seeds": apart}


def first(kind: str) -> dict[str, Any]:
    """The arm's summary for the first seed that was run."""
    return next((found for seed in SEEDS if (found := summary(f"{kind}-{seed}"))), {})


def _fewer() -> str:
    mine, theirs = first("stage3").get("none"), first("stage1").get("context")
    if not mine or not theirs:
        return "not measured"
    less, bare = (100 * (1 - mine[name] / theirs[name]) for name in ("words", "words_without_tools"))
    word = "**yes**" if less >= 40 else "**no**"
    return f"{word}: {less:.1f} % fewer, {bare:.1f} % without the lines that tell the tools"


def _knows() -> str:
    both = [("stage 3", first("stage3").get("knowledge")), ("stage 1", first("stage1").get("knowledge"))]
    if not all(one for _, one in both):
        return "not measured"
    mine, theirs = (one["accuracy"] for _, one in both)
    said = [f"{name} {percent(one['accuracy'])}, at the median {percent(one['balanced'])}" for name, one in both]
    return f"{'**yes**' if mine >= 0.7 and mine > theirs else '**no**'}: {'; '.join(said)}"


def _near() -> str:
    mine, theirs = first("stage3-compliance").get("none"), first("stage3").get("none")
    if not mine or not theirs:
        return "not run"
    said = [
        f"{percent(one['near_miss_rate'])} of {one['writes']} writes {name}"
        for name, one in (("with it", mine), ("without", theirs))
    ]
    return "; ".join(said)


def _seeds() -> str:
    counts = {kind: sum(bool(summary(f"{kind}-{seed}").get("none")) for seed in SEEDS) for kind in ("stage2", "stage3")}
    word = "**yes**" if min(counts.values()) == len(SEEDS) else "**no**"
    return f"{word}: stage 2 has {counts['stage2']}, stage 3 has {counts['stage3']}"


def main() -> None:
    curves()
    text = (Path(__file__).parent / "align_page.md").read_text(encoding="utf-8")
    lease = json.loads((LOGS / "lease.json").read_text())
    steps = training("stage3-2")
    filled = text.format(
        passed=passed(),
        **headline(),
        differences=differences(),
        claims=claims(),
        halves=halves(),
        knowledge=knowledge(),
        overrides=overrides(),
        others=others(),
        seconds=seconds(),
        first_reward=f"{sum(line['reward'] for line in steps[:3]) / 3:.2f}" if steps else "",
        last_reward=f"{sum(line['reward'] for line in steps[-3:]) / 3:.2f}" if steps else "",
        flat_first=percent(sum(line["frac_reward_zero_std"] for line in steps[:3]) / 3) if steps else "",
        flat_last=percent(sum(line["frac_reward_zero_std"] for line in steps[-3:]) / 3) if steps else "",
        steps=len(steps),
        **lease,
    )
    (RESULTS / "align.md").write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
