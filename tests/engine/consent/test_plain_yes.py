"""A yes is plain where all beside it is harmless or was told; anything else leaves it open."""

import pytest

from bylaw.engine.consent.answer.plain_yes import is_plain_yes

TOLD = "i would transfer 50.00 from account a1 to account b2 on may 20. shall i go ahead?"
PLAIN = """
Yes
Yess
Yes, please. Thank you so much!
Sure, go ahead.
Yes, please transfer 50.00 from A1 to B2.
Yes, $50 to B2.
Yes. Also, what are your opening hours?
Yes, go ahead, and let me know once it's done.
Yes please. I would also like to order a new card for my husband.
Ja, bitte.
Oui, s'il vous plaît.
Yes, no changes.
Could you please go ahead?
Yes, please transfer the 50.00 from account A1 to B2 - I'm so tired of all this paperwork, but there we are.
Of course
Go ahead I've been with this bank for twenty long years
Sure i tried the app but it kept crashing all morning
Yep, go ahead - hope that's ok!
Okay, I've decided: yes
"""
TURNED = """
Confirm with my husband first.
Sure, not.
Go ahead and cancel that idea.
Yes you asked that already, and I declined.
Great, thanks, I'll think it over.
Agreed that it's a bad idea.
Sure, once you lower it.
Yes - tomorrow morning.
Yes. Tomorrow morning.
Yes (just kidding)
Yes. Just kidding.
Right, that was my old plan.
Yes, but only 40.00
Yes, to B3 though.
Yes, to B3.
Yes, on May 21.
Yes, transfer 70.00 from A1 to B2.
Correct the amount first: 5.00
Yes, half of it.
Yes and no
Yes, except the transfer.
Yes, from my savings account instead.
Yes, transfer 50.00 from A1 to B2 - but use the other account.
Yes, simulate it.
Proceed? Hmm.
ja, aber nicht jetzt
Oui, mais plus tard
Yes my wife must sign it
Yes i wanted the other amount all along
Yes I'm not sure
Yes I hope not
Sure i agreed to that but my wife has to look at it
"""


@pytest.mark.parametrize("text", PLAIN.strip().splitlines())
def test_courtesies_what_was_told_and_other_requests_leave_a_yes_plain(text: str) -> None:
    assert is_plain_yes(text, TOLD)


@pytest.mark.parametrize("text", TURNED.strip().splitlines())
def test_what_was_not_told_may_turn_a_yes(text: str) -> None:
    assert not is_plain_yes(text, TOLD)


def test_a_change_that_the_call_follows_does_not_turn_it() -> None:
    assert is_plain_yes("Yes, but only 40.00", TOLD, ("40.00",), follows=True)
    assert not is_plain_yes("Yes, but only 40.00 tomorrow", TOLD, ("40.00",), follows=True)
