"""The calls that predicates are settled at, each with what is true of it: drawn by seed from clinic and airline."""

import csv
import random
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from bylaw.engine.conduct import Conduct
from bylaw.pack import Pack, load_pack
from bylaw.packs.clinic.simulator import dialogue
from bylaw.packs.clinic.simulator.generate import clinic, simulate
from bylaw.packs.clinic.simulator.wants import Want
from bylaw.rule.act import Act
from bylaw.trace import Call, Event, Identities, Message, Result, Trajectory, read

HERE = Path(__file__).parent
LABELS = HERE.parent / "labels" / "airline-consent.csv"
SEED = 11
CLINIC = 400
"""So many conversations are simulated to draw from."""
AIRLINE = 20


class Site(NamedTuple):
    """A call in a conversation, and the predicates to be settled there."""

    domain: str
    trajectory: Trajectory
    step: int
    truth: dict[str, bool]
    """What is true of each predicate."""
    broken: tuple[str, ...]
    """The rules of this measurement that the call breaks."""
    success: bool
    """Whether the run reached its goal."""

    @property
    def complies(self) -> bool:
        """Whether the call keeps the rules of this measurement."""
        return not self.broken

    @property
    def call(self) -> Call:
        """The call."""
        event = self.trajectory.events[self.step]
        assert isinstance(event, Call)
        return event

    def act(self, pack: Pack) -> Act:
        """The call as rules see it."""
        conduct = Conduct(pack.ready_rules, lambda predicate, act: None)
        for step, event in enumerate(self.trajectory.events[: self.step]):
            conduct.observe(step, event, [])
        act = conduct.act_of(self.step, self.call)
        assert act is not None
        return act


def pack_of(domain: str) -> Pack:
    """The pack of a domain with the rules of this measurement, and no guards: where one denies, nobody is asked."""
    pack = _loaded(domain)
    pack.by_tool.clear()
    return pack


def _loaded(domain: str) -> Pack:
    packs = HERE.parents[1] / "src" / "bylaw" / "packs"
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


def clinic_sites() -> list[Site]:
    """Three telehealth bookings, three cancellations and one other change, as mixed as the seed allows."""
    found: dict[str, list[Site]] = {"book_visit": [], "cancel_appointment": [], "other": []}
    for trajectory, _ in simulate(SEED, CLINIC):
        for step, event in enumerate(trajectory.events):
            if isinstance(event, Call) and not event.fault and (site := _clinic_site(trajectory, step, event)):
                found[event.tool if event.tool in found else "other"].append(site)
    rng = random.Random(SEED)
    chosen: list[Site] = []
    for kind, count in (("book_visit", 3), ("cancel_appointment", 3), ("other", 1)):
        # One of each mix of truths, as far as they go, then more.
        mixes: dict[tuple[bool, ...], list[Site]] = {}
        for site in found[kind]:
            mixes.setdefault(tuple(site.truth.values()), []).append(site)
        order = [rng.choice(mixes[mix]) for mix in rng.sample(sorted(mixes), len(mixes))]
        chosen += order[:count]
    return chosen


def _clinic_site(trajectory: Trajectory, step: int, call: Call) -> Site | None:
    events = trajectory.events[:step]
    if call.tool not in dialogue.REQUESTS:
        return None
    told, yes = _confirmed(events, call)
    truth = {"told": told, "said_yes": yes}
    said = [event.text for event in events if isinstance(event, Message) and event.by == "user"]
    beside = [other for other in trajectory.events[: step + 1] if isinstance(other, Call) and other.turn == call.turn]
    writes = [other for other in beside if other.tool in dialogue.REQUESTS]
    if call.tool == "book_visit":
        spoken = [phrase for text in said for phrase in (*dialogue.IN_STATE, *dialogue.OUT_OF_STATE) if phrase in text]
        slot = clinic().desk.row("Slot", (str(call.arguments.get("slot_id")),))
        if slot is None or slot["kind"] != "telehealth":
            return None
        truth["in_state"] = any(phrase in dialogue.IN_STATE for phrase in spoken)
    elif call.tool == "cancel_appointment":
        named = " ".join(text for text in said if str(call.arguments.get("appointment_id")) in text)
        truth["excused"] = any(why in named for kind in ("bereavement", "clinic_error") for why in dialogue.WHY[kind])
    elif len(said) < 2:
        return None
    kept = {
        "confirm-before-change": told and yes,
        "one-change-at-a-time": len(writes) == 1,
        "telehealth-location": truth.get("in_state", True),
    }
    return Site("clinic", trajectory, step, truth, _broken(kept), _is_good(trajectory))


def _confirmed(events: Sequence[Event], call: Call) -> tuple[bool, bool]:
    """Whether the simulated agent told this very change, and whether the caller's next words were a yes."""
    try:
        do = dialogue.do(Want(call.tool, call.arguments))
    except KeyError:
        return False, False
    asked = {text.format(do=do) for text in dialogue.CONFIRM}
    messages = [event for event in events if isinstance(event, Message)]
    places = [place for place, each in enumerate(messages) if each.by == "agent" and each.text in asked]
    replies = [messages[place + 1].text for place in places if place + 1 < len(messages)]
    return bool(places), any(reply in dialogue.YES for reply in replies)


def airline_sites(folder: Path) -> list[Site]:
    """Labelled writes kept apart from the making of `consented`: half with consent, half without, by seed."""
    with LABELS.open(encoding="utf-8", newline="") as file:
        # The fourth draw came after the answers were recorded.
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
    """What the airline asks of a turn: one call as far as it had come, and nothing said beside it."""
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
    """The conversations under the names that labels give them."""
    identities = Identities()
    for path in [*sorted(folder.glob("tau1/runs/*.json*")), *sorted(folder.glob("tau2/runs/*.json*"))]:
        for each in read(path):
            if isinstance(each, Trajectory):
                yield identities.unique(each.id), each
