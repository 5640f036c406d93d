"""Intervals and paired differences."""

import pytest
from align_rates import over_trainings, rate_difference, rate_ratio
from hypothesis import given
from hypothesis import strategies as st

from bylaw.align.bootstrap import difference, interval

values = st.dictionaries(
    st.text(max_size=3), st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=2), min_size=1, max_size=20
)


@given(values)
def test_the_mean_lies_inside_its_interval_and_all_inside_the_range(found: dict[str, list[float]]) -> None:
    made = interval(found, rounds=200)
    assert 0 <= made.low <= made.mean <= made.high <= 1
    assert made.mean == pytest.approx(sum(map(sum, found.values())) / sum(map(len, found.values())))


@given(values)
def test_nothing_differs_from_itself(found: dict[str, list[float]]) -> None:
    made = difference(found, found, rounds=100)
    assert (made.mean, made.low, made.high) == (0, 0, 0)


def test_a_difference_is_the_other_way_round_when_turned() -> None:
    one = {str(number): [1.0, float(number % 3 == 0)] for number in range(40)}
    other = {str(number): [float(number % 2), 0.0] for number in range(40)}
    forth, back = difference(one, other), difference(other, one)
    assert forth.mean == pytest.approx(-back.mean)
    assert forth.low > 0


def test_clusters_count_as_one() -> None:
    """Twenty copies of one task are no more evidence than the task."""
    alone = interval({str(number): [float(number % 2)] for number in range(20)})
    copied = interval({str(number): [float(number % 2)] * 20 for number in range(20)})
    assert copied.low == alone.low
    assert copied.high == alone.high


def test_what_has_other_clusters_is_not_compared() -> None:
    with pytest.raises(ValueError, match="same clusters"):
        difference({"a": [1.0]}, {"b": [1.0]})


def test_a_rate_counts_every_time_alike_and_is_paired() -> None:
    one = {"a": (1.0, 1.0), "b": (0.0, 9.0)}
    found = rate_difference(one, {"a": (0.0, 4.0), "b": (4.0, 4.0)})
    assert found.mean == pytest.approx(0.1 - 0.5)  # not the mean of 1 and 0 less that of 0 and 1
    assert found.low <= found.mean <= found.high
    assert found.low == -1.0  # only b was drawn
    same = rate_difference(one, one)
    assert (same.mean, same.low, same.high) == (0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="same clusters"):
        rate_difference(one, {"a": (0.0, 1.0)})


def test_a_ratio_of_rates_is_one_of_itself_and_half_where_half_as_much_happens() -> None:
    often = {str(number): (2.0 * (number % 2), 4.0) for number in range(40)}
    seldom = {name: (happened / 2, times) for name, (happened, times) in often.items()}
    half = rate_ratio(seldom, often)
    assert (half.mean, half.low, half.high) == (0.5, 0.5, 0.5)
    assert rate_ratio(often, often).mean == 1
    assert rate_ratio(often, dict.fromkeys(often, (0.0, 4.0))).mean == 0


def test_trainings_that_part_make_the_interval_wider_and_trainings_alike_do_not() -> None:
    none = {str(number): (0.0, 1.0) for number in range(40)}
    half = {str(number): (float(number % 2), 1.0) for number in range(40)}
    most = {str(number): (float(number % 10 != 0), 1.0) for number in range(40)}
    alone = rate_difference(half, none)
    alike, apart = over_trainings([half] * 3, [none] * 3), over_trainings([none, half, most], [none] * 3)
    assert (alike.mean, alike.low, alike.high) == (alone.mean, alone.low, alone.high)
    assert apart.mean == pytest.approx((0.5 + 0.9) / 3)
    assert apart.low < alone.low
    assert apart.high > alone.high


def test_a_training_is_drawn_with_its_pair() -> None:
    easy = {str(number): (1.0, 2.0) for number in range(20)}
    hard = {str(number): (2.0, 2.0) for number in range(20)}
    found = over_trainings([easy, hard], [easy, hard])
    assert (found.mean, found.low, found.high) == (0.0, 0.0, 0.0)
    assert over_trainings([easy, easy], [hard, hard], is_share=True).low == 0.5
    with pytest.raises(ValueError, match="same clusters"):
        over_trainings([easy, {"a": (1.0, 1.0)}], [easy, {"a": (1.0, 1.0)}])
