"""Numbers of a sentence that a guard does not use are reported."""

from bylaw.compile.numeral import unused_numbers
from tests.compile.shop import LIMIT


def test_numbers_of_a_sentence_that_a_guard_does_not_use_are_named() -> None:
    quotes = ["3.2 Gold customers get up to $500.00 at once, others up to $200.00, since 2025, and 1,500 a year."]
    assert unused_numbers(quotes, LIMIT) == ["2025", "1,500"]
