"""The working of a thought: every comparison that a guard made, as it came out, and none that it did not come to."""

import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from bylaw.align.desk import load_tasks
from bylaw.align.lesson import gold
from bylaw.align.matcher import Matcher
from bylaw.align.prompt import pack_named
from bylaw.align.turn_evidence import Note, notes_of
from bylaw.facts.entity import UNSEEN, Fact
from bylaw_lab.clinic.tasks import Scenario

PACK = pack_named("clinic")
NOW = datetime(2025, 3, 12, 9, 0)


class Seen:
    """What an agent has seen: the records that a test names."""

    def __init__(self, **records: dict[str, Any]) -> None:
        self.records = records

    def read(self, entity: Any, key: Any, field: Any) -> Any:
        return self.records.get(entity.name, {}).get(field.name, UNSEEN)

    def done(self, tool: str, match: Any) -> int:
        return 0


def noted(policy: str, tool: str, arguments: dict[str, Any], **records: dict[str, Any]) -> list[Note]:
    return list(notes_of(PACK.guards[policy], arguments, Seen(**records), tool=tool, now=NOW))  # pyright: ignore[reportArgumentType]


def words(notes: list[Note]) -> list[tuple[str, str]]:
    return [(note.fact.field if note.fact else note.name, note.words) for note in notes]


@pytest.mark.parametrize(
    ("starts", "said"),
    [(timedelta(hours=24), "the same"), (timedelta(hours=23, minutes=59), "earlier"), (timedelta(30), "later")],
)
def test_a_span_from_now_is_held_against_the_moment_it_comes_down_to(starts: timedelta, said: str) -> None:
    call = {"patient_id": "P1", "appointment_id": "A1", "slot_id": "S1"}
    found = words(noted("reschedule-notice", "reschedule_appointment", call, Appointment={"starts_at": NOW + starts}))
    assert found[0] == ("starts_at", f"24 hours from now is 2025-03-13 09:00: {said}")
    assert (len(found) == 2) == (said == "earlier")  # the 2 hours are looked at only then


def test_days_ago_take_the_number_that_the_guard_chose() -> None:
    call = {"patient_id": "P1", "prescription_id": "X1"}
    for controlled, day in ((True, "28 days ago is 2025-02-12: later"), (False, "21 days ago is 2025-02-19: later")):
        seen = {"controlled": controlled, "last_filled_on": date(2025, 2, 20)}
        assert words(noted("refill-interval", "refill_prescription", call, Prescription=seen)) == [
            ("last_filled_on", day)
        ]


def test_amounts_counts_and_names_are_held_against_what_the_guard_says() -> None:
    invoice = {"patient_id": "P2", "paid": Decimal(100), "refunded": Decimal(30), "amount": Decimal(80)}
    refund = {"patient_id": "P1", "invoice_id": "I1", "amount": "80.00"}
    assert words(noted("invoice-owner", "issue_refund", refund, Invoice=invoice)) == [("patient_id", "P1: another")]
    left = words(noted("refund-remaining", "issue_refund", refund, Invoice=invoice))
    assert left == [("refunded", "leaves $70.00, and $80.00 is more")]
    waived = words(noted("waive-limit", "waive_invoice", refund, Invoice=invoice))
    assert waived == [("amount", "$250.00: less"), ("amount", "$40.00: more")]
    booking = {"patient_id": "P1", "slot_id": "S1", "copay": "0.00"}
    booked = words(noted("booking-weekly-cap", "book_visit", booking, Patient={"booked_this_week": 3}))
    assert booked == [("booked_this_week", "5: less"), ("booked_this_week", "3: equal")]


def test_what_the_caller_asks_for_is_held_against_the_limit_before_anything_is_seen() -> None:
    refund = {"patient_id": "P1", "invoice_id": "I1", "amount": "80.00"}
    (note,) = noted("refund-cap", "issue_refund", refund)
    assert note == Note(None, "$50.00: more", "amount", "$80.00")
    seen = {"Patient": {"membership_id": "M1"}, "Membership": {"tier": "silver"}}
    capped = noted("refund-cap", "issue_refund", refund, **seen)[-1]
    assert capped.fact == Fact("Membership", ("M1",), "tier")
    assert capped.words == "amount $80.00 against $100.00: less"


def test_nothing_is_said_of_what_was_not_seen() -> None:
    assert noted("reschedule-notice", "reschedule_appointment", {"patient_id": "P1", "appointment_id": "A1"}) == []
    # The kind of the slot says how much notice it takes, so the start alone settles nothing.
    slot = {"starts_at": NOW}
    assert noted("booking-notice", "book_visit", {"patient_id": "P1", "slot_id": "S1"}, Slot=slot) == []


def test_working_makes_nothing_up_and_states_true_comparisons() -> None:
    matcher, seen = Matcher(PACK), 0
    for task in load_tasks("development")[:24]:
        for lesson in gold(task).lessons:
            assert not matcher.mentions(lesson.thought).made_up
            for day, against, order in re.findall(r"on (\S{10}) \(\D*\d* ?\D*(\d{4}-\d\d-\d\d): (\w+)", lesson.thought):
                assert order == ("earlier" if day < against else "later" if day > against else "the")
                seen += 1
    assert seen > 10


def test_an_announcement_says_what_it_comes_to_and_why() -> None:
    tasks = [task for task in load_tasks("development") if isinstance(task, Scenario)]
    task = next(each for each in tasks if each.errands[0].want.tool == "cancel_appointment" and each.errands[0].right)
    right = task.errands[0].right
    assert right is not None
    lesson = next(each for each in gold(task).lessons if each.evidence.purpose == "announce")
    assert f"late fee {right.arguments['late_fee']}" in lesson.thought
    assert re.search(r"starts at \S+ \S+ \(\d+ hours from now is ", lesson.thought)
