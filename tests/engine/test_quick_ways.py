"""Every quick way of the engine says what the plain way says.

Guards of one call share what the source answered. If all that a guard read is so, or the world knows nothing of it
better, it is not run over the world.
"""

from collections.abc import Sequence
from functools import cache

import pytest

from bylaw.audit.request import Shelf
from bylaw.engine.session import Mode, Session
from bylaw.engine.settlement import is_equal
from bylaw.facts.entity import ABSENT, UNSEEN
from bylaw.facts.world import World
from bylaw.guard import evaluate
from bylaw.pack import Pack
from bylaw.trace import Call, Event, Result

from .clinic import conversations, guards, guards_of, world
from .recorded import DATA, recorded, runs


@cache
def airline() -> Shelf:
    return Shelf("tau-airline", world=DATA)


def judged(pack: Pack, events: Sequence[Event], world: World | None, mode: Mode) -> int:
    """How many guards said of a call what they say alone."""
    session = Session(pack, world=world, mode=mode)
    count = 0
    for event in events:
        if isinstance(event, Call) and event.by == "agent" and not event.fault:
            judgement = session.judge(event)
            tool = judgement.made.tool
            arguments = tool.fitted(event.arguments) if tool is not None else {}
            for said in judgement.evidence:
                alone = evaluate(said.guard, arguments, judgement.seen, tool=event.tool, now=judgement.now)
                assert said.completions == alone, said.policy.id
                count += 1
        session.observe(event)
    return count


@pytest.mark.parametrize("mode", ["snapshot", "hindsight", "none"])
def test_guards_asked_together_say_what_each_says_alone_of_simulated_conversations(mode: Mode) -> None:
    known = world() if mode == "snapshot" else None
    assert sum(judged(guards(), talk.events, known, mode) for talk in conversations()[:120]) > 300


@pytest.mark.parametrize("mode", [pytest.param("hindsight", marks=recorded)])
def test_guards_asked_together_say_what_each_says_alone_of_recorded_runs(mode: Mode) -> None:
    shelf = airline()
    assert sum(judged(guards_of(shelf.pack_for(run)), run.events, None, mode) for _, run in runs()) > 300


def settled(pack: Pack, events: Sequence[Event], world: World | None, mode: Mode) -> list[object]:
    """What is said of every call, without the records of the calls themselves."""
    session = Session(pack, world=world, mode=mode)
    for event in events:
        if isinstance(event, Call) and event.by == "agent":
            session.judge(event)
        session.observe(event)
    return [(v.made.step, v.strict, v.determined, v.policies, v.fault) for v in session.settle()]


@pytest.mark.parametrize("mode", ["snapshot", "hindsight"])
def test_what_is_not_run_over_the_world_would_say_the_same(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    known = world() if mode == "snapshot" else None
    quick = [settled(guards(), talk.events, known, mode) for talk in conversations()[:120]]
    monkeypatch.setattr("bylaw.engine.settlement._CallCase._holds", lambda *_: False)
    assert quick == [settled(guards(), talk.events, known, mode) for talk in conversations()[:120]]


@pytest.mark.parametrize("mode", [pytest.param(mode, marks=recorded) for mode in ("snapshot", "hindsight")])
def test_the_same_of_recorded_runs(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = airline()

    def all_settled() -> list[list[object]]:
        worlds = [(guards_of(shelf.pack_for(run)), file, run) for file, run in runs()]
        return [
            settled(pack, run.events, shelf.world_for(pack, file)[1] if mode == "snapshot" else None, mode)
            for pack, file, run in worlds
        ]

    quick = all_settled()
    monkeypatch.setattr("bylaw.engine.settlement._CallCase._holds", lambda *_: False)
    assert quick == all_settled()


def test_a_guard_that_counts_is_run_over_hindsight_though_it_knows_no_fact_better() -> None:
    """Two calls of one turn, of which the first was refused: known to hindsight, and not when the second was made."""
    pack = Pack.from_files(
        {
            "pack.yaml": "format: 1\nname: shop\ndocument: policy.md\n",
            "policy.md": "An order is refunded once, and only if it is open.\n",
            "tools.yaml": "tools: {refund: {effect: write, parameters: {order_id: string}, changes: []}}\n",
            "entities.yaml": "entities: {Order: {key: order_id, fields: {open: boolean}}}\n",
            "guards/orders.py": """
def once(call: refund, facts):
    "An order is refunded once, and only if it is open."
    if done("refund", order_id=call.order_id) > 0:
        return deny("refunded")
    return permit() if facts.Order(call.order_id).open else deny("closed")
""",
        }
    )
    again = Call("refund", {"order_id": "O1"}, turn=1)
    events = [again, again, Result(0, "not allowed", error=True), Result(1, "not allowed", error=True)]
    session = Session(pack)
    list(session.follow(events, [0, 1]))
    first, second = session.settle()
    assert (first.policies[0].evidence, first.policies[0].world) == ("undetermined", "undetermined")
    assert (second.policies[0].evidence, second.policies[0].world) == ("deny", "undetermined")


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
