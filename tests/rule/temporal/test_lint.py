"""What is wrong with rules before any agent runs, and their pictures."""

import random
import xml.etree.ElementTree as xml

from bylaw.rule.drawing import condition_of, draw_automaton
from bylaw.rule.formula import parse
from bylaw.rule.letters import alphabet, letter_of
from bylaw.rule.rule import LintFinding, Rule, is_hopeless, lint, read_rule

from .formulas import every_trace, random_formula
from .meaning import holds


def found(
    *texts: str, actions: tuple[str, ...] = (), ways: set[str] | None = None
) -> list[tuple[str, tuple[str, ...]]]:
    rules = [read_rule(f"r{number}", text) for number, text in enumerate(texts, 1)]
    return [(finding.kind, finding.rules) for finding in lint(rules, actions=actions, ways=ways)]


def test_rules_that_cannot_be_kept_are_named() -> None:
    assert found("ALWAYS a AND EVENTUALLY NOT a") == [("contradictory", ("r1",))]
    assert found("ALWAYS a", "EVENTUALLY NOT a") == [("contradictory", ("r1", "r2"))]
    assert found("ALWAYS (pay IMPLIES ONCE ok)") == []


def test_rules_that_say_the_same_or_less_are_named() -> None:
    assert found("ALWAYS (a IMPLIES b)", "NOT EVENTUALLY (a AND NOT b)") == [("duplicate", ("r1", "r2"))]
    assert found("ALWAYS (a IMPLIES ONCE b)", "(NOT a) WEAK_UNTIL b") == [("duplicate", ("r1", "r2"))]
    assert found("ALWAYS (a IMPLIES b)", "ALWAYS (a IMPLIES ONCE b)") == [("subsumed", ("r2", "r1"))]
    assert found("ALWAYS (a IMPLIES b OR c)", "ALWAYS (a IMPLIES b)") == [("subsumed", ("r1", "r2"))]
    assert found("FOR EACH x: ALWAYS (a IMPLIES b)", "ALWAYS (a IMPLIES b)") == []


def test_an_action_that_can_never_be_taken_is_named_with_the_fewest_rules_that_forbid_it() -> None:
    rules = ("ALWAYS (pay IMPLIES ONCE ok)", "ALWAYS (other IMPLIES ok)", "ALWAYS NOT ok")
    assert ("blocked", ("r1", "r3")) in found(*rules, actions=("pay",))
    assert found("ALWAYS NOT pay", *rules, actions=("pay",))[-1] == ("blocked", ("r1",))
    assert found("ALWAYS (pay IMPLIES ONCE ok)", actions=("pay",)) == []
    chain = ("ALWAYS (pay IMPLIES YESTERDAY asked)", "ALWAYS (asked IMPLIES open)", "ALWAYS (open IMPLIES NEXT closed)")
    assert found(*chain, "ALWAYS NOT (closed AND pay)", actions=("pay",)) == [("blocked", ("r1", "r2", "r3", "r4"))]


def test_predicates_without_a_way_to_a_value_are_named_with_their_rules() -> None:
    findings = lint([read_rule("r1", "ALWAYS (pay IMPLIES ok)")], ways={"pay"})
    assert findings == [LintFinding("no_value", ("r1",), "predicate `ok` has no source for its value", "ok")]


def test_hopeless_is_what_no_short_trace_satisfies() -> None:
    dice = random.Random(11)
    traces = list(every_trace(4))
    for _ in range(120):
        formula = random_formula(dice, dice.randint(2, 6))
        assert is_hopeless(formula) == (not any(holds(formula, trace) for trace in traces)), str(formula)


def test_the_condition_on_an_edge_holds_at_its_letters_only() -> None:
    dice = random.Random(12)
    for _ in range(100):
        own = alphabet(random_formula(dice, dice.randint(3, 10), "abc"))
        chosen = dice.sample(own.possible, dice.randint(1, len(own.possible)))
        condition = condition_of(chosen, own)
        for [step] in every_trace(1, "abc"):
            assert holds(condition, [step]) == (letter_of(own.leaves, step) in chosen)


def test_a_drawing_is_well_formed_and_shows_every_state() -> None:
    for text in ("ALWAYS (a IMPLIES NEXT b)", "ALWAYS (a IMPLIES NEXT b) AND EVENTUALLY c", "a", "a OR NOT a"):
        rule = read_rule('less < more & "quoted"', text)
        root = xml.fromstring(draw_automaton(rule))
        assert root.tag.endswith("svg")
        shown = [node.text for node in root.iter() if node.get("class") == "state"]
        assert shown[0] == "start"
        targets = [text.rpartition("→ ")[2].strip() for node in root.iter() if "→" in (text := node.text or "")]
        assert targets
        assert set(targets) <= set(shown)
    too_large = Rule("big", parse("NEXT " * 60 + "a"))
    assert "too many states" in draw_automaton(too_large)
