"""What is kept of a guard's answer on things nobody knows is what it says of each call, names that mislead included."""

import sys
from copy import copy
from itertools import product
from typing import Any

import pytest

from bylaw.facts.entity import Fact
from bylaw.guard import evaluate

from .asking import wrapped
from .shop import NOW, guard, order
from .twin import Table

CONDITIONS = (
    "r.paid",
    'r.state == "open" and r.size > 3',
    "r.owner == call.other_id",
    'r.owner == call.other_id or r.owner == "B"',
    "r.owner == call.other_id and r.owner == call.order_id",
    "r.state == call.other_id",
    "r.owner != call.other_id or call.other_id == 'B'",
    "r.paid and facts.Order(call.other_id).paid",
    "r.paid or not facts.Order(call.other_id).paid",
    "r.order_id == 'A' or r.paid",
    "r.paid and (r.order_id.startswith('order') or r.gift)",
    "r.owner == get(call, 'note', '') and r.owner != call.other_id",
    'facts.Line(call.order_id, "B").amount > 1 or facts.Line(call.order_id, call.other_id).amount > 2',
    "facts.Owner(r.owner).vip or facts.Owner(call.other_id).vip",
    "r.size > call.amount",
    "r.size > get(call, 'amount', 0)",
    "r.made > now() - hours(24)",
    "r.exists and r.paid",
    "call.other_id in ('B', 'C') or r.gift",
    "facts.Request.sure and r.paid",
)
NAMES = ("A", "B", "open", "order-7", "", 3, None)
KNOWN: tuple[dict[Fact, Any], ...] = ({}, order(exists=True), order(paid=True, exists=True), order("B", paid=False))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_guard_that_was_asked_before_says_what_a_new_one_says(condition: str) -> None:
    old, untouched = guard(wrapped(condition)), guard(wrapped(condition))
    for facts, one, other, amount in product(KNOWN, NAMES, NAMES, (3, 4)):
        arguments = {"order_id": one, "other_id": other, "amount": amount, "note": "order-7"}
        new = evaluate(copy(untouched), arguments, Table(facts), now=NOW)
        assert evaluate(old, arguments, Table(facts), now=NOW) == new, (arguments, facts)


def explored(*_: object) -> None:
    pytest.fail("explored again")


def test_what_was_found_for_one_call_is_said_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    old = guard(wrapped('r.state == "open" and r.owner == call.other_id'))
    calls = [{"order_id": f"O{number}", "other_id": f"P{number}"} for number in range(3)]
    first = [evaluate(old, call, Table({})) for call in calls]
    monkeypatch.setattr(sys.modules["bylaw.guard.evaluate"], "_explore", explored)
    assert [evaluate(old, call, Table({})) for call in calls] == first
    assert [fact.key for fact in evaluate(old, calls[2], Table({}))[0].lacking] == [("O2",), ("O2",)]
