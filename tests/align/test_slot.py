"""Slots: gold texts say all of them, and what is left out or added costs."""

import pytest

from bylaw.align.lesson import play_careful
from bylaw.align.slot import Slot, f1
from bylaw_lab.clinic.tasks import scenarios

AMOUNT, THING = Slot("amount", "15.00"), Slot("thing", "S1", (r"\bS1\b",))
ASKS = Slot("question", "confirm", (r"\?",))
GOLD = "I can book slot S1 with a copay of $15.00. Shall I go ahead?"


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        (GOLD, 1.0),
        ("S1 for 15 dollars, shall I?", 1.0),
        ("S1 for $15, shall I?", 1.0),
        ("S1 for $20.00, shall I?", 2 * 2 / (3 + 2 + 1)),
        ("Shall I book S1?", 2 * 2 / (3 + 2)),
        ("I booked S1 for $15.00.", 2 * 2 / (3 + 2)),
        ("S1, $15.00, on 2025-03-14?", 2 * 3 / (3 + 3 + 1)),
        ("Hello.", 0.0),
        ("", 0.0),
    ],
)
def test_marks_are_the_f1_of_what_is_said(text: str, mark: float) -> None:
    assert f1((AMOUNT, THING, ASKS), text, gold=GOLD) == pytest.approx(mark)


def test_a_text_that_need_say_nothing_may_say_anything_but_amounts_dates_and_questions() -> None:
    assert f1((), "Good day.", gold="Bye.") == 1.0
    assert f1((), "That is $5.00.", gold="Bye.") == 0.0


def test_every_gold_text_says_its_own_slots() -> None:
    for task in scenarios("development"):
        for one in play_careful(task)[0]:
            slots = tuple(Slot(*slot) for slot in one.act.slots)
            assert f1(slots, one.act.text, gold=one.act.text) == 1.0
            assert bool(slots) == bool(one.act.text)
