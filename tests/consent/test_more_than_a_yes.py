"""What stands beside a yes may turn it: in a later sentence, in words that call a thing by its kind, in a picture."""

import pytest

from bylaw.consent.answer import said, said_to_card
from tests.consent.shop import ask, events_of

PUT = "I would transfer 250.00 from account AC-11 to AC-22. Shall I go ahead?"
CALL = {"call": "transfer", "args": {"account_id": "AC-11", "to_account": "AC-22", "amount": "250.00"}}
TURNED = [
    "Yes. The other one, please.",
    "Yes. To my savings.",
    "Yes. In euros.",
    "Yes. Tomorrow.",
    "Yes. Let me think.",
    "Yes. Cancel that.",
    "Yes. Half of it.",
    "Yes. Thanks for keeping it open.",
    "Yes. Thanks for keeping it.",
    "Yes. Cheers for moving it to my savings.",
    "Yes. I need to ask my wife.",
    "Yes. My lawyer will decide.",
    "Yes. Is it free?",
    "Yes! You already asked me that and I told you to stop.",
    "Yes, change the amount.",
    "Yes, make it two.",
    "Yes, to her account.",
    "Yes, use my balance.",
    "Yes, with modifications.",
    "Yes, with the changes I proposed.",
    "Yes, I'll do it.",
    "Yes, help me.",
    "Yeah right, thanks.",
    "Correct the amount please.",
    "Confirm my balance.",
    "Please go away.",
    "Please do change the payment method.",
    "I'd like that in two payments.",
    "Lovely, go ahead, the cheaper way.",
    "Hm fine, proceed with the blue one.",
    "\U0001f44d \U0001f44e",
    "Yes \u274c",
]


@pytest.mark.parametrize("answer", TURNED)
def test_more_than_a_yes_is_left_open(answer: str) -> None:
    events = list(events_of([{"user": "Hello."}, {"agent": PUT}, {"user": answer}, CALL]))
    assert ask(events, 3).value is None


@pytest.mark.parametrize("answer", TURNED)
def test_more_than_a_yes_settles_no_card(answer: str) -> None:
    assert said_to_card(answer, "please confirm: transfer money\n- to: ac-22\nshall i do this?") == "other"


def test_a_number_that_is_not_on_the_card_settles_no_card() -> None:
    assert said_to_card("Yes, 300.00", "please confirm: transfer money\n- amount: 250.00\nshall i do this?") == "other"
    assert said_to_card("Yes, 250", "please confirm: transfer money\n- amount: 250.00\nshall i do this?") == "yes"


@pytest.mark.parametrize(
    "answer",
    [
        "Yes, please make these changes.",
        "Yes, go ahead right away. Thanks so much for your help!",
        "Yes \U0001f642",
        "Yes, you can proceed with the booking as described above.",
    ],
)
def test_words_that_point_at_what_was_told_leave_a_yes_plain(answer: str) -> None:
    assert said(answer, "i would move room 12 to may. shall i go ahead?") == "yes"
