"""Temporal rules in a circuit: tables of monitor states, against the rule set's own margins."""

import random

import pytest

from bylaw.rule.circuit import Circuit, weighted
from bylaw.rule.inference import Inference
from bylaw.rule.monitors import MonitorSet
from bylaw.rule.rule import read_rule
from bylaw.rule.table import Table, by_states, choose, lost

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


def test_a_circuit_with_the_tables_of_the_monitors_states_agrees_with_the_rule_set():
    rng = random.Random(1)
    for hard in ((), (0, 5)):
        own = rules(hard)
        watched = MonitorSet(own)
        inference = Inference(Circuit(action="pay", rules=tuple(weighted(rule) for rule in own)))
        for _ in range(200):
            values = {name: rng.random() < 0.4 for name in watched.predicates}
            true, _ = watched.mask(values)
            found = inference.assess(values, tables=by_states(watched.tables(), "pay"))
            quick = watched.margin("pay", true)
            assert found.margin == pytest.approx(quick.margin, abs=1e-12)
            assert set(found.veto) == {own[place].name for place in quick.veto}
            assert set(found.conflict) == {own[place].name for place in quick.conflict}
            watched.step(true)


def test_an_unknown_past_widens_the_interval_and_every_past_lies_in_it():
    rng = random.Random(2)
    own = rules()
    inference = Inference(Circuit(action="pay", rules=tuple(weighted(rule) for rule in own)))
    for _ in range(40):
        doubtful, sure = MonitorSet(own), MonitorSet(own)
        for _ in range(3):
            values = {name: rng.random() < 0.4 for name in sure.predicates}
            hidden = {name: None if rng.random() < 0.3 else value for name, value in values.items()}
            sure.step(sure.mask(values)[0])
            doubtful.step(*doubtful.mask(hidden))
        now = {name: rng.random() < 0.4 for name in sure.predicates}
        wide = inference.assess(now, tables=by_states(doubtful.tables(), "pay"))
        narrow = inference.assess(now, tables=by_states(sure.tables(), "pay"))
        assert wide.interval[0] - 1e-12 <= narrow.margin <= wide.interval[1] + 1e-12


def test_a_lost_monitor_says_nothing_and_settles_nothing():
    (rule,) = [read_rule("r", "ALWAYS (pay IMPLIES ONCE confirmed)", weight=2.0)]
    inference = Inference(Circuit(action="pay", rules=(weighted(rule),)))
    found = inference.assess({"confirmed": True}, tables={"r": lost("r", "pay")})
    assert found.decision == "ask"
    assert found.interval[0] == -found.interval[1]


def test_choosing_among_equal_tables_adds_no_predicate():
    table = Table(("a",), b"\x00\x01")
    assert choose("r", [table, table]) == table
