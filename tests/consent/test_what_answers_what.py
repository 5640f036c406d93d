"""What answers what: short answers, choices, side questions, several deeds, and what a record says of the price."""

from typing import Any

import pytest

from bylaw.consent import Consent
from bylaw.consent.answer import said, said_to_card
from bylaw.text.number import numbers
from tests.consent.shop import ask, events_of

HELLO = {"user": "Please cancel my order."}
PUT = {"agent": "I would cancel order R-1001, free of charge. Shall I cancel it?"}


def cancel(order: str = "R-1001") -> dict[str, Any]:
    return {"call": "cancel_order", "args": {"order_id": order}}


def transfer(amount: str, to: str) -> dict[str, Any]:
    return {"call": "transfer", "args": {"account_id": "AC-11", "to_account": to, "amount": amount}}


def found(*written: dict[str, Any]) -> Consent:
    """What is found of the last call."""
    events = list(events_of(list(written)))
    return ask(events, max(step for step, event in enumerate(events) if type(event).__name__ == "Call"))


@pytest.mark.parametrize(
    "said",
    [
        "cancel it",
        "oh brilliant yes thanks",
        "\U0001f44d",
    ],
)
def test_a_short_answer_to_a_clear_offer_is_a_yes(said: str) -> None:
    assert found(HELLO, PUT, {"user": said}, cancel()).value is True


@pytest.mark.parametrize(
    "said",
    [
        'You wrote "yes, cancel it".',
        "You're a lifesaver! Yes!",
        "cancel it next week",
        "R-1002 yes",
        "Yes, R 1002",
        "yes, order 1002",
        "go ahead with 1002",
        "Yeah right",
        "Yes I know",
        "Yes that is my order",
        "Yes, I have a question",
        "go ahead and explain",
        "Yes please call me",
        "Yes, given a full refund",
        "Yes. Subject to a full refund.",
        "Yes, cancel my subscription",
        "yes, exchange it",
        "yes dnt cancel",
        "Yes, to a manager",
        "confirm with my wife",
        "exactly what I feared",
        "y u do this",
        "yes, in two weeks",
        "he'd say yes",
        "Tell him yes",
        "Yes!? Are you serious",
        "yes to the newsletter",
        "the other one, yes",
        "ok I see",
        "yes, let me ask my wife first",
        "not R-1001, but yes",
        "yes no not that order",
    ],
)
def test_a_yes_that_is_quoted_put_off_or_to_something_else_is_none(said: str) -> None:
    assert found(HELLO, PUT, {"user": said}, cancel()).value is not True


def test_leave_that_is_asked_for_again_is_for_what_is_told_with_it() -> None:
    asked = [HELLO, PUT, {"user": "When will that be?"}]
    for put in ("Within minutes. Shall I go ahead?", "Yes, within minutes.", "Then I won't. OK?", "So no?"):
        assert found(*asked, {"agent": put}, {"user": "Then yes."}, cancel()).value is not True, put
    told_anew = {"agent": f"Within minutes. {PUT['agent']}"}
    assert found(*asked, told_anew, {"user": "Then yes."}, cancel()).value is True


def test_the_only_order_seen_is_not_meant_where_leave_is_asked_for_again() -> None:
    shown = {"call": "get_order", "args": {"order_id": "R-1001"}, "result": {"order_id": "R-1001", "shop": "Norwich"}}
    put, again = {"agent": "I would cancel your order. Shall I cancel it?"}, {"agent": "It is. Shall I cancel it?"}
    assert found(HELLO, shown, put, {"user": "Yes."}, cancel()).value is True
    assert found(HELLO, shown, put, {"user": "Is it free?"}, again, {"user": "Yes."}, cancel()).value is None


def test_what_the_agent_tells_after_the_yes_was_not_agreed_to() -> None:
    later = {"agent": "One moment: the fee is now $20.00."}
    assert found(HELLO, PUT, {"user": "Yes."}, later, cancel()).value is not True


def test_a_choice_is_no_yes() -> None:
    put = {"agent": "I can cancel R-1001 or R-1002, both free of charge. Which one should I cancel?"}
    for answer in ("R-1002 please", "yes please", "R-1003 please"):
        assert found(HELLO, put, {"user": answer}, cancel("R-1002")).value is None
    sure = {"agent": "I would cancel R-1002, free of charge. Shall I cancel it?"}
    assert found(HELLO, put, {"user": "R-1002 please"}, sure, {"user": "Yes."}, cancel("R-1002")).value is True


def test_of_several_deeds_under_one_yes_each_has_the_values_of_its_own_line() -> None:
    lines = "- transfer 250.00 from AC-11 to AC-22\n- transfer 80.00 from AC-12 to AC-33"
    put = {"agent": f"I would make these transfers:\n{lines}\nShall I transfer both?"}
    for amount, to in (("80.00", "AC-22"), ("250.00", "AC-33")):
        assert found(HELLO, put, {"user": "Yes, both please."}, transfer(amount, to)).value is not True


def test_what_the_agent_would_do_tells_its_values_and_a_sentence_beside_it_does_not() -> None:
    put = {"agent": "You owe 88.40. I can transfer 44.20 from AC-11 to AC-22. The rest stays open. Shall I do that?"}
    assert found(HELLO, put, {"user": "Yes."}, transfer("44.20", "AC-22")).value is True
    assert found(HELLO, put, {"user": "Yes."}, transfer("88.40", "AC-22")).value is not True


def test_a_fee_in_the_record_that_nobody_told_leaves_it_open() -> None:
    shown = {"call": "get_order", "args": {"order_id": "R-1001"}, "result": {"order_id": "R-1001", "cancel_fee": 15}}
    silent = {"agent": "I would cancel order R-1001. Shall I go ahead?"}
    told = {"agent": "I would cancel order R-1001; there is a fee of $15. Shall I go ahead?"}
    answer = found(HELLO, shown, silent, {"user": "Yes."}, cancel())
    assert (answer.value, [(each.argument, each.why) for each in answer.untold]) == (None, [("order_id", "fee")])
    assert found(HELLO, shown, told, {"user": "Yes."}, cancel()).value is True


@pytest.mark.parametrize("question", ["Shall I check it?", "Shall I hang up?", "Shall I send a voucher?"])
def test_a_question_about_another_deed_is_not_about_what_was_told(question: str) -> None:
    put = {"agent": f"I could cancel order R-1001, free of charge. {question}"}
    assert found(HELLO, put, {"user": "Yes."}, cancel()).value is not True


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("Yes.", "yes"),
        ("ok", "yes"),
        ("Yes please. And then book me a taxi.", "other"),
        ("No!", "no"),
        ("No, yes", "other"),
        ("Yes, not the blue one", "other"),
        ("Yes, but only one", "other"),
        ("Ja, aber nur eine", "other"),
        ("order R-1001", "other"),
        ("yes or no", "other"),
    ],
)
def test_a_card_wants_a_yes_that_denies_nothing(answer: str, says: str) -> None:
    put = "please confirm: cancel order\n- order id: r-1001\n- urgent: yes\nshall i do this? ja oder nein? yes or no?"
    assert said_to_card(answer, put) == says


def test_a_no_to_one_of_several_is_no_plain_yes() -> None:
    assert said("Yes, not the blue one.", "shall i order the lamp?") == "other"
    assert said("Yes, I'm in no rush.", "shall i order the lamp?") == "other"


def test_one_yes_to_three_alike_is_not_spent_by_the_first() -> None:
    hello, put = (
        {"user": "Send 25 to AC-22, three times."},
        "I would transfer 3 x 25.00 to AC-22. Shall I transfer them?",
    )
    done = transfer("25.00", "AC-22") | {"result": {"done": True}}
    talk = [hello, {"agent": put}, {"user": "Yes."}]
    values = [found(*talk, *[done] * more, transfer("25.00", "AC-22")).value for more in range(1, 4)]
    assert values == [None, None, None], "whether it was to three or to more is for somebody else to say"
    one = [hello, {"agent": "I would transfer 25.00 to AC-22. Shall I transfer it?"}, {"user": "Yes."}, done]
    assert found(*one, transfer("25.00", "AC-22")).reason == "spent"


def test_a_number_before_a_colon_is_told() -> None:
    assert [each.value for each in numbers("the card ending 7788: nothing more; at 7:30")] == [7788]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Nein oder ja?", "Nein"),
        ("Shall I cancel it? Nein oder ja?", "Nein"),
        ("Shall I cancel it? Ja oder nein?", "Ja, aber nur eine"),
        ("Shall I cancel it?", "Yes, aber nur eine"),
        ("Shall I cancel it?", "cancel it, aber nur eine"),
    ],
)
def test_words_of_another_language_are_no_plain_yes(question: str, said: str) -> None:
    put = {"agent": f"I would cancel order R-1001, free of charge. {question}"}
    assert found(HELLO, put, {"user": said}, cancel()).value is None


@pytest.mark.parametrize(
    "asked",
    [
        "I have cancelled order R-1001. Is that ok?",
        "Shall I stop the cancellation of order R-1001?",
        "To cancel order R-1001 I need your name. Is it Anna?",
        "Before I cancel order R-1001, can you confirm your email?",
        "Can you confirm that you placed order R-1001? Then I can cancel it.",
        "I can cancel order R-1001 or R-1002. Shall I?",
        "Shall I cancel order R-1001 or change it?",
        "Do you want a callback about cancelling order R-1001?",
        "Shall I cancel order R-1001 tomorrow?",
        "Shall I cancel order R-1001 once it is delivered?",
        "Shall I cancel the gift wrap of order R-1001?",
        "Shall I cancel your newsletter? Your order R-1001 is on its way.",
        "Shall I cancel order R-1001? Actually, hold on, it has shipped.",
        "Order R-1001 was cancelled. Is that right?",
        "If the parcel comes back, I will cancel order R-1001. Is that ok?",
        "An email asks us to cancel order R-1001. Shall I go ahead?",
        "Your neighbour wants to cancel order R-1001. Is that right?",
    ],
)
def test_leave_is_asked_for_this_deed_and_nothing_beside_it(asked: str) -> None:
    assert found(HELLO, {"agent": asked}, {"user": "Yes."}, cancel()).value is None


@pytest.mark.parametrize(
    "sum_",
    [
        "about 250.00",
        "at least 250.00",
        "half of 250.00",
        "250 thousand",
        "250.00 minus 10%",
        "250 points",
        "250 litres",
    ],
)
def test_a_sum_that_is_told_roughly_is_not_told(sum_: str) -> None:
    put = {"agent": f"I'd transfer {sum_} from AC-11 to AC-22. Shall I?"}
    assert found(HELLO, put, {"user": "Yes."}, transfer("250.00", "AC-22")).value is None


def test_a_yes_to_another_question_is_none_to_what_was_put_before() -> None:
    asked_back = {"user": "How long does that take?"}
    for question in ("Three days. Do you like surprises?", "Three days. Would you like a newsletter?"):
        assert found(HELLO, PUT, asked_back, {"agent": question}, {"user": "Yes."}, cancel()).value is None
