"""Simulates conversations with the truth about them. `simulate` makes them, and `write` saves them."""

import gzip
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bylaw.trace import Call, Result, TaskOutcome, Trajectory
from bylaw_lab.clinic.simulator import dialogue
from bylaw_lab.clinic.simulator.agents import AGENTS
from bylaw_lab.clinic.simulator.claims import doubtful
from bylaw_lab.clinic.simulator.conversation import Conversation, Mess
from bylaw_lab.clinic.simulator.play import Play
from bylaw_lab.clinic.simulator.tasks import Task, make
from bylaw_lab.clinic.simulator.users import USERS
from bylaw_lab.clinic.simulator.verdict import CallTruth, Truth
from bylaw_lab.clinic.simulator.wants import Clinic
from bylaw_lab.clinic.simulator.world import build

TRIES = 20


class CallLabel(Struct, frozen=True):
    """Labels for learning weights, which say whether one write was safe."""

    trajectory: str
    step: int
    safe: bool


class Simulated(Struct, frozen=True):
    """A conversation, its ground truth and its log record."""

    trajectory: Trajectory
    truth: Truth
    record: dict[str, Any]
    labels: tuple[CallLabel, ...]
    """Whether each write was safe: it broke no clause, the caller heard about it and agreed, and it was the only write
    in its turn.
    """
    agreed: frozenset[int] = frozenset()
    """Steps of writes that the caller heard about and agreed to."""


def simulate(seed: int, count: int) -> Iterator[tuple[Trajectory, Truth]]:
    """Yield `count` conversations. The same seed always gives the same conversations."""
    for made in simulated(seed, count):
        yield made.trajectory, made.truth


def simulated(seed: int, count: int) -> Iterator[Simulated]:
    """Like `simulate`, with log records."""
    for number in range(count):
        yield one(clinic(), seed, number)


@cache
def clinic() -> Clinic:
    """Return the clinic in memory. Every conversation restores it."""
    return Clinic(build())


def one(place: Clinic, seed: int, number: int) -> Simulated:
    """Return one conversation. If readers could disagree about its claims, another one is drawn."""
    for attempt in range(TRIES):
        rng = random.Random(f"{seed}/{number}/{attempt}")
        talk = Conversation(place, rng, messy(rng))
        place.desk.reset()
        agent = rng.choice(AGENTS)
        task = small_talk(talk) if rng.random() < 0.04 else None
        if task is None:
            task = make(place, rng, f"clinic-{seed}-{number:05}")
            Play(talk, agent, rng.choice(USERS), task).run()
        good = task.reached(place.desk)
        calls = talk.truth()
        if attempt < TRIES - 1 and (unclear(talk, calls) or muddled(talk)):
            continue
        id = f"clinic-{seed}-{number:05}"
        trajectory = Trajectory(
            id,
            talk.events,
            agent=agent.name,
            outcome=TaskOutcome(good, "outcome"),
            instructions=talk.messages[0]["content"],
        )
        record = {"id": id, "agent": agent.name, "outcome": good, "messages": talk.messages}
        return Simulated(trajectory, Truth(id, calls), record, labels(id, talk, calls), frozenset(talk.agreed))
    raise AssertionError("no clear conversation found")


def labels(id: str, talk: Conversation, calls: Iterable[CallTruth]) -> tuple[CallLabel, ...]:
    """Label writes. The script of the conversation decides clauses 2.1 and 2.2, and the database decides all others."""
    turns = Counter(call.turn for _, call in talk.writes())
    alone = {step for step, call in talk.writes() if turns[call.turn] == 1}
    kept = {call.step for call in calls if call.determined["snapshot"] != "violation"}
    return tuple(CallLabel(id, call.step, call.step in kept & alone & talk.agreed) for call in calls)


def messy(rng: random.Random) -> Mess:
    """Draw the recording errors. Most recordings have none."""
    match rng.randrange(12):
        case 0:
            return Mess(lost=0.3)
        case 1:
            return Mess(glitch=0.15)
        case 2:
            return Mess(garbled=0.12)
        case 3:
            return Mess(reused_ids=True)
        case 4:
            return Mess(shuffled=1.0)
        case 5:
            return Mess(lost=0.1, glitch=0.1, shuffled=0.5)
        case _:
            return Mess()


def small_talk(talk: Conversation) -> Task:
    """Return a conversation without requests, or without requests for changes."""
    patient = talk.rng.choice(talk.clinic.patients)
    for question, answer in talk.rng.sample(dialogue.TALK, 2):
        talk.user(question)
        if talk.rng.random() < 0.3:
            talk.act([("get_patient", {"patient_id": patient})])
        talk.agent(answer)
    talk.user(dialogue.pick(talk.rng, dialogue.BYE))
    return Task("", patient, (), ())


def unclear(talk: Conversation, calls: Iterable[CallTruth]) -> bool:
    """Whether it is uncertain that a user stated a missing fact."""
    for call in calls:
        said = [text for event, text in spoken(talk) if event < call.step]
        real = {
            fact: value
            for ways in talk.witnessed.get(call.step, {}).values()
            for _, run in ways
            for fact, value in run.path
        }
        for policy in call.policies:
            for lack in policy.missing["snapshot"]:
                fact = (lack.entity, lack.key or (), lack.field)
                value = real.get(fact)
                if value is not None and any(doubtful(text, fact, value) for text in said):
                    return True
    return False


def spoken(talk: Conversation) -> list[tuple[int, str]]:
    return [
        (step, event.text)
        for step, event in enumerate(talk.events)
        if not isinstance(event, Call | Result) and event.by == "user"
    ]


def muddled(talk: Conversation) -> bool:
    """Whether a turn has a refused write before another write. If so, the facts for the second write are uncertain."""
    turns: set[int] = set()
    for step, executed in talk.executed.items():
        event = talk.events[step]
        assert isinstance(event, Call)
        if event.turn in turns:
            return True
        if executed is False:
            turns.add(event.turn)
    return False


def write(folder: str | Path, *, seeds: Iterable[int] = (1,), count: int = 500) -> None:
    """Write `logs.jsonl.gz` (OpenAI chat), `truth.jsonl`, `labels.jsonl` and the database `clinic.sqlite`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    database = folder / "clinic.sqlite"
    database.unlink(missing_ok=True)
    build(database).close()
    encode = msgspec.json.encode
    with (
        gzip.GzipFile(folder / "logs.jsonl.gz", "wb", mtime=0) as logs,
        (folder / "truth.jsonl").open("wb") as truths,
        (folder / "labels.jsonl").open("wb") as labelled,
    ):
        for seed in seeds:
            for made in simulated(seed, count):
                logs.write(encode(made.record) + b"\n")
                truths.write(encode(made.truth) + b"\n")
                labelled.writelines(encode(label) + b"\n" for label in made.labels)
