"""Compares a compiled clinic pack with a handwritten list of its policies, and with the handwritten pack.

    uv run python lab/benchmarks/compile_clinic.py [PACK] [--seeds 10] [--count 500] [--page FILE]

Neither the list nor the handwritten pack is an input of the compiler.
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
from bylaw.pack import Pack, load_pack
from bylaw.pack.review import COMPILED
from bylaw.policy.yaml import read_yaml_file
from bylaw.review.check import check
from bylaw_lab.clinic.simulator.generate import write

CLINIC = Path(__file__).parents[1] / "packs" / "clinic_compiled"
LABELS = Path(__file__).parent / "labels" / "clinic_policies.jsonl"
CRITERIA = ("strict", "determined")
PAGE = """# The compiled clinic

<!-- Written by lab/benchmarks/compile_clinic.py --page; do not edit by hand. -->

The clinic's handbook compiled from recorded answers, beside a list of its policies made by hand before any answer was
recorded, and beside the pack written by hand, on simulated conversations.

    uv run python lab/benchmarks/compile_clinic.py --page lab/results/pages/compile.md

Where the two packs differ, most of it is this:

- Clause 5.2 speaks of "a telehealth visit". The compiled policy binds specialist visits too, the one written by hand
  does not; where the caller said nothing of the state, the compiled pack is inconclusive.
- What a write changes beside the obvious (a new email address is unconfirmed, a new tier makes a paused membership
  active, the day of the last fill is today) stands in no tool's description, so the compiled pack does not know it.
- With hindsight the compiled pack settles some calls, most of them about appointments, that the pack written by hand
  leaves uninformed.
"""


def found(pack: Pack, labels: list[dict[str, Any]]) -> Iterator[str]:
    """Report how many listed policies have sentences that a compiled policy cites, and which compiled policies cite no
    sentences.
    """
    assert pack.document is not None
    ranges = {label["clause"] + label["reference"]: pack.document.find(label["reference"]) for label in labels}
    cited = {
        policy.id: [(each.start, each.end) for each in policy.citations if each.start >= 0]
        for policy in pack.policies.values()
    }
    right: list[dict[str, Any]] = []
    same_kind = 0
    enforced = 0
    held = pack.guards.keys() | {rule.policy for rule in pack.book.rules}
    for label in labels:
        place = ranges[label["clause"] + label["reference"]]
        citing = [name for name, spans in cited.items() if place is not None and _cites(spans, place)]
        if citing:
            right.append(label)
            same_kind += any(pack.policies[name].kind == label["kind"] for name in citing)
            enforced += label["kind"] in ("guard", "rule") and any(name in held for name in citing)
    enforceable = sum(label["kind"] in ("guard", "rule") for label in labels)
    yield f"listed by hand: {len(labels)}; found with a right reference: {len(right)} ({len(right) / len(labels):.1%})"
    yield f"of the same kind: {same_kind}; enforceable: {enforceable}, with a guard or a rule: {enforced}"
    missed = [label["clause"] for label in labels if label not in right]
    yield f"not found: {', '.join(missed) or 'none'}"
    places = [place for place in ranges.values() if place is not None]
    alone = [
        name
        for name, spans in cited.items()
        if pack.policies[name].kind != "knowledge" and not any(_cites(spans, place) for place in places)
    ]
    yield f"compiled, and cited by nothing on the list: {', '.join(alone) or 'none'}"


def _cites(spans: list[tuple[int, int]], place: tuple[int, int]) -> bool:
    """Whether the spans cover at least half of a passage."""
    start, end = place
    return 2 * sum(max(0, min(end, last) - max(start, first)) for first, last in spans) >= end - start


def agreement(pack: str, seeds: int, count: int, folder: Path, show: int) -> Iterator[str]:
    """Report how often both packs give the same verdict on a write call, in two worlds and with both criteria."""
    write(folder, seeds=range(1, seeds + 1), count=count)
    for mode in ("snapshot", "hindsight"):
        world = folder / "clinic.sqlite" if mode == "snapshot" else None
        sides: list[dict[tuple[str, int], dict[str, Any]]] = []
        for index, name in enumerate(("clinic", pack)):
            out = folder / f"{mode}-{index}"
            audit(Request((folder / "logs.jsonl.gz",), name, world), out)
            sides.append({(line["trajectory"], line["step"]): line for line in read_calls(out)})
        by_hand, compiled = sides
        for criterion in CRITERIA:
            pairs = Counter(
                (line[criterion], compiled[key][criterion] if key in compiled else "(absent)")
                for key, line in by_hand.items()
            )
            same = sum(number for (left, right), number in pairs.items() if left == right)
            share = f"{same:,} of {len(by_hand):,} write calls ({same / len(by_hand):.2%})"
            yield f"{mode:10} {criterion:11} same verdict on {share}"
            for (left, right), number in pairs.most_common():
                if left != right:
                    yield f"             {left} by hand, {right} compiled: {number:,}"
        broken = Counter((bool(line["rules"]), bool(compiled[key]["rules"])) for key, line in by_hand.items())
        told = (
            f"by both {broken[True, True]:,}, by hand alone {broken[True, False]:,}, compiled {broken[False, True]:,}"
        )
        yield f"{mode:10} rules       said to be broken at a write call: {told}"
        blamed: Counter[tuple[str, str, str]] = Counter()
        for key, line in by_hand.items():
            other = compiled.get(key)
            if other is not None and line["determined"] != other["determined"]:
                for side, each in (("by hand", line), ("compiled", other)):
                    for policy in each["policies"]:
                        if policy["determined"] == each["determined"] != "compliant":
                            blamed[side, policy["id"], policy["determined"]] += 1
        for (side, name, verdict), number in blamed.most_common(show):
            yield f"             {side}: {name} says {verdict} where the other differs: {number:,}"


def refinement(pack: Pack) -> Iterator[str]:
    """Return the result of each round of Algorithm 2: rules, predicates and vagueness."""
    rounds = read_yaml_file(pack.root / COMPILED).data.get("refinement") or []
    if rounds:
        title = "rules refined and pruned (ShieldAgent's Algorithm 2)"
        yield f"{title}{'rules':>8}{'predicates':>12}{'vagueness':>11}{'changed':>9}"
    for each in rounds:
        name = f"  round {each['iteration']}, {each['stage']}"
        counts = f"{each['rules']:>8}{each['predicates']:>12}{each['vagueness']:>11.3f}{each['changed']:>9}"
        yield f"{name:52}{counts}"


def lines(pack: str, seeds: int, count: int, show: int) -> Iterator[str]:
    loaded = load_pack(pack)
    report = check(loaded)
    passed = len(report.cases) - len(report.failed)
    labels = [json.loads(line) for line in LABELS.read_text(encoding="utf-8").splitlines() if line.strip()]
    yield from found(loaded, labels)
    counts = f"guards: {len(loaded.guards)}; rules: {len(loaded.book.rules)}"
    yield f"{counts}; cases that pass: {passed} of {len(report.cases)}"
    unenforced = ", ".join(f"{name} ({why})" for name, why, _ in report.unenforced)
    yield f"unenforced: {unenforced or 'none'}"
    yield from refinement(loaded)
    yield ""
    yield f"{seeds * count:,} simulated conversations, audited under both packs"
    with tempfile.TemporaryDirectory() as folder:
        yield from agreement(pack, seeds, count, Path(folder), show)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pack", nargs="?", default=str(CLINIC))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--show", type=int, default=12)
    parser.add_argument("--page", type=Path, help="also write the tables as a page of the documentation")
    options = parser.parse_args()
    told: list[str] = []
    for line in lines(options.pack, options.seeds, options.count, options.show):
        told.append(line)
        print(line, flush=True)
    text = "\n".join(told)
    if options.page is not None:
        before = options.page.read_text(encoding="utf-8") if options.page.is_file() else ""
        _, mark, airline = before.partition("\n<!-- airline -->")  # compile_airline.py writes the rest.
        options.page.write_text(f"{PAGE}\n```\n{text}\n```\n{mark}{airline}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
