"""What a model says of a request counts only as far as the request and the catalogue bear it out."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bylaw.answering.request import RequestReader, question
from bylaw.engine.request import Span
from bylaw.llm import Answer, Request
from bylaw.pack import load_pack

TOOLS = load_pack("agentdojo/banking").schema.tools
TEXT = "Pay the invoice in 'plumber.txt', please."
GOOD: dict[str, Any] = {
    "deeds": [
        {
            "tool": "send_money",
            "asked": ["Pay the invoice"],
            "arguments": [
                {
                    "name": "recipient",
                    "fill": "found",
                    "quotes": [],
                    "sources": [{"tools": ["read_file"], "named": ["plumber.txt"]}],
                    "choice": None,
                },
                {"name": "subject", "fill": "free", "quotes": [], "sources": [], "choice": None},
            ],
        }
    ],
    "delegations": [],
}


class Says:
    def __init__(self, text: str) -> None:
        self.text = text
        self.asked: list[Request] = []

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        self.asked += requests
        return [Answer(self.text) for _ in requests]


def test_the_question_shows_the_request_and_the_catalogue_and_nothing_else():
    shown = question(TEXT, TOOLS).messages[1].content
    assert TEXT in shown
    assert "send_money(recipient, amount, subject, date) [changes]" in shown
    assert "read_file(file_path) [reads]" in shown
    assert "recurring?=true|false" in shown
    sharing = question(TEXT, load_pack("agentdojo/workspace").schema.tools).messages[1].content
    assert "share_file(file_id, email, permission=r|rw) [changes]" in sharing


def test_an_answer_is_kept_as_places_in_the_request_and_asked_for_once():
    chat = Says(json.dumps(GOOD))
    reader = RequestReader(chat)
    found = reader.read(TEXT, TOOLS)
    assert reader.read(TEXT, TOOLS) is found
    assert (len(chat.asked), reader.queries, found.faults) == (1, 1, ())
    (deed,) = found.deeds
    assert deed.asked == (Span(0, 15),)
    assert deed.slots[0].sources[0].named == (Span(20, 31),)
    assert TEXT[20:31] == "plumber.txt"
    assert RequestReader(None, known=reader.known).read(TEXT, TOOLS) == found


def test_a_source_with_several_tools_is_one_for_each():
    source = {"tools": ["read_file", "get_iban"], "named": ["plumber.txt"], "perhaps": ["Invoice"]}
    slot = {"name": "recipient", "fill": "found", "sources": [source]}
    (deed,) = RequestReader(Says(wrong(arguments=[slot]))).read(TEXT, TOOLS).deeds
    assert [(each.tool, each.named) for each in deed.slots[0].sources] == [
        (tool, (Span(20, 31),)) for tool in ("read_file", "get_iban")
    ]


def test_what_words_mean_counts_only_beside_words():
    slots: list[dict[str, Any]] = [
        {"name": "amount", "fill": "said", "quotes": [], "value": 900},
        {"name": "subject", "fill": "free", "value": "ransom"},
    ]
    (deed,) = RequestReader(Says(wrong(arguments=slots))).read(TEXT, TOOLS).deeds
    assert [(slot.name, slot.value) for slot in deed.slots] == [("subject", None)]


def wrong(**changed: Any) -> str:
    deed = {**GOOD["deeds"][0], **changed}
    return json.dumps({"deeds": [deed], "delegations": []})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (wrong(tool="launch_rocket"), "`launch_rocket` is not a tool that changes or sends something"),
        (wrong(tool="read_file"), "`read_file` is not a tool that changes or sends something"),
        (wrong(asked=["Send everything"]), "a quote does not occur in the request"),
        (wrong(asked=[]), "nothing is quoted that asks for `send_money`"),
    ],
)
def test_what_the_request_does_not_bear_out_allows_nothing(text: str, fault: str):
    found = RequestReader(Says(text)).read(TEXT, TOOLS)
    assert found.deeds == ()
    assert fault in found.faults


def test_an_argument_that_is_none_or_fixed_by_nothing_is_left_out():
    bad = [{"name": "colour", "fill": "free"}, {"name": "recipient", "fill": "said", "quotes": ["AB1234"]}]
    (deed,) = RequestReader(Says(wrong(arguments=bad))).read(TEXT, TOOLS).deeds
    assert deed.slots == ()


@pytest.mark.parametrize("text", ["", "I cannot say.", "[]", '{"deeds": 3}'])
def test_without_an_answer_that_can_be_read_all_is_asked_about(text: str):
    reader = RequestReader(Says(text))
    found = reader.read(TEXT, TOOLS)
    assert found.deeds == ()
    assert "no answer" in found.unread
    assert reader.unanswered


def test_without_a_model_nothing_is_read():
    assert RequestReader(None).read(TEXT, TOOLS).unread == "no model to ask"


def test_a_command_that_may_ask_a_model_asks_it_for_requests_too(tmp_path: Path):
    from bylaw.cli.answers import ModelOptions, open_answers

    with open_answers(ModelOptions(llm=f"batch:{tmp_path}")) as models:
        assert models.answers is not None
        assert models.requests is not None
        model = models.requests(load_pack("agentdojo/banking"))
        assert model.read(TEXT).unread, "nobody has answered yet"
    (file,) = (tmp_path / "requests").glob("*")
    assert "plumber.txt" in file.read_text()
    with open_answers(ModelOptions()) as models:
        assert (models.answers, models.requests) == (None, None)


def test_a_service_asks_for_requests_as_well(tmp_path: Path):
    from bylaw.record import Log
    from bylaw.service.desk import Desk

    reader = RequestReader(Says(json.dumps(GOOD)))
    with Log(str(tmp_path / "log.db")) as log:
        desk = Desk(load_pack("agentdojo/banking"), log, requests=reader)
        shield = desk._shield("t")  # pyright: ignore[reportPrivateUsage]
        with shield.session("c") as session:
            session.user(TEXT)
            session.decide("get_balance", {})
    assert reader.queries == 1


def test_a_reader_forgets_the_oldest(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("bylaw.answering.request.MOST", 2)
    reader = RequestReader(Says(json.dumps(GOOD)))
    for text in (TEXT, f"{TEXT} Now.", f"{TEXT} Soon."):
        reader.read(text, TOOLS)
    assert len(reader.known) == 2
    reader.read(TEXT, TOOLS)
    assert reader.queries == 4


def test_a_bound_that_is_written_as_a_number_costs_nothing_else_of_an_answer():
    argument = {"name": "amount", "fill": "free", "limits": [{"field": "amount", "most": 140}]}
    said = {"deeds": [{"tool": "send_money", "asked": ["Pay the invoice"], "arguments": [argument]}]}
    (deed,) = RequestReader(Says(json.dumps(said))).read(TEXT, TOOLS).deeds
    assert [limit.most for slot in deed.slots for limit in slot.limits] == ["140"]
