"""The clock that a document fixes."""

import pytest

from bylaw.policy.document import Document, stated_clock


@pytest.mark.parametrize(
    ("sentence", "now"),
    [
        ("Today is March 14, 2026.", "2026-03-14T00:00:00"),
        ("Today is Saturday, 14th of March 2026.", "2026-03-14T00:00:00"),
        ("The current time is 2024-05-15 15:00:00 EST.", "2024-05-15T15:00:00"),
        ("The current date and time is Feb 3, 2025, 4:05 pm.", "2025-02-03T16:05:00"),
        ("Today's date: 2025-11-01", "2025-11-01T00:00:00"),
        ("It is 20 May 2026.", "2026-05-20T00:00:00"),
        ("It's Wednesday, May 20th, 2026, 9:30 am.", "2026-05-20T09:30:00"),
        ("It is now 2026-05-20T14:00.", "2026-05-20T14:00:00"),
        ("Current date: 20 May 2026.", "2026-05-20T00:00:00"),
        ("The current date is **2026/05/20**.", "2026-05-20T00:00:00"),
        ("The date is the 20th of May 2026.", "2026-05-20T00:00:00"),
        ("The time now is 2026-05-20 08:15.", "2026-05-20T08:15:00"),
        ("Date: 20.05.2026", "2026-05-20T00:00:00"),
        ("As of 20 May 2026.", "2026-05-20T00:00:00"),
        ("As of today, 20 May 2026, we close at six.", "2026-05-20T00:00:00"),
        ("Assume that today is 20 May 2026.", "2026-05-20T00:00:00"),
        ("Today, 20 May 2026, is a working day.", "2026-05-20T00:00:00"),
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
        "As of 20 May 2026 the fee is 3.00.",
        "As of January 1, 2026, cards cost 5.00.",
        "Where the date is 1 May 2026 or later, the new fee is due.",
        "It is 20 minutes on foot.",
        "It is open until 20 May.",
        "Today, we are glad that you are here.",
    ],
)
def test_other_words_of_today_fix_no_clock(sentence: str) -> None:
    assert stated_clock(Document(f"# Rules\n\n{sentence}\n")) is None
