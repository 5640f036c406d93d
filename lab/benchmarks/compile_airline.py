"""Compares a compiled airline pack with the handwritten one, policy by policy, on recorded runs.

    uv run python lab/benchmarks/compile_airline.py PACK ../shared/data/tau-airline [--page FILE]

PACK was compiled from `tau2/policy.md` and `tools.json`. Its recordings quote that document, so they are not in the
repository. Policies of the two packs correspond if they cite the same text.
"""

import argparse
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bylaw.audit.request import Request
from bylaw.audit.run import audit, read_calls
from bylaw.compile.check import UNANSWERED
from bylaw.engine.verdict import WORST_FIRST
from bylaw.pack import Pack, load_pack
from bylaw.policy.document import Document
from bylaw.policy.yaml import read_yaml_file
from bylaw.review.case import CaseResult, run_cases

MARK = "<!-- airline -->"
PAGE = """
## The airline, compiled the same way

    uv run python lab/benchmarks/compile_airline.py PACK ../shared/data/tau-airline --page lab/results/pages/compile.md

The airline's policy (tau2) compiled in batch mode from the document, the catalogue of tools and three files of recorded
conversations (for the form of results), by the prompts and the code that compile the clinic. Both packs are held, with
hindsight, to the recorded runs under that document. A policy written by hand answers to the compiled ones that cite the
same sentences; the gravest of their verdicts counts. The recordings quote the document and stay outside; they answer
the prompts of November 16, 2026: 87 requests, Algorithm 2 among them.

Where the two packs differ, it is mostly this:

- `modify-cabin-price`: by hand the price in the new cabin must have been looked up, whoever pays. The compiled guard
  needs it only where a gift card might not cover the difference.
- `no-unneeded-checked-bags` has no counterpart by hand. No record and no argument tells how many bags a customer
  needs, so it is inconclusive wherever bags are added; this is all of "compliant by hand, inconclusive compiled".
- Four certificates for a delay: the compiled guard finds that no reservation was changed or cancelled, and so a
  violation; by hand the flight's status is asked for first, which nobody had looked up. The compiled verdict is right.
- `cancellation-eligibility` answers to two policies by hand. Where nobody looked up what a cancellation rests on, it is
  uninformed, and so is `cancel-ground`; `cancel-not-flown` is compliant by the dates.
- Nothing compiled binds the payment for bags: the sentence about payment was taken to speak of flights alone.

An earlier compile of the same day agreed on 81.1 %, and on 56 of 94 calls by the gravest verdict. What lay between was
our fault, and is mended where it lay, in what requests say and in what is done with answers:

- 23 verdicts: tools were said to change the whole table of payment methods, since balances of gift cards stand in it,
  so that after one write nobody knew any more which cards a customer has. Requests now say how tables inside records
  are described.
- 8 verdicts: one guard looked up the status of flights still to come in order to know that they had not been flown,
  another of the same answer went by the date. Where a thing has a day in its key, requests now say that a day to come
  settles that.
- 4 calls accused falsely: patterns read "no extra bags" as no bag at all. Figures that patterns should read out of what
  users say are now sent back, and never read.
"""


def ranges(pack: Pack, document: Document) -> dict[str, list[tuple[int, int]]]:
    """Return the places that each policy cites."""
    return {
        policy.id: [place for each in policy.citations if (place := document.find(each.text)) is not None]
        for policy in pack.policies.values()
    }


def answering(hand: Pack, made: Pack, document: Document) -> dict[str, list[str]]:
    """For each handwritten policy, return the compiled policies that have a check and cite the same text."""
    ours, theirs = ranges(hand, document), ranges(made, document)
    held = made.guards.keys() | {rule.policy for rule in made.book.rules}
    return {
        name: [other for other, spans in theirs.items() if other in held and _overlap(places, spans)]
        for name, places in ours.items()
        if name in hand.guards
    }


def _overlap(ours: list[tuple[int, int]], theirs: list[tuple[int, int]]) -> bool:
    return any(start < end2 and start2 < end for start, end in ours for start2, end2 in theirs)


def judged(pack: str, files: tuple[Path, ...], document: Path | None) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the lines of an audit with hindsight, by call."""
    with tempfile.TemporaryDirectory() as folder:
        audit(Request(files, pack, None, "hindsight", document), Path(folder) / "out")
        return {(line["trajectory"], line["step"]): line for line in read_calls(Path(folder) / "out")}


def refined(pack: Path) -> Iterator[str]:
    for each in read_yaml_file(pack / "compiled.yaml").data.get("refinement") or []:
        counts = f"{each['rules']} rules, {each['predicates']} predicates, vagueness {each['vagueness']:.3f}"
        judged = f", judged {each['judged']:.2f} of 10" if each.get("judged") is not None else ""
        yield f"Algorithm 2, round {each['iteration']}, {each['stage']}: {counts}{judged}; changed {each['changed']}"


def lines(pack: Path, data: Path) -> Iterator[str]:
    text = data / "tau2" / "policy.md"
    document = Document(text.read_text(encoding="utf-8"))
    hand, made = load_pack("tau-airline/tau2", document=text), load_pack(pack)
    results = list(run_cases(made, {}))
    passed = sum(isinstance(each, CaseResult) and each.passed for each in results)
    noted = read_yaml_file(pack / "compiled.yaml").data["policies"]
    lacking = [name for name, body in noted.items() if body.get("failed")]
    kinds = Counter(policy.kind for policy in made.policies.values())
    yield f"policies: {len(made.policies)} ({', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))})"
    yield f"guards: {len(made.guards)}; rules: {len(made.book.rules)}; cases that pass: {passed} of {len(results)}"
    yield f"unenforced, each with why in compiled.yaml: {', '.join(lacking) or 'none'}"
    waiting = [name for name, body in noted.items() if body.get("failed") == UNANSWERED]
    yield f"of these, because the compile was ended (--as-is) before a question was answered: {len(waiting)}"
    yield from refined(pack)
    files = tuple(sorted(each for each in (data / "tau2" / "runs").glob("*.gz") if "variant" not in each.name))
    ours, theirs = judged("tau-airline/tau2", files, text), judged(str(pack), files, None)
    pairs = answering(hand, made, document)
    yield f"{len(files)} files of runs; write calls judged by both: {len(ours.keys() & theirs.keys()):,}"
    yield f"{'by hand':28} {'calls':>6} {'same':>7}  compiled, and where they differ"
    whole: Counter[bool] = Counter()
    for name in hand.guards:
        differ: Counter[str] = Counter()
        same = 0
        for place in ours.keys() & theirs.keys():
            want = _verdict(ours[place], [name])
            got = _verdict(theirs[place], pairs[name])
            if want is None or not pairs[name]:
                continue
            same += want == got
            if want != got:
                differ[f"{want}/{got or 'not judged'}"] += 1
        total = same + sum(differ.values())
        whole[True] += same
        whole[False] += total - same
        shown = ", ".join(f"{what} {count}" for what, count in differ.most_common(3))
        share = f"{same / total:.1%}" if total else "-"
        yield f"{name:28} {total:6,} {share:>7}  {', '.join(pairs[name]) or 'nothing'}" + (
            f": {shown}" if shown else ""
        )
    total = whole[True] + whole[False]
    yield f"{'over all':28} {total:6,} {whole[True] / max(1, total):7.1%}"
    calls: Counter[bool] = Counter()
    grave: dict[tuple[str, str], int] = defaultdict(int)
    for place in ours.keys() & theirs.keys():
        one, other = ours[place]["determined"], theirs[place]["determined"]
        calls[one == other] += 1
        if one != other:
            grave[one, other] += 1
    total = calls[True] + calls[False]
    yield f"the gravest verdict of a call: the same on {calls[True]:,} of {total:,} ({calls[True] / max(1, total):.1%})"
    for (one, other), count in sorted(grave.items(), key=lambda each: -each[1])[:8]:
        yield f"  {one} by hand, {other} compiled: {count:,}"


def _verdict(line: dict[str, Any], names: list[str]) -> str | None:
    found = [each["determined"] for each in line["policies"] if each["id"] in names]
    return min(found, key=WORST_FIRST.index) if found else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pack", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    text = "\n".join(lines(options.pack, options.data))
    print(text)
    if options.page is not None:
        page = options.page.read_text(encoding="utf-8")
        before, _, rest = page.partition(MARK)
        after = rest[rest.index("\n<!-- ") :] if "\n<!-- " in rest else ""
        made = f"{before.rstrip()}\n\n{MARK}\n{PAGE}\n```\n{text}\n```\n{after}"
        options.page.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
