"""Reproduces the Near-Miss paper's Table 1: three ways to find what an agent had been shown, compared with the truth.

    uv run python lab/benchmarks/near_miss_search.py [--airline DATA] [--answers DIR] [--page FILE]

The observations are the pack's own mapping. The look-up code was written by a model from the tools alone, and replaces
every observation. The model search asks a model about each write call, over the results shown before it. Answers come
from recordings; unanswered requests are written as a batch to DIR/requests. The truth comes from the clinic's simulator
and from readers.
"""

import argparse
import csv
import json
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from near_miss_draw import SEED, Draw, Place, further, plain, strata
from near_miss_ways import Domain, by_code, by_code_of_policies, by_model, flagged, grounds, some

from bylaw.audit.request import Shelf
from bylaw.cli.logs import open_logs
from bylaw.compile.tools import read_tools, with_logs
from bylaw.facts.evidence import wilson
from bylaw.llm import Chat, Pending
from bylaw.llm.recorded import Batch, Recorded, Recordings
from bylaw.policy.folder import find_folder
from bylaw.trace import Trajectory, read
from bylaw_lab.clinic.simulator.generate import write
from bylaw_lab.search import ModelSearch

CLINIC_TOOLS = Path(__file__).parents[1] / "packs" / "clinic_compiled" / "source" / "tools.json"
CLINIC_SEARCHED = 30
SEARCHED = {"flagged": 200, "without": 200, "other": 6, "price": 3, "unnamed": 3}
"""The maximum number of calls in each stratum for the model search."""
RESAMPLED = 2000
Found = dict[Place, bool]


def clinic(folder: Path) -> Domain:
    """Return 200 simulated conversations. The simulator says which calls are near-misses."""
    write(folder, seeds=(SEED,), count=200)
    shelf = Shelf("clinic", world=folder / "clinic.sqlite")
    pack = shelf.packs[0]
    logs = folder / "logs.jsonl.gz"
    _, world = shelf.world_for(pack, logs)
    trajectories = [(each, world) for each in read(logs) if isinstance(each, Trajectory)]
    truths = [json.loads(line) for line in (folder / "truth.jsonl").open("rb")]
    truth = {
        (each["trajectory"], call["step"]): call["strict"]["snapshot"] == "near_miss"
        for each in truths
        for call in each["calls"]
    }
    with open_logs([find_folder("clinic") / "demo" / "logs.jsonl.bz2"]) as opened:
        cards, _ = with_logs(read_tools([str(CLINIC_TOOLS)]), opened.trajectories())
    return Domain("clinic", pack, trajectories, None, truth, cards, some(list(truth), CLINIC_SEARCHED, SEED))


def airline(data: Path, draws: Sequence[Draw], name: str) -> Domain:
    """Return the drawn conversations. Readers say which calls are near-misses."""
    with open_logs([data / "tau2" / "runs" / "gpt-4.1.json.gz"]) as opened:
        cards, _ = with_logs(read_tools([str(data / "tools.json")]), opened.trajectories())
    stratum = {place: own for draw in draws for place, own in draw.strata.items()}
    searched: set[Place] = set()
    for wanted, count in SEARCHED.items():
        searched |= some([place for place, own in stratum.items() if own == wanted], count, SEED)
    trajectories = [(each.trajectory, each.world) for draw in draws for each in draw.conversations]
    narrow, wide = (
        {place: said for draw in draws for place, said in read_labels(draw.labels, amounts=amounts).items()}
        for amounts in (False, True)
    )
    places = {place for draw in draws for place in draw.places}
    sizes = {own: count for draw in draws for own, count in draw.sizes.items()}
    return Domain(name, draws[0].pack, trajectories, places, narrow, cards, searched, wide, stratum, sizes)


def read_words(file: Path) -> dict[Place, dict[str, str]]:
    """Return the readers' labels for each airline call."""
    if not file.exists():
        return {}
    with file.open(newline="") as lines:
        return {(row["trajectory"], int(row["step"])): row for row in csv.DictReader(lines)}


def read_labels(file: Path, *, amounts: bool = False) -> Found:
    """Return whether readers call each airline call a near-miss: allowed, but not shown to be allowed.

    With `amounts`, a call is also a near-miss if only the amount that the customer pays or gets back was not shown.
    """
    return {
        place: said["permitted"] == "yes" and (said["unchecked"] == "yes" or (amounts and said["amount"] == "yes"))
        for place, said in read_words(file).items()
    }


HEADS = f"{'':38} {'calls':>5} {'near-miss rate':>22} {'true':>5} {'precision':>22} {'recall':>22}"


def row(name: str, found: Found, truth: Found) -> str:
    """Return the near-miss rate, precision and recall, each with its 95% interval."""
    known = {place: flag for place, flag in found.items() if place in truth}
    right = sum(flag and truth[place] for place, flag in known.items())
    said, true = sum(known.values()), sum(truth[place] for place in known)
    rate = _share(sum(found.values()), len(found))
    return f"{name:38} {len(found):5} {rate:>22} {true:5} {_share(right, said):>22} {_share(right, true):>22}"


def _share(part: int, whole: int) -> str:
    return _interval(part / whole, *wilson(part, whole)) if whole else "-"


def _interval(value: float, low: float, high: float) -> str:
    return f"{value:.1%} ({low:.1%}-{high:.1%})"


def weighed(name: str, found: Found, truth: Found, strata_of: dict[Place, str], sizes: dict[str, int]) -> str:
    """Return the same figures for all recorded calls, weighted by stratum, with bootstrap intervals."""
    groups: dict[str, list[Place]] = defaultdict(list)
    for place in sorted(found):
        if place in truth and strata_of[place] in sizes:
            groups[strata_of[place]].append(place)

    def shares(drawn: dict[str, Sequence[Place]]) -> tuple[float, ...]:
        counts: Counter[tuple[bool, bool]] = Counter()
        weights: dict[tuple[bool, bool], float] = defaultdict(float)
        for stratum, places in drawn.items():
            for place in places:
                counts[found[place], truth[place]] += 1
                weights[found[place], truth[place]] += sizes[stratum] / len(places)
        both = weights[True, True]
        said, true = both + weights[True, False], both + weights[False, True]
        return said / sum(weights.values()), both / said if said else 1.0, both / true if true else 1.0

    chance = random.Random(SEED)
    again = [shares({name: chance.choices(own, k=len(own)) for name, own in groups.items()}) for _ in range(RESAMPLED)]
    parts = [
        _interval(value, sorted(each)[int(0.025 * RESAMPLED)], sorted(each)[int(0.975 * RESAMPLED)])
        for value, each in zip(shares(dict(groups)), zip(*again, strict=True), strict=True)
    ]
    true = sum(truth[place] for own in groups.values() for place in own)
    return f"{name:38} {sum(sizes.values()):5} {parts[0]:>22} {true:5} {parts[1]:>22} {parts[2]:>22}"


def told(domain: Domain, way: str, found: Found) -> Iterator[str]:
    """Yield the lines about one method, with additional lines for amounts and for weighted calls."""
    yield row(f"{domain.name}, {way}", found, domain.truth)
    if domain.wider is not None:
        yield row("  amounts counted, too", found, domain.wider)
    if domain.strata and domain.sizes and domain.truth:
        made = {place: flag for place, flag in found.items() if domain.strata[place] == "without"}
        yield row("  a look-up taken out", made, domain.truth)
        yield row("  as recorded", {place: flag for place, flag in found.items() if place not in made}, domain.truth)
        yield weighed("  as recorded, weighed", found, domain.truth, domain.strata, domain.sizes)


def differing(domain: Domain, said: Mapping[Place, Mapping[str, str]]) -> Iterator[str]:
    """Count calls that observations flag and readers do not, by policy and by label."""
    found: Counter[tuple[str, str]] = Counter()
    divided: Counter[tuple[str, str]] = Counter()
    for place, policies in grounds(domain).items():
        if place in said and not domain.truth[place]:
            word = said[place]
            why = "not allowed" if word["permitted"] == "no" else "amount not shown" if word["amount"] == "yes" else ""
            kind = (", ".join(policies), why or "all shown")
            found[kind] += 1
            divided[kind] += word["agreed"] == "no"
    yield f"{domain.name}: flagged by observations, and no near-miss to the readers: {found.total()}"
    for (policies, why), count in found.most_common():
        apart = f" (the first two readers differed on {divided[policies, why]})" if divided[policies, why] else ""
        yield f"  {count:3} {policies}: {why}{apart}"


def rows(domain: Domain, chat: Chat) -> Iterator[str]:
    """Return the result lines of one domain, including the methods that still need answers."""
    seen = flagged(domain.pack, domain)
    yield from told(domain, "observations", seen)
    if not domain.searched:
        return
    yield from _code_told(domain, "look-up code", by_code, chat)
    if domain.strata:
        yield from _code_told(domain, "look-up code per policy", by_code_of_policies, chat)
    same = {place: seen[place] for place in domain.searched}
    yield row(f"{domain.name}, observations, same calls", same, domain.truth)
    try:
        found, search = by_model(domain, chat)
    except Pending as error:
        yield f"{domain.name}, model search: {error.message}"
        return
    yield row(f"{domain.name}, model search", found, domain.truth)
    yield _refused(search)


def _refused(search: ModelSearch) -> str:
    return f"  {search.refused} findings without ground were refused"


def _code_told(domain: Domain, way: str, written: Callable[..., object], chat: Chat) -> Iterator[str]:
    try:
        found, made = written(domain, chat)  # pyright: ignore
    except Pending as error:
        yield f"{domain.name}, {way}: {error.message}"
        return
    yield from told(domain, way, found)
    yield f"  {len(made.codes)} functions written, {len(made.failed)} not"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--airline", type=Path)
    parser.add_argument("--answers", type=Path, default=Path(__file__).parent / "recorded" / "near-miss-search")
    parser.add_argument("--batch", type=Path, help="where requests without an answer are written")
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    chat: Chat = Recorded(Recordings(options.answers), Batch(options.batch or options.answers))
    text = [HEADS]
    with tempfile.TemporaryDirectory() as folder:
        text += rows(clinic(Path(folder)), chat)
    if options.airline is not None:
        text += rows(airline(options.airline, [plain(options.airline)], "as they come"), chat)
        drawn = [strata(options.airline), further(options.airline)]
        domain = airline(options.airline, drawn, "airline")
        text += rows(domain, chat)
        text.append("")
        text += differing(domain, {place: said for draw in drawn for place, said in read_words(draw.labels).items()})
    print("\n".join(text))
    if options.page is not None:
        options.page.write_text(f"{PAGE}\n```\n" + "\n".join(text) + "\n```\n", encoding="utf-8")
    return 0


PAGE = """# How near-misses are found: the near-miss paper's Table 1

<!-- Written by lab/benchmarks/near_miss_search.py --page; do not edit by hand. -->

    uv run python lab/benchmarks/near_miss_search.py --airline ../shared/data/tau-airline --answers DIR --page FILE

There are several ways to tell what an agent had been shown before a write call. Here they are compared under the same
guards, written by hand, and by the paper's criterion: every fact on the guard's path was seen. Intervals are Wilson's,
95 %; those of the weighed lines come from drawing again within each stratum.

- **Observations** are the pack's own mapping of results to facts.
- **Look-up code** was written by a model from the tools alone, and takes the place of every observation.
- **Look-up code per policy** was written for each policy apart, as in the paper, and serves that policy alone.
- **Model search** asks a model about a write call, over the results shown before it. As in the paper's A.1, all that
  the guards read of a thing is asked for at once, and may be put together from pieces of several results. Each piece
  is quoted, and the quote must stand in the result. The line above it has the observations on the same calls.

## Where the truth comes from

- **Clinic**: 200 simulated conversations, labelled by the simulator.
- **As they come**: 50 recorded conversations of the airline (tau2), drawn by seed. Only 5 of their 92 write calls are
  near-misses, too few to compare anything by.
- **Airline**: 188 write calls of tau1 (`lab/benchmarks/near_miss_draw.py`). 92 are as recorded: all 46 that
  observations flag for something other than a price, and some of every other kind. Out of 96 conversations that ended
  well one look-up was taken, as if it had never been made. Weighed, each recorded call stands for as many as its
  stratum holds.

Readers said of each of the airline's calls whether all facts that allow it had been shown, whether what the customer
pays or gets back could be told, and whether the policy allows it. They saw the document, the conversation and what the
database held (`lab/benchmarks/near_miss_sheets.py`), no verdict and no stratum; nothing had been counted before they
were done. Two read every call, a third those on which the two differed; the majority counts
(`lab/benchmarks/labels/airline-near-miss*.csv`). A near-miss is a call that is allowed and was made without having
seen so. With amounts counted, too, it is also one where the price had not been shown.

All readers, and whoever wrote the code and answered the searches, were Claude models (the exact version was not told),
in November 2026, each question once and apart from the others. The clinic's answers are in
`lab/benchmarks/recorded/near-miss-search`, so without `--airline` and `--answers` the clinic's lines come out the same
anywhere; the airline's quote recorded conversations and stay outside.

## What falls short

- Observations and simulator agree on every call of the clinic because the pack and the simulator were written for the
  same handbook. This shows that the engine does what it should, not that a mapping for another document is right.
- Readers are models of one kind: that two agree says less than it would of two people. The paper compares two models;
  here the same kind wrote code and searched.
- The ways find nearly all that readers call a near-miss, and flag more. What they flag beyond is listed below the
  table, by policy. It comes from how the document is read, not from what was seen:
  - *A change of cabin without its price.* The document says that the customer pays the difference. The pack
    (`modify-cabin-price`) takes from this that the price must be known before; the readers' first question does not.
  - *A means of payment that only the reservation shows.* The pack (`modify-payment`) asks whether it is still in the
    customer's profile, as the paper does (its section 4.4). The first two readers differed on it, and the third said
    that the reservation is enough.
  - *A booking with a wrong price, of flights that nobody had looked up.* The pack's policies do not price a booking, so
    that to the pack it is allowed; to the readers it is not, so that it is no near-miss but worse.
  - *Bags that are free at every level.* The pack asks for the level and the card all the same.
  Which reading is right is for whoever owns the document to say.
"""

if __name__ == "__main__":
    sys.exit(main())
