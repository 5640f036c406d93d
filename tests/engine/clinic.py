"""The clinic pack, its snapshot world and simulated conversations, for tests of the engine."""

import sqlite3
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from bylaw.engine.session import Mode, Session
from bylaw.engine.settlement import CallVerdict
from bylaw.facts.database import open_snapshot
from bylaw.facts.world import Snapshot
from bylaw.pack import Pack, load_pack
from bylaw.pack.rules import Rules
from bylaw.trace import Call, Event, Result, Trajectory
from bylaw_lab.clinic.simulator.generate import clinic as simulated_clinic
from bylaw_lab.clinic.simulator.generate import simulate
from bylaw_lab.clinic.simulator.world import build


@cache
def pack() -> Pack:
    return load_pack("clinic")


def guards_of(pack: Pack) -> Pack:
    """A pack without its rules, for tests that look at guards alone: a session spends most of its time on rules."""
    return msgspec.structs.replace(pack, book=Rules({}, ()))


@cache
def guards() -> Pack:
    return guards_of(pack())


@cache
def world() -> Snapshot:
    import tempfile

    folder = tempfile.mkdtemp()
    path = Path(folder) / "clinic.sqlite"
    connection: sqlite3.Connection = build(path)
    connection.close()
    return open_snapshot(path, pack().schema)


@cache
def conversations() -> tuple[Trajectory, ...]:
    """A few hundred conversations with a write, always the same."""
    writes = {name for name, tool in pack().schema.tools.items() if tool.effect == "write"}
    found = (trajectory for trajectory, _ in simulate(77, 300))
    return tuple(t for t in found if any(isinstance(e, Call) and e.tool in writes for e in t.events))


def judge(events: Sequence[Event], mode: Mode = "snapshot") -> list[CallVerdict]:
    """The verdict of the guards on every write call."""
    session = Session(guards(), world=world() if mode == "snapshot" else None, mode=mode)
    tools = pack().schema.tools
    for event in events:
        if isinstance(event, Call) and event.by == "agent":
            tool = tools.get(event.tool)
            if tool is None or tool.effect == "write":
                session.judge(event)
        session.observe(event)
    return session.settle()


def look_up(tool: str, arguments: dict[str, Any]) -> str:
    """What a read tool truthfully answers before anything was changed."""
    desk = simulated_clinic().desk
    desk.reset()
    return msgspec.json.encode(desk.call(tool, arguments)).decode()


def inserted(events: Sequence[Event], at: int, tool: str, arguments: dict[str, Any], answer: str) -> list[Event]:
    """The same conversation with a look-up made, and answered, in a turn of its own just before step `at`."""
    turn = max((e.turn for e in events[:at] if not isinstance(e, Result)), default=0) + 1
    before = list(events[:at])
    new: list[Event] = [Call(tool, arguments, id="inserted", turn=turn), Result(at, answer, tool=tool)]
    after: list[Event] = []
    for event in events[at:]:
        if isinstance(event, Result):
            call = event.call
            after.append(msgspec.structs.replace(event, call=call + 2 if call is not None and call >= at else call))
        else:
            after.append(msgspec.structs.replace(event, turn=event.turn + 2))
    return before + new + after


def removed(events: Sequence[Event], steps: set[int]) -> list[Event]:
    """The same conversation without those events; results that answer a removed call go too."""
    gone = steps | {i for i, e in enumerate(events) if isinstance(e, Result) and e.call in steps}
    places = {old: new for new, old in enumerate(i for i in range(len(events)) if i not in gone)}
    kept: list[Event] = []
    for index, event in enumerate(events):
        if index in gone:
            continue
        if isinstance(event, Result) and event.call is not None:
            event = msgspec.structs.replace(event, call=places[event.call])
        kept.append(event)
    return kept
