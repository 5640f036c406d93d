"""Numbers of a sentence that a guard does not use are reported."""

import pytest

from bylaw.compile.guards import replaced_numbers, unused_numbers
from tests.compile.shop import LIMIT


def test_numbers_of_a_sentence_that_a_guard_does_not_use_are_named() -> None:
    quotes = ["3.2 Gold customers get up to $500.00 at once, others up to $200.00, since 2025, and 1,500 a year."]
    assert unused_numbers(quotes, LIMIT) == ["2025", "1,500"]


@pytest.mark.parametrize(("used", "instead"), [("9", ["9"]), ("2", []), ("0", []), ("70", []), ("500", [])])
def test_a_number_of_the_code_stands_for_one_of_the_sentence_unless_it_is_small_or_counts_the_same(
    used: str, instead: list[str]
) -> None:
    """Half a number of ten weeks, in days, is no other number; 500 is named by another sentence."""
    found = replaced_numbers(["within 10 weeks"], "at most $500", f"return call.days < {used}", "")
    assert found == ((["10"], instead) if instead else ([], []))
