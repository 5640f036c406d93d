"""What an audit will ask is asked at once, within the budget; one request at fault takes no other's answer away."""

from typing import Any

import pytest

from bylaw.answering import Answerer
from bylaw.llm import Answer, ModelMessage, Request
from bylaw.llm.chat import ChatError, Unreachable

from .desk import Scripted

ONE, TWO, THREE = (
    Request((ModelMessage("system", "Say it."), ModelMessage("user", each)), name="x")
    for each in ("one", "two", "three")
)


def echo(name: str, text: str) -> Any:
    return Answer(text.upper())


def test_what_was_asked_ahead_is_not_asked_again() -> None:
    chat = Scripted(echo)
    answers = Answerer(chat, budget=2)
    answers.ask_ahead([ONE, TWO, THREE])
    assert [text for _, text in chat.asked] == ["one", "two"]
    assert answers.ask(TWO).text == "TWO"
    assert len(chat.asked) == 2
    with pytest.raises(ChatError, match="budget is used up"):
        answers.ask(THREE)
    assert answers.unanswered()[0].startswith("1 request was not sent")


def test_a_request_that_is_refused_leaves_the_others_to_be_asked_one_by_one() -> None:
    def refusing(name: str, text: str) -> Any:
        if text == "two":
            raise ChatError("status 400")
        return echo(name, text)

    answers = Answerer(Scripted(refusing), budget=3)
    answers.ask_ahead([ONE, TWO, THREE])
    assert not answers.unanswered()
    assert [answers.ask(each).text for each in (ONE, THREE)] == ["ONE", "THREE"]
    with pytest.raises(ChatError, match="status 400"):
        answers.ask(TWO)
    assert answers.unanswered() == ["1 request to the model had no answer. The first failure: status 400"]


def test_a_model_that_is_not_there_is_tried_once() -> None:
    def gone(name: str, text: str) -> Any:
        raise Unreachable("no connection")

    chat = Scripted(gone)
    answers = Answerer(chat)
    answers.ask_ahead([ONE, TWO])
    with pytest.raises(Unreachable):
        answers.ask(TWO)
    assert len(chat.asked) == 1
    assert "was not asked" in answers.unanswered()[0]
