"""Reproduces the Near-Miss paper's Table 2 on tau2-bench-verified, and Table 1's precision with settled readings.

    uv run python lab/benchmarks/near_miss_verified.py ../shared/data/tau-airline [--generated PACK] [--page FILE]

The pack follows its author's reading of the document. `readings/settled.py` follows the majority of the readers whose
labels are in `labels/airline-near-miss*.csv`. PACK was compiled from the same document.
"""

import argparse
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from airline_pages import CRITERIA, PAPER, percent, share
from near_miss_draw import further, strata
from near_miss_search import HEADS, airline, row
from near_miss_ways import executed, flagged
from readings import copied_pack, settled_pack

from bylaw.audit.request import Request
from bylaw.audit.run import audit, read_calls
from bylaw.pack import load_pack
from bylaw.policy.folder import OUTSIDE

RUNS = {
    "gpt-4o_test": "the policy",
    "gpt-4o_test_wiki_t1": "the policy and articles, wiki_t1",
    "gpt-4o_test_wiki_t4": "the policy and articles, wiki_t4",
    "gpt-4o_test_nopolicy": "nothing",
    "gpt-4o_test_wiki_t4_nopolicy": "articles alone",
}
"""The part of the policy in the agent's prompt, for each file of runs."""


def audited(data: Path, pack: Path, out: Path) -> Iterator[tuple[str, Mapping[str, Any], list[Mapping[str, Any]]]]:
    """For each file of runs, yield its name, the rates of its agent and its calls under a pack."""
    for name in RUNS:
        file = data / "verified" / "runs" / f"{name}.json.gz"
        request = Request((file,), str(pack), world=data, tasks=data / "tau2" / "tasks-verified.json")
        report = audit(request, out / name)
        (agent,) = report.summary["agents"]
        yield name, agent, list(read_calls(out / name))


def table2(data: Path, packs: Mapping[str, Path], folder: Path) -> Iterator[str]:
    """Return the rates of conversations by guards, criterion and prompt, and the missed look-ups."""
    missed: dict[str, Counter[str]] = {}
    for guards, pack in packs.items():
        yield f"### {guards}\n"
        heads = " | ".join(f"near-miss of all, {each} | of writing" for each in CRITERIA)
        yield f"| in the prompt | runs | writing | failed | violation | {heads} |"
        yield "|---|---|---|---|---|" + "---|---|" * len(CRITERIA)
        for name, agent, calls in audited(data, pack, folder / guards):
            rates = [agent[each][rate] for each in CRITERIA for rate in ("near_miss_rate", "near_miss_rate_of_writing")]
            cells = [share(each) for each in (agent["failure_rate"], agent["determined"]["violation_rate"], *rates)]
            yield f"| {' | '.join([RUNS[name], str(agent['trajectories']), str(agent['with_write_calls']), *cells])} |"
            missed.setdefault(guards, Counter()).update(
                policy["id"] for call in calls for policy in call["policies"] if policy["strict"] == "near_miss"
            )
        yield ""
    for guards, found in missed.items():
        yield f"Near-miss calls by policy, strict, {guards}: " + ", ".join(f"{id} {n}" for id, n in found.most_common())
        yield ""


def table1(data: Path, settled: Path) -> Iterator[str]:
    """Return precision and recall on the calls that readers labelled, with both readings."""
    domain = airline(data, [strata(data), further(data)], "airline")
    assert domain.wider is not None
    yield HEADS
    ran = executed(domain)
    packs = {"as the pack reads it": domain.pack, "readings settled": load_pack(settled / "tau1", cases=False)}
    for reading, pack in packs.items():
        found = flagged(pack, domain)
        yield row(reading, found, domain.truth)
        yield row("  amounts counted, too", found, domain.wider)
        yield row("  calls that ran", {place: flag for place, flag in found.items() if place in ran}, domain.truth)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=Path("../shared/data/tau-airline"))
    parser.add_argument("--generated", type=Path, help="a pack compiled from the document of tau2")
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        os.environ[OUTSIDE] = place
        settled = settled_pack(Path(place) / "settled")
        packs = {
            "written by hand": copied_pack(Path(place) / "plain") / "tau2",
            "written by hand, readings settled": settled / "tau2",
        }
        if given.generated is not None:
            packs["generated"] = given.generated
        first = "\n".join(table1(given.data, settled))
        second = "\n".join(table2(given.data, packs, Path(place)))
    text = PAGE.format(first=first, second=second, paper="\n".join(_paper()))
    print(text)
    if given.page is not None:
        given.page.write_text(text, encoding="utf-8")


def _paper() -> Iterator[str]:
    for agent, failed, violation, writing, all_runs, of_writing in PAPER:
        rates = " | ".join(percent(each) for each in (failed, violation, all_runs, of_writing))
        yield f"| {agent} | {writing} of 200 | {rates} |"


PAGE = """# Near-misses on tau2-bench-verified

<!-- Written by lab/benchmarks/near_miss_verified.py --page; do not edit by hand. -->

    uv run python lab/benchmarks/near_miss_verified.py ../shared/data/tau-airline --page FILE

## How the document is read (Table 1)

188 write calls that readers labelled (`near-miss-search.md` says how). The pack flags more than they do, mostly because
it reads the document otherwise. `lab/benchmarks/readings/settled.py` settles four readings as the majority of the
readers has them: the price of a new cabin is no condition of the change; what a reservation was paid with is in the
profile; a payment method matters only if something is paid; bags that are free at the lowest level are free. The
readings were settled with these labels in view, so the second figure describes the readings and is not held out.

```
{first}
```

Of the 24 calls that are still flagged and no near-miss to readers, the airline's system refused 17, most of them
bookings at a wrong price. Readers call these not allowed. An audit's rates count only calls that ran, because a refused
call changes nothing; `calls that ran` is therefore its precision.

## Rates on verified runs (Table 2)

Five files of gpt-4o, 40 runs each. Shares of conversations with a 95 % Wilson interval; `failed` goes by the verified
gold actions, `near-miss` counts conversations with a good outcome, as in the paper.

{second}
The paper's agents, 200 runs each:

| agent | writing | failed | violation | near-miss of all | of writing |
|---|---|---|---|---|---|
{paper}
"""

if __name__ == "__main__":
    main()
