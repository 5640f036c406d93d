"""ShieldAgent's Algorithm 2 on the rules of two handbooks, with both embedders: rules, predicates, vagueness by round.

    python benchmarks/algorithm2.py                      # from the recorded answers
    python benchmarks/algorithm2.py --ask DIR            # write what is not answered yet, as a batch

The first rules were drawn up from the handbooks one sentence at a time. Each handbook is optimised by itself, as the
paper does with its policies. A model says whether a rule is verifiable, mends it, and says which predicates mean the
same; what it says counts only where every conversation of a rule still comes out as its sentence says.
"""

import argparse
import sys
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from bylaw.answering.embedder import HASHED, WORDLLAMA, open_embedder
from bylaw.compile.bench import Bench
from bylaw.compile.check import Check
from bylaw.compile.desk import Desk
from bylaw.compile.draft import Draft
from bylaw.compile.refine import refine
from bylaw.compile.ruleset import Step
from bylaw.compile.things import Things
from bylaw.compile.tools import read_tools
from bylaw.llm import Pending
from bylaw.llm.batch import Batch
from bylaw.llm.recorded import Recordings
from bylaw.policy.yaml import read_yaml_file

HERE = Path(__file__).parent
HANDBOOKS = ("hotel", "helpdesk")
EMBEDDERS = (HASHED, WORDLLAMA)
RECORDED = HERE / "recorded" / "algorithm2"
BUDGET = 120
"""Refinements of one handbook: more than it takes."""
NOW = "2025-05-01T10:00:00"


class Handbook(Struct, frozen=True):
    """A handbook's first rules, and what tries them."""

    bench: Bench
    drafts: tuple[Draft, ...]
    checks: dict[str, Check]


def read_handbook(name: str) -> Handbook:
    """The handbook of this name; AssertionError where a rule rests on a sentence that it does not have."""
    folder = HERE / "handbooks" / name
    text = (folder / "policy.md").read_text(encoding="utf-8")
    cards = read_tools([str(folder / "tools.json")])
    drafts: list[Draft] = []
    checks: dict[str, Check] = {}
    listed = cast(list[dict[str, Any]], read_yaml_file(folder / "drafts.yaml", file="drafts.yaml").data[""])
    for each in listed:
        id, quote = str(each["id"]), str(each["quote"])
        assert quote in text, f"{name}: `{quote}` does not stand in the handbook"
        drafts.append(Draft(id, quote, "every conversation", "", (quote,)))
        cases = tuple(
            {"note": f"{want} as the handbook says", "rule": id, "events": each[want], "want": want}
            for want in ("kept", "broken")
        )
        rules = {"predicates": each["predicates"], "rules": [{"id": id, "formula": each["formula"]}]}
        checks[id] = Check(id, rules=rules, cases=cases)
    return Handbook(Bench(cards, Things({}, {}, {}), {}, NOW), tuple(drafts), checks)


def main() -> int:
    """Run what the answers allow, and tell the rest."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ask", type=Path, metavar="DIR")
    given = parser.parse_args()
    recordings = Recordings(RECORDED)
    batch = Batch(given.ask) if given.ask else None
    desk = Desk(lambda request: recordings.find(request) or (batch.find(request) if batch is not None else None))
    found: dict[tuple[str, str], tuple[Step, ...]] = {}
    for name in HANDBOOKS:
        book = read_handbook(name)
        for embedder in EMBEDDERS:
            made = refine(
                desk, book.bench, book.checks, book.drafts, "none", budget=BUDGET, embed=open_embedder(embedder)
            )
            if made is not None:
                found[name, embedder] = made.steps
    for (name, embedder), steps in found.items():
        print(name, embedder)
        for step in steps:
            print("  ", step)
    if desk.wanted:
        kinds = sorted(request.name for request in desk.wanted.values())
        print(
            f"{len(kinds)} questions have no answer yet: "
            + ", ".join(f"{kinds.count(k)} {k}" for k in sorted(set(kinds)))
        )
        if batch is not None:
            try:
                batch.ask(list(desk.wanted.values()))
            except Pending as error:
                print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
