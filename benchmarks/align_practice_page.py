"""The page of what practice on a model's own conversations came to, from the logs of its run.

uv run python benchmarks/align_practice_page.py     # writes docs/results/align-practice.md
"""

import gzip
import json
import random
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LOGS = ROOT / "docs" / "results" / "align" / "run7"
ARMS = {
    "stage2-1": "stage 2",
    "control1-1": "control: 62 more steps over gold conversations",
    "practice1-1": "practice",
}
RESAMPLES = 2000

PAGE = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")


def main() -> None:
    """Write the page."""
    (ROOT / "docs" / "results" / "align-practice.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """The page, from the logs."""
    made = json.loads((LOGS / "corrected1-1.json").read_text())
    corrected = sum(made["kinds"].values())
    failed = {arm: failures(arm) for arm in ARMS}
    before = "{refused} and {repeated} of {failed}".format(**failed["stage2-1"])
    return PAGE.format(
        **made | {"kinds": "\n".join(f"| {kind} | {count} |" for kind, count in made["kinds"].items())},
        **failed["practice1-1"],
        corrected=corrected,
        look_ups=made["rows"] - corrected,
        table=table(),
        difference=difference(),
        before=before,
    )


def table() -> str:
    """What each model does on the test tasks, and on the development tasks where they were played."""
    rows = [
        "| model | pass@1 (95 %) | development | writes | near-misses a write (%) | violations a write (%) |",
        "|---" * 6 + "|",
    ]
    for arm, name in ARMS.items():
        found = json.loads((LOGS / f"{arm}.json").read_text())["none"]
        passed = "{mean:.1%} ({low:.1%} to {high:.1%})".format(**found["passed"])
        tuned = LOGS / f"{arm}.development.json"
        developed = f"{json.loads(tuned.read_text())['passed']:.1%}" if tuned.exists() else ""
        shares = [f"{100 * found[each]:.1f}" for each in ("near_miss_rate", "violation_rate")]
        rows.append(f"| {' | '.join((name, passed, developed, str(found['writes']), *shares))} |")
    return "\n".join(rows)


def difference() -> str:
    """Practice less its control, with the interval over tasks."""
    clusters: dict[str, list[int]] = {}
    for one, other in zip(tasks("practice1-1"), tasks("control1-1"), strict=True):
        clusters.setdefault(one["cluster"], []).append(int(one["success"]) - int(other["success"]))
    drawn, groups = random.Random(0), list(clusters.values())
    means: list[float] = []
    for _ in range(RESAMPLES):
        picked = [each for group in drawn.choices(groups, k=len(groups)) for each in group]
        means.append(100 * sum(picked) / len(picked))
    means.sort()
    every = [each for group in groups for each in group]
    low, high = means[RESAMPLES // 40], means[-RESAMPLES // 40 - 1]
    return f"{100 * sum(every) / len(every):+.1f}, {low:+.1f} to {high:+.1f}"


def tasks(arm: str) -> list[dict[str, Any]]:
    lines = gzip.decompress((LOGS / f"{arm}.none.tasks.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line) for line in lines]


def failures(arm: str) -> dict[str, int]:
    """Of the conversations that failed, those with a refusal, and those that make one call twice."""
    counts = {"failed": 0, "refused": 0, "repeated": 0}
    for line in gzip.decompress((LOGS / f"{arm}.none.failed.jsonl.gz").read_bytes()).splitlines():
        events = json.loads(line)["events"]
        calls = [json.dumps([each["tool"], each["arguments"]]) for each in events if "arguments" in each]
        counts["failed"] += 1
        counts["repeated"] += len(calls) > len(set(calls))
        counts["refused"] += any("can't" in each.get("text", "") for each in events if each.get("by") == "agent")
    return counts


if __name__ == "__main__":
    main()
