"""The rules of consent as sentences: when it is agreed, each reason why it is not, and why it stays open."""

from typing import Any

import pytest

from bylaw.consent import Consent
from tests.consent.shop import ask, events_of

HELLO = {"user": "Hello."}
PUT = "I would transfer 250.00 from AC-11 to AC-22. Shall I go ahead?"
ACCOUNTS = {
    "call": "get_customer",
    "args": {"customer_id": "C1"},
    "result": {"accounts": [{"account_id": "AC-11", "balance": "2500.00"}, {"account_id": "AC-22"}]},
}


def transfer(amount: Any = "250.00", to: str = "AC-22") -> dict[str, Any]:
    return {"call": "transfer", "args": {"account_id": "AC-11", "to_account": to, "amount": amount}}


def found(*written: dict[str, Any]) -> Consent:
    """What is found of the last call."""
    events = list(events_of(list(written)))
    return ask(events, max(step for step, event in enumerate(events) if type(event).__name__ == "Call"))


def test_a_plain_yes_to_all_that_matters_is_agreement() -> None:
    answer = found(HELLO, {"agent": PUT}, {"user": "Yes."}, transfer())
    assert (answer.value, answer.reason) == (True, "agreed")


@pytest.mark.parametrize(
    "said",
    [
        "Yes, please go ahead.",
        "Thanks for checking. Yes, please proceed with the transfer.",
        "Perfect \u2014 go ahead!",
    ],
)
def test_a_yes_is_plain_where_nothing_beside_it_takes_it_back(said: str) -> None:
    assert found(HELLO, {"agent": PUT}, {"user": said}, transfer()).value is True


@pytest.mark.parametrize(
    "said",
    [
        "Yes, if it is free.",
        "Yes. But wait until Friday.",
        "Yes. Actually, I want to think about it.",
        "Yes, half of it.",
        "Yes to keeping it.",
        "Yes. I don't want to go ahead before you tell me the fee.",
        "Yes. How much is the fee?",
    ],
)
def test_a_yes_that_something_takes_back_is_open(said: str) -> None:
    answer = found(HELLO, {"agent": PUT}, {"user": said}, transfer())
    assert (answer.value, answer.reason) == (None, "unanswered")


def test_nothing_was_put_to_the_user() -> None:
    answer = found({"user": "Transfer 250.00 from AC-11 to AC-22."}, transfer())
    assert (answer.value, answer.reason) == (False, "never_put")


def test_the_yes_was_spent_whatever_way_the_ids_are_written() -> None:
    done = transfer(to="ac-22") | {"result": {"done": True}}
    answer = found(HELLO, {"agent": PUT}, {"user": "Yes."}, done, transfer())
    assert (answer.value, answer.reason, answer.spent_by) == (False, "spent", 3)


def test_a_bare_no_to_this_deed_alone() -> None:
    answer = found(HELLO, {"agent": PUT}, {"user": "No, thanks."}, transfer())
    assert (answer.value, answer.reason) == (False, "declined")


def test_a_no_to_one_of_two_questions_is_open() -> None:
    put = "I would transfer 250.00 from AC-11 to AC-22. Shall I go ahead? Or do you need anything else?"
    assert found(HELLO, {"agent": put}, {"user": "No, thanks."}, transfer()).value is None


def test_nothing_of_the_call_stands_in_what_the_agent_said() -> None:
    hello = {"agent": "Good morning, and thank you for your call. How can I help you?"}
    answer = found(HELLO, hello, {"user": "Move some money for me."}, transfer())
    assert (answer.value, answer.reason) == (False, "unnamed")


def test_in_another_language_it_is_open_and_never_missing() -> None:
    put = "Ich w\u00fcrde den Betrag gerne \u00fcberweisen. Soll ich das jetzt tun?"
    assert found(HELLO, {"agent": put}, {"user": "Ja, bitte."}, transfer()).value is None


def test_a_balance_beside_the_question_is_not_what_was_asked_for() -> None:
    put = "Your balance is 2500.00. Shall I transfer 250.00 from AC-11 to AC-22?"
    assert found(HELLO, {"agent": put}, {"user": "Yes."}, transfer()).value is True
    assert found(HELLO, {"agent": put}, {"user": "Yes."}, transfer("2500.00")).value is None


def test_of_two_sums_in_one_sentence_neither_was_told() -> None:
    put = "From your balance of 2500.00, shall I transfer 250.00 from AC-11 to AC-22?"
    assert found(HELLO, {"agent": put}, {"user": "Yes."}, transfer()).value is None
    assert found(HELLO, {"agent": put}, {"user": "Yes."}, transfer("2500.00")).value is None


def test_a_record_gives_the_other_sum_its_own_field() -> None:
    put = "Your balance is 2500.00. I would transfer 250.00 from AC-11 to AC-22. Shall I go ahead?"
    assert found(HELLO, ACCOUNTS, {"agent": put}, {"user": "Yes."}, transfer()).value is True
    assert found(HELLO, ACCOUNTS, {"agent": put}, {"user": "Yes."}, transfer("2500.00")).value is None


@pytest.mark.parametrize(
    "put",
    [
        "I would transfer 250.00 from AC-11 to AC-22. (Not to AC-33.) Shall I?",
        "I would transfer 250.00 from AC-11 to AC-22, not to AC-33. Shall I?",
        "I would transfer 250.00 from AC-11 to AC-22 (your other one is AC-33). Shall I?",
    ],
)
def test_what_is_denied_or_in_brackets_was_not_told(put: str) -> None:
    assert found(HELLO, {"agent": put}, {"user": "Yes."}, transfer(to="AC-33")).value is None


def test_of_two_ids_of_a_kind_neither_was_told() -> None:
    put = "You hold AC-33 too. I would transfer 250.00 from AC-11 to AC-22. Does that work for you?"
    assert found(HELLO, {"agent": put}, {"user": "Yes."}, transfer(to="AC-33")).value is None


def test_an_open_consent_is_a_question_with_its_quotes_and_what_nobody_saw_told() -> None:
    answer = found(HELLO, {"agent": PUT}, {"user": "Yes."}, transfer("300.00"))
    question = answer.question("transfer", transfer("300.00")["args"])
    assert question is not None
    assert [each.text for each in question.put] == [PUT]
    assert [each.text for each in question.answered] == ["Yes."]
    assert [(each.argument, each.value, each.why) for each in question.untold] == [("amount", "300.00", "another")]
