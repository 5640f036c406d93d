"""Every quick way of the engine says what the plain way says."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from bylaw.audit.shelf import Shelf
from bylaw.engine.agreement import is_equal
from bylaw.engine.memory import Memory
from bylaw.engine.pack import Pack
from bylaw.engine.session import Mode, Session
from bylaw.facts.entity import ABSENT, UNSEEN
from bylaw.facts.world import World
from bylaw.trace import Call, Event, Message, Result, Trajectory, read

from .clinic import conversations, pack, world

DATA = Path(__file__).parents[3] / "shared" / "data" / "tau-airline"
recorded = [pytest.mark.shared, pytest.mark.skipif(not DATA.is_dir(), reason="no recorded conversations here")]


def settled(
    pack: Pack, events: Sequence[Event], world: World | None, mode: Mode, memory: Memory | None = None
) -> list[object]:
    """What is said of every write call, without the records of the calls themselves; plainly where nothing is kept."""
    session = Session(pack, world=world, mode=mode, plain=memory is None, memory=memory)
    for event in events:
        if isinstance(event, Call) and event.by == "agent":
            tool = pack.schema.tools.get(event.tool)
            if tool is None or tool.effect == "write":
                session.judge(event)
        session.observe(event)
    return [(v.made.step, v.strict, v.determined, v.policies, v.fault) for v in session.settle()]


@pytest.mark.parametrize("mode", ["snapshot", "hindsight", "none"])
def test_settling_the_quick_way_says_the_same_of_simulated_conversations(mode: Mode) -> None:
    known = world() if mode == "snapshot" else None
    memory = Memory(pack().schema.entities)
    for talk in [*conversations()[:120], *conversations()[:40]]:
        quick = settled(pack(), talk.events, known, mode, memory)
        assert quick == settled(pack(), talk.events, known, mode), talk.id
    assert memory.hits > 30


def runs(every: int) -> Iterable[tuple[Path, Trajectory]]:
    for file in sorted(DATA.glob("tau*/runs/*")):
        for position, run in enumerate(read(file)):
            if position % every == 0 and isinstance(run, Trajectory):
                yield file, run


@pytest.mark.parametrize("mode", [pytest.param(mode, marks=recorded) for mode in ("snapshot", "hindsight")])
def test_settling_the_quick_way_says_the_same_of_recorded_runs(mode: Mode) -> None:
    shelf = Shelf("tau-airline", world=DATA)
    memories = {pack.name: Memory(pack.schema.entities) for pack in shelf.packs}
    for file, run in runs(7):
        pack = shelf.pack_for(run)
        known = shelf.world_for(pack, file)[1] if mode == "snapshot" else None
        quick = settled(pack, run.events, known, mode, memories[pack.name])
        assert quick == settled(pack, run.events, known, mode), (file.name, run.id)
    assert all(memory.hits for memory in memories.values())


def test_a_call_is_not_remembered_where_anything_it_asked_for_is_another() -> None:
    """The same call after other answers: the appointment never seen, seen otherwise, or not to be read."""
    memory = Memory(pack().schema.entities)
    call = Call("cancel_appointment", {"appointment_id": "A1", "reason": "x", "fee": "0.00"}, turn=3)
    for shown in (None, {"status": "booked"}, {"status": "cancelled"}, {"status": "booked"}, {"status": True}):
        events: list[Event] = [Message("user", "please", 0)]
        if shown is not None:
            events += [Call("get_appointment", {"appointment_id": "A1"}, turn=1), Result(1, json.dumps(shown))]
        events.append(call)
        assert settled(pack(), events, None, "none", memory) == settled(pack(), events, None, "none"), shown


def test_calls_that_never_repeat_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bylaw.engine.memory.LEAVES", 3)
    memory = Memory(pack().schema.entities)
    for talk in [*conversations()[:30], *conversations()[:30]]:
        plain = settled(pack(), talk.events, world(), "snapshot")
        assert settled(pack(), talk.events, world(), "snapshot", memory) == plain


def test_a_memory_that_is_of_no_use_is_no_longer_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bylaw.engine.memory.TRIAL", 2)
    memory = Memory(pack().schema.entities)
    for number in range(3):
        root = memory.root(Call("cancel_appointment", {"appointment_id": f"A{number}"}), None)
        assert (root is None) == (number == 2)


def test_values_agree_only_where_no_guard_can_tell_them_apart() -> None:
    assert is_equal("a", "a")
    assert is_equal([{"price": 1}], [{"price": 1}])
    assert is_equal(ABSENT, ABSENT)
    assert not is_equal(UNSEEN, UNSEEN)
    assert not is_equal(1, True)
    assert not is_equal([{"price": 1}], [{"price": 1.0}])
    assert not is_equal([True], [1])
    assert not is_equal("1", 1)
    assert not is_equal(None, ABSENT)
