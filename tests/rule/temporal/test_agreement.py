"""The engine against `semantics`, its slow twin: values, verdicts, unknown predicates, re-arming."""

import random
from collections.abc import Sequence
from functools import cache

import pytest

from bylaw.rule import automaton as automata
from bylaw.rule.automaton import LazyAutomaton
from bylaw.rule.formula import Formula, parse
from bylaw.rule.letters import alphabet
from bylaw.rule.lines import evaluate_formula
from bylaw.rule.monitor import Monitor
from bylaw.rule.rule import Rule

from .formulas import every_formula, every_trace, random_formula, random_trace, with_unknowns
from .meaning import Step, completions, holds


def verdict_by_extension(
    formula: Formula, steps: Sequence[Step], extensions: Sequence[Sequence[Step]], now: int = 0
) -> str:
    """The run-time verdict, from the meaning alone: try every extension."""
    value = holds(formula, steps, now)
    changes = any(holds(formula, [*steps, *more], now) != value for more in extensions)
    return f"{'currently' if changes else 'permanently'}_{'satisfied' if value else 'violated'}"


def assert_same_value(formula: Formula, trace: Sequence[Step]) -> None:
    assert evaluate_formula(formula, trace).holds == holds(formula, trace), (str(formula), trace)


def test_every_formula_of_up_to_three_parts_has_the_meaning_it_should() -> None:
    traces = list(every_trace(4))
    for size in (1, 2, 3):
        for formula in every_formula(size):
            for trace in traces:
                assert_same_value(formula, trace)


def test_formulas_of_four_and_five_parts_have_the_meaning_they_should() -> None:
    dice = random.Random(45)
    traces = list(every_trace(5))
    for size, count in ((4, 150), (5, 350)):
        formulas = list(every_formula(size))
        for formula in dice.sample(formulas, count):
            for trace in dice.sample(traces, 20):
                assert_same_value(formula, trace)


def test_large_random_formulas_have_the_meaning_they_should() -> None:
    dice = random.Random(100_000)
    for _ in range(700):
        formula = random_formula(dice, dice.randint(6, 14), "abc")
        for _ in range(2):
            assert_same_value(formula, random_trace(dice, 7, "abc"))


def test_verdicts_are_those_that_trying_every_extension_gives_over_one_predicate() -> None:
    extensions = list(every_trace(5, "a"))
    prefixes = list(every_trace(3, "a"))
    dice = random.Random(1)
    formulas = [formula for size in (1, 2, 3) for formula in every_formula(size, "a")]
    formulas += dice.sample([formula for size in (4, 5) for formula in every_formula(size, "a")], 100)
    for formula in formulas:
        for prefix in dice.sample(prefixes, 4):
            wanted = verdict_by_extension(formula, prefix, extensions)
            assert evaluate_formula(formula, prefix).verdict == wanted, (str(formula), prefix)


def test_verdicts_are_those_that_trying_every_extension_gives_over_two_predicates() -> None:
    extensions = list(every_trace(4))
    dice = random.Random(2)
    for _ in range(80):
        formula = random_formula(dice, dice.randint(3, 6))
        prefix = random_trace(dice, 3)
        wanted = verdict_by_extension(formula, prefix, extensions)
        assert evaluate_formula(formula, prefix).verdict == wanted, (str(formula), prefix)


def test_unknown_predicates_give_what_all_completions_agree_on() -> None:
    dice = random.Random(3)
    for _ in range(700):
        formula = random_formula(dice, dice.randint(2, 9))
        trace = with_unknowns(dice, random_trace(dice, 4), 5)
        whole = [evaluate_formula(formula, steps) for steps in completions(trace, "ab")]
        answer = evaluate_formula(formula, trace)
        values = {each.holds for each in whole}
        verdicts = {each.verdict for each in whole}
        assert answer.holds == (values.pop() if len(values) == 1 else None), (str(formula), trace)
        assert answer.verdict == (verdicts.pop() if len(verdicts) == 1 else None), (str(formula), trace)


@cache
def _extensions() -> list[list[dict[str, bool]]]:
    return list(every_trace(4))


def breaks_by_extension(formula: Formula, acts: Sequence[Step]) -> tuple[list[bool], bool]:
    """At which acts a rule is broken when it is asked anew after each, history kept, and whether the end breaks it."""
    asked_at = 0
    broken: list[bool] = []
    for now in range(len(acts)):
        seen = acts[: now + 1]
        broke = verdict_by_extension(formula, seen, _extensions(), asked_at) == "permanently_violated"
        broken.append(broke)
        if broke:
            asked_at = now + 1
    return broken, asked_at < len(acts) and not holds(formula, acts, asked_at)


def test_monitors_report_the_act_that_breaks_a_rule_and_ask_anew() -> None:
    dice = random.Random(4)
    kinds = ["ALWAYS (a IMPLIES ONCE b)", "ALWAYS (a IMPLIES YESTERDAY b)", "ALWAYS (a IMPLIES NEXT b)", "a UNTIL b"]
    formulas = [parse(text) for text in kinds] * 5 + [random_formula(dice, dice.randint(2, 6)) for _ in range(40)]
    for formula in formulas:
        acts = random_trace(dice, 5)
        monitor = Monitor(Rule("r", formula))
        wanted, at_the_end = breaks_by_extension(formula, acts)
        assert [monitor.step(act).broke for act in acts] == wanted, (str(formula), acts)
        assert monitor.finish().broke == at_the_end, (str(formula), acts)


def test_monitors_with_unknown_predicates_say_what_every_completion_says() -> None:
    dice = random.Random(5)
    for _ in range(300):
        rule = Rule("r", random_formula(dice, dice.randint(2, 7)))
        acts = with_unknowns(dice, random_trace(dice, 4), 4)
        runs: list[list[object]] = []
        for steps in completions(acts, "ab"):
            monitor = Monitor(rule)
            runs.append([(monitor.fork().step(step).broke, monitor.step(step)) for step in steps] + [monitor.finish()])
        monitor = Monitor(rule)
        for place, act in enumerate(acts):
            peeked, report = monitor.fork().step(act).broke, monitor.step(act)
            seen = [run[place] for run in runs]
            assert peeked == report.broke == _same({each[1].broke for each in seen})
            assert report.verdict == _same({each[1].verdict for each in seen})
            assert report.holds == _same({each[1].holds for each in seen})
        assert monitor.finish().holds == _same({run[-1].holds for run in runs})


def _same(values: set) -> object:
    return values.pop() if len(values) == 1 else None


def test_the_automaton_made_as_it_is_walked_agrees_with_the_whole_one(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(6)
    for _ in range(200):
        formula = random_formula(dice, dice.randint(3, 9))
        own = alphabet(formula)
        whole = automata.Pair(own.skeleton, own.possible, own.exact)
        with monkeypatch.context() as patch:
            patch.setattr(automata, "STATE_CAP", 0)
            lazy = automata.Pair(own.skeleton, own.possible, own.exact)
        assert whole.is_whole
        assert isinstance(lazy.plain, LazyAutomaton)
        assert isinstance(lazy.rearming, LazyAutomaton)
        for first, second in ((whole.plain, lazy.plain), (whole.rearming, lazy.rearming)):
            one, other = first.start, second.start
            for _ in range(8):
                letter = dice.choice(own.possible)
                assert second.move(other, letter) == second.step(other, letter)[0]
                (one, wanted), (other, verdict) = first.step(one, letter), second.step(other, letter)
                assert verdict == wanted, str(formula)
                assert first.accepts(one) == second.accepts(other)


def test_a_search_cut_short_gives_no_verdict_instead_of_a_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    own = alphabet(parse("NEXT NEXT NEXT (a AND EVENTUALLY NOT a) AND ALWAYS a"))
    monkeypatch.setattr(automata, "STATE_CAP", 0)
    monkeypatch.setattr(automata, "SEARCH_CAP", 2)
    lazy = automata.Pair(own.skeleton, own.possible, own.exact).plain
    assert lazy.step(lazy.start, own.possible[0])[1] in (None, automata.BROKEN)
