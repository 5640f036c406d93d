"""Predicates of rules and look-up functions: the guard language in two other places."""

from collections.abc import Mapping
from typing import Any

import pytest

from bylaw.errors import GuardError
from bylaw.facts.entity import UNSEEN, Fact
from bylaw.guard import compile_condition, evaluate_condition, judge_predicate, parse_lookups, run_lookup

from .shop import NOW, VOCABULARY, order
from .twin import Table


def predicate(text: str) -> Any:
    return compile_condition(text, parameters=("act", "state"), vocabulary=VOCABULARY, file="rules.yaml", line=7)


def judged(text: str, facts: dict[Fact, Any] | None = None, **act: Any) -> bool | None:
    arguments = {"act": act, "state": {"said": "yes please"}}
    return evaluate_condition(predicate(text), arguments, Table(facts or {}), now=NOW)


def test_a_predicate_reads_its_records_and_facts() -> None:
    assert judged('act.tool == "refund" and "yes" in state.said', tool="refund") is True
    assert judged('act.tool == "refund"', tool="ship") is False
    assert judged("facts.Order(act.id).paid", order(paid=True), id="A") is True


def test_what_an_act_lacks_is_none_and_null_in_what_it_was_given_is_not_known() -> None:
    assert judged('act.tool == "refund"', tool=None) is False
    assert judged("not act.words", words="") is True
    assert judged('act.arguments["gift"]', arguments={"gift": None}) is None
    assert judged('not act.arguments["gift"]', arguments={"gift": "no"}) is None


def test_a_predicate_that_is_unknown_or_fails_is_none_and_says_why() -> None:
    assert judged("facts.Order(act.id).paid", id="A") is None
    assert judged("act.missing == 1") is None
    arguments: dict[str, Any] = {"act": {}, "state": {}}
    assert judge_predicate(predicate("act.missing == 1"), arguments, Table({})) == (
        None,
        "rules.yaml:7: there is no key `missing`; use get()",
    )
    needed = judge_predicate(predicate("facts.Order('A').paid"), arguments, Table({}))
    assert needed == (None, "needs Order[A].paid")


def test_a_predicate_that_was_asked_of_one_act_tells_of_the_next_what_it_lacks() -> None:
    paid = predicate("facts.Order(act.arguments['order_id']).paid")
    for key in ("A", "B", "A"):
        given = {"act": {"arguments": {"order_id": key}}, "state": {}}
        assert judge_predicate(paid, given, Table({}), now=NOW) == (None, f"needs Order[{key}].paid")


def test_a_predicate_on_what_only_the_user_knows_is_none() -> None:
    assert judged("facts.Request.sure") is None
    assert judged("facts.Request.sure or not facts.Request.sure") is True


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("act.__class__", "rules.yaml:7: `__class__` begins with an underscore"),
        ("call.tool == 'x'", "rules.yaml:7: there is no name `call`"),
        ("x = 1", "rules.yaml:7: not Python"),
        ("other.x", "rules.yaml:7: there is no name `other`"),
        ("lambda: 1", "rules.yaml:7: `lambda` is not part of the language"),
        ("act.a and\n", "rules.yaml:7: not Python"),
    ],
)
def test_a_predicate_outside_the_language_is_refused(text: str, reason: str) -> None:
    with pytest.raises(GuardError) as caught:
        predicate(text)
    assert str(caught.value).startswith(reason)


LOOKUP = """
def find_Order_price(key, history):
    for result in history.results("list_orders", owner="kim"):
        for one in result.value:
            if one.id == key.order_id:
                return found(money(one.price))
    return unseen()
"""


class Log:
    def __init__(self, *records: Mapping[str, Any]) -> None:
        self.records = records
        self.asked: list[Any] = []

    def results(self, tool: str, match: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        self.asked.append((tool, dict(match)))
        return list(self.records)


def test_a_look_up_function_searches_the_history() -> None:
    lookups, faults = parse_lookups(LOOKUP, file="lookups/orders.py", vocabulary=VOCABULARY)
    assert faults == []
    lookup = lookups["find_Order_price"]
    assert (lookup.entity.name, lookup.field.name) == ("Order", "price")
    log = Log({"arguments": {}, "value": [{"id": "A", "price": "3.50"}], "step": 4})
    assert str(run_lookup(lookup, ("A",), log)) == "3.50"
    assert run_lookup(lookup, ("B",), log) is UNSEEN
    assert log.asked[0] == ("list_orders", {"owner": "kim"})


def test_a_look_up_that_fails_is_a_malformed_value() -> None:
    lookups, _ = parse_lookups(LOOKUP, file="lookups/orders.py", vocabulary=VOCABULARY)
    with pytest.raises(ValueError, match=r"lookups/orders\.py:2: find_Order_price failed: there is no key `id`"):
        run_lookup(lookups["find_Order_price"], ("A",), Log({"arguments": {}, "value": [{}], "step": 1}))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("find_Order_price", "find_Order_nothing", "does not match a declared field"),
        ("found(money(one.price))", "permit()", "this function must return found(...) or unseen(...)"),
        ("    return unseen()", "    x = 1", "can end without a `return`"),
        ("one.id == key.order_id", "facts.Order('A').paid", "no name `facts`"),
        ("one.id == key.order_id", "now() == 1", "no built-in `now`"),
        ("one.id == key.order_id", "history.__class__", "underscore"),
        ("key, history", "history", "has the wrong arguments"),
    ],
)
def test_a_look_up_outside_the_language_is_refused(old: str, new: str, reason: str) -> None:
    _, faults = parse_lookups(LOOKUP.replace(old, new), file="lookups/orders.py", vocabulary=VOCABULARY)
    assert any(reason in str(fault) for fault in faults), faults
