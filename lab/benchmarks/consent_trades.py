"""Compares decisions about consent in other trades with labels by authors who had not seen the code.

    uv run python lab/benchmarks/consent_trades.py

`trades/phone` has 400 simulated conversations of a telephone provider. The others are written by hand: `hotel`,
`insurer` and `grocery` have 40 each, `car`, `utility` and `university` 20 each, `gym`, `parcel` and `property` 24 each,
`vet`, `moving` and `library` 77 each, `bank`, `catering` and `school` 72 each, `optician`, `theatre` and `newspaper` 69
each, `ferry`, `nursery` and `coworking` 57 each, `carhire`, `fitness` and `courier` 60 each, `storage`, `drycleaner`
and `solar` 62 each. Each pack has only the tools and one rule: the user must agree to every write. It has no sentences
for questions, so code alone never finds a yes.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from bylaw import Pack, read, verdicts
from bylaw.policy.verb import VERBS, hands_over, words_of
from bylaw.trace import Trajectory

TRADES = Path(__file__).parent / "trades"
WRITES_LABELLED = {
    *("vet", "moving", "library"),
    *("bank", "catering", "school"),
    *("optician", "theatre", "newspaper"),
    *("ferry", "nursery", "coworking"),
    *("carhire", "fitness", "courier"),
    *("storage", "drycleaner", "solar"),
}
"""Trades with labels for every write by their authors. Every labelled call is a write, whatever its name."""
RULE = "agreed-before-change"
FILES = {
    "pack.yaml": "format: 1\nname: trade\ndocument: policy.md\n",
    "policy.md": "Tell what you will do and get a yes before each change.\n",
    "policies.yaml": (
        f"policies:\n  - id: {RULE}\n    kind: rule\n"
        "    spans: [Tell what you will do and get a yes before each change.]\n"
    ),
    "rules.yaml": (
        "predicates: {change: {effect: write}, agreed: {consented: told}}\n"
        f"rules:\n  - {{id: {RULE}, formula: ALWAYS (change IMPLIES agreed)}}\n"
    ),
}


def main() -> None:
    print(table())


def table() -> str:
    """Return the decisions for each trade, on writes labelled as agreed and on writes labelled as without consent."""
    rows = ["| trade | agreed | taken for it | open | accused | without | found | open | missed |", "|---" * 9 + "|"]
    for folder in sorted(path for path in TRADES.iterdir() if path.is_dir()):
        seen = counted(folder)
        kept = [seen["kept", found] for found in ("kept", "open", "broken")]
        broken = [seen["broken", found] for found in ("broken", "open", "kept")]
        rows.append(f"| {' | '.join(map(str, (folder.name, sum(kept), *kept, sum(broken), *broken)))} |")
    return "\n".join(rows)


def counted_all() -> Counter[tuple[str, str]]:
    return sum((counted(path) for path in TRADES.iterdir() if path.is_dir()), Counter[tuple[str, str]]())


def counted(folder: Path) -> Counter[tuple[str, str]]:
    """Count the writes by label and decision."""
    lines = [json.loads(line) for line in (folder / "truth.jsonl").read_text().splitlines()]
    catalogue = json.loads((folder / "tools.json").read_text())
    writes = {str(each["tool"]) for each in lines} if folder.name in WRITES_LABELLED else None
    pack = Pack.from_files({**FILES, "tools.yaml": tools_of(catalogue, writes)})
    labels: dict[tuple[str, int], dict[str, str]] = {(each["conversation"], each["index"]): each for each in lines}
    seen: Counter[tuple[str, str]] = Counter()
    for trajectory in read(next(folder.glob("logs.jsonl*"))):
        assert isinstance(trajectory, Trajectory), trajectory
        for index, verdict in enumerate(verdicts(pack, trajectory).calls):
            label = labels.get((trajectory.id, index))
            if label is not None:
                assert label["tool"] == verdict.made.call.tool, (trajectory.id, index)
                found = "broken" if verdict.rules else "open" if verdict.open_rules else "kept"
                seen[label["consent"], found] += 1
    assert sum(seen.values()) == len(labels)
    return seen


def tools_of(catalogue: list[dict[str, Any]], writes: set[str] | None = None) -> str:
    tools = [each.get("function", each) for each in catalogue]
    return json.dumps(
        {
            "tools": {
                each["name"]: {**_told(each), "effect": _effect(each["name"], writes), "changes": []} for each in tools
            }
        }
    )


def _told(tool: dict[str, Any]) -> dict[str, Any]:
    return {"description": tool.get("description", ""), "parameters": tool["parameters"]}


def _effect(name: str, writes: set[str] | None) -> str:
    if writes is not None:
        return "write" if name in writes else "read"
    if hands_over(name):
        return "none"
    return VERBS.get(words_of(name)[0], "write")


if __name__ == "__main__":
    main()
