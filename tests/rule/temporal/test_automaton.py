"""Automata: as small as they can be, shared by what has the same shape, right about what cannot happen together."""

import random

import pytest

from bylaw.errors import FormulaError
from bylaw.rule.automaton import BROKEN, WholeAutomaton, automaton
from bylaw.rule.formula import Atom, Next, Once, parse
from bylaw.rule.letters import alphabet, letter_of, possible_letters
from bylaw.rule.monitor import program

from .formulas import every_step, random_formula
from .meaning import completions


def table(text: str) -> WholeAutomaton:
    found = program(parse(text)).pair.plain
    assert isinstance(found, WholeAutomaton)
    return found


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("ALWAYS a", 2),
        ("EVENTUALLY a", 3),
        ("ALWAYS (a IMPLIES ONCE b)", 3),
        ("ALWAYS (a IMPLIES EVENTUALLY b)", 2),
        ("a UNTIL b", 4),
        ("ALWAYS a AND EVENTUALLY NOT a", 2),
        ("NEXT NEXT a", 5),
        ("ALWAYS EVENTUALLY a XOR ALWAYS EVENTUALLY a", 2),
        ("YESTERDAY a OR NOT YESTERDAY a", 1),
    ],
)
def test_automata_are_minimal(text: str, states: int) -> None:
    assert table(text).states == states


def test_no_two_states_of_an_automaton_read_the_same_words() -> None:
    dice = random.Random(7)
    for _ in range(200):
        found = program(random_formula(dice, dice.randint(3, 10))).pair.plain
        assert isinstance(found, WholeAutomaton)
        count = len(found.letters)
        apart = {(s, t) for s in range(found.states) for t in range(s) if found.accepting[s] != found.accepting[t]}
        while True:
            more = {
                (s, t)
                for s in range(found.states)
                for t in range(s)
                for column in range(count)
                for pair in ((found.after[s * count + column], found.after[t * count + column]),)
                if (max(pair), min(pair)) in apart
            } - apart
            if not more:
                break
            apart |= more
        assert len(apart) == found.states * (found.states - 1) // 2


def test_rules_of_the_same_shape_share_one_automaton() -> None:
    def pair(text: str) -> object:
        return automaton(alphabet(parse(text)))

    assert pair("ALWAYS (pay IMPLIES ONCE ok)") is pair("ALWAYS (cancel IMPLIES ONCE (seen AND NOT late))")
    assert pair("ALWAYS a AND EVENTUALLY b") is not pair("ALWAYS a AND EVENTUALLY NOT a")
    assert pair("ALWAYS a AND EVENTUALLY NOT a") is pair("ALWAYS (x OR y) AND EVENTUALLY NOT (x OR y)")


def test_letters_are_exactly_the_leaf_vectors_that_some_assignment_gives() -> None:
    dice = random.Random(8)
    for _ in range(300):
        own = alphabet(random_formula(dice, dice.randint(2, 12)))
        assert own.exact
        assert set(own.possible) == {letter_of(own.leaves, step) for step in every_step()}
        known = {"a": dice.choice([True, False, None])}
        wanted = {letter_of(own.leaves, steps[0]) for steps in completions([known], "ab")}
        assert set(possible_letters(own.leaves, known)[0]) == wanted


def test_leaves_with_very_many_predicates_are_searched_not_tabled() -> None:
    wide = " OR ".join(f"p{i}" for i in range(40))
    own = alphabet(parse(f"ALWAYS ({wide}) AND EVENTUALLY NOT ({wide})"))
    assert own.exact
    assert own.possible == (1, 2)
    hard = " XOR ".join(f"p{i}" for i in range(40))
    own = alphabet(parse(f"ALWAYS ({hard}) AND EVENTUALLY (({hard}) AND (p1 OR p2) AND NOT p1 AND NOT p2)"))
    plain = automaton(own).plain
    assert all(plain.step(plain.start, letter)[1] in (None, BROKEN) for letter in own.possible)


def test_a_formula_that_looks_forward_below_the_past_is_refused_without_a_text_too() -> None:
    with pytest.raises(FormulaError):
        program(Once(Next(Atom("a"))))
