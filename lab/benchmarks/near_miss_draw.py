"""Draws write calls of the airline for readers, who label near-misses before any of our methods is counted.

`plain` draws 50 unfiltered conversations of tau2 with writes, so few of their calls are near-misses. `strata` looks for
more near-misses in the 950 conversations of tau1. It takes every call that the pack's observations flag for a reason
other than a price, and a sample of each other kind. The number of calls in each stratum gives the weights. It also
creates near-misses: it removes one look-up from conversations that ended as their task requires. `further` creates more
of these from other conversations.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from bylaw.audit.request import Shelf
from bylaw.engine.session import Session
from bylaw.engine.settlement import CallVerdict
from bylaw.facts.world import World
from bylaw.pack import Pack
from bylaw.trace import Call, Event, Result, Trajectory, read

SEED = 12
Place = tuple[str, int]
"""A write call, given by its conversation and step."""
PRICES = {"modify-cabin-price"}
"""Policies about the cost of a change, not about whether it is allowed."""
DRAWN = {"flagged": 100, "unnamed": 12, "price": 10, "other": 24, "without": 48}
"""The maximum number of calls drawn from each stratum."""
FURTHER = 48
"""The number of calls that `further` creates."""
_WITHOUT = "-without-"
"""Separates the id of a conversation from the removed look-up."""


class Read(NamedTuple):
    """A conversation for readers, with its world and the write calls to judge."""

    trajectory: Trajectory
    world: World | None
    steps: tuple[int, ...]


class Draw(NamedTuple):
    """A draw of conversations, and the file with the labels from readers."""

    pack: Pack
    policy: Path
    labels: Path
    conversations: list[Read]
    strata: dict[Place, str]
    """The stratum of each call. Empty for a draw without strata."""
    sizes: dict[str, int]
    """The number of calls in each stratum from which calls were drawn."""

    @property
    def places(self) -> list[Place]:
        """Return every call, in the readers' order."""
        return [(each.trajectory.id, step) for each in self.conversations for step in each.steps]


def _labels(name: str) -> Path:
    return Path(__file__).parent / "labels" / name


def plain(data: Path) -> Draw:
    """Draw 50 recorded conversations with write calls, each with its database."""
    shelf = Shelf("tau-airline", world=data)
    files = sorted(file for file in (data / "tau2" / "runs").glob("*.json.gz") if "variant" not in file.name)
    found = list(_read(files))
    pack = shelf.pack_for(found[0][0])
    writing = [(each, file) for each, file in found if writes(pack, each)]
    drawn = random.Random(SEED).sample(writing, 50)
    conversations = [Read(each, shelf.world_for(pack, file)[1], writes(pack, each)) for each, file in drawn]
    shown = [each for each in conversations if each.steps]
    return Draw(pack, data / "tau2" / "policy.md", _labels("airline-near-miss.csv"), shown, {}, {})


def strata(data: Path) -> Draw:
    """Draw calls of every stratum, in an order that does not reveal the stratum."""
    shelf = Shelf("tau-airline", world=data)
    found = {each.id: (each, file) for each, file in _read(sorted((data / "tau1" / "runs").glob("*.json.gz")))}
    pack = shelf.pack_for(next(iter(found.values()))[0])
    kinds: dict[str, list[Place]] = {name: [] for name in DRAWN if name != "without"}
    for trajectory, file in found.values():
        for call in judged(pack, trajectory, shelf.world_for(pack, file)[1]):
            kinds[_kind(call, trajectory)].append((trajectory.id, call.made.step))
    chance = random.Random(SEED)
    drawn = {name: chance.sample(places, min(DRAWN[name], len(places))) for name, places in kinds.items()}
    stratum = {place: name for name, places in drawn.items() for place in places}
    conversations: list[Read] = []
    for name in dict.fromkeys(name for name, _ in stratum):
        steps = tuple(sorted(step for owner, step in stratum if owner == name))
        conversations.append(Read(found[name][0], shelf.world_for(pack, found[name][1])[1], steps))
    untouched = [each for each in found.values() if each[0].id not in {name for name, _ in stratum}]
    for made, file, step in _made(pack, untouched, chance, DRAWN["without"]):
        conversations.append(Read(made, shelf.world_for(pack, file)[1], (step,)))
        stratum[made.id, step] = "without"
    chance.shuffle(conversations)
    sizes = {name: len(places) for name, places in kinds.items()}
    labels = _labels("airline-near-miss-strata.csv")
    return Draw(pack, data / "tau1" / "policy.md", labels, conversations, stratum, sizes)


def further(data: Path) -> Draw:
    """Draw more calls without a look-up, from conversations that `strata` does not use."""
    shelf = Shelf("tau-airline", world=data)
    first = strata(data)
    taken = {each.trajectory.id.split(_WITHOUT)[0] for each in first.conversations}
    found = list(_read(sorted((data / "tau1" / "runs").glob("*.json.gz"))))
    untouched = [each for each in found if each[0].id not in taken]
    conversations = [
        Read(made, shelf.world_for(first.pack, file)[1], (step,))
        for made, file, step in _made(first.pack, untouched, random.Random(SEED + 1), FURTHER)
    ]
    stratum = {(each.trajectory.id, step): "without" for each in conversations for step in each.steps}
    labels = _labels("airline-near-miss-further.csv")
    return Draw(first.pack, first.policy, labels, conversations, stratum, {})


DRAWS: dict[str, Callable[[Path], Draw]] = {"plain": plain, "strata": strata, "further": further}


def _read(files: Sequence[Path]) -> Iterator[tuple[Trajectory, Path]]:
    for file in files:
        for each in read(file):
            if isinstance(each, Trajectory):
                yield each, file


def writes(pack: Pack, trajectory: Trajectory) -> tuple[int, ...]:
    return tuple(
        step
        for step, event in enumerate(trajectory.events)
        if isinstance(event, Call) and event.by == "agent" and is_write(pack, event)
    )


def is_write(pack: Pack, call: Call) -> bool:
    tool = pack.schema.tools.get(call.tool)
    return tool is not None and tool.effect == "write"


def judged(
    pack: Pack, trajectory: Trajectory, world: World | None, places: set[Place] | None = None
) -> list[CallVerdict]:
    """Return the verdicts on the write calls of a conversation, or only on those in `places`."""
    session = Session(pack, world=world)
    observed = 0
    for step in writes(pack, trajectory):
        session.observe_all(trajectory.events[observed:step])
        observed = step
        call = trajectory.events[step]
        if isinstance(call, Call) and (places is None or (trajectory.id, step) in places):
            session.judge(call)
    session.observe_all(trajectory.events[observed:])
    return [each for each in session.settle() if places is None or (trajectory.id, each.made.step) in places]


def _kind(call: CallVerdict, trajectory: Trajectory) -> str:
    """Return the stratum of a recorded call."""
    if call.strict == "near_miss":
        speaking = {each.policy.id for each in call.policies if each.strict == "near_miss"}
        return "price" if speaking <= PRICES else "flagged"
    shown = " ".join(_text(each) for each in trajectory.events[: call.made.step] if isinstance(each, Result))
    return "other" if all(name in shown for name in named(call.made.call.arguments)) else "unnamed"


def named(arguments: dict[str, Any]) -> list[str]:
    """Return the entities that a call names: reservation, customer, payments, flights."""
    found = [str(arguments[name]) for name in ("reservation_id", "user_id", "payment_id") if arguments.get(name)]
    for part, name in (("payment_methods", "payment_id"), ("flights", "flight_number")):
        found += [str(each.get(name)) for each in arguments.get(part) or () if isinstance(each, dict)]
    return found


def _text(result: Result) -> str:
    return result.content if isinstance(result.content, str) else bytes(result.content).decode()


def _made(
    pack: Pack, found: Sequence[tuple[Trajectory, Path]], chance: random.Random, wanted: int
) -> Iterator[tuple[Trajectory, Path, int]]:
    """Yield conversations with a good outcome. In each, one look-up is removed: one that shows an entity named in the
    write.
    """
    well = [each for each in found if each[0].outcome is not None and each[0].outcome.good]
    count = 0
    for trajectory, file in chance.sample(well, len(well)):
        if count == wanted:
            return
        if not (steps := writes(pack, trajectory)):
            continue
        step = chance.choice(steps)
        if looked_up := _look_ups(pack, trajectory, step):
            made, place = _without(trajectory, chance.choice(looked_up), step)
            yield made, file, place
            count += 1


def _look_ups(pack: Pack, trajectory: Trajectory, step: int) -> list[int]:
    """Return the steps of the reads before a write that show an entity named by the write."""
    call = trajectory.events[step]
    assert isinstance(call, Call)
    answers = [
        (each.call, _text(each))
        for each in trajectory.events[:step]
        if isinstance(each, Result)
        and each.call is not None
        and any(name in _text(each) for name in named(call.arguments))
    ]
    return [
        place
        for place, _ in answers
        if isinstance(made := trajectory.events[place], Call) and not is_write(pack, made) and made.by == "agent"
    ]


def _without(trajectory: Trajectory, look_up: int, step: int) -> tuple[Trajectory, int]:
    """Return the conversation without a look-up and its repetitions before a write, and the new step of the write."""
    gone = trajectory.events[look_up]
    assert isinstance(gone, Call)
    calls = {
        place
        for place, event in enumerate(trajectory.events[:step])
        if isinstance(event, Call) and (event.tool, event.arguments) == (gone.tool, gone.arguments)
    }
    places: dict[int, int] = {}
    events: list[Event] = []
    for place, event in enumerate(trajectory.events):
        if place in calls or (isinstance(event, Result) and event.call in calls):
            continue
        places[place] = len(events)
        if isinstance(event, Result) and event.call is not None:
            event = replace(event, call=places[event.call])
        events.append(event)
    return replace(trajectory, id=f"{trajectory.id}{_WITHOUT}{look_up}", events=tuple(events)), places[step]
