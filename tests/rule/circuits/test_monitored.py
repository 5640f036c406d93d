"""Temporal rules in a circuit: what they say of an act, against their monitors one by one."""

import itertools
import math
import random

import pytest

from bylaw.rule.circuit import Circuit
from bylaw.rule.inference import Inference
from bylaw.rule.letters import ActValues, TruthTable, chosen_table, lost
from bylaw.rule.monitor import Monitor, MonitorSet
from bylaw.rule.rule import read_rule

TEXTS = [
    "ALWAYS (pay IMPLIES ONCE confirmed)",
    "ALWAYS (pay IMPLIES NOT ONCE locked)",
    "ALWAYS (failed IMPLIES WEAK_NEXT NOT pay)",
    "NOT pay WEAK_UNTIL known",
    "ALWAYS (pay IMPLIES YESTERDAY shown)",
    "ALWAYS (urgent IMPLIES pay)",
    "ALWAYS (pay IMPLIES small OR manager)",
]


def rules(hard=()):
    return [read_rule(f"r{i}", text, weight=0.5 + i, hard=i in hard) for i, text in enumerate(TEXTS)]


def margin(own, monitors, taken, left) -> float:
    """tanh(z / 2), z being what each soft rule gains by the action."""
    z = sum(
        rule.weight * (int(not monitor.fork().step(taken).broke) - int(not monitor.fork().step(left).broke))
        for rule, monitor in zip(own, monitors, strict=True)
        if not rule.hard
    )
    return math.tanh(z / 2)


def test_a_margin_is_that_of_the_same_act_with_only_the_action_changed():
    rng = random.Random(1)
    for hard in ((), (0, 5)):
        own = rules(hard)
        watched, each = MonitorSet(own), [Monitor(rule) for rule in own]
        inference = Inference(Circuit(action="the call", rules=tuple(own)))
        for _ in range(200):
            values = {name: rng.random() < 0.4 for name in watched.predicates}
            taken, left = {**values, "pay": True}, {**values, "pay": False}
            found = inference.assess(taken, tables=watched.tables(ActValues("the call", taken, {"pay": False})))
            assert found.margin == pytest.approx(margin(own, each, taken, left), abs=1e-12)
            broken = [
                (m.rule.name, m.fork().step(left).broke) for m in each if m.rule.hard and m.fork().step(taken).broke
            ]
            assert set(found.veto) == {name for name, both in broken if not both}
            assert set(found.conflict) == {name for name, both in broken if both}
            watched.step(*watched.mask(values))
            for monitor in each:
                monitor.step(values)


def test_the_interval_is_that_of_all_completions_of_what_is_unknown_now_and_was_unknown_before():
    rng = random.Random(2)
    own = rules()
    inference = Inference(Circuit(action="the call", rules=tuple(own)))
    names = MonitorSet(own).predicates
    met = 0
    for _ in range(60):
        past = [{name: rng.random() < 0.4 for name in names} for _ in range(2)]
        now = {name: rng.random() < 0.4 for name in names} | {"pay": True}
        hidden = [(place, name) for place in range(3) for name in names if name != "pay" and rng.random() < 0.12]
        seen = [{name: v for name, v in step.items() if (i, name) not in hidden} for i, step in enumerate([*past, now])]
        doubtful = MonitorSet(own)
        for step in seen[:2]:
            doubtful.step(*doubtful.mask(step))
        found = inference.assess(seen[2], tables=doubtful.tables(ActValues("the call", seen[2], {"pay": False})))
        margins = []
        for values in itertools.product((False, True), repeat=len(hidden)):
            steps = [dict(step) for step in (*past, now)]
            for (place, name), value in zip(hidden, values, strict=True):
                steps[place][name] = value
            monitors = [Monitor(rule) for rule in own]
            for step in steps[:2]:
                for monitor in monitors:
                    monitor.step(step)
            margins.append(margin(own, monitors, steps[2], {**steps[2], "pay": False}))
        assert found.interval[0] <= min(margins) + 1e-12
        assert found.interval[1] >= max(margins) - 1e-12
        if not any(place < 2 for place, _ in hidden):
            met += 1
            assert found.interval == pytest.approx((min(margins), max(margins)), abs=1e-12)
    assert met > 5


def test_a_lost_monitor_says_nothing_and_settles_nothing():
    rule = read_rule("r", "ALWAYS (pay IMPLIES ONCE confirmed)", weight=2.0)
    inference = Inference(Circuit(action="pay", rules=(rule,)))
    found = inference.assess({"confirmed": True}, tables={"r": lost("r", "pay")})
    assert found.decision == "ask"
    assert found.interval[0] == -found.interval[1]


def test_a_rule_of_many_predicates_is_weighed_where_few_of_them_are_unknown():
    wide = read_rule("r", f"ALWAYS (pay IMPLIES ONCE ({' OR '.join(f'p{i}' for i in range(20))}))", weight=2.0)
    inference = Inference(Circuit(action="the call", rules=(wide,)))
    known = {f"p{i}": False for i in range(20)} | {"pay": True}

    def decided(values):
        monitors = MonitorSet([wide])
        return inference.assess(values, tables=monitors.tables(ActValues("the call", values, {"pay": False}))).decision

    assert decided(known) == "deny"
    assert decided(known | {"p3": True}) == "allow"
    assert decided({name: value for name, value in known.items() if name != "p3"}) == "ask"
    assert decided({"pay": True}) == "ask"


def test_choosing_among_equal_tables_adds_no_predicate():
    table = TruthTable(("a",), b"\x00\x01")
    assert chosen_table("r", [table, table]) == table
