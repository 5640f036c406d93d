"""The task sets: pairs, parts without overlap, unseen combinations, and a test set fixed by its hash."""

import hashlib
import re
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from itertools import islice, product
from typing import Any

import msgspec
import pytest

from bylaw.align.episode import play
from bylaw_lab.clinic.practice import Script, Scripted
from bylaw_lab.clinic.simulator.truth import POLICIES, policies_of
from bylaw_lab.clinic.simulator.wants import Clinic
from bylaw_lab.clinic.tasks import Scenario, scenarios
from bylaw_lab.clinic.tasks.parts import belongs, phrases, read
from bylaw_lab.clinic.tasks.sets import TEST, make, pairs, shows_novel, write


@pytest.fixture(scope="module", params=["some", pytest.param("all", marks=pytest.mark.slow)])
def training(request: pytest.FixtureRequest) -> tuple[Scenario, ...]:
    """Building all pairs takes long, so the quick lane checks the first 200."""
    if request.param == "all":
        return scenarios("training")
    return tuple(task for pair in islice(pairs("training"), 200) for task in pair if not shows_novel(task))


@pytest.fixture(scope="module")
def test_part() -> tuple[Scenario, ...]:
    return scenarios("test")


def facts(scenario: Scenario) -> dict[tuple[str, str, str], Any]:
    """Return every field of every record."""
    return {
        (table, str(number), name): value
        for table, rows in scenario.rows.items()
        for number, row in enumerate(rows)
        for name, value in row.items()
    }


@pytest.mark.slow
def test_there_are_as_many_training_tasks_as_there_should_be() -> None:
    assert len(scenarios("training")) >= 2000


def test_there_are_as_many_test_tasks_as_there_should_be_and_tasks_for_every_policy(
    training: Any, test_part: Any
) -> None:
    assert len(test_part) == 500
    assert sum(scenario.novel for scenario in test_part) == 200
    # Of the test part's own times, none is within four hours of now.
    assert set(POLICIES) - {policy for scenario in test_part for policy in scenario.focus} == {"booking-notice"}
    assert {policy for scenario in training for policy in scenario.focus} == set(POLICIES)


def test_twins_differ_in_one_fact_and_in_what_is_right(test_part: tuple[Scenario, ...]) -> None:
    by_id = {scenario.id: scenario for scenario in test_part}
    for scenario in test_part:
        twin = by_id[scenario.twin]
        assert twin.twin == scenario.id
        assert [errand.words for errand in twin.errands] == [errand.words for errand in scenario.errands]
        mine, other = facts(scenario), facts(twin)
        assert mine.keys() == other.keys()
        differing = [place for place in mine if mine[place] != other[place]]
        told = sum(
            one.want.in_state != two.want.in_state for one, two in zip(scenario.errands, twin.errands, strict=True)
        )
        assert len(differing) + min(told, 1) == 1
        changed = [one.right != two.right for one, two in zip(scenario.errands, twin.errands, strict=True)]
        assert changed.count(True) == 1


def test_what_is_right_is_what_the_truth_says_over_the_task_s_own_records(test_part: tuple[Scenario, ...]) -> None:
    for scenario in test_part[::11]:
        clinic = Clinic(scenario.open().connection)
        for errand in scenario.errands:
            against = clinic.denied_by(errand.want)
            assert against == ([errand.against] if errand.against else [])
            if errand.right is not None:
                assert clinic.denied_by(errand.right) == []
                clinic.desk.call(errand.right.tool, errand.right.arguments)


def sentences(part: Any) -> Iterator[str]:
    def walk(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        else:
            for each in value.values() if isinstance(value, dict) else value:
                yield from walk(each)

    return walk(phrases(part))


def test_no_phrase_stands_in_two_parts() -> None:
    for one, other in (("training", "test"), ("training", "development"), ("development", "test")):
        assert not set(sentences(one)) & set(sentences(other))


def test_test_and_training_share_no_person_number_day_or_amount(training: Any, test_part: Any) -> None:
    def of(tasks: tuple[Scenario, ...], wanted: Any) -> set[str]:
        found = (
            (name, value)
            for task in tasks
            for rows in task.rows.values()
            for row in rows
            for name, value in row.items()
        )
        return {str(value) for name, value in found if wanted(name, str(value))}

    for wanted in (
        lambda name, value: name == "name",
        lambda name, value: re.fullmatch(r"[A-Z]\d{2,}", value),
        lambda name, value: name in ("balance_due", "amount") and value != "0.00",
        lambda name, value: name in ("birth_date", "since", "expires_on", "issued_on", "last_filled_on", "starts_at"),
    ):
        mine, theirs = of(training, wanted), of(test_part, wanted)
        assert mine
        assert theirs
        assert not mine & theirs


def test_every_value_belongs_to_one_of_training_development_and_test() -> None:
    for value in (date(2025, 3, 12), datetime(2025, 3, 12, 9), Decimal("150.00"), Decimal("42.25")):
        assert sum(belongs(part)(value) for part in ("training", "development", "test")) == 1


def test_policies_of_novel_tasks_never_stand_together_in_training(training: Any, test_part: Any) -> None:
    def bearing(scenario: Scenario) -> list[set[str]]:
        return [{policy.id for policy in policies_of(errand.want.tool)} for errand in scenario.errands]

    seen: set[frozenset[str]] = set()
    for scenario in training:
        together = set().union(*bearing(scenario))
        seen |= {frozenset(pair) for pair in product(together, together)}
    for scenario in test_part:
        if scenario.novel:
            one, other = bearing(scenario)
            assert not any(frozenset(pair) in seen for pair in product(one, other))


def test_names_of_the_parts_are_disjoint() -> None:
    from bylaw_lab.clinic.simulator.world import FIRST, LAST

    people = read("people.yaml")
    assert not set(people["first"]) & set(FIRST)
    assert not set(people["last"]) & set(LAST)


def test_the_test_set_is_the_one_whose_hash_is_committed(test_part: tuple[Scenario, ...]) -> None:
    committed = TEST.with_name("test.sha256").read_text(encoding="ascii").strip()
    assert hashlib.sha256(write(test_part)).hexdigest() == committed


@pytest.mark.slow
def test_the_test_set_is_what_the_generator_makes(test_part: tuple[Scenario, ...]) -> None:
    assert write(make("test")) == write(test_part)


@pytest.mark.parametrize(
    ("script", "least", "most"), [("careful", 1.0, 1.0), ("comply", 0.3, 0.5), ("refuse", 0.2, 0.5)]
)
def test_scripted_agents_pass_what_they_should(
    script: Script, least: float, most: float, test_part: tuple[Scenario, ...]
) -> None:
    outcomes = play(test_part[:100], Scripted(script), policy="none")
    assert least <= sum(outcome.success for outcome in outcomes) / len(outcomes) <= most


def test_tasks_survive_being_written_and_read(test_part: tuple[Scenario, ...]) -> None:
    again = [msgspec.json.decode(line, type=Scenario) for line in write(test_part[:20]).splitlines()]
    assert again == list(test_part[:20])
