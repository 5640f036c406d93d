"""Guards settle what needs fewer facts first, and nobody is asked about inputs that no record shows."""

import json
from datetime import datetime

import pytest
from msgspec.structs import replace

from bylaw.compile.bench import Bench
from bylaw.compile.card import Card
from bylaw.compile.context import code_notes
from bylaw.compile.inputs import tried
from bylaw.compile.pipeline import compile_pack
from bylaw.compile.things import Things
from bylaw.policy.statement import Policy
from bylaw.policy.yaml import read_yaml
from bylaw.trace import Call, Result, Trajectory
from tests.compile.shop import CARDS, CASES, LIMIT, THINGS, WINDOW, Scripted, source


@pytest.mark.parametrize(
    ("sentences", "is_told"),
    [
        ("Refunds are at most the price.", True),
        ("First look at the order.", False),
        ("Where a clause gives an order, the assistant looks in that order.", False),
    ],
)
def test_what_needs_fewer_facts_comes_first_unless_the_document_gives_an_order(sentences: str, is_told: bool) -> None:
    advice = code_notes(read_things(), CARDS, ["refund"], sentences)
    assert ("settle first what needs the fewest facts" in advice) is is_told


def read_things() -> Things:
    record = read_yaml(THINGS, file="things.yaml").data
    return Things(record["entities"], record["observations"], record["tools"])


def test_of_two_generations_that_say_the_same_the_one_that_looks_at_fewer_facts_is_kept() -> None:
    eager = WINDOW.replace("days(30):", 'days(30) and facts.Order(call.order_id).refunded >= money("0.00"):')
    cases = CASES.replace("{delivered_on: 2025-01-16}", '{delivered_on: 2025-01-16, refunded: "0.00"}')
    work, _ = compile_pack(source(), Scripted(guards=[eager + LIMIT, WINDOW + LIMIT], cases=cases))
    assert work.checks["refund-window"].code.strip() == WINDOW.strip()


def test_a_list_that_no_call_was_logged_with_is_put_to_nobody() -> None:
    card = Card("book", "Book.", {"legs": {"type": "array", "items": {"type": "string"}}}, ("legs",), "write")
    things = Things({}, {}, {"book": {"effect": "write"}})
    logs = [Trajectory(str(number), (Call("book", {"legs": ["X1"] * (1 + number % 2)}),)) for number in range(6)]
    code = 'def legs(call, facts):\n    return deny("none") if len(call.legs) == 0 else permit()\n'
    policy = Policy("legs", "guard", "", ("book",))

    def is_put(trajectories: list[Trajectory]) -> bool:
        bench = Bench({"book": card}, things, {}, "2025-01-15T10:00:00", trajectories)
        guard, _ = bench.guard(policy, code)
        assert guard is not None
        tools = [bench.base.schema.tools["book"]]
        now = datetime.fromisoformat(bench.now)
        trials = tried("legs", [guard], [code], tools, now, bench.inside, bench.plausible)
        empty = [trial for trial in trials if trial.case["call"]["book"]["legs"] == []]
        assert empty
        return any(not trial.is_broken for trial in empty)

    assert not is_put(logs)
    assert is_put(logs[:3]), "a few calls tell nothing"


STAY = """
def stay(call, facts):
    room = facts.Room(call.room_id)
    if call.days <= 0 or date(call.start) == date(call.end) or date(room.until) == date(room.since):
        return deny("not now")
    return permit()
"""


def test_a_stay_that_ends_before_it_starts_or_lasts_less_than_no_day_is_put_to_nobody() -> None:
    words = {"type": "string"}
    schema = {"room_id": words, "days": {"type": "integer"}, "start": words, "end": words}
    cards = {
        "get_room": Card("get_room", "Read.", {"room_id": words}, ("room_id",), "read"),
        "book": Card("book", "Book.", schema, tuple(schema), "write"),
    }
    room = {"key": "room_id", "read": "get_room", "fields": {"since": "date", "until": "date"}}
    things = Things({"Room": room}, {"get_room": {"as": "Room"}}, {"get_room": {"effect": "read"}, "book": {}})
    policy = Policy("stay", "guard", "", ("book",))

    def put(logs: list[Trajectory], cards: dict[str, Card] = cards) -> tuple[set[int], set[bool], set[bool]]:
        """The days, and whether the call and the room end before they start, of what a referee may see."""
        bench = Bench(cards, things, {}, "2025-01-15T10:00:00", logs)
        guard, faults = bench.guard(policy, STAY)
        assert guard is not None, faults
        tools, now = [bench.base.schema.tools["book"]], datetime.fromisoformat(bench.now)
        trials = tried("stay", [guard], [STAY], tools, now, bench.inside, bench.plausible)
        seen = [trial.case for trial in trials if not trial.is_broken]
        calls, rooms = [each["call"]["book"] for each in seen], [each["facts"].get("Room[X1]") for each in seen]
        return (
            {call["days"] for call in calls},
            {call["end"] < call["start"] for call in calls},
            {room["until"] < room["since"] for room in rooms if room and len(room) == 2},
        )

    def log(day: int, days: int = 2) -> Trajectory:
        since, until = (f"2025-01-{day + more:02}" for more in (1, 3))
        shown = json.dumps({"room_id": "X1", "since": since, "until": until})
        book = Call("book", {"room_id": "X1", "days": days, "start": since, "end": until})
        return Trajectory(f"{day}", (Call("get_room", {"room_id": "X1"}), Result(0, shown), book))

    logs = [log(day) for day in range(5)]
    days, calls, rooms = put(logs)
    assert min(days) == 0
    assert calls == rooms == {False}
    assert put(logs[:4])[1:] == ({False, True}, {False, True}), "too few records show an order"
    assert min(put([*logs, log(9, days=-2)])[0]) < 0, "a record has a negative number"
    longest = replace(cards["book"], parameters={**schema, "days": {"type": "integer", "minimum": 1}})
    assert min(put(logs, {**cards, "book": longest})[0]) == 1
