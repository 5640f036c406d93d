"""What a message says to a proposal: every usual yes is one, and nothing else is."""

import pytest

from bylaw.engine.consent.answer.user_answer import answer_in

AGREES = """
Yes
yes please
Yes, please proceed.
Yeah go for it
Sure thing!
Sure, go ahead.
Absolutely, please do.
I'd like that.
I would like that, thank you.
That would be great.
That would be perfect, thanks!
I'd appreciate that.
Please do so.
Please.
By all means.
Sounds good to me.
Sounds perfect, thank you!
Looks good.
All good, book it.
Perfect, let's do that.
That's perfect.
That works.
That works great for me.
Works for me!
Fine with me.
I'm fine with that.
I'm okay with that.
OK
Okay, thanks.
Okay do it
Ok, please cancel it.
Alright, go on.
Go on then.
Correct.
That is correct.
That's all correct, please go ahead.
Confirmed.
I confirm.
Confirm
CONFIRM
I confirm the booking. Please finalize it.
Let's go with that.
I'll go with that.
I'll take it.
I'll take that option.
Make it so.
You can proceed.
You may go ahead with the change.
Feel free to proceed.
Carry on, please.
Agreed.
I agree to the charges.
I accept.
Accept the offer please.
Yes, that's fine. Don't worry about the seats.
Yes. I don't need anything else.
Yes, and no insurance please.
Yes, no changes needed.
No problem, go ahead.
No issues, please proceed.
That's what I want.
Exactly, thanks.
Great, thank you! Please go ahead and cancel it.
Thank you, yes.
Thanks! Yes, I'd like to proceed with that.
Yup
Y
Yes!!
YES PLEASE
👍
Definitely
For sure
Of course, please continue.
Please continue.
Please go through with it.
Please complete the booking.
Please process it.
I'm ready, proceed.
Let's do it
Do it.
Let's proceed with the upgrade.
I give my consent.
You have my permission.
Understood, please proceed.
Yes, I understand the refund takes 5-7 days. If I have questions I'll call.
Yes, you can use the same card.
Yes, my reason is a change of plans.
"""
DOES_NOT = """
Absolutely not.
Of course not
Certainly not!
OK, forget it.
Sure, keep it as it is.
ok stop
Fine, then don't.
Yes? why
No
No thanks
No, thank you.
Nope.
Not yet.
Not now.
Hold on.
Wait.
Wait, how much is that?
Let me think about it.
I'm not sure.
I'm not sure yet.
I don't think so.
I'd rather not.
I do not confirm.
I don't want that.
I don't agree.
Please don't.
Please don't proceed.
Don't do it.
Don't cancel it yet.
Never mind.
Actually, no.
Actually, I changed my mind.
Cancel that, I changed my mind.
Stop.
Yes, if it is free.
Only if it's free.
Yes, but only if the fee is waived.
What would it cost?
How long does it take?
Can you tell me the price first?
Could you check other flights?
That's too expensive.
That's not what I asked for.
That's not right.
That isn't correct.
I want a different flight.
Is there anything cheaper?
Why do I have to pay?
I need more time.
I'd like to speak to a supervisor.
I haven't decided.
I can't confirm that.
I won't pay that.
I'm unhappy with this.
Hmm.
I see.
Thanks.
Thank you.
My user id is ada_1.
Sure, my id is ada_1.
I'd like to see other options first.
Before you do that, what's the fee?
Let me check with my wife first.
Maybe.
Perhaps later.
"""
BOTH = """
Yes, leave it as it is
Yes to the bag. No, not the upgrade.
Okay. What does it cost?
Yes, go ahead. I don't want to go ahead if there is no refund.
"""


@pytest.mark.parametrize("text", AGREES.strip().splitlines())
def test_a_usual_yes_is_one(text: str) -> None:
    assert answer_in(text).stance in ("yes", "weak")


@pytest.mark.parametrize("text", DOES_NOT.strip().splitlines())
def test_what_refuses_asks_or_waits_is_no_yes(text: str) -> None:
    assert answer_in(text).stance not in ("yes", "weak", "mixed")


@pytest.mark.parametrize("text", BOTH.strip().splitlines())
def test_a_yes_with_a_no_after_it_is_both(text: str) -> None:
    assert answer_in(text).stance == "mixed"


def test_a_no_in_words_and_a_yes_in_quotes_is_settled_by_the_last() -> None:
    assert answer_in('Non, je comprends. Confirmez "oui" pour A1.').stance == "yes"


@pytest.mark.parametrize(
    ("text", "aside"),
    [
        ("Yes to A1, but don't cancel A-2.", ("don't cancel a-2",)),
        ("Skip the upgrade. Yes, add the bags.", ("skip the upgrade",)),
        ("Yes, both.", ()),
    ],
)
def test_what_is_set_aside_is_told(text: str, aside: tuple[str, ...]) -> None:
    assert answer_in(text).aside == aside
