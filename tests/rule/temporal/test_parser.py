"""The surface language: printing and parsing are inverse, and errors say where and what instead."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.errors import FormulaError
from bylaw.rule.formula import (
    Always,
    And,
    Atom,
    Formula,
    Implies,
    Not,
    Or,
    Since,
    Until,
    Xor,
    atoms,
    parse,
    parse_rule,
    show,
)
from bylaw.rule.rule import read_rule

from .formulas import random_formula

a, b, c = Atom("a"), Atom("b"), Atom("c")


@given(st.integers(), st.integers(1, 20))
def test_parsing_what_was_printed_gives_the_formula_back(seed: int, size: int) -> None:
    formula = random_formula(random.Random(seed), size, ("a", "b", "next", "AND", "has been paid", "a.b", 'say "x\\"'))
    assert parse(str(formula)) == formula


@given(st.text(min_size=1))
def test_any_text_can_be_the_name_of_a_predicate(name: str) -> None:
    assert parse(str(Atom(name))) == Atom(name)


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("a & b | c", Or(And(a, b), c)),
        ("a XOR b AND c", Xor(a, And(b, c))),
        ("a OR b XOR c", Or(a, Xor(b, c))),
        ("a -> b -> c", Implies(a, Implies(b, c))),
        ("a OR b IMPLIES c", Implies(Or(a, b), c)),
        ("a AND b UNTIL c", And(a, Until(b, c))),
        ("a UNTIL b UNTIL c", Until(a, Until(b, c))),
        ("NOT a SINCE b", Since(Not(a), b)),
        ("ALWAYS a AND b", And(Always(a), b)),
        ("a <-> b", Not(Xor(a, b))),
        ("[] !a", Always(Not(a))),
        ("□ (a → b ∧ ¬c)", Always(Implies(a, And(b, Not(c))))),
        ("((a))", a),
    ],
)
def test_operators_bind_as_documented(text: str, formula: Formula) -> None:
    assert parse(text) == formula
    assert parse(show(formula)) == formula


def test_printing_uses_no_parentheses_it_does_not_need() -> None:
    assert show(parse("(ALWAYS ((a) IMPLIES (ONCE (b)))) AND (c OR (NOT (a)))")) == (
        "ALWAYS (a IMPLIES ONCE b) AND (c OR NOT a)"
    )
    assert show(And(And(a, b), c)) == "a AND b AND c"
    assert show(And(a, And(b, c))) == "a AND (b AND c)"


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("", 1, "empty"),
        ("a and b", 3, "did you mean `AND`?"),
        ("ALWYS a", 1, "did you mean `ALWAYS`?"),
        ("G a", 1, "did you mean `ALWAYS`?"),
        ("a UNTILL b", 3, "did you mean `UNTIL`?"),
        ("(a AND b", 1, "never closed"),
        ("a AND b)", 8, "closes nothing"),
        ("a AND", 6, "found the end"),
        ("a AND OR b", 7, "found `OR`"),
        ("a b", 3, "expected an operator"),
        ("a = b", 3, "`IFF`"),
        ('"a', 1, "never closed"),
        ("ONCE NEXT a", 6, "must not contain future"),
        ("(b AND EVENTUALLY a) SINCE b", 8, "must not contain future"),
        ("a SINCE (a UNTIL b)", 12, "must not contain future"),
        ("HISTORICALLY (a AND YESTERDAY ALWAYS b)", 31, "must not contain future"),
        ("FOR EACH x: a", 1, "belongs to a rule"),
        ("NOT " * 500 + "a", 801, "deep"),
        ("(" * 5000, 201, "deep"),
        ("a" + " AND a" * 5000, 1, "deep"),
    ],
)
def test_errors_say_where_and_what_to_do(text: str, column: int, says: str) -> None:
    with pytest.raises(FormulaError) as caught:
        parse(text)
    assert caught.value.column == column
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"column {column}: ")


def test_a_past_operator_beside_a_future_one_is_fine() -> None:
    parse("EVENTUALLY a AND ONCE b")
    parse("NEXT a UNTIL ONCE b")
    parse("ALWAYS (a SINCE b)")


def test_a_rule_may_name_its_key() -> None:
    assert parse_rule("FOR EACH reservation_id: ALWAYS a") == ("reservation_id", Always(a))
    assert parse_rule("ALWAYS a") == (None, Always(a))
    rule = read_rule("r", "FOR EACH call.id: ALWAYS a")
    assert rule.for_each == "call.id"
    assert parse_rule(rule.text) == (rule.for_each, rule.formula)
    for text in ("FOR reservation: a", "FOR EACH : a", "FOR EACH x a"):
        with pytest.raises(FormulaError):
            parse_rule(text)


def test_predicates_are_listed_in_order_of_appearance() -> None:
    assert atoms(parse("c AND (a UNTIL c) OR b")) == ("c", "a", "b")


def test_a_formula_that_can_be_read_can_be_read_again_after_printing() -> None:
    formula = parse(" IFF ".join("abcd"[i % 4] for i in range(100)))
    assert parse(str(formula)) == formula


def test_a_reader_with_little_stack_left_refuses_and_does_not_crash() -> None:
    def below(frames: int) -> None:
        if frames:
            below(frames - 1)
        else:
            parse("(" * 200 + "a" + ")" * 200)

    with pytest.raises(FormulaError, match="deep"):
        below(700)
