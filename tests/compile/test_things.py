"""What is said of the data behind the tools is held against what tools returned."""

import json

import pytest

from bylaw.compile.card import Card
from bylaw.compile.desk import Desk
from bylaw.compile.things import Things, describe
from bylaw.trace import Call, Result, Trajectory
from tests.compile.shop import Scripted

CARDS = {"get_order": Card("get_order", "Read.", {"order_id": {"type": "string"}}, ("order_id",), "read")}
SAID = """
entities:
  Order:
    key: order_id
    read: get_order
    fields: {status: [open, paid], why: {type: enum, values: [late]}, gift: boolean}
observations:
  get_order: {as: Order}
tools:
  get_order: {effect: read}
"""


def described(*records: dict[str, object]) -> tuple[Things, Scripted]:
    """What comes of the answer, and who was asked, where these records were recorded."""
    logs = [
        Trajectory(
            str(n), (Call("get_order", {"order_id": f"O{n}"}), Result(0, json.dumps({"order_id": f"O{n}"} | each)))
        )
        for n, each in enumerate(records)
    ]
    chat, desk = Scripted(things=SAID), Desk()
    while (made := describe(desk, CARDS, logs)) is None:
        desk.fetch(chat)
        desk.begin()
    return made, chat


def test_words_that_results_have_are_added_without_asking_again() -> None:
    made, chat = described({"status": "open"}, {"status": "sent (part)"}, {"why": "early"}, {"why": "late"})
    fields = made.entities["Order"]["fields"]
    assert fields["status"] == ["open", "paid", "sent (part)"]
    assert fields["why"] == {"type": "enum", "values": ["late", "early"]}
    assert len(chat.asked("things")) == 1
    assert not made.misfits


@pytest.mark.parametrize("odd", [[None], [f"word{n}" for n in range(24)]])
def test_what_may_be_empty_or_has_too_many_words_is_plain_text(odd: list[str | None]) -> None:
    made, chat = described(*[{"status": "open"}] * len(odd), *({"status": each} for each in odd))
    assert made.entities["Order"]["fields"]["status"] == "string"
    assert len(chat.asked("things")) == 1


def test_where_most_values_are_no_word_of_it_the_path_is_wrong() -> None:
    made, chat = described({"status": "O1"}, {"status": "O2"}, {"status": "open"})
    assert len(chat.asked("things")) > 1
    assert "Order.status" in made.misfits[0]


def test_other_misfits_are_sent_back() -> None:
    made, chat = described({"gift": "perhaps"}, {"gift": "perhaps"})
    assert len(chat.asked("things")) > 1
    assert "Order.gift" in made.misfits[0]


def test_a_thing_that_conversations_make_and_no_tool_shows_is_left_out() -> None:
    said = SAID.replace("entities:\n", "entities:\n  Caller: {key: [], origin: conversation, fields: {id: string}}\n")
    for text, there in (
        (said, False),
        (said.replace("{as: Order}", "[{as: Order}, {as: Caller, fields: {id: $}}]"), True),
    ):
        desk = Desk()
        while (made := describe(desk, CARDS, [])) is None:
            desk.fetch(Scripted(things=text))
            desk.begin()
        assert ("Caller" in made.entities) is there
