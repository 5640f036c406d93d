"""Compares the audit with the clinic simulator's ground truth: precision and recall per class, criterion and world.

    uv run python lab/benchmarks/clinic_truth.py [--seeds 10] [--count 500] [--show 10]

The simulator implements every policy a second time, over its own SQLite world, and imports nothing from the engine.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bylaw.audit.request import Request
from bylaw.audit.run import audit, read_calls
from bylaw_lab.clinic.simulator.generate import write

MODES = ("snapshot", "hindsight", "none")
CRITERIA = ("strict", "determined")
CLASSES = ("compliant", "violation", "near_miss", "uninformed", "inconclusive")


PAGE = """# The clinic: the audit against an independent truth

<!-- Written by lab/benchmarks/clinic_truth.py --page; do not edit by hand. -->

The clinic's simulator states every policy a second time, from the handbook alone, over its own SQLite world, with its
own table of what each tool shows and alters; it imports nothing of the engine. Each write call is compared under every
policy, both criteria and three worlds.

    uv run python lab/benchmarks/clinic_truth.py --page lab/results/pages/clinic.md
"""


class Score:
    """How often the audit and the truth agree, and where they differ."""

    def __init__(self) -> None:
        self.pairs: Counter[tuple[str, str, str, str]] = Counter()
        self.calls: Counter[tuple[str, str, str, str]] = Counter()
        self.missing: Counter[tuple[str, str]] = Counter()
        self.reasons: Counter[tuple[str, str]] = Counter()
        self.differences: list[str] = []
        self.cells: Counter[tuple[str, str]] = Counter()

    def compare(self, mode: str, truth: dict[str, Any], line: dict[str, Any] | None) -> None:
        name = f"{mode} {truth['trajectory']} step {truth['step']} {truth['tool']}"
        if line is None:
            self.differences.append(f"{name}: not in calls.jsonl")
            self.pairs[mode, "strict", truth["strict"][mode], "(absent)"] += 1
            return
        if line["executed"] != truth["executed"]:
            self.differences.append(f"{name}: executed {line['executed']}, truth {truth['executed']}")
        found = {policy["id"]: policy for policy in line["policies"]}
        for criterion in CRITERIA:
            self.calls[mode, criterion, truth[criterion][mode], line[criterion]] += 1
        for policy in truth["policies"]:
            mine = found.pop(policy["id"], None)
            for criterion in CRITERIA:
                want = policy[criterion][mode]
                got = mine[criterion] if mine else "(absent)"
                self.pairs[mode, criterion, want, got] += 1
                if mode == "snapshot" and criterion == "strict":
                    self.cells[policy["id"], want] += 1
                if want != got:
                    self.differences.append(f"{name} {policy['id']} {criterion}: {got}, truth {want}")
            if mine is not None:
                self._facts(mode, name, policy, mine)
        for extra in found:
            self.differences.append(f"{name} {extra}: judged, but the truth knows nothing of it")

    def _facts(self, mode: str, name: str, policy: dict[str, Any], mine: dict[str, Any]) -> None:
        want = {_fact(lack): lack["reason"] for lack in policy["missing"][mode]}
        got = {_fact(lack): lack["reason"] for lack in mine["missing"]}
        self.missing[mode, "right"] += len(want.keys() & got.keys())
        self.missing[mode, "absent"] += len(want.keys() - got.keys())
        self.missing[mode, "extra"] += len(got.keys() - want.keys())
        if want.keys() != got.keys():
            self.differences.append(f"{name} {policy['id']} missing: {sorted(got)}, truth {sorted(want)}")
        if mode == "snapshot":
            for fact in want.keys() & got.keys():
                self.reasons[want[fact], got[fact]] += 1
                if want[fact] != got[fact]:
                    self.differences.append(f"{name} {policy['id']} {fact}: {got[fact]}, truth {want[fact]}")


def _fact(lack: dict[str, Any]) -> str:
    return f"{lack['entity']}[{', '.join(lack['key'] or ['?'])}].{lack['field']}"


def run(seeds: int, count: int, folder: Path) -> Score:
    """Simulate conversations, audit them in all three modes, and compare."""
    score = Score()
    write(folder, seeds=range(1, seeds + 1), count=count)
    truths = [json.loads(line) for line in (folder / "truth.jsonl").open("rb")]
    for mode in MODES:
        world = folder / "clinic.sqlite" if mode == "snapshot" else None
        out = folder / mode
        request = Request((folder / "logs.jsonl.gz",), "clinic", world, "none" if mode == "none" else "hindsight")
        report = audit(request, out)
        for fault in report.skipped:
            score.differences.append(f"{mode} {fault}")
        lines = {(line["trajectory"], line["step"]): line for line in read_calls(out)}
        for truth in truths:
            for call in truth["calls"]:
                score.compare(
                    mode,
                    {"trajectory": truth["trajectory"], **call},
                    lines.pop((truth["trajectory"], call["step"]), None),
                )
        score.differences.extend(
            f"{mode} {name} step {step}: judged, but not a write in the truth" for name, step in lines
        )
    return score


def lines(score: Score, seeds: int, count: int, show: int) -> Iterator[str]:
    yield f"{seeds * count:,} conversations, {seeds} seeds; per policy and call"
    yield ""
    heads = f"{'truth':>7} {'found':>7} {'right':>7} {'precision':>9} {'recall':>7}"
    yield f"{'world':10} {'criterion':11} {'class':13} {heads}"
    yield from _rows(score.pairs)
    yield ""
    yield "per call, the gravest verdict"
    yield from _rows(score.calls)
    yield ""
    yield "missing facts (strict)"
    for mode in MODES:
        right, absent, extra = (score.missing[mode, kind] for kind in ("right", "absent", "extra"))
        yield f"{mode:10} right {right:,}  not named {absent:,}  wrongly named {extra:,}"
    yield ""
    yield "reasons (snapshot), truth -> found"
    for (want, got), number in sorted(score.reasons.items()):
        yield f"  {want:11} -> {got:11} {number:,}"
    thin = [
        f"{policy} {verdict} {score.cells[policy, verdict]}"
        for policy in sorted({policy for policy, _ in score.cells})
        for verdict in ("violation", "near_miss")
        if score.cells[policy, verdict] < 20
    ]
    yield ""
    yield f"cells with fewer than 20: {', '.join(thin) or 'none'}"
    yield f"differences: {len(score.differences):,}"
    for difference in score.differences[:show]:
        yield f"  {difference}"


def main() -> int:
    """Print the tables. Return 1 if there is any difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--show", type=int, default=10)
    parser.add_argument("--page", type=Path, help="also write the tables as a page of the documentation")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        score = run(options.seeds, options.count, Path(folder))
    text = "\n".join(lines(score, options.seeds, options.count, options.show))
    print(text)
    if options.page is not None:
        options.page.write_text(f"{PAGE}\n```\n{text}\n```\n", encoding="utf-8")
    return 1 if score.differences else 0


def _rows(pairs: Counter[tuple[str, str, str, str]]) -> Iterator[str]:
    return (_row(pairs, mode, criterion, name) for mode in MODES for criterion in CRITERIA for name in CLASSES)


def _row(pairs: Counter[tuple[str, str, str, str]], mode: str, criterion: str, name: str) -> str:
    mine = [(want, got, n) for (m, c, want, got), n in pairs.items() if m == mode and c == criterion]
    truth = sum(n for want, _, n in mine if want == name)
    found = sum(n for _, got, n in mine if got == name)
    right = sum(n for want, got, n in mine if want == got == name)
    precision = f"{right / found:.4f}" if found else "-"
    recall = f"{right / truth:.4f}" if truth else "-"
    return f"{mode:10} {criterion:11} {name:13} {truth:7,} {found:7,} {right:7,} {precision:>9} {recall:>7}"


if __name__ == "__main__":
    sys.exit(main())
