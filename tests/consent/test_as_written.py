"""A tool takes "5000\\n" for 5000: how an argument is written does not make it something that nobody has to tell."""

from typing import Any

import pytest

from tests.consent.shop import ask, events_of

HUGE = 10**400


def agreed(**arguments: Any) -> bool | None:
    """Whether the user agreed to a transfer, having said yes to one of 50.00 to B2."""
    told = "I can transfer 50.00 from account A1 to account B2. Shall I?"
    call = {"call": "transfer", "args": {"account_id": "A1", "to_account": "B2", "amount": "50.00", **arguments}}
    return ask(list(events_of([{"agent": told}, {"user": "Yes, please."}, call])), 2).value


@pytest.mark.parametrize("amount", ["50.00", "50.00\n", "  50.00", 50, 50.0, "0" * 90 + "50"])
def test_what_was_told_is_told_however_it_is_written(amount: Any) -> None:
    assert agreed(amount=amount) is True


@pytest.mark.parametrize(
    "amount",
    [
        "5000\n",
        "5000" + " " * 90,
        " " * 90 + "5000",
        "0" * 90 + "5000",
        pytest.param("9" * 400, id="nines"),
        pytest.param("-" + "9" * 400, id="less"),
        "1.200.000",
        pytest.param(HUGE, id="huge"),
        pytest.param(-HUGE, id="below"),
        float("inf"),
        float("-inf"),
        float("nan"),
    ],
)
def test_another_sum_was_not_told_however_it_is_written(amount: Any) -> None:
    assert not agreed(amount=amount)


@pytest.mark.parametrize("account", ["B9\n", " B9" + " " * 90, "B9" + "x" * 90, "B9 " * 8])
def test_another_account_was_not_told_however_it_is_written(account: str) -> None:
    assert not agreed(to_account=account)


def test_a_count_beyond_all_counting_is_no_fault() -> None:
    call = {"call": "change_bulbs", "args": {"bulb_count": HUGE}}
    told = [{"agent": "I will change the number of bulbs to 4. Shall I?"}, {"user": "Yes."}, call]
    assert ask(list(events_of(told)), 2).value is not True
