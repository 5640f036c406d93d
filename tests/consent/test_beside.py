"""What a yes is for: the question's own verb says it, not what hangs on it or stands beside it."""

import pytest

from tests.consent.shop import ask, events_of

READ = {
    "call": "get_booking",
    "args": {"booking_id": "BK-5521"},
    "result": {"booking_id": "BK-5521", "room_type": "double", "status": "confirmed", "total": "480.00"},
}
CANCEL = {"call": "cancel_booking", "args": {"booking_id": "BK-5521"}}


def found(told: str, said: str = "Yes, please.") -> bool | None:
    return ask(list(events_of([READ, {"agent": told}, {"user": said}, CANCEL])), 4).value


@pytest.mark.parametrize(
    "told",
    [
        "Shall I check whether BK-5521 can be cancelled for free?",
        "Should I transfer you to a person who can cancel BK-5521?",
        "Rather than cancel BK-5521, I could move it to May at no charge. Shall I do that?",
        "Instead of cancelling BK-5521, I'd add a note for the hotel. OK?",
        "Before you cancel BK-5521, may I send you an offer by email?",
        "Is BK-5521 the booking you wish to cancel?",
        "You want to cancel BK-5521, is that right? Let me look up the fee.",
        "Shall I find out what cancelling BK-5521 would cost?",
        "Would you like me to look up the fee for cancelling BK-5521?",
        "May I email you the terms for cancelling BK-5521?",
        "Would you like a link to cancel BK-5521 yourself?",
        "Can I put you through to the team that can cancel BK-5521?",
        "I could move BK-5521 to May rather than cancel it. Does that work for you?",
        "Before cancelling BK-5521, I'd like to offer you a free night. Okay?",
        "Before I cancel BK-5521, can I check the fee with the hotel?",
        "Should I ask the hotel if they can cancel BK-5521 without a fee?",
        "Do you want me to see if BK-5521 can still be cancelled?",
        "I can cancel BK-5521, but first I'd need to check the fee. Shall I check it?",
        "Is it okay if I transfer you to a colleague who will cancel BK-5521?",
        "Is this the booking you'd like me to cancel: BK-5521?",
        "Would it be all right if I checked whether BK-5521 can be cancelled?",
        "Do you want me to tell you what happens if you cancel BK-5521?",
        "Would you like to hear our rules for cancelling BK-5521?",
        "Are you the guest who asked to cancel BK-5521?",
        "Did the hotel offer to cancel BK-5521 for free?",
        "Should I leave BK-5521 as it is in place of cancelling it?",
        "Would you prefer that I keep BK-5521 rather than cancel it?",
        "Could I have your date of birth so that I can cancel BK-5521?",
        "May I have your email to cancel BK-5521?",
        "Shall I hold off on cancelling BK-5521?",
        "If I cancel BK-5521 you lose $120.00. Should I move it instead?",
        "Can you confirm that you are the person who booked BK-5521 and wants to cancel it?",
        "Would you like me to remind you to cancel BK-5521 next week?",
        "Would you like to think about cancelling BK-5521?",
        "I'll connect you with someone who can cancel BK-5521, is that okay?",
        "I will note that you may want to cancel BK-5521 later. Is that fine?",
        "Shall I make a note that you want to cancel BK-5521?",
        "Should I start by checking the fee to cancel BK-5521?",
        "Shall I go ahead and check the fee for cancelling BK-5521?",
    ],
)
def test_a_deed_that_is_only_spoken_of_beside_is_not_agreed_to(told: str) -> None:
    assert found(told) is not True


@pytest.mark.parametrize(
    "told",
    [
        "I'll cancel BK-5521 for you, no fee. Shall I go ahead?",
        "Before I cancel BK-5521, please confirm that you agree.",
        "Before cancelling BK-5521 I need your go-ahead. Do you want to proceed?",
        "If you'd like me to cancel BK-5521, I can do it now at no charge. Shall I?",
        "Let me know if you'd like me to cancel BK-5521.",
        "Would you like me to cancel BK-5521?",
        "I checked whether BK-5521 can be cancelled for free, and it can. Shall I cancel it?",
        "I've looked into whether a fee applies: none does. Do you want me to cancel BK-5521?",
        "Do you confirm that I should cancel BK-5521?",
        "Should I go ahead and cancel BK-5521, which is your stay in May?",
        "Rather than move BK-5521, I'd cancel it. OK?",
        "Instead of changing BK-5521, I can cancel it for free. Shall I do that?",
        "Before you decide: cancelling BK-5521 is free. Shall I cancel it?",
        "Can I go ahead with the cancellation of BK-5521?",
        "Is it okay if I cancel BK-5521 now?",
        "To cancel BK-5521 there is no fee. Would you like to proceed?",
        "You asked to cancel BK-5521. There is no fee. Shall I go ahead?",
        "I am ready to cancel BK-5521. Are you happy for me to do so?",
        "BK-5521 will be cancelled and you will get an email about the cancellation. Is that okay?",
        "I will cancel BK-5521 and send you an email about it. Does that work?",
        "Shall I cancel BK-5521 and email you the confirmation?",
        "Please confirm: cancel BK-5521, yes or no?",
        "I can help you cancel BK-5521. Shall I do it now?",
    ],
)
def test_a_deed_that_is_asked_for_is_never_called_unasked(told: str) -> None:
    assert found(told) is not False
    assert found(told, "No.") is not True


@pytest.mark.parametrize("said", ["Yes, check the cancellation fee.", "Sure, I'd like to know what cancelling costs."])
def test_an_answer_that_takes_up_the_word_agrees_to_no_more_than_was_asked(said: str) -> None:
    assert found("Shall I check whether BK-5521 can be cancelled for free?", said) is not True
