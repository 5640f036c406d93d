"""Mutants: every change is one that a good case can notice, and cases that miss a limit leave some alive."""

import pytest

from bylaw.compile.bench import Bench, Case
from bylaw.compile.mutant import mutants, mutation_score
from bylaw.compile.numeral import unused_numbers
from bylaw.compile.things import Things
from bylaw.policy.statement import Policy
from bylaw.policy.yaml import read_yaml
from tests.compile.shop import CARDS, LIMIT, THINGS

POLICY = Policy("refund-limit", "guard", "", ("refund",))


@pytest.fixture(scope="module")
def bench() -> Bench:
    data = read_yaml(THINGS, file="things").data
    return Bench(CARDS, Things(data["entities"], data["observations"], data["tools"]), {}, "2025-01-15T10:00:00")


def case(amount: str, level: str, want: str) -> Case:
    call = {"refund": {"order_id": "A1", "customer_id": "C1", "amount": amount}}
    return {"policy": POLICY.id, "call": call, "facts": {"Customer[C1]": {"level": level}}, "want": want}


ROUGH = [case("10.00", "none", "permit"), case("900.00", "none", "deny")]
SHARP = [
    case("200.00", "none", "permit"),
    case("200.01", "none", "deny"),
    case("500.00", "gold", "permit"),
    case("500.01", "gold", "deny"),
]


def test_each_mutant_differs_from_the_guard_and_from_the_others() -> None:
    made = list(mutants(LIMIT))
    assert len(set(made)) == len(made) > 5


def test_cases_that_miss_the_limits_leave_mutants_alive(bench: Bench) -> None:
    killed, every = mutation_score(bench, POLICY, LIMIT, ROUGH)
    assert 0 < killed < every


def test_cases_on_both_sides_of_every_limit_find_them_all(bench: Bench) -> None:
    killed, every = mutation_score(bench, POLICY, LIMIT, SHARP)
    assert killed == every > 5


def test_without_cases_nothing_is_found(bench: Bench) -> None:
    assert mutation_score(bench, POLICY, LIMIT, [])[0] == 0


def test_numbers_of_a_sentence_that_a_guard_does_not_use_are_named() -> None:
    quotes = ["3.2 Gold customers get up to $500.00 at once, others up to $200.00, since 2025, and 1,500 a year."]
    assert unused_numbers(quotes, LIMIT) == ["2025", "1,500"]
