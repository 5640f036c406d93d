"""What a model says of a call counts as far as it rests on what the model was shown."""

import json

import pytest
from msgspec.structs import replace

from bylaw.answering.request import RequestReader, SaidOfArgument, SaidOfCall, meaning_of, second_question
from bylaw.engine.request import Doubt
from bylaw.engine.request.meaning import Shown
from bylaw.pack import load_pack
from tests.answering.test_request import Says

PACK = load_pack("agentdojo/banking")
DOUBT = Doubt(
    "Pay the bill in bill.txt.",
    "send_money",
    {"recipient": "AT11", "amount": 20.5},
    ("recipient", "amount"),
    (Shown("read_file", {"file_path": "bill.txt"}, "Total: 20.50\nPay to AT11,\nno longer to AT22."),),
)


def test_the_question_shows_the_request_the_call_and_what_was_looked_up():
    shown = second_question(DOUBT).messages[1].content
    assert "Pay the bill in bill.txt." in shown
    assert '[1] read_file(file_path="bill.txt") showed:\nTotal: 20.50' in shown
    assert '- recipient: "AT11"\n- amount: 20.5' in shown
    assert shown.endswith("`recipient`, `amount`?")


def test_a_call_that_nobody_asked_for_is_asked_about_as_a_step():
    asked = second_question(replace(DOUBT, is_preparing=True))
    assert asked.messages[1].content.endswith("Does the request need this step, with: `recipient`, `amount`?")
    assert "The user did not ask for this call itself" in asked.messages[0].content
    assert asked.key != second_question(DOUBT).key


@pytest.mark.parametrize(
    ("meant", "quotes", "want"),
    [
        ("yes", ("Pay to AT11, no longer",), {"recipient": True}),
        ("yes", ("pay the bill",), {"recipient": True}),
        ("yes", ('read_file(file_path="bill.txt") showed:',), {"recipient": True}),
        ("yes", (), {}),
        ("yes", ("Pay to AT11", "AT33 is right"), {}),
        ("no", (), {"recipient": False}),
        ("unclear", ("Pay to AT11",), {}),
    ],
)
def test_a_yes_needs_words_that_stand_there(meant: str, quotes: tuple[str, ...], want: dict[str, bool]):
    said = SaidOfArgument("recipient", meant, quotes)  # pyright: ignore[reportArgumentType]
    assert meaning_of(SaidOfCall((said,)), DOUBT) == want


def test_one_no_is_a_no_and_what_was_not_asked_about_is_nothing():
    said = [SaidOfArgument("recipient", meant, ("AT11",)) for meant in ("no", "yes")]
    strange = SaidOfArgument("subject", "yes", ("AT11",))
    assert meaning_of(SaidOfCall((*said, strange)), DOUBT) == {"recipient": False}


def test_it_is_asked_once():
    chat = Says(json.dumps({"arguments": [{"name": "recipient", "meant": "yes", "quotes": ["AT11"]}]}))
    reader = RequestReader(chat)
    assert [reader(PACK).look(DOUBT) for _ in range(2)] == [{"recipient": True}] * 2
    assert len(chat.asked) == reader.queries == 1
    assert RequestReader(None, meanings=reader.meanings).look(DOUBT) == {"recipient": True}


@pytest.mark.parametrize("text", ["I think so.", '{"arguments": [{"name": "recipient", "meant": "perhaps"}]}'])
def test_an_answer_that_cannot_be_read_is_none(text: str):
    reader = RequestReader(Says(text))
    assert reader.look(DOUBT) is None
    assert reader.not_looked_at
