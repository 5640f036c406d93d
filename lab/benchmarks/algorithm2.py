"""Runs ShieldAgent's Algorithm 2 on the rules of two handbooks, with both embedders.

    python lab/benchmarks/algorithm2.py                      # from the recorded answers
    python lab/benchmarks/algorithm2.py --page lab/results/pages/structure.md
    python lab/benchmarks/algorithm2.py --ask DIR            # write unanswered requests as a batch

The report has rules, predicates and vagueness by round. The first rules were derived from the handbooks, one sentence
at a time. As in the paper, each handbook is optimised separately. A model says whether a rule is verifiable, rewrites
it, and says which predicates have the same meaning. An answer counts only if every test conversation of the rule still
has the expected result.
"""

import argparse
import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from bylaw.answering.embedder import HASHED, WORDLLAMA, open_embedder
from bylaw.compile.bench import Bench
from bylaw.compile.check import Check
from bylaw.compile.desk import Desk
from bylaw.compile.refine import ITERATIONS, Refined, Ruleset, Step, refine, rules_of
from bylaw.compile.span import Draft
from bylaw.compile.things import Things
from bylaw.compile.tools import read_tools
from bylaw.llm import Pending
from bylaw.llm.recorded import Batch, Recordings
from bylaw.policy.yaml import read_yaml_file
from bylaw.scan.written import dump

HERE = Path(__file__).parent
HANDBOOKS = ("hotel", "helpdesk")
EMBEDDERS = (HASHED, WORDLLAMA)
RECORDED = HERE / "recorded" / "algorithm2"
BUDGET = 120
"""The maximum number of refinements per handbook. It is never reached."""
NOW = "2025-05-01T10:00:00"


class Handbook(Struct, frozen=True):
    """The first rules of a handbook and their test conversations."""

    bench: Bench
    drafts: tuple[Draft, ...]
    checks: dict[str, Check]


def read_handbook(name: str) -> Handbook:
    """Return the handbook with this name. Raises AssertionError if a rule quotes a sentence that it lacks."""
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
    """Run as far as the answers allow, and report what is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ask", type=Path, metavar="DIR")
    parser.add_argument("--page", type=Path, metavar="FILE")
    parser.add_argument("--rounds", type=int, default=ITERATIONS, help="at most; answers of later ones may be missing")
    given = parser.parse_args()
    recordings = Recordings(RECORDED)
    batch = Batch(given.ask) if given.ask else None
    desk = Desk(lambda request: recordings.find(request) or (batch.find(request) if batch is not None else None))
    books = {name: read_handbook(name) for name in HANDBOOKS}
    found: dict[tuple[str, str], Refined] = {}
    for name, book in books.items():
        for embedder in EMBEDDERS:
            embed, rounds = open_embedder(embedder), given.rounds
            made = refine(desk, book.bench, book.checks, book.drafts, "none", budget=BUDGET, embed=embed, rounds=rounds)
            if made is not None:
                found[name, embedder] = made
    for (name, embedder), made in found.items():
        print(f"{name}, {embedder}", steps_table(made.steps), sep="\n\n", end="\n\n")
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
    ranks = ranks_table(books, found)
    print(ranks)
    if given.page:
        steps = "\n\n".join(
            f"**{name}, {embedder}**\n\n{steps_table(m.steps)}" for (name, embedder), m in found.items()
        )
        filled = {
            "steps": steps,
            "ranks": ranks,
            **{name: str(len(book.drafts)) for name, book in books.items()},
        }
        page = (HERE / "algorithm2.md").read_text(encoding="utf-8")
        given.page.write_text(re.sub(r"\{\{(\w+)\}\}", lambda match: filled[match[1]], page), encoding="utf-8")
    return 0


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def steps_table(steps: Sequence[Step]) -> str:
    head = ("round", "step", "rules", "predicates", "vagueness (Eq. 3)", "called vague, 0-10", "changed", "not taken")
    rows = [
        (s.iteration, s.stage, s.rules, s.predicates, f"{s.vagueness:.3f}", s.judged, s.changed, s.refused)
        for s in steps
    ]
    return table(head, rows)


def ranks_table(books: Mapping[str, Handbook], found: Mapping[tuple[str, str], Refined]) -> str:
    """Return how well Eq. 3 ranks the first rules, compared with readers, for each embedder."""
    rows: list[list[str]] = []
    for embedder in EMBEDDERS:
        pairs: list[tuple[float, float]] = []
        cells: list[str] = []
        for name, book in books.items():
            rules = Ruleset(book.bench, book.checks, open_embedder(embedder))
            forms = {policy: dump(rules_of(check)) for policy, check in rules.checks.items()}
            judged = found[name, embedder].judged
            own = [
                (score, judged[forms[policy]]) for policy, score in rules.vagueness().items() if forms[policy] in judged
            ]
            cells.append(correlation(own))
            pairs += own
        rows.append([embedder, *cells, correlation(pairs)])
    return table(["embedder", *books, "both"], rows)


def correlation(pairs: Sequence[tuple[float, float]]) -> str:
    """Return Spearman's rank correlation with its 95% interval, using Fisher's transformation."""
    one, other = (ranks([pair[side] for pair in pairs]) for side in (0, 1))
    middle = (len(pairs) + 1) / 2
    both = sum((a - middle) * (b - middle) for a, b in zip(one, other, strict=True))
    spread = math.prod(math.sqrt(sum((rank - middle) ** 2 for rank in each)) for each in (one, other))
    rho = both / spread
    low, high = (math.tanh(math.atanh(rho) + side * 1.96 / math.sqrt(len(pairs) - 3)) for side in (-1, 1))
    return f"{rho:+.2f} ({low:+.2f} to {high:+.2f}, {len(pairs)} rules)"


def ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value. Equal values share the mean of their ranks."""
    return [sum(other < value for other in values) + (1 + values.count(value)) / 2 for value in values]


if __name__ == "__main__":
    sys.exit(main())
