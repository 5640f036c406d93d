"""Spans of a line: what is in both is what a plain comparison of every pair finds, in one walk."""

from hypothesis import given
from hypothesis import strategies as st

from bylaw.facts.variable import Spans, points

NUMBERS = st.lists(st.integers(-30, 30), max_size=12)


def inside(spans: Spans, number: int) -> bool:
    """Whether a whole number lies in one of the spans."""
    return any(low <= (number, False) < high for low, high in spans.spans)


@given(NUMBERS, NUMBERS, st.booleans(), st.booleans())
def test_meeting_is_being_in_both(one: list[int], other: list[int], flip: bool, flop: bool) -> None:
    ours, theirs = points(one, 1), points(other, 1)
    ours, theirs = (ours.rest() if flip else ours), (theirs.rest() if flop else theirs)
    both = ours.meet(theirs)
    for number in range(-32, 33):
        assert inside(both, number) == (inside(ours, number) and inside(theirs, number))
    assert list(both.spans) == sorted(both.spans)


def test_two_long_lists_meet_in_one_walk() -> None:
    # Pair by pair this would be 1.6 thousand million comparisons.
    evens, thirds = points(range(0, 80_000, 2), 1), points(range(0, 120_000, 3), 1)
    assert len(evens.meet(thirds).spans) == len(range(0, 80_000, 6))
