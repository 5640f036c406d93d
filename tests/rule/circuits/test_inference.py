"""The engine against every world, one after the other."""

import math
import random

import pytest

from bylaw.errors import CircuitError
from bylaw.rule.circuit import Circuit
from bylaw.rule.elimination import plan
from bylaw.rule.formula import parse
from bylaw.rule.inference import Inference, assess
from bylaw.rule.letters import TruthTable, chosen_table, table_of
from bylaw.rule.rule import Rule

from . import brute


def circuit(*rules: tuple, action="act", **options) -> Circuit:
    return Circuit(
        action=action,
        rules=tuple(
            Rule(name=f"r{i}", formula=parse(text), **(kind if isinstance(kind, dict) else {"weight": kind}))
            for i, (text, kind) in enumerate(rules)
        ),
        **options,
    )


HARD = {"hard": True}
KNOWN = {"hard": True, "physical": True}


def test_inference_equals_brute_force_on_random_circuits():
    rng = random.Random(5)
    seen = 0
    while seen < 400:
        made = brute.random_circuit(rng)
        evidence = brute.random_evidence(rng, made)
        found = Inference(made).assess(evidence)
        if not list(brute.worlds(made, evidence)):
            assert not found.safe
            assert found.conflict
            assert found.margin is None
            continue
        seen += 1
        assert found.margin == pytest.approx(brute.margin(made, evidence), abs=1e-12)
        low, high = brute.interval(made, evidence)
        vetoes = [r for r in made.rules if r.hard and not r.physical]
        cases = {r.name: brute.cases(made, r, evidence) for r in vetoes}
        assert set(found.veto) == {name for name, case in cases.items() if case == {(False, True)}}
        assert set(found.conflict) == {name for name, case in cases.items() if case == {(False, False)}}
        barred = any(not kept for case in cases.values() for kept, _ in case)
        if found.veto:
            low, high = -1.0, -1.0
        elif barred:
            low = -1.0
        assert found.interval == pytest.approx((low, high), abs=1e-12)
        assert found.safe == (not barred and found.margin >= made.eps)
        if found.decision == "allow":
            assert not barred
            assert low >= made.eps - 1e-12
        if found.decision == "deny":
            assert found.veto or high < made.eps + 1e-12


def test_influence_is_the_distance_between_the_margins_of_a_predicates_two_values():
    rng = random.Random(6)
    checked = 0
    while checked < 200:
        made = brute.random_circuit(rng)
        evidence = brute.random_evidence(rng, made)
        if any(rule.hard for rule in made.rules):
            continue
        found = Inference(made).assess(evidence)
        for name, size in found.influence.items():
            checked += 1
            ends = [brute.margin(made, {**evidence, name: value}) for value in (True, False)]
            assert size == pytest.approx(abs(ends[0] - ends[1]), abs=1e-12)


def test_interval_above_the_width_cap_is_sound_and_there_is_no_margin():
    rng = random.Random(8)
    capped = 0
    for _ in range(300):
        made = brute.random_circuit(rng)
        made = Circuit(action="act", rules=tuple(r for r in made.rules if not r.hard), width_cap=1)
        if not made.rules:
            continue
        evidence = brute.random_evidence(rng, made)
        found = Inference(made).assess(evidence)
        low, high = brute.interval(made, evidence)
        assert found.interval[0] <= low + 1e-12
        assert found.interval[1] >= high - 1e-12
        if found.margin is None:
            capped += 1
            assert found.p_action is None
            assert found.safe == (found.interval[0] >= 0)
    assert capped > 5


def test_a_rule_with_forty_predicates_still_has_an_interval_and_is_exact_once_few_are_unknown():
    names = [f"p{i}" for i in range(40)]
    made = circuit((f"act IMPLIES ({' AND '.join(names)})", 2.0))
    inference = Inference(made)
    found = inference.assess({})
    assert found.margin is None
    assert found.interval == pytest.approx((math.tanh(-1), 0.0))
    found = inference.assess(dict.fromkeys(names[:-1], True))
    assert found.margin == pytest.approx(brute.margin(circuit(("act IMPLIES p39", 2.0)), {}), abs=1e-12)
    assert inference.assess({"p3": False}).margin == pytest.approx(math.tanh(-1))


def test_all_known_is_the_closed_form():
    made = circuit(("act IMPLIES ok", 2.0), ("act IMPLIES calm", 0.5), ("need IMPLIES act", 1.0))
    found = assess(made, {"ok": False, "calm": True, "need": True})
    assert found.margin == pytest.approx(math.tanh(-0.5), abs=1e-15)
    assert [state.speech for state in found.rules] == ["against", "silent", "for"]
    assert found.decision == "deny"
    assert found.interval == (found.margin, found.margin)


def test_the_order_of_rules_does_not_matter_even_where_weights_cancel():
    rules = [("act IMPLIES a", 0.1), ("act IMPLIES b", 0.2), ("c IMPLIES act", 0.3)]
    evidence = {"a": False, "b": False, "c": True}
    margins = {assess(circuit(*order), evidence).margin for order in (rules, rules[::-1], rules[1:] + rules[:1])}
    assert len(margins) == 1


def test_huge_weights_do_not_overflow():
    made = circuit(("act IMPLIES a", 900.0), ("act IMPLIES NOT a", 900.0), ("b IMPLIES a", 2000.0))
    found = assess(made, {"b": None})
    assert found.margin == pytest.approx(-1.0)
    made = circuit(("a", 5000.0), ("NOT a", 5000.0), ("act IMPLIES a", 1.0))
    assert assess(made, {}).margin == pytest.approx(brute.margin(made, {}), abs=1e-12)


def test_hard_rule_broken_only_with_the_action_is_a_veto():
    made = circuit(("act IMPLIES ok", HARD), ("need IMPLIES act", 5.0))
    found = assess(made, {"ok": False, "need": True})
    assert found.veto == ("r0",)
    assert found.interval == (-1.0, -1.0)
    assert found.margin == pytest.approx(math.tanh(2.5))
    assert not found.safe
    assert found.decision == "deny"


def test_hard_rule_broken_both_ways_is_a_conflict_and_never_allows():
    found = assess(circuit(("ok", HARD), ("need IMPLIES act", 5.0)), {"ok": False, "need": True})
    assert found.conflict == ("r0",)
    assert not found.safe
    assert found.decision == "ask"


def test_undecided_hard_rule_pulls_the_low_end_down_and_is_asked_about_first():
    made = circuit(("act IMPLIES ok", HARD), ("act IMPLIES calm", 4.0))
    found = assess(made, {"ok": None, "calm": None})
    assert found.interval[0] == -1.0
    assert not found.safe
    assert found.decision == "ask"
    assert found.ask_next == "ok"


def test_even_the_lowest_eps_does_not_let_a_veto_through():
    made = circuit(("act IMPLIES ok", HARD), eps=-1.0)
    assert assess(made, {"ok": False}).decision == "deny"
    assert assess(made, {}).decision == "ask"
    assert assess(made, {"ok": True}).decision == "allow"


def test_knowledge_decides_what_nobody_looked_up():
    made = circuit(("act IMPLIES NOT red", HARD), ("private IMPLIES red", KNOWN))
    assert assess(made, {"private": True}).veto == ("r0",)
    assert assess(made, {"private": None}).decision == "ask"
    assert assess(made, {"private": True, "red": False}).conflict == ("r1",)


def test_knowledge_over_several_rules_is_seen_by_hard_rules():
    made = circuit(("act IMPLIES (a OR b)", HARD), ("a XOR c", KNOWN), ("c IMPLIES b", KNOWN))
    assert assess(made, {}).decision == "allow"


def test_physical_rule_may_not_mention_the_action():
    with pytest.raises(CircuitError, match="mentions the action"):
        circuit(("act IMPLIES a", KNOWN))


def test_temporal_rules_take_the_table_of_their_monitors_state():
    made = circuit(("ALWAYS (act IMPLIES ONCE confirmed)", 2.0), ("act IMPLIES ok", 1.0))
    with pytest.raises(CircuitError, match="temporal"):
        assess(made, {"confirmed": True, "ok": True})
    fresh = TruthTable(("act", "confirmed"), bytes((1, 0, 1, 1)))
    done = TruthTable(("act", "confirmed"), bytes((1, 1, 1, 1)))
    inference = Inference(made)
    evidence = {"confirmed": False, "ok": True}
    assert inference.assess(evidence, tables={"r0": fresh}).margin == pytest.approx(math.tanh(-1))
    assert inference.assess(evidence, tables={"r0": done}).margin == 0.0
    either = inference.assess(evidence, tables={"r0": chosen_table("r0", [fresh, done])})
    assert either.interval == pytest.approx((math.tanh(-1), 0.0))
    assert either.decision == "ask"


def test_always_of_a_propositional_formula_is_judged_at_each_act():
    made = circuit(("ALWAYS (act IMPLIES ok)", 2.0))
    assert assess(made, {"ok": False}).margin == pytest.approx(math.tanh(-1))


def test_a_probability_outside_0_to_1_is_refused():
    with pytest.raises(CircuitError, match="from 0 to 1"):
        assess(circuit(("act IMPLIES ok", 1.0)), {"ok": 1.5})


def test_tables_agree_with_evaluation():
    rng = random.Random(9)
    for _ in range(200):
        formula = brute.random_formula(rng, list("abcd"), rng.randint(1, 7))
        table = table_of(formula)
        for row, value in enumerate(table.values):
            letter = {name: bool(row >> place & 1) for place, name in enumerate(table.atoms)}
            assert value == brute.holds(formula, letter)
        assert isinstance(table, TruthTable)


def test_plan_finds_the_width_of_a_tree_and_of_a_clique():
    tree = tuple((i, (i - 1) // 2) for i in range(1, 15))
    chosen = plan(tuple(tuple(sorted(edge)) for edge in tree), 1, 12)
    assert chosen is not None
    assert chosen.width == 1
    clique = tuple((i, j) for i in range(6) for j in range(i + 1, 6))
    assert plan(clique, 1, 4) is None


def test_rounding_never_puts_the_margin_outside_its_interval():
    rng = random.Random(10)
    for _ in range(300):
        weights = [rng.uniform(0, 3) for _ in range(4)]
        rules = [(f"act IMPLIES k{i}", weight) for i, weight in enumerate(weights)]
        made = circuit(*rules, ("x OR y", 1.3), ("x IMPLIES y", 0.7))
        found = assess(made, {f"k{i}": rng.random() < 0.5 for i in range(4)})
        assert found.interval[0] <= found.margin <= found.interval[1]
        assert found.decision == ("allow" if found.safe else "deny"), "x and y are unknown and make no difference"
