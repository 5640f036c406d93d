"""Rules in use: what re-arms, what waits for the end, and many rules at once against one monitor each."""

import itertools
import random

import pytest

from bylaw.rule.letters import ActValues
from bylaw.rule.monitor import Family, Monitor, MonitorSet, Values
from bylaw.rule.rule import Rule, read_rule

from .formulas import random_formula

NAMES = ("a", "b", "c", "d", "e")


def broken(text: str, *acts: Values) -> list[bool | None]:
    monitor = Monitor(read_rule("r", text))
    return [monitor.step(act).broke for act in acts]


def act(*true: str) -> dict[str, bool | None]:
    return {name: name in true for name in ("pay", "ok", "transfer", "said")}


def test_always_with_a_past_is_judged_afresh_at_each_act() -> None:
    rule = "ALWAYS (pay IMPLIES ONCE ok)"
    assert broken(rule, act("pay"), act("pay"), act("ok"), act("pay")) == [True, True, False, False]
    assert broken("ALWAYS (pay IMPLIES YESTERDAY ok)", act("ok", "pay"), act("pay"), act("pay")) == [True, False, True]


def test_any_other_rule_reports_where_it_breaks_and_is_asked_anew() -> None:
    rule = "ALWAYS (transfer IMPLIES NEXT said)"
    assert broken(rule, act("transfer"), act(), act("transfer"), act("said"), act()) == [
        False,
        True,
        False,
        False,
        False,
    ]
    assert broken("(NOT pay) WEAK_UNTIL ok", act("pay"), act("pay"), act("ok"), act("pay")) == [
        True,
        True,
        False,
        False,
    ]


def test_what_a_rule_waits_for_is_settled_at_the_end_only() -> None:
    monitor = Monitor(read_rule("r", "ALWAYS (transfer IMPLIES EVENTUALLY said)"))
    assert monitor.finish().broke is False
    report = monitor.step(act("transfer"))
    assert (report.broke, report.holds, report.verdict) == (False, False, "currently_violated")
    assert monitor.finish().broke is True
    monitor.step(act("said"))
    assert monitor.finish().broke is False


def test_a_rule_broken_by_the_last_act_is_not_reported_again_at_the_end() -> None:
    monitor = Monitor(read_rule("r", "(NOT pay) UNTIL ok"))
    assert monitor.step(act("pay")).broke is True
    assert monitor.finish().broke is False
    assert monitor.step(act()).broke is False
    assert monitor.finish().broke is True


def test_peeking_does_not_move_the_monitor() -> None:
    monitor = Monitor(read_rule("r", "ALWAYS (pay IMPLIES ONCE ok)"))
    assert monitor.fork().step(act("pay")).broke is True
    assert monitor.fork().step({"pay": True}).broke is None
    assert monitor.fork().step(act("ok")).broke is False
    assert monitor.fork().step(act("pay")).broke is True


def test_confirming_one_reservation_does_not_license_another() -> None:
    family = Family(read_rule("r", "FOR EACH reservation: ALWAYS (pay IMPLIES ONCE ok)"))
    assert family.step({"R1": act("ok")}, act()) == {"R1": Monitor(family.rule).step(act("ok"))}
    reports = family.step({"R2": act("pay")}, act())
    assert {binding: report.broke for binding, report in reports.items()} == {"R1": False, "R2": True}


def test_a_binding_met_late_has_the_past_it_would_have_had() -> None:
    family = Family(read_rule("r", "FOR EACH reservation: ALWAYS (pay IMPLIES ONCE ok)"))
    family.step({}, act("ok"))
    assert family.step({"R1": act("pay")}, act())["R1"].broke is False
    waiting = Family(read_rule("r", "FOR EACH reservation: EVENTUALLY ok"))
    waiting.step({"R1": act()}, act("ok"))
    assert {binding: report.broke for binding, report in waiting.finish().items()} == {"R1": True}


def test_a_set_refuses_rules_with_bindings() -> None:
    with pytest.raises(ValueError, match="Family"):
        MonitorSet([read_rule("r", "FOR EACH x: ALWAYS a")])


def rules(dice: random.Random, count: int, largest: int = 9) -> list[Rule]:
    return [
        Rule(
            f"r{number}",
            random_formula(dice, dice.randint(2, largest), NAMES),
            weight=dice.choice([0.0, 0.5, 1.0, 2.25]),
            hard=dice.random() < 0.2,
        )
        for number in range(count)
    ]


def random_act(dice: random.Random, unknown: float) -> dict[str, bool | None]:
    return {name: None if dice.random() < unknown else dice.random() < 0.5 for name in NAMES}


def test_a_set_says_what_its_monitors_say() -> None:
    dice = random.Random(9)
    for _ in range(60):
        chosen = rules(dice, dice.randint(1, 12))
        together = MonitorSet(chosen)
        each = [Monitor(rule) for rule in chosen]
        for _ in range(12):
            values = random_act(dice, dice.choice([0.0, 0.0, 0.3]))
            step = together.step(*together.mask(values))
            reports = [monitor.step(values) for monitor in each]
            assert step.broken == tuple(i for i, report in enumerate(reports) if report.broke)
            assert step.unsure == tuple(i for i, report in enumerate(reports) if report.broke is None)
            now = {name: value for name, value in random_act(dice, 0.3).items() if value is not None}
            made = ActValues(
                "a", {name: value for name, value in now.items() if name != "a"} | {"a": True}, {"a": False}
            )
            assert together.tables(made) == {
                rule.name: monitor.table(made) for rule, monitor in zip(chosen, each, strict=True)
            }
        ends = [monitor.finish().broke for monitor in each]
        wanted = [tuple(i for i, broke in enumerate(ends) if broke is each) for each in (True, None)]
        assert together.waiting() == tuple(wanted)


def test_a_predicate_is_needed_where_it_matters_for_some_values_of_the_others() -> None:
    dice = random.Random(21)
    met = 0
    for _ in range(60):
        together = MonitorSet(rules(dice, dice.randint(1, 4)))
        for _ in range(dice.randint(0, 4)):
            together.step(*together.mask(random_act(dice, 0.0)))
        values, known = together.mask(random_act(dice, 0.6))
        everything = (1 << len(together.predicates)) - 1
        unknown = everything & ~known
        bits = [1 << place for place in range(len(together.predicates)) if unknown >> place & 1]
        goes: dict[int, object] = {}
        for chosen in itertools.product((False, True), repeat=len(bits)):
            completed = values | sum(bit for bit, is_true in zip(bits, chosen, strict=True) if is_true)
            ahead = together.fork()
            step = ahead.step(completed, everything)
            goes[completed] = (ahead.states, step.broken)
        wanted = sum(bit for bit in bits if any(goes[each] != goes[each ^ bit] for each in goes))
        assert together.needs(values, unknown) == wanted
        met += 0 < wanted < unknown
    assert met > 10


def test_a_rule_over_many_predicates_is_followed_all_the_same() -> None:
    wide = " OR ".join(f"p{i}" for i in range(20))
    together = MonitorSet(
        [read_rule("wide", f"ALWAYS (pay IMPLIES ONCE ({wide}))"), read_rule("narrow", "ALWAYS NOT pay")]
    )
    everything = {f"p{i}": False for i in range(20)}
    assert together.step(*together.mask({**everything, "pay": True})).broken == (0, 1)
    assert together.step(*together.mask({**everything, "pay": False, "p3": True})).broken == ()
    assert together.step(*together.mask({**everything, "pay": True})).broken == (1,)
