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
COLOURS = ("#2f6fb0", "#c2571a", "#2b8a57")


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
        first = next((one for one in found if one), None)
        span = f"{percent(first['passed']['low'])} to {percent(first['passed']['high'])}" if first else ""
        rest = ["", "", "", "", "", ""]
        if first:
            rest = [
                f"{first['words']:,.0f}",
                f"{first['words_without_tools']:,.0f}",
                f"{first['output_words']:,.0f}",
                percent(first["seen"]),
                percent(first["novel"]),
                f"{first['turns']:.1f}",
            ]
        rows.append([title, *cells, span, *rest, paper])
    head = ["arm", "seed 1", "seed 2", "seed 3", "95 % (seed 1)", "words", "without tools", "output words"]
    return table([*head, "seen", "novel", "turns", "the paper, pass@1"], rows)


def differences() -> str:
    rows: list[list[str]] = []
    for title, one, other in (
        ("stage 2, without - base in the prompt (a)", ("stage2-1", "none"), ("base", "context")),
        ("stage 2, without - stage 1 in the prompt (b)", ("stage2-1", "none"), ("stage1-1", "context")),
        ("stage 2, without - answers only (c)", ("stage2-1", "none"), ("answers-1", "none")),
        ("stage 1 in the prompt - stage 1 without", ("stage1-1", "context"), ("stage1-1", "none")),
    ):
        found: Interval = difference(clusters(tasks(*one)), clusters(tasks(*other)))
        rows.append([title, f"{100 * found.mean:+.1f}", f"{100 * found.low:+.1f} to {100 * found.high:+.1f}"])
    return table(["difference in pass@1, points", "seed 1", "95 %, paired by task, twins together"], rows)


def halves() -> str:
    rows: list[list[Any]] = []
    for arm, policy in (
        ("base", "context"),
        ("base", "none"),
        ("answers-1", "none"),
        ("stage1-1", "context"),
        ("stage1-1", "none"),
        ("stage2-1", "none"),
    ):
        found = summary(arm)[policy]
        made_up = found["hallucination"]
        rate = (
            f"{made_up['made_up']} of {made_up['policies_stated'] + made_up['made_up']:,}"
            if made_up["thoughts"]
            else ""
        )
        cells = [percent(found["database"]), percent(found["told"]), f"{found['faults']:.2f}", found["writes"]]
        writes = [percent(found["near_miss_rate"]), percent(found["violation_rate"])] if found["writes"] else ["", ""]
        rows.append([f"{arm}, {'policy in the prompt' if policy == 'context' else 'without'}", *cells, *writes, rate])
    head = ["arm", "records right", "user told", "faults a task", "writes", "near-misses a write", "violations a write"]
    return table([*head, "made-up policies of those stated"], rows)


def knowledge() -> str:
    papers = {"base": "", "answers-1": "", "stage1-1": "51.02", "stage2-1": "69.39", "stage3-1": "71.43"}
    papers["stage2_alone-1"] = "67.35"
    rows: list[list[str]] = []
    for arm, paper in papers.items():
        found = summary(arm).get("knowledge")
        cells = [percent(found[name]) for name in ("accuracy", "balanced", "yes_rate")] if found else ["", "", ""]
        rows.append([arm, *cells, paper])
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
    chart(LOGS / "loss.svg", "Loss of the supervised arms, by step", supervised, 0.0, 1.0)
    steps = training("stage3-1")
    rewards = {
        name: [(line["step"], line[key]) for line in steps]
        for name, key in (("total", "reward"), ("turn", "reward/turn"), ("policy recall", "reward/policy_recall"))
    }
    chart(LOGS / "reward.svg", "Stage 3: mean reward of the answers tried, by step", rewards, 0.0, 4.0)


def seconds() -> str:
    rows = [
        [arm, *cells] for arm in ("base", "answers-1", "stage1-1", "stage2-1", "stage3-1") if (cells := _times(arm))
    ]
    return table(["arm", "steps", "training", "playing the test tasks"], rows)


def _times(arm: str) -> list[Any]:
    found = summary(arm)
    played = sum(found[policy]["seconds"] for policy in ("context", "none") if policy in found)
    lines = training(arm)
    log = [json.loads(text) for text in (LOGS / "log.jsonl").read_text().splitlines()]
    trained = [line["trained"] for line in log if line.get("arm") == arm and "trained" in line]
    return [
        lines[-1]["step"] if lines else "",
        f"{trained[-1]:.0f}" if trained else "",
        f"{played:.0f}" if played else "",
    ]


def main() -> None:
    curves()
    text = (Path(__file__).parent / "align_page.md").read_text(encoding="utf-8")
    lease = json.loads((LOGS / "lease.json").read_text())
    steps = training("stage3-1")
    skipped = sum(line["grad_norm"] != line["grad_norm"] for line in steps)
    both = [summary("stage2-1")["none"], summary("stage1-1")["context"], summary("base")["context"]]
    words = {
        "fewer_than_base": percent(1 - both[0]["words"] / both[2]["words"]),
        "more_than_stage1": percent(both[0]["words"] / both[1]["words"] - 1),
        "answers_fewer": percent(1 - summary("answers-1")["none"]["words"] / both[1]["words"]),
    }
    filled = text.format(
        passed=passed(),
        differences=differences(),
        halves=halves(),
        knowledge=knowledge(),
        seconds=seconds(),
        first_reward=f"{sum(line['reward'] for line in steps[:3]) / 3:.2f}",
        last_reward=f"{sum(line['reward'] for line in steps[-3:]) / 3:.2f}",
        best_reward=f"{max(line['reward'] for line in steps):.2f}",
        steps=len(steps),
        skipped=skipped,
        **words,
        **lease,
    )
    (RESULTS / "align.md").write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
