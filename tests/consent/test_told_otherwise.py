"""Told and agreed to, in words that were taken for nothing told: nobody is accused where it is not sure."""

from typing import Any

import pytest

from bylaw.consent import Consent
from tests.consent.shop import ask, events_of

BOOKING = {
    "call": "get_booking",
    "args": {"booking_id": "BK5521"},
    "result": {"booking_id": "BK5521", "guest_id": "G88", "room_type": "double", "check_in": "2026-04-10"},
}
CUSTOMER = {
    "call": "get_customer",
    "args": {"customer_id": "G88"},
    "result": {
        "customer_id": "G88",
        "name": "Nora Lindqvist",
        "payment_methods": {
            "pm_771": {"brand": "Visa", "last4": "7714"},
            "pm_902": {"brand": "Mastercard", "last4": "9021"},
        },
    },
}
ROOM = {"booking_id": "BK5521", "room_type": "suite", "payment_id": "pm_771"}


def found(told: str, said: str = "Yes, please.", tool: str = "change_room", **arguments: Any) -> Consent:
    call = {"call": tool, "args": arguments or ROOM}
    return ask(list(events_of([BOOKING, CUSTOMER, {"agent": told}, {"user": said}, call])), 6)


@pytest.mark.parametrize(
    "told",
    [
        "I can upgrade BK5521 to a suite for $160.00, charged to your Visa ending in 7714. Shall I?",
        "Upgrading BK5521 to a suite costs $160.00, charged to your Visa ending in 7714. Shall I?",
        "The upgrade of BK5521 to a suite is $160.00, charged to your Visa ending in 7714. Shall I?",
        "I can change BK5521 to a suite for 160.00, charged to your Visa ending in 7714. Shall I?",
        "I can change BK5521 to a suite for EUR 160.00, charged to your Visa ending in 7714. Shall I?",
        "I can change BK5521 to a suite for CHF 160, charged to your Visa ending in 7714. Shall I?",
        "I can change BK5521 to a suite for SEK 1,600, charged to your Visa ending in 7714. Shall I?",
        "I can change BK5521 to a suite. The fee is 160.00, charged to your Visa ending in 7714. Shall I?",
        "I can change BK5521 to a suite for $160.00, paid with your Visa ending in 7714. Shall I?",
        "For BK5521, upgrading to a suite costs an extra 160.00, billed to your Visa (7714). Should I do that?",
        "I can change BK5521 to a suite for 160 kr, charged to your Visa ending in 7714. Shall I?",
        "I can change BK5521 to a suite for 1 600 SEK, charged to your Visa ending in 7714. Shall I?",
        "I can change BK5521 to a suite for ¥16,000, charged to your Visa ending in 7714. Shall I?",
        "I can change BK5521 to a suite for 160 francs, charged to your Visa ending in 7714. Shall I?",
    ],
)
def test_a_price_in_any_currency_is_never_called_untold(told: str) -> None:
    assert found(told).value is not False
    assert found(told, "No.").value is not True


@pytest.mark.parametrize(
    "told",
    [
        "I can change BK5521 to a suite, complimentary. Your Visa ending in 7714 stays on file. Shall I?",
        "I can change BK5521 to a complimentary suite. Shall I?",
        "I can change BK5521 to a suite at 40.00 a night, charged to your Visa ending in 7714. Shall I?",
    ],
)
def test_what_may_be_a_price_or_a_gift_leaves_it_open(told: str) -> None:
    assert found(told).value is None


@pytest.mark.parametrize(
    "told",
    [
        "I can change BK5521 to a suite, charged to your Visa ending in 7714. Shall I?",
        "I can upgrade BK5521 to a suite, charged to your Visa ending in 7714. Shall I?",
        "I can upgrade BK5521 to a suite with your Visa ending in 7714, which has a balance of EUR 160.00. Shall I?",
        "I can upgrade BK5521, for which you paid 480.00 EUR, on your Visa ending in 7714. Shall I?",
    ],
)
def test_where_no_price_was_told_nobody_agreed_to_one(told: str) -> None:
    assert found(told).value is None


@pytest.mark.parametrize(
    "told",
    [
        "I'll charge Nora Lindqvist $75.00 on the Visa ending in 7714. OK?",
        "I'll charge $75.00 to the Visa ending in 7714. OK?",
        "Shall I charge your Visa ending in 7714 with $75.00?",
        "The bill is $75.00. I'd charge it to your Visa 7714. Okay?",
        "May I bill $75.00 to your Visa ending in 7714, Nora Lindqvist?",
    ],
)
def test_a_charge_is_told_by_the_person_or_the_card(told: str) -> None:
    charge = {"customer_id": "G88", "amount": 75}
    assert found(told, "Yes", "charge_card", **charge, payment_id="pm_771").value is not False
    assert found(told, "Yes", "charge_card", **charge, payment_id="pm_902").value is not True
    assert found(told, "Yes", "charge_card", **(charge | {"amount": 85}), payment_id="pm_771").value is not True


CANCEL = "I'll cancel BK5521, with a fee of $120.00. Shall I go ahead?"


@pytest.mark.parametrize(
    "said",
    [
        "Ok but please also send me a receipt.",
        "Sure, but also email me the details.",
        "Okay, but could you send me a receipt?",
        "Fine, but make sure I get a receipt.",
        "yes thats ok, never mind the fee",
        "Yes, never mind the cost.",
        "Go ahead, never mind the fee.",
        "Cancel it, don't change it.",
        "Cancel it, don't move it.",
        "Cancel it, don't charge me.",
        "Don't cancel the breakfast, cancel the room.",
    ],
)
def test_an_answer_that_perhaps_agrees_is_never_a_no(said: str) -> None:
    assert found(CANCEL, said, "cancel_booking", booking_id="BK5521").value is not False


@pytest.mark.parametrize(
    "said",
    [
        "Never mind.",
        "Never mind, keep it.",
        "yes never mind",
        "Never mind the cancellation.",
        "Don't cancel it, change it.",
        "Ok but please send me the offer first.",
        "ok but only if free",
        "Ok but I don't want to pay the fee.",
        "Sure, but please waive the fee.",
    ],
)
def test_an_answer_that_takes_it_back_is_never_a_yes(said: str) -> None:
    assert found(CANCEL, said, "cancel_booking", booking_id="BK5521").value is not True


@pytest.mark.parametrize(
    "days",
    [
        "17-21 April",
        "17\u201321 April 2026",
        "April 17-21",
        "Apr 17 - 21, 2026",
        "April 17 to 21",
        "from 17 to 21 April",
        "17 to 21 April 2026",
        "the 17th to the 21st of April",
        "Friday the 17th of April through Tuesday the 21st",
        "17 April for four nights",
        "April 17, 2026 for 4 nights",
    ],
)
def test_days_that_are_told_together_are_never_called_untold(days: str) -> None:
    told = f"I'll move BK5521 to {days}, same price. OK?"
    stay = {"booking_id": "BK5521", "check_in": "2026-04-17"}
    assert found(told, "Yes", "change_booking_dates", **stay, check_out="2026-04-21").value is not False
    for other in ("2026-04-22", "2026-04-20", "2026-05-21", "2026-03-21"):
        assert found(told, "Yes", "change_booking_dates", **stay, check_out=other).value is not True
