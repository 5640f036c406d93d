"""What an agent's message puts to the user: every usual way to ask for a go-ahead is one, and nothing else is."""

import pytest

from bylaw.engine.consent.put.proposal import proposal

ASKS = """
Would you like me to proceed with this cancellation?
Would you like to proceed? (yes/no)
Do you want to proceed with this change?
Please confirm if you would like to proceed.
Please reply "yes" to confirm.
Please reply YES to proceed.
Is this correct?
Does that look right to you?
Does this work for you?
Shall I go ahead and book it?
Should I go ahead?
Can I proceed with the booking?
May I have your confirmation to proceed?
Do I have your permission to go ahead?
Are you okay with this?
Are you happy to proceed?
Do you confirm these details?
Do you confirm that you want to cancel this reservation?
Please let me know if you'd like me to go ahead with this.
Let me know if I should proceed.
Let me know if this works and I'll book it.
If you agree, I will process the refund.
If this looks good, I'll go ahead and make the change.
Just say the word and I'll book it.
Once you confirm, I'll finalize the booking.
I just need your confirmation before making this change.
To confirm: you'd like me to cancel reservation ABC123?
So you'd like to cancel reservation ABC123, correct?
Ready to book?
Ready for me to submit this?
I can cancel it for you now. Would that be okay?
How does that sound?
Sound good?
Would you like to go with this option?
Would you like to accept this offer?
Do you authorize this charge?
Please confirm (yes) to proceed.
Type "confirm" to continue.
Please say 'yes' if you wish to continue.
Kindly confirm so I can proceed.
I'll need a yes from you before I do this.
Please verify the details above and let me know if everything is correct.
Would you like me to issue a $100 certificate?
Want me to add it?
Want to go ahead?
OK to proceed?
Okay to charge your card?
Is it alright if I charge your card ending 1234?
I will cancel the reservation and refund $40. Is there anything you'd like to change before I proceed?
Do you approve?
Please approve the above changes.
Awaiting your confirmation.
Can you confirm you'd like to proceed with the upgrade?
Could you please confirm this is what you want?
Would you like to continue with the cancellation?
Do you wish to continue?
Do you still want to proceed?
"""
DOES_NOT = """
Could you please provide your user ID?
Can you confirm your user ID?
Please confirm your date of birth.
Which reservation would you like to cancel?
What is the reason for the cancellation?
Could you tell me the reason for cancellation?
Your reservation has been cancelled.
I've updated your flight. Is there anything else I can help you with?
Is there anything else you need?
How can I help you today?
Let me check that for you.
I'm sorry, but I cannot cancel this reservation.
Unfortunately, basic economy flights cannot be changed.
What payment method would you like to use?
How many bags would you like to add?
Please provide the passenger details.
"""


@pytest.mark.parametrize("text", ASKS.strip().splitlines())
def test_a_usual_way_to_ask_for_a_go_ahead_is_one(text: str) -> None:
    assert proposal(text).asks_leave


@pytest.mark.parametrize("text", DOES_NOT.strip().splitlines())
def test_other_questions_and_statements_ask_for_no_go_ahead(text: str) -> None:
    assert not proposal(text).asks_leave
