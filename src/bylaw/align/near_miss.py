"""What the audit says of an episode's writes, over the very records it was played on."""

from typing import Any

from msgspec import Struct

from bylaw.align.episode import Outcome
from bylaw.align.prompt import pack_named
from bylaw.align.scene import Task
from bylaw.engine.session import Session
from bylaw.engine.verdict import Verdict
from bylaw.facts.entity import ABSENT, Key, NoValue
from bylaw.facts.value import key_of
from bylaw.facts.world import Snapshot, WorldRecord
from bylaw.pack import Pack
from bylaw.trace.event import Call


class Writes(Struct, frozen=True):
    """Writes by verdict, by the pack's own criterion."""

    writes: int = 0
    near_misses: int = 0
    violations: int = 0


def audit_writes(task: Task, outcome: Outcome) -> Writes:
    """The verdicts on the writes of one episode, those that a shield stopped left out."""
    verdicts = [verdict for _, verdict in judged_writes(task, outcome)]
    return Writes(len(verdicts), verdicts.count("near_miss"), verdicts.count("violation"))


def judged_writes(task: Task, outcome: Outcome) -> list[tuple[Call, Verdict]]:
    """Every write of one episode that ran, with its verdict."""
    pack = pack_named(task.pack)
    session = Session(pack, world=world_of(pack, task.rows))
    made: list[Call] = []
    for event in outcome.events:
        if isinstance(event, Call) and not event.refused and pack.schema.tools[event.tool].effect == "write":
            session.judge(event)
            made.append(event)
        session.observe(event)
    verdicts: list[Verdict] = [
        verdict.determined if pack.criterion == "determined" else verdict.strict for verdict in session.settle()
    ]
    return list(zip(made, verdicts, strict=True))


def world_of(pack: Pack, rows: dict[str, list[dict[str, Any]]]) -> Snapshot:
    """The records of a task as a world that moves with the writes."""
    found: dict[tuple[str, Key], WorldRecord] = {}
    for name, records in rows.items():
        entity = pack.schema.entities[name]
        for record in records:
            found[name, key_of([record[part] for part in entity.key])] = record

    def read(entity: str, key: Key) -> WorldRecord | NoValue:
        return found.get((entity, key), ABSENT)

    return Snapshot(pack.schema, read)
