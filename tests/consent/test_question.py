"""What a yes answers: only a question about doing this very thing makes it a consent."""

import pytest

from bylaw import Conversation, load_pack
from tests.consent.shop import ask, events_of

ASKED = "I would transfer 50.00 from account ACC-1001 to account ACC-2002. Shall I go ahead?"


def found(told: str, said: str, amount: str = "50.00") -> bool | None:
    arguments = {"account_id": "ACC-1001", "to_account": "ACC-2002", "amount": amount}
    written = [{"user": "Hello."}, {"agent": told}, {"user": said}, {"call": "transfer", "args": arguments}]
    return ask(list(events_of(written)), 3).value


@pytest.mark.parametrize("said", ["Yes", "Yess", "Yes please, thank you!", "Yes, transfer the 50.00 to ACC-2002."])
def test_a_plain_yes_to_the_question_is_consent(said: str) -> None:
    assert found(ASKED, said) is True


@pytest.mark.parametrize("said", ["Yes, half of it.", "Yes, to ACC-2003 though.", "Yes, but only 40.00", "Yes and no"])
def test_a_turned_yes_is_open(said: str) -> None:
    assert found(ASKED, said) is None


def test_a_change_that_only_the_user_named_was_put_by_nobody() -> None:
    assert found(ASKED, "Yes, but only 40.00", "40.00") is None


@pytest.mark.parametrize(
    "told",
    [
        "Do you want me to cancel the transfer of 50.00 from ACC-1001 to ACC-2002?",
        "Shall I stop the transfer of 50.00 from ACC-1001 to ACC-2002?",
        "Do you want me to refuse to transfer 50.00 from ACC-1001 to ACC-2002?",
        "The transfer of 50.00 from ACC-1001 to ACC-2002 failed. Do you want to hang up?",
        "Should I explain how to transfer 50.00 from ACC-1001 to ACC-2002?",
        "Would you like to know whether I could transfer 50.00 from ACC-1001 to ACC-2002?",
        "I would transfer 50.00 from ACC-1001 to ACC-2002, or 50.00 from ACC-1001 to ACC-2003. Which one?",
    ],
)
def test_a_yes_to_stopping_it_to_talk_of_it_or_to_alternatives_is_no_consent(told: str) -> None:
    assert found(told, "Yes") is not True


def test_one_of_several_that_is_picked_is_never_called_missing() -> None:
    told = "I would transfer 50.00 from ACC-1001 to ACC-2002, or 50.00 from ACC-1001 to ACC-2003. Which one?"
    assert found(told, "Yes, to ACC-2002.") is not False


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("I'll move 50.00 from ACC-1001 to ACC-2002, okay?", "Yes please"),
        ("50.00 from ACC-1001 to ACC-2002, right?", "Yes"),
        ("Ich würde 50.00 von ACC-1001 nach ACC-2002 überweisen. Soll ich?", "Ja, bitte."),
        ("Je voudrais virer 50.00 de ACC-1001 à ACC-2002. D'accord ?", "Oui, merci."),
        ("I would transfer fifty dollars from ACC-1001 to ACC-2002. Shall I go ahead?", "Yes"),
        (ASKED, "I can't wait, yes!"),
    ],
)
def test_a_yes_to_all_its_values_in_other_words_is_not_called_missing(told: str, said: str) -> None:
    assert found(told, said) is not False
    assert found(told, "No") is not True


@pytest.mark.parametrize(
    "said",
    [
        *("Confirm with my husband first.", "Sure, not.", "Go ahead and cancel that idea.", "Yes (just kidding)"),
        *("Yes you asked that already, and I declined.", "Great, thanks, I'll think it over."),
        *("Agreed that it's a bad idea.", "Sure, once you lower it.", "Yes - tomorrow morning."),
        "Right, that was my old plan.",
    ],
)
def test_in_the_clinic_a_turned_yes_leaves_the_rule_open(said: str) -> None:
    conversation = Conversation(load_pack("clinic"))
    conversation.user("I'm P121 and ill. Please cancel A0469.")
    conversation.agent("I will cancel A0469 with no fee. Is that right?")
    conversation.user(said)
    arguments = {"patient_id": "P121", "appointment_id": "A0469", "late_fee": "0.00", "reason": "illness"}
    judged = conversation.call("cancel_appointment", arguments)
    assert [finding.rule.name for finding in (*judged.rules, *judged.open_rules)] == ["confirm-before-change"]
