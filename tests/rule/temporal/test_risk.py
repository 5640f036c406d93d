"""The risk report: against chains worked out by hand, and against many simulated episodes."""

import random

import pytest

from bylaw.errors import FormulaError
from bylaw.rule.lines import Chain, learn_chain, risk
from bylaw.rule.rule import Rule, read_rule

from .formulas import random_formula, random_trace
from .meaning import holds
from .storm import has_storm, prism_program, risk_by_storm


def test_a_coin_that_breaks_a_rule_with_a_tenth_at_each_act() -> None:
    rule = read_rule("r", "ALWAYS NOT a")
    coin = {0: 0.9, 1: 0.1}
    found = risk(rule, Chain(("a",), coin, {0: coin, 1: coin}), steps=5)
    assert found.within == pytest.approx([1 - 0.9**k for k in range(1, 6)])
    assert found.ever == pytest.approx(1.0)
    assert found.unmet == 0.0


def test_an_episode_that_may_end_before_its_promise_is_kept() -> None:
    rule = read_rule("r", "EVENTUALLY a")
    chain = Chain(("a",), {0: 1.0}, {0: {0: 0.5, 1: 0.25}, 1: {1: 0.5}})
    found = risk(rule, chain)
    assert found.ever == 0.0
    assert found.unmet == pytest.approx(0.5)


def test_a_chain_counts_what_followed_what() -> None:
    rule = read_rule("r", "ALWAYS (a IMPLIES ONCE b)")
    yes, no = {"a": True, "b": False}, {"a": False, "b": True}
    chain = learn_chain(rule, [[yes, no], [no, no, yes], []])
    assert chain.first == {1: 0.5, 2: 0.5}
    assert chain.next == {1: {2: 0.5}, 2: {2: pytest.approx(1 / 3), 1: pytest.approx(1 / 3)}}
    with pytest.raises(FormulaError):
        learn_chain(rule, [[]])


def test_probabilities_are_those_of_many_simulated_episodes() -> None:
    dice = random.Random(13)
    rule = read_rule("r", "ALWAYS (a IMPLIES NEXT b) AND EVENTUALLY b")
    chain = Chain(("a", "b"), {0: 0.5, 1: 0.5}, {0: {0: 0.4, 1: 0.3}, 1: {2: 0.7, 0: 0.2}, 2: {1: 0.2, 0: 0.4}})
    found = risk(rule, chain, steps=60)
    assert found.within[-1] == pytest.approx(found.ever, abs=1e-9)
    total = 4000
    failed = 0
    for _ in range(total):
        act: int | None = dice.choices(list(chain.first), list(chain.first.values()))[0]
        trace = []
        while act is not None:
            trace.append({"a": bool(act & 1), "b": bool(act & 2)})
            after = chain.next[act]
            act = dice.choices([*after, None], [*after.values(), 1 - sum(after.values())])[0]
        failed += not holds(rule.formula, trace)
    assert failed / total == pytest.approx(found.ever + found.unmet, abs=0.03)


def test_the_model_for_storm_names_what_is_asked() -> None:
    text = prism_program(read_rule("r", "ALWAYS NOT a"), Chain(("a",), {0: 0.9, 1: 0.1}, {0: {0: 0.9, 1: 0.1}}))
    assert "[] s=1 -> 0.9 : (s'=1) + 0.1 : (s'=2);" in text
    assert 'label "broken" = s=2;' in text


@pytest.mark.skipif(not has_storm(), reason="Storm is not installed")
def test_storm_agrees_with_our_own_solver() -> None:
    dice = random.Random(14)
    for _ in range(40):
        rule = Rule("r", random_formula(dice, dice.randint(2, 7)))
        chain = learn_chain(rule, [random_trace(dice, 6) for _ in range(8)])
        own, other = risk(rule, chain, steps=6), risk_by_storm(rule, chain, steps=6)
        assert own.within == pytest.approx(other.within, abs=1e-6), str(rule.formula)
        assert (own.ever, own.unmet) == pytest.approx((other.ever, other.unmet), abs=1e-5), str(rule.formula)
