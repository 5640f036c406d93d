"""The clock that a document fixes."""

import pytest

from bylaw.policy.clock import stated_clock
from bylaw.policy.document import Document


@pytest.mark.parametrize(
    ("sentence", "now"),
    [
        ("Today is March 14, 2026.", "2026-03-14T00:00:00"),
        ("Today is Saturday, 14th of March 2026.", "2026-03-14T00:00:00"),
        ("The current time is 2024-05-15 15:00:00 EST.", "2024-05-15T15:00:00"),
        ("The current date and time is Feb 3, 2025, 4:05 pm.", "2025-02-03T16:05:00"),
        ("Today's date: 2025-11-01", "2025-11-01T00:00:00"),
    ],
)
def test_a_document_may_say_when_it_is(sentence: str, now: str) -> None:
    clock = stated_clock(Document(f"# Rules\n\nBe kind. {sentence}\n"))
    assert clock is not None
    assert (clock.now, clock.sentence) == (now, sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        '"Today" is the day of the call.',
        "Today is a good day to be kind.",
        "Orders placed before March 14, 2026 cannot be changed.",
        "Today is February 30, 2026.",
        "The current time is shown in the corner.",
    ],
)
def test_other_words_of_today_fix_no_clock(sentence: str) -> None:
    assert stated_clock(Document(f"# Rules\n\n{sentence}\n")) is None
