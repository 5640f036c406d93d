"""The near-miss paper's Table 1 rebuilt: three ways to tell what an agent had been shown, held against the truth.

    uv run python benchmarks/near_miss_search.py [--airline ../shared/data/tau-airline] [--answers DIR] [--page FILE]

Observations are a pack's own mapping. Look-up code was written by a model from the tools alone and takes the place of
every observation. Model search asks a model about each write call, over the results shown before it. Answers come from
recordings; what has none is written as a batch to DIR/requests. Truth: the clinic's simulator, and readers.
"""

import argparse
import csv
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from bylaw.audit.shelf import Shelf
from bylaw.cli.logs import open_logs
from bylaw.compile.desk import Desk
from bylaw.compile.lookups import Lookups, fields_read, write_lookups
from bylaw.compile.search import ModelSearch
from bylaw.compile.tools import read_tools, with_logs
from bylaw.engine.session import Session
from bylaw.engine.settlement import CallVerdict
from bylaw.facts.interval import wilson
from bylaw.facts.world import World
from bylaw.guard import Vocabulary, parse_lookups, run_lookup
from bylaw.llm import Chat, Pending
from bylaw.llm.batch import Batch
from bylaw.llm.recorded import Recorded, Recordings
from bylaw.llm.source import at_hand
from bylaw.pack import Pack
from bylaw.packs.clinic.simulator.generate import write
from bylaw.policy.folder import find_folder, read_folder
from bylaw.trace import Call, Trajectory, read

SEED = 12
LABELS = Path(__file__).parent / "labels" / "airline-near-miss.csv"
CLINIC_TOOLS = find_folder("clinic_compiled") / "source" / "tools.json"
Place = tuple[str, int]
"""A write call: conversation and step."""


class Domain(NamedTuple):
    """Conversations with what they are held to, and the truth of their write calls where it is known."""

    name: str
    pack: Pack
    trajectories: Sequence[tuple[Trajectory, World | None]]
    truth: dict[Place, bool]
    cards: dict[str, object]
    searched: int
    """Write calls that a model's search is tried on."""
    wider: dict[Place, bool] | None = None
    """The truth with amounts that had not been shown counted, too."""


def clinic(folder: Path) -> Domain:
    """200 simulated conversations; the simulator says which calls are near-misses."""
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
    with open_logs([find_folder("clinic") / "demo" / "logs.jsonl.gz"]) as opened:
        cards, _ = with_logs(read_tools([str(CLINIC_TOOLS)]), opened.trajectories())
    return Domain("clinic", pack, trajectories, truth, dict(cards), 60)


def airline(data: Path) -> Domain:
    """The drawn conversations; readers say which calls are near-misses."""
    pack, trajectories = drawn_airline(data)
    with open_logs([data / "tau2" / "runs" / "gpt-4.1.json.gz"]) as opened:
        cards, _ = with_logs(read_tools([str(data / "tools.json")]), opened.trajectories())
    return Domain("airline", pack, trajectories, read_labels(), dict(cards), 20, read_labels(amounts=True))


def read_labels(*, amounts: bool = False) -> dict[Place, bool]:
    """By call of the airline whether readers call it a near-miss: allowed, and not seen to be.

    With `amounts` it is one, too, where all that allows it had been shown, but not what the customer pays or gets back.
    """
    with LABELS.open(newline="") as lines:
        return {
            (row["trajectory"], int(row["step"])): row["permitted"] == "yes"
            and (row["unchecked"] == "yes" or (amounts and row["amount"] == "yes"))
            for row in csv.DictReader(lines)
        }


def flagged(pack: Pack, domain: Domain, places: set[Place] | None = None) -> dict[Place, bool]:
    """By write call whether it is a near-miss by the paper's criterion; all calls, or some."""
    names = None if places is None else {name for name, _ in places}
    found: dict[Place, bool] = {}
    for trajectory, world in domain.trajectories:
        if names is None or trajectory.id in names:
            for call in judged(pack, trajectory, world, places):
                found[trajectory.id, call.made.step] = call.strict == "near_miss"
    return found


def without_observations(pack: Pack) -> Pack:
    """The pack, blind but for what is searched for."""
    return replace(pack, schema=replace(pack.schema, shows={}, searches={}))


def by_code(domain: Domain, chat: Chat) -> tuple[Pack, Lookups]:
    """The pack with look-up functions in the place of all observations."""
    schema = domain.pack.schema
    vocabulary = Vocabulary(
        schema.entities, schema.arguments(tuple(schema.tools)), frozenset(schema.tools), schema.writes()
    )
    wanted = fields_read(domain.pack.guards.values(), schema)
    entities = read_folder(domain.pack.root).parts["entities"].data["entities"]
    shown = [trajectory for trajectory, _ in domain.trajectories[:20]]
    desk = Desk(at_hand(chat))
    while True:
        desk.begin()
        made = write_lookups(desk, vocabulary, domain.cards, wanted, entities, shown)  # pyright: ignore
        if made is not None:
            break
        desk.fetch(chat)
    searches: dict[tuple[str, str], Callable[..., object]] = {}
    functions, faults = parse_lookups(made.text, file="lookups.py", vocabulary=vocabulary)
    assert not faults, faults
    for lookup in functions.values():
        searches[lookup.entity.name, lookup.field.name] = partial(run_lookup, lookup)
    blind = without_observations(domain.pack)
    return replace(blind, schema=replace(blind.schema, searches=searches)), made


def by_model(domain: Domain, places: set[Place], chat: Chat) -> tuple[dict[Place, bool], ModelSearch]:
    """What a model's search makes of some write calls."""
    search = ModelSearch(chat)
    pack = search.over(without_observations(domain.pack))
    return search.repeat(lambda: flagged(pack, domain, places)), search


def row(name: str, found: dict[Place, bool], truth: dict[Place, bool]) -> str:
    """Near-miss rate, precision and recall, each with its 95 % interval."""
    rate = _share(sum(found.values()), len(found))
    known = {place: flag for place, flag in found.items() if place in truth}
    right = sum(flag and truth[place] for place, flag in known.items())
    said, true = sum(known.values()), sum(truth[place] for place in known)
    return f"{name:38} {len(found):5} {rate:>22} {len(known):7} {_share(right, said):>22} {_share(right, true):>22}"


def _share(part: int, whole: int) -> str:
    if not whole:
        return "-"
    low, high = wilson(part, whole)
    return f"{part / whole:.1%} ({low:.1%}-{high:.1%})"


def told(domain: Domain, way: str, found: dict[Place, bool]) -> Iterator[str]:
    """A way's line, and a second one where amounts may be counted, too."""
    yield row(f"{domain.name}, {way}", found, domain.truth)
    if domain.wider is not None:
        yield row("  amounts counted, too", found, domain.wider)


def rows(domain: Domain, chat: Chat) -> Iterator[str]:
    """The lines of one domain; a way whose answers have yet to come is told as such."""
    seen = flagged(domain.pack, domain)
    yield from told(domain, "observations", seen)
    drawn = set(random.Random(SEED).sample(sorted(seen), min(domain.searched, len(seen))))
    try:
        pack, made = by_code(domain, chat)
        yield from told(domain, "look-up code", flagged(pack, domain))
        yield f"  {len(made.codes)} functions written, {len(made.failed)} not"
    except Pending as error:
        yield f"{domain.name}, look-up code: {error.message}"
    yield from told(domain, "observations, same calls", {place: seen[place] for place in drawn})
    try:
        found, search = by_model(domain, drawn, chat)
        yield from told(domain, "model search", found)
        yield f"  {search.refused} findings without ground were refused"
    except Pending as error:
        yield f"{domain.name}, model search: {error.message}"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--airline", type=Path)
    parser.add_argument("--answers", type=Path, default=Path(__file__).parent / "recorded" / "near-miss-search")
    parser.add_argument("--batch", type=Path, help="where requests without an answer are written")
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    chat: Chat = Recorded(Recordings(options.answers), Batch(options.batch or options.answers))
    heads = f"{'':38} {'calls':>5} {'near-miss rate':>22} {'labels':>7} {'precision':>22} {'recall':>22}"
    text = [heads]
    with tempfile.TemporaryDirectory() as folder:
        text += rows(clinic(Path(folder)), chat)
    if options.airline is not None:
        text += rows(airline(options.airline), chat)
    print("\n".join(text))
    if options.page is not None:
        options.page.write_text(f"{PAGE}\n```\n" + "\n".join(text) + "\n```\n", encoding="utf-8")
    return 0


PAGE = """# How near-misses are found: the near-miss paper's Table 1

<!-- Written by benchmarks/near_miss_search.py --page; do not edit by hand. -->

    uv run python benchmarks/near_miss_search.py --airline ../shared/data/tau-airline --answers DIR --page FILE

Three ways to tell what an agent had been shown before a write call, under the same guards written by hand and by the
paper's criterion (every fact on the guard's path was seen). Intervals are Wilson's, 95 %.

- **Observations** are the pack's own mapping of results to facts.
- **Look-up code** was written by a model from the tools alone, and takes the place of every observation.
- **Model search** asks a model about each write call, over the results shown before it; what it quotes must stand
  there. It was tried on 60 write calls of the clinic and 20 of the airline, drawn by seed 12; the line above it has the
  observations on the same calls.

200 simulated conversations of the clinic, labelled by the simulator; 50 recorded ones of the airline (tau2) that write,
drawn by the same seed, labelled by reading (`benchmarks/labels/airline-near-miss.csv`). A Claude model (its exact
version was not told) wrote the code and answered the searches in November 2026, each question once and apart from the
others. The clinic's answers are in
`benchmarks/recorded/near-miss-search`, by the hash of the question, with attempt and date, so that without `--airline`
and `--answers` the clinic's lines come out the same anywhere; the airline's quote recorded conversations and stay
outside.

What falls short:

- Observations and simulator agree on every call of the clinic because the pack and the simulator were written for the
  same handbook. This shows that the engine does what it should, not that a mapping for another document is right.
- The same kind of model wrote code and answered the searches; the paper compares two.
- The airline's 92 write calls were read by two readers, each of them alone, from sheets that
  `benchmarks/near_miss_sheets.py` renders: the document, the conversation, and what the database held before the call;
  no verdict of ours. They agree on all three questions about every call, so that no third had to settle any. Both are
  Claude models: that they agree says less than it would of two people.
- The readers were asked whether all facts that **allow** a call had been shown, and, apart from that, whether what the
  customer **pays or gets back** could be told. The document says that a customer pays the difference of a change of
  cabin; the pack (`modify-cabin-price`) takes from this that the price must be known before. By the narrow question 5
  calls are near-misses, by the wide one 16; both are in the table. Almost all that the ways flag beyond the narrow
  question are changes of cabin before which nobody had looked up the price. Which reading is right is for whoever owns
  the document to say.
- Beyond that, observations and readers differ on four calls. A bag that is free at every level, paid for by nobody: the
  pack asks for the level and the card all the same. Two bookings of flights that nobody had looked up, with a wrong
  price: near-misses by the pack, whose policies do not price a booking, and not allowed by the readers. A certificate
  in the same turn as the cancellation that allows it: the readers say that its result had not been seen, the pack takes
  the act as known.
- None of the 20 calls of the model search is a near-miss by the narrow question: there recall has no meaning.
"""

if __name__ == "__main__":
    sys.exit(main())
