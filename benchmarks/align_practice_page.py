"""The page of what practice on a model's own conversations came to, and the same models under the shield.

uv run python benchmarks/align_practice_page.py     # writes docs/results/align-practice.md
"""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

from bylaw.align.bootstrap import difference

ROOT = Path(__file__).parent.parent
RUNS = ROOT / "docs" / "results" / "align"
PRACTISED = {
    "stage2-1": "stage 2",
    "mended-1": "mended",
    "own-1": "own",
    "control-1": "control",
}
BEFORE = {
    "stage2-1": "stage 2",
    "control1-1": "control: 62 more steps over gold conversations",
    "practice1-1": "practice",
}
PAGE = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")


def main() -> None:
    """Write the page."""
    (ROOT / "docs" / "results" / "align-practice.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """The page, from the logs."""
    made = json.loads((RUNS / "run8" / "played-1.json").read_text())
    plain, shielded = found("run8", "stage2-1"), found("run8", "shield_live-stage2-1")
    again, same = repeats("shield_agent-stage2-1")
    before = failures("run7", "stage2-1")
    log = [json.loads(line) for line in (RUNS / "run8" / "log.jsonl").read_text().splitlines()]
    return PAGE.format(
        **made | {"kinds": "\n".join(f"| {kind} | {count} |" for kind, count in made["kinds"].items())},
        **failures("run7", "practice1-1"),
        stage2_writes=plain["writes"],
        stage2_violations=round(plain["violation_rate"] * plain["writes"]),
        shielded_writes=shielded["writes"],
        shielded_violations=round(shielded["violation_rate"] * shielded["writes"]),
        table=table("run8", PRACTISED),
        differences="; ".join(
            f"{name} {less(arm, 'stage2-1')}" for arm, name in PRACTISED.items() if arm != "stage2-1"
        ),
        shielded=shield_table(),
        shield_differences="; ".join(shield_differences()),
        own_live=less("shield_live-own-1", "shield_live-stage2-1"),
        mended_live=less("shield_live-mended-1", "shield_live-stage2-1"),
        again=again,
        same=same,
        stage1_seconds=next(each["trained"] for each in log if each.get("arm") == "stage1-1" and "trained" in each),
        table7=table("run7", BEFORE),
        difference7=less("practice1-1", "control1-1", run="run7"),
        before="{refused} and {repeated} of {failed}".format(**before),
    )


def found(run: str, arm: str) -> dict[str, Any]:
    """What a model did on the test tasks."""
    return json.loads((RUNS / run / f"{arm}.json").read_text())["none"]


def table(run: str, arms: dict[str, str]) -> str:
    """What each model does on the test tasks, and on the development tasks where they were played."""
    rows = [
        "| model | pass@1 (95 %) | development | writes | near-misses a write (%) | violations a write (%) |",
        "|---" * 6 + "|",
    ]
    for arm, name in arms.items():
        each = found(run, arm)
        tuned = RUNS / run / f"{arm}.development.json"
        developed = f"{json.loads(tuned.read_text())['passed']:.1%}" if tuned.exists() else ""
        rows.append(f"| {' | '.join((name, passed(each), developed, str(each['writes']), *shares(each)))} |")
    return "\n".join(rows)


def shield_table() -> str:
    """The models of run 8 without a shield, and under it in both ways."""
    rows = [
        "| model | shield | pass@1 (95 %) | writes | near-misses a write (%) | violations a write (%) "
        "| turns | words | stopped |",
        "|---" * 9 + "|",
    ]
    for arm in ("stage2-1", "mended-1", "own-1"):
        for how in ("", "agent", "live"):
            each = found("run8", f"shield_{how}-{arm}" if how else arm)
            stopped = Counter(answer for task in each.get("stopped", ()) for answer in task)
            told = ", ".join(f"{answer} {count}" for answer, count in stopped.most_common())
            words = (f"{each['turns']:.2f}", f"{each['words']:,.0f}", told)
            cells = (PRACTISED[arm], how or "none", passed(each), str(each["writes"]), *shares(each), *words)
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def shield_differences() -> list[str]:
    """Under the shield less without it, and practised less not, under it."""
    models = {arm: PRACTISED[arm] for arm in ("stage2-1", "mended-1", "own-1")}
    with_it = [
        f"{name} with `{how}` less without {less(f'shield_{how}-{arm}', arm)}"
        for arm, name in models.items()
        for how in ("agent", "live")
    ]
    practised = [
        f"{name} less stage 2, both with `{how}` {less(f'shield_{how}-{arm}', f'shield_{how}-stage2-1')}"
        for arm, name in models.items()
        for how in ("agent", "live")
        if arm != "stage2-1"
    ]
    return [*with_it, *practised]


def passed(each: dict[str, Any]) -> str:
    return "{mean:.1%} ({low:.1%} to {high:.1%})".format(**each["passed"])


def shares(each: dict[str, Any]) -> list[str]:
    return [f"{100 * each[name]:.1f}" for name in ("near_miss_rate", "violation_rate")]


def less(one: str, other: str, *, run: str = "run8") -> str:
    """pass@1 of one model less that of another, with the interval over tasks."""
    interval = difference(successes(run, one), successes(run, other))
    return f"{100 * interval.mean:+.1f} ({100 * interval.low:+.1f} to {100 * interval.high:+.1f})"


def successes(run: str, arm: str) -> dict[str, list[float]]:
    """By twins whether each came out well."""
    clusters: dict[str, list[float]] = {}
    for line in gzip.decompress((RUNS / run / f"{arm}.none.tasks.jsonl.gz").read_bytes()).splitlines():
        one = json.loads(line)
        clusters.setdefault(one["cluster"], []).append(float(one["success"]))
    return clusters


def talks(run: str, arm: str) -> list[list[dict[str, Any]]]:
    """The events of every conversation that failed."""
    lines = gzip.decompress((RUNS / run / f"{arm}.none.failed.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line)["events"] for line in lines]


def failures(run: str, arm: str) -> dict[str, int]:
    """Of the conversations that failed, those with a refusal, and those that make one call twice."""
    counts = {"failed": 0, "refused": 0, "repeated": 0}
    for events in talks(run, arm):
        calls = [json.dumps([each["tool"], each["arguments"]]) for each in events if "arguments" in each]
        counts["failed"] += 1
        counts["repeated"] += len(calls) > len(set(calls))
        counts["refused"] += any("can't" in each.get("text", "") for each in events if each.get("by") == "agent")
    return counts


def repeats(arm: str) -> tuple[int, int]:
    """Of the conversations that failed, calls that were stopped, and those that are the call before once more."""
    stopped = same = 0
    for events in talks("run8", arm):
        calls = [each for each in events if "arguments" in each]
        for place, call in enumerate(calls):
            if call["refused"]:
                stopped += 1
                earlier = calls[place - 1] if place else {}
                same += (earlier.get("tool"), earlier.get("arguments")) == (call["tool"], call["arguments"])
    return stopped, same


if __name__ == "__main__":
    main()
