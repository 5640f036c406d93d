"""Compares the verdicts of a handwritten pack with labels by another author, for a handbook that was new to both.

    uv run python lab/benchmarks/unseen_handbook.py [--page lab/results/pages/unseen-handbook.md]

`handbooks/park` contains the handbook of an invented campsite, its tools, 120 conversations of two agents, and
`truth.jsonl` with the right verdict on every write. The author of these had not read anything about Bylaw. The pack's
author had read only the README and the guides, and never saw the labels.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from bylaw.audit import Request, audit

PARK = Path(__file__).parent / "handbooks" / "park"
KINDS = {
    "guards": "guards/*.py",
    "cases": "cases/*.yaml",
    "tools": "tools.yaml",
    "things": "entities.yaml",
    "policies, rules and pack.yaml": "[pr]*.yaml",
}


def counted() -> tuple[Counter[tuple[bool, bool]], list[str]]:
    """Count the pairs of labels (right or not) and results of the pack (violation or not), and list the differences."""
    labels = [json.loads(line) for line in (PARK / "truth.jsonl").read_text(encoding="utf-8").splitlines()]
    writes = {label["tool"] for label in labels}
    calls = [call for call in audited() if call["tool"] in writes]
    counts, places = Counter[tuple[bool, bool]](), list[str]()
    for label in labels:
        own: list[dict[str, Any]] = sorted(
            (call for call in calls if call["trajectory"] == label["id"]), key=lambda call: call["step"]
        )
        call = own[label["index"]]
        assert call["tool"] == label["tool"], label
        allowed = call["strict"] != "violation"
        counts[label["ok"], allowed] += 1
        if allowed != label["ok"]:
            places.append(f"{label['id']}, step {call['step']}: {call['strict']}; labelled {label['rules'] or 'right'}")
    return counts, places


def audited() -> list[dict[str, Any]]:
    """Return the calls in an audit with the pack and world of the park."""
    with tempfile.TemporaryDirectory() as folder:
        audit(Request((PARK / "logs.jsonl.gz",), str(PARK / "pack"), world=PARK / "world.json"), Path(folder) / "out")
        lines = (Path(folder) / "out" / "calls.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def page(counts: Counter[tuple[bool, bool]]) -> str:
    long = {
        kind: sum(len(file.read_text(encoding="utf-8").splitlines()) for file in (PARK / "pack").glob(pattern))
        for kind, pattern in KINDS.items()
    }
    return (
        (PARK / "page.md")
        .read_text(encoding="utf-8")
        .format(
            right=counts[True, True],
            accused=counts[True, False],
            missed=counts[False, True],
            found=counts[False, False],
            agreed=counts[True, True] + counts[False, False],
            all=sum(counts.values()),
            lines="\n".join(f"| {kind} | {count} |" for kind, count in long.items()),
            long=f"{sum(long.values()):,}",
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="write it there instead")
    given = parser.parse_args()
    counts, places = counted()
    text = page(counts)
    if given.page:
        given.page.write_text(text, encoding="utf-8")
    else:
        print(text)
    print("\n".join(places))
    return 0


if __name__ == "__main__":
    sys.exit(main())
