"""Guards settle what needs fewer facts first, and nobody is asked about inputs that no record shows."""

from datetime import datetime

import pytest

from bylaw.compile.bench import Bench
from bylaw.compile.card import Card
from bylaw.compile.context import code_notes
from bylaw.compile.inputs import tried
from bylaw.compile.pipeline import compile_pack
from bylaw.compile.things import Things
from bylaw.policy.statement import Policy
from bylaw.policy.yaml import read_yaml
from bylaw.trace import Call, Trajectory
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
        trials = tried("legs", [guard], [code], tools, now, bench.inside, bench.held, bench.shortest)
        empty = [trial for trial in trials if trial.case["call"]["book"]["legs"] == []]
        assert empty
        return any(not trial.is_broken for trial in empty)

    assert not is_put(logs)
    assert is_put(logs[:3]), "a few calls tell nothing"
