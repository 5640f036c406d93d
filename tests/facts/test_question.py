"""A question made of a field's name can be read aloud, whatever shape the field has."""

from typing import Any

import pytest

from bylaw.facts.entity import Entity, Fact, Field, question_about

FIELDS = {
    "keeper_agrees": Field("keeper_agrees", "boolean"),
    "is_late": Field("is_late", "boolean"),
    "has_insurance": Field("has_insurance", "boolean"),
    "tier": Field("tier", "enum", ("gold", "standard", "none")),
    "total": Field("total", "money"),
    "times_moved": Field("times_moved", "integer"),
    "starts_at": Field("starts_at", "datetime"),
    "reason": Field("reason"),
    "told": Field("told", "boolean", question="Did you tell your doctor?"),
}
KEYED, ALONE, UNKNOWN = ("R-1",), (), None


@pytest.mark.parametrize(
    ("field", "key", "asked"),
    [
        ("keeper_agrees", KEYED, 'Is "keeper agrees" true for rental car R-1? (yes or no)'),
        ("keeper_agrees", ALONE, 'Is "keeper agrees" true? (yes or no)'),
        ("keeper_agrees", UNKNOWN, 'Is "keeper agrees" true for the rental car? (yes or no)'),
        ("is_late", KEYED, "Is rental car R-1 late? (yes or no)"),
        ("has_insurance", KEYED, "Does rental car R-1 have insurance? (yes or no)"),
        ("tier", KEYED, 'What is the "tier" of rental car R-1: gold, standard or none?'),
        ("total", KEYED, 'What amount is the "total" of rental car R-1?'),
        ("times_moved", KEYED, 'What number is the "times moved" of rental car R-1?'),
        ("starts_at", KEYED, 'What date and time is the "starts at" of rental car R-1?'),
        ("reason", ALONE, 'What is the "reason"?'),
        ("exists", KEYED, "Is there rental car R-1?"),
        ("told", KEYED, "Did you tell your doctor?"),
    ],
)
def test_every_shape_of_field_reads_as_a_question(field: str, key: Any, asked: str) -> None:
    assert question_about(Fact("RentalCar", key, field), Entity("RentalCar", ("plate",), FIELDS)) == asked


@pytest.mark.parametrize(
    ("field", "asked"),
    [
        ("keeper_agrees", 'Is "keeper agrees" true? (yes or no)'),
        ("now", "When is this call made?"),
        ("history", "What came before this call?"),
    ],
)
def test_what_the_host_did_not_say_is_asked_for_with_the_place_it_belongs_in(field: str, asked: str) -> None:
    found = question_about(Fact("context", (), field), Entity("context", (), FIELDS))
    assert found == f"{asked} The host did not provide it: add it to the session's `context`."
