"""Search, quotes and Formal-Verify: code, each against what is obvious."""

import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.answering.history import History
from bylaw.answering.operation import Check, Plan, Search, Use, Verify
from bylaw.answering.running import Claim, verified
from bylaw.engine.predicate_values import AnswerQuote
from bylaw.rule.formula import is_propositional, parse
from bylaw.rule.monitor import Act
from bylaw.rule.progression import values_of
from bylaw.trace import Call, Event, Message, Result

FORMULAS = (
    "a AND b",
    "a IMPLIES NOT b",
    "a OR (b AND NOT c)",
    "EVENTUALLY (a AND NEXT EVENTUALLY b)",
    "ALWAYS (b IMPLIES ONCE a)",
    "(NOT c) UNTIL a",
    "EVENTUALLY a AND NOT EVENTUALLY c",
)
claims = st.builds(
    lambda value, steps: Claim(value, tuple(AnswerQuote(step, "x") for step in steps) if value else ()),
    st.sampled_from([True, False, None]),
    st.sets(st.integers(0, 5), min_size=1, max_size=3),
)


def obvious(text: str, found: Mapping[str, Claim]) -> set[bool]:
    """What the formula comes to under every way in which what is not known may be."""
    formula = parse(text)
    steps = sorted({quote.step for claim in found.values() if claim.value for quote in claim.quotes}) or [0]
    if is_propositional(formula):
        steps = [0]
    known = [
        {
            name: claim.value
            if claim.value is None or is_propositional(formula)
            else claim.value and step in {quote.step for quote in claim.quotes}
            for name, claim in found.items()
        }
        for step in steps
    ]
    open_places = [(place, name) for place, row in enumerate(known) for name, value in row.items() if value is None]
    results: set[bool] = set()
    for values in itertools.product((False, True), repeat=len(open_places)):
        filled = [dict(row) for row in known]
        for (place, name), value in zip(open_places, values, strict=True):
            filled[place][name] = value
        results.add(bool(values_of(formula, [{name: bool(value) for name, value in row.items()} for row in filled])[0]))
    return results


@given(st.sampled_from(FORMULAS), st.fixed_dictionaries({"a": claims, "b": claims, "c": claims}))
def test_a_formula_over_answers_means_what_it_means_in_a_rule(text: str, found: dict[str, Claim]) -> None:
    if sum(claim.value is None for claim in found.values()) > 1:
        return
    wanted = obvious(text, found)
    assert verified(parse(text), found) == (wanted.pop() if len(wanted) == 1 else None)


EVENTS: list[Event] = [
    Message("user", "Hello,\nI am  Ada.", 1),
    Call("get_order", {"order_id": "R-7"}, turn=2),
    Result(1, '{"order_id": "R-7", "note": "fragile"}', tool="get_order"),
    Message("agent", "I would cancel order R-7 now.", 3),
    Message("user", "Fine by me.", 4),
    Message("agent", "Something else entirely.", 5),
]
ACT = Act(6, "cancel_order", {"order_id": "R-7"}, "", (), (), 1, 1, False, "write")


@pytest.mark.parametrize(
    ("quote", "stands"),
    [
        (AnswerQuote(0, "I am Ada."), True),
        (AnswerQuote(0, "Hello, I am"), True),
        (AnswerQuote(0, "i am Ada"), False),
        (AnswerQuote(4, "I am Ada."), False),
        (AnswerQuote(2, "fragile"), True),
        (AnswerQuote(1, 'get_order({"order_id":"R-7"})'), True),
        (AnswerQuote(-1, "Fine"), False),
        (AnswerQuote(6, "Fine"), False),
        (AnswerQuote(4, ""), False),
    ],
)
def test_a_quote_stands_where_it_says_or_nowhere(quote: AnswerQuote, stands: bool) -> None:
    assert History(EVENTS, ACT).holds(quote) is stands


def test_nothing_from_the_act_on_can_be_quoted() -> None:
    early = Act(4, "cancel_order", {}, "", (), (), 1, 1, False, "write")
    assert not History(EVENTS, early).holds(AnswerQuote(4, "Fine by me."))


def test_a_search_finds_rare_words_with_the_reply_to_them_in_order() -> None:
    history = History(EVENTS, ACT)
    found = history.search(Search("s", "", "agent"), "cancel R-7")
    assert [piece.step for piece in found] == [0 + 1, 3, 4]
    assert [piece.step for piece in history.search(Search("s", "", "user", 1), "nothing of the kind")] == [4]
    assert history.search(Search("s", "", "tool"), "the and of") == ()
    assert [piece.step for piece in history.search(Search("s", "", "anyone", 99), "")] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("plan", "fault"),
    [
        (Plan(()), "a plan has 1 to 12 steps"),
        (Plan((Check("told", "?", ("later",)), Search("later", ""))), "uses `later`, which is not an earlier step"),
        (Plan((Search("told", "x"),)), "`told` is a search"),
        (Plan((Check("told", "?"), Check("told", "?"))), "`told` is not a unique name"),
        (Plan((Check("told told", "?"),)), "is not a unique name"),
        (Plan((Verify("told", "told"),)), "uses `told`"),
        (Plan((Verify("told", "a AND"),)), "uses an invalid formula: a AND"),
        (Plan((Verify("told", "a" * 500),)), "500 characters"),
        (Plan((Use("told", "rm"),)), "uses the unknown tool `rm`"),
        (Plan((Check("other", "?"),)), "no step is named `told`"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_says_why(plan: Plan, fault: str) -> None:
    assert fault in "; ".join(plan.faults(["told"]))
