"""Numbers of a sentence that a guard does not use are reported."""

import pytest

from bylaw.compile.guards import replaced_numbers, unused_numbers
from bylaw.compile.span import Draft
from tests.compile.shop import LIMIT


def stating(*quotes: str) -> Draft:
    """A policy that repeats its sentences."""
    return Draft("stated", " ".join(quotes), quotes=quotes)


def test_numbers_of_a_sentence_that_a_guard_does_not_use_are_named() -> None:
    quotes = ["3.2 Gold customers get up to $500.00 at once, others up to $200.00, since 2025, and 1,500 a year."]
    assert unused_numbers(stating(*quotes), LIMIT) == ["2025", "1,500"]


def test_a_number_that_the_definition_leaves_out_belongs_to_another_policy() -> None:
    """The numbers of prices in a table, of clauses, and of the other half of a sentence."""
    table = ("| junior | 9 € | members under 18 |", "| gold | 45 € | adults |")
    tiers = Draft("tier-ages", "The tier junior is for members under 18.", quotes=table)
    assert unused_numbers(tiers, "permit()") == ["18"]
    sentence = "A booking can be moved until 24 hours before its start, and once; section 5 holds too."
    assert unused_numbers(Draft("once", "A booking can be moved once.", quotes=(sentence,)), "permit()") == []
    assert replaced_numbers(Draft("once", "A booking can be moved once.", quotes=(sentence,)), "", "x > 9", "")[0] == []


@pytest.mark.parametrize(("used", "instead"), [("9", ["9"]), ("2", []), ("0", []), ("70", []), ("500", [])])
def test_a_number_of_the_code_stands_for_one_of_the_sentence_unless_it_is_small_or_counts_the_same(
    used: str, instead: list[str]
) -> None:
    """Half a number of ten weeks, in days, is no other number; 500 is named by another sentence."""
    found = replaced_numbers(stating("within 10 weeks"), "at most $500", f"return call.days < {used}", "")
    assert found == ((["10"], instead) if instead else ([], []))
