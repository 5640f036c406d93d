"""Calls with predicates to decide and their true values, drawn at random from the clinic and the airline.

`clinic-sites.jsonl` contains the calls at the clinic, drawn from 400 simulated conversations with seed 11: three
telehealth bookings, three cancellations and a refund, as varied as the seed allowed. The file keeps the questions the
same if the agents of the simulator change, so that the recorded answers still apply.
"""

import csv
import random
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from bylaw.engine.conduct import Conduct
from bylaw.pack import Pack, load_pack
from bylaw.rule.monitor import Act
from bylaw.trace import Call, Event, Identities, Message, Result, Trajectory, read

HERE = Path(__file__).parent
LABELS = HERE.parent / "labels" / "airline-consent.csv"
SEED = 11
AIRLINE = 20


class Site(NamedTuple):
    """A call in a conversation, and the predicates to decide at this call."""

    domain: str
    trajectory: Trajectory
    step: int
    truth: dict[str, bool]
    """The true value of each predicate."""
    broken: tuple[str, ...]
    """The rules of this measurement that the call breaks."""
    success: bool
    """Whether the run reached its goal."""

    @property
    def complies(self) -> bool:
        """Whether the call complies with every rule of this measurement."""
        return not self.broken

    @property
    def call(self) -> Call:
        event = self.trajectory.events[self.step]
        assert isinstance(event, Call)
        return event

    def act(self, pack: Pack) -> Act:
        conduct = Conduct(pack.ready_rules, lambda predicate, act: None)
        for step, event in enumerate(self.trajectory.events[: self.step]):
            conduct.observe(step, event, [])
        act = conduct.act_of(self.step, self.call)
        assert act is not None
        return act


def pack_of(domain: str) -> Pack:
    """Return the pack of a domain with the rules of this measurement. It has no guards, because a denied call needs no
    answer.
    """
    pack = _loaded(domain)
    pack.by_tool.clear()
    return pack


def _loaded(domain: str) -> Pack:
    packs = HERE.parents[2] / "src" / "bylaw" / "packs"
    folder = Path(tempfile.mkdtemp(prefix="bylaw-answers-"))
    try:
        if domain == "clinic":
            shutil.copytree(packs / "clinic", folder / "pack")
            shutil.copy(HERE / "clinic-rules.yaml", folder / "pack" / "rules.yaml")
            return load_pack(folder / "pack")
        shutil.copytree(packs / "tau_airline", folder / "packs")
        shutil.copy(HERE / "airline-rules.yaml", folder / "packs" / "shared" / "rules.yaml")
        return load_pack(folder / "packs" / "tau1")
    finally:
        shutil.rmtree(folder)


class _Kept(Struct):
    """A line of the file."""

    id: str
    step: int
    truth: dict[str, bool]
    broken: tuple[str, ...]
    success: bool
    events: tuple[Event, ...]


def clinic_sites() -> list[Site]:
    lines = (HERE / "clinic-sites.jsonl").read_bytes().splitlines()
    kept = [msgspec.json.decode(line, type=_Kept) for line in lines]
    return [
        Site("clinic", Trajectory(each.id, each.events), each.step, each.truth, each.broken, each.success)
        for each in kept
    ]


def airline_sites(folder: Path) -> list[Site]:
    """Return random labelled writes that were not used to develop `consented`.

    Half of them have consent.
    """
    with LABELS.open(encoding="utf-8", newline="") as file:
        # The fourth draw was made after the answers were recorded.
        rows = [row for row in csv.DictReader(file) if row["half"] == "kept apart" and row["draw"] != "fourth"]
    rows = [row for row in rows if row["label"] != "parted"]
    rng = random.Random(SEED)
    yes = rng.sample([row for row in rows if row["label"] == "consented"], AIRLINE // 2)
    no = rng.sample([row for row in rows if row["label"] != "consented"], AIRLINE // 2)
    chosen = {(row["trajectory"], int(row["step"])): row["label"] == "consented" for row in (*yes, *no)}
    sites: list[Site] = []
    for name, trajectory in airline_runs(folder):
        for (wanted, step), consented in chosen.items():
            if wanted == name:
                kept = {"confirm-before-change": consented, **_shape(trajectory, step)}
                truth = {"agreed": consented}
                sites.append(Site("airline", trajectory, step, truth, _broken(kept), _is_good(trajectory)))
    return sites


def _shape(trajectory: Trajectory, step: int) -> dict[str, bool]:
    """Return an airline conversation up to one call, without the text next to the call."""
    call = trajectory.events[step]
    assert isinstance(call, Call)
    before = [event for event in trajectory.events[:step] if not isinstance(event, Result) and event.turn == call.turn]
    return {
        "one-call-at-a-time": not any(isinstance(event, Call) for event in before),
        "no-text-beside-call": not any(isinstance(event, Message) and event.text.strip() for event in before),
    }


def _broken(kept: dict[str, bool]) -> tuple[str, ...]:
    return tuple(name for name, is_kept in kept.items() if not is_kept)


def _is_good(trajectory: Trajectory) -> bool:
    return bool(trajectory.outcome and trajectory.outcome.good)


def airline_runs(folder: Path) -> Iterable[tuple[str, Trajectory]]:
    """Yield the conversations under their names in the labels."""
    identities = Identities()
    for path in [*sorted(folder.glob("tau1/runs/*.json*")), *sorted(folder.glob("tau2/runs/*.json*"))]:
        for each in read(path):
            if isinstance(each, Trajectory):
                yield identities.unique(each.id), each
