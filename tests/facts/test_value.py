"""Values that a tool may take for one, however they are written."""

import pytest

from bylaw.facts.value import alike


@pytest.mark.parametrize(
    ("one", "other"),
    [("1000", "1,000"), ("1000", "1'000"), ("1000", "1.000,00"), ("250.00", "250,00"), ("AC-22", "AC.22"),
     ("AC-22", "AC:22"), ("AC-22", "ac|22"), ("-250", "\u2212250"), ("1000000", "1,000,000.00"),
     ("150", "1.5e2"), ("10", "1.0e1")],
)  # fmt: skip
def test_values_that_a_tool_may_take_for_one_are_alike(one: str, other: str) -> None:
    assert alike(one) == alike(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("250", "2500"), ("1.5", "15"), ("-5", "5"), ("10.5", "105"), ("2025-05-01", "2025-05-10"), ("AC-22", "AC-23")],
)
def test_other_numbers_and_ids_are_not(one: str, other: str) -> None:
    assert alike(one) != alike(other)
