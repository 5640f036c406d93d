"""`evaluate` against the obvious evaluator, on random guards and random knowledge."""

import random as plain_random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.facts.entity import ABSENT, Fact
from bylaw.facts.variable import Words
from bylaw.guard import Completion, Guard, Inquiry, evaluate, parse_guards
from tests.examples import examples

from . import twin
from .shop import ARGUMENTS, DOMAINS, ENTITIES, NOW, VOCABULARY, Writer

LARGEST_PRODUCT = 400


def facts_in(source: str) -> dict[Fact, tuple[Any, ...]]:
    """Every fact the guard may read, with the values it may have."""
    found: dict[Fact, tuple[Any, ...]] = {}
    for field, values in DOMAINS.items():
        if f".{field}" not in source:
            continue
        for argument, key in (("order_id", "A"), ("other_id", "B")):
            if f"facts.Order(call.{argument})" in source and field in (*ENTITIES["Order"].fields, "exists"):
                found[Fact("Order", (key,), field)] = values
        if field in ENTITIES["Request"].fields:
            found[Fact("Request", (), field)] = values
        if field == "vip":
            found |= {Fact("Owner", (key,), "vip"): values for key in DOMAINS["owner"]}
        if field == "exists":
            found |= {
                Fact("Order", (key,), "exists"): values for key in DOMAINS["owner"] if "facts.Order(facts" in source
            }
    return found


def knowledge(random: Any, source: str) -> tuple[dict[Fact, Any], dict[Fact, tuple[Any, ...]]]:
    """Some facts known, some not, few enough to try every completion."""
    known: dict[Fact, Any] = {}
    unknown: dict[Fact, tuple[Any, ...]] = {}
    product = 1
    everything = list(facts_in(source).items())
    random.shuffle(everything)
    for fact, values in everything:
        if product * len(values) <= LARGEST_PRODUCT and random.randrange(4):
            unknown[fact] = values
            product *= len(values)
        else:
            known[fact] = values[random.randrange(len(values))]
    for thing in {fact[:2] for fact in (*known, *unknown) if fact.entity != "Request"}:
        exists = Fact(*thing, "exists")
        if any(fact[:2] == thing and fact.field != "exists" for fact in known):
            # What is seen of a thing shows that it exists.
            unknown.pop(exists, None)
            known[exists] = True
        elif exists not in known:
            # Nothing shows it: that there is no such thing is one of the completions.
            unknown[exists] = (True, False)
    return known, unknown


def holds(completion: Completion, values: dict[Fact, Any]) -> bool:
    """Whether the user's facts are as the completion says."""
    for name, (_, region) in completion.assume.regions.items():
        entity, _, field = name.partition(".")
        assert isinstance(region, Words)
        if (values[Fact(entity, (), field)] in region.values) == region.all_but:
            return False
    return True


def source_of(known: dict[Fact, Any]) -> twin.Table:
    """A table that knows `known`; of a thing that is known not to exist every field is absent."""
    gone = [fact[:2] for fact, value in known.items() if fact.field == "exists" and not value]

    class Seen(twin.Table):
        def read(self, entity: Any, key: Any, field: Any) -> Any:
            if field.name != "exists" and (entity.name, key) in gone:
                return ABSENT
            return super().read(entity, key, field)

    return Seen(known)


def check(random: Any, *, simple: bool, times: int = 3) -> int:
    """One random guard under a few states of knowledge; how often it was decided."""
    source = Writer(random, simple=simple).guard()
    guards, faults = parse_guards(source, file="random.py", vocabulary=VOCABULARY)
    if any("never reached" in fault.message for fault in faults):
        return 0
    assert not faults, source + "\n".join(map(str, faults))
    return sum(check_knowledge(random, source, guards["random_guard"], simple=simple) for _ in range(times))


def check_knowledge(random: Any, source: str, guard: Guard, *, simple: bool) -> bool:
    known, unknown = knowledge(random, source)
    users = {fact: values for fact, values in unknown.items() if fact.entity == "Request"}
    systems = {fact: values for fact, values in unknown.items() if fact.entity != "Request"}
    completions = evaluate(guard, ARGUMENTS, source_of(known), now=NOW)
    assert completions == evaluate(guard, ARGUMENTS, source_of(known), now=NOW)
    assert completions == Inquiry(ARGUMENTS, source_of(known), now=NOW).ask(guard)
    # While branches are noted, both ways of every fork are run.
    assert completions == evaluate(guard, ARGUMENTS, source_of(known), now=NOW, coverage=set())
    for said in twin.every_completion(users):
        context = f"{source}\nknown {known}\nunknown {list(unknown)}\nsaid {said}\n{completions}"
        fitting = [completion for completion in completions if holds(completion, said)]
        assert len(fitting) == 1, context
        (completion,) = fitting
        # Two answers settle all that is asked of an undetermined outcome.
        enough = 2 if completion.outcome == "undetermined" else 3
        values = {**known, **said}
        expected = twin.outcomes(source, "random_guard", ARGUMENTS, ENTITIES, values, systems, NOW, enough)
        if completion.outcome in ("permit", "deny"):
            assert expected == {completion.outcome}, context
        if completion.outcome == "failed":
            assert "failed" in expected, context
        if simple and completion.outcome == "undetermined" and "more than" not in completion.because:
            assert len(expected) > 1, context
        if not systems:
            assert expected == {completion.outcome}, context
        assert not completion.lacking or completion.outcome == "undetermined", context
        assert not set(completion.lacking) & set(known), context
    return completions[0].outcome in ("permit", "deny")


PARTS = [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2, 3))]


@pytest.mark.parametrize("part", PARTS)
def test_evaluate_equals_brute_force_where_atoms_are_single(part: int) -> None:
    random = plain_random.Random(part)
    decided = sum(check(random, simple=True) for _ in range(100))
    assert 60 < decided < 300


@pytest.mark.parametrize("part", PARTS)
def test_evaluate_never_decides_where_brute_force_does_not(part: int) -> None:
    random = plain_random.Random(1000 + part)
    assert sum(check(random, simple=False) for _ in range(100)) > 30


@examples(10)
@given(st.randoms(use_true_random=False))
def test_hypothesis_finds_no_guard_that_simple_exploration_gets_wrong(random: Any) -> None:
    check(random, simple=True, times=2)


@examples(10)
@given(st.randoms(use_true_random=False))
def test_hypothesis_finds_no_guard_that_is_decided_too_early(random: Any) -> None:
    check(random, simple=False, times=2)
