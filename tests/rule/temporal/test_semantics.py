"""The sweep over a whole trace against the meaning of formulas."""

import random

from bylaw.rule.progression import values_of

from .formulas import random_formula
from .meaning import completions, holds


def test_the_sweep_gives_every_step_the_value_the_formula_has_there() -> None:
    source = random.Random(1)
    for _ in range(1500):
        formula = random_formula(source, source.randint(1, 10))
        trace = [{name: source.random() < 0.5 for name in "abc"} for _ in range(source.randint(1, 5))]
        assert values_of(formula, trace) == [holds(formula, trace, now) for now in range(len(trace))], formula


def test_a_value_given_in_spite_of_unknowns_is_the_value_of_every_completion() -> None:
    source = random.Random(2)
    given = 0
    for _ in range(600):
        formula = random_formula(source, source.randint(1, 8))
        trace = [{name: source.choice((True, False, None)) for name in "abc"} for _ in range(2)]
        found = values_of(formula, trace)[0]
        if found is not None:
            given += 1
            assert {holds(formula, whole) for whole in completions(trace, "abc")} == {found}, formula
    assert given > 200
