"""Compares the matcher's findings in thoughts with readers' labels: `python lab/scripts/align_matcher.py [--show]`.

The sheet, its key and the labels of two readers are in tests/align/matcher. The matcher was developed on the thoughts
with even numbers; those with odd numbers are held out.

The reward also tells the matcher which values the conversation showed. The sheet contains no conversations, so the
script measures both extremes: no value was shown, or every number in the thought was shown, even wrong ones.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

from bylaw import load_pack
from bylaw.align.matcher import Matcher
from bylaw.align.slot import values_in

HEAD = " | policies: precision | recall | made up: precision | recall |\n|---|---|---|---|---|---|"
FOLDER = Path(__file__).parent.parent / "tests" / "align" / "matcher"


def lines(name: str) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in map(json.loads, (FOLDER / name).read_text(encoding="utf-8").splitlines())}


def pair_up(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the statements that two lists have in common, each used once. Two statements match if they have the same
    words or one part in common.
    """
    left = [set(text.lower().split()) for text in other]
    found = 0
    for text in one:
        words = set(text.lower().split())
        best = max(left, key=lambda each: len(words & each) / max(1, min(len(words), len(each))), default=None)
        if best is not None and len(words & best) >= 0.6 * min(len(words), len(best)):
            left.remove(best)
            found += 1
    return found


class Count:
    """Hits, false alarms and misses."""

    def __init__(self) -> None:
        self.hits = self.false = self.missed = 0

    def add(self, hits: int, said: int, right: int) -> None:
        self.hits += hits
        self.false += said - hits
        self.missed += right - hits

    def row(self) -> str:
        return f"{self.share(self.hits + self.false)} | {self.share(self.hits + self.missed)}"

    def share(self, total: int) -> str:
        low, high = wilson(self.hits, total)
        return f"{self.hits / total:.3f} ({low:.3f} to {high:.3f}; {self.hits} of {total})" if total else "-"


def wilson(hits: int, total: int) -> tuple[float, float]:
    if not total:
        return 0.0, 1.0
    z, p = 1.96, hits / total
    middle = (p + z * z / (2 * total)) / (1 + z * z / total)
    spread = z * sqrt(p * (1 - p) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    return middle - spread, middle + spread


def compare(names: Iterable[str], said: Mapping[str, Any], right: Mapping[str, Any]) -> tuple[Count, Count]:
    recalled, made_up = Count(), Count()
    for name in names:
        ours, theirs = set(said[name]["recalled"]), set(right[name]["recalled"])
        recalled.add(len(ours & theirs), len(ours), len(theirs))
        lies, lied = list(said[name]["made_up"]), list(right[name]["made_up"])
        made_up.add(min(pair_up(lies, lied), pair_up(lied, lies)), len(lies), len(lied))
    return recalled, made_up


def agreed(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the labels of the thoughts in which both readers found the same policies and the same number of invented
    statements.
    """
    return {
        name: row
        for name, row in one.items()
        if set(row["recalled"]) == set(other[name]["recalled"]) and len(row["made_up"]) == len(other[name]["made_up"])
    }


def read(matcher: Matcher, thought: str, *, is_shown: bool) -> dict[str, Any]:
    """Return what the matcher finds. With `is_shown`, every value in the thought was shown."""
    known = {value.key for value in values_in(thought)} if is_shown else ()
    found = matcher.mentions(thought, known)
    return {"recalled": sorted(found.recalled), "made_up": list(found.made_up)}


def main(show: bool) -> None:
    matcher = Matcher(load_pack("clinic"))
    sheet, key = lines("sheet.jsonl"), lines("key.jsonl")
    said, shown = (
        {name: read(matcher, row["thought"], is_shown=is_shown) for name, row in sheet.items()}
        for is_shown in (False, True)
    )
    readers = {name: lines(f"labels-{name}.jsonl") for name in "AB" if (FOLDER / f"labels-{name}.jsonl").exists()}
    both = readers["A"]
    if "B" in readers:
        both = readers["both, where they agree"] = agreed(readers["A"], readers["B"])
        between = compare(sheet, readers["B"], readers["A"])
        print(f"readers agree on {len(both)} of {len(sheet)} thoughts")
        print(f"B against A, policies: {between[0].row()}; made up: {between[1].row()}\n")
    print("| thoughts | labels" + HEAD)
    for half, odd in (("held out", 1), ("mended on", 0)):
        for reader, labels in readers.items():
            names = [name for name in sheet if int(name[1:]) % 2 == odd and name in labels]
            recalled, made_up = compare(names, said, labels)
            print(f"| {half} ({len(names)}) | {reader} | {recalled.row()} | {made_up.row()} |")
    print("\n| thoughts, every value shown | labels" + HEAD)
    for half, odds in (("held out", (1,)), ("all", (0, 1))):
        names = [name for name in both if int(name[1:]) % 2 in odds]
        recalled, made_up = compare(names, shown, both)
        print(f"| {half} ({len(names)}) | both, where they agree | {recalled.row()} | {made_up.row()} |")
    print("\n| kind (held out) | thoughts" + HEAD)
    for kind in sorted({row["kind"] for row in key.values()}):
        names = [name for name in both if int(name[1:]) % 2 and key[name]["kind"] == kind]
        recalled, made_up = compare(names, said, both)
        print(f"| {kind} | {len(names)} | {recalled.row()} | {made_up.row()} |")
    if show:
        for name in both:
            if int(name[1:]) % 2 == 0:
                ours, theirs = said[name], both[name]
                if set(ours["recalled"]) != set(theirs["recalled"]) or len(ours["made_up"]) != len(theirs["made_up"]):
                    print(f"\n{name} {key[name]['kind']}: {sheet[name]['thought']}\n  ours {ours}\n  theirs {theirs}")


if __name__ == "__main__":
    main("--show" in sys.argv[1:])
