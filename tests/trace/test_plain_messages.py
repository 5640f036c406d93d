"""Plain chat messages, as most logs hold them."""

from typing import Any

import pytest

from bylaw.errors import UsageError
from bylaw.trace.event import Call, Message, Result
from bylaw.trace.readers.openai import follow_messages
from bylaw.trace.transcript import Transcript


def asking(id: str, tool: str, arguments: str = '{"id": "7"}') -> dict[str, Any]:
    function = {"name": tool, "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def answering(id: str, tool: str = "") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": "{}", **({"name": tool} if tool else {})}


@pytest.mark.parametrize(
    ("listed", "answered"),
    [
        ([asking("a", "look_up"), answering("a"), asking("b", "change"), answering("b")], [0, 2]),
        ([asking("a", "look_up"), answering("a"), asking("b", "change"), answering("a")], [0, None]),
        ([asking("a", "look_up"), asking("b", "change"), answering("b", "change"), answering("a", "look_up")], [1, 0]),
        ([asking("a", "look_up"), answering("c", "change"), answering("c")], [None, None]),
    ],
)
def test_results_answer_the_calls_that_they_name(listed: list[dict[str, Any]], answered: list[int | None]) -> None:
    transcript = Transcript()
    follow_messages(listed, transcript)
    results = [event for event in transcript.events if isinstance(event, Result)]
    assert [result.call for result in results] == answered
    assert transcript.returned == {result.tool for result in results if result.call is not None}


def test_a_result_without_content_was_not_recorded() -> None:
    transcript = Transcript()
    follow_messages([asking("a", "look_up"), {"role": "tool", "tool_call_id": "a", "content": None}], transcript)
    assert isinstance(result := transcript.events[-1], Result)
    assert not result.captured


def test_an_argument_that_is_given_twice_is_a_fault() -> None:
    transcript = Transcript()
    follow_messages([asking("a", "change", '{"id": 1, "id": 2}')], transcript)
    assert isinstance(call := transcript.events[0], Call)
    assert "given twice" in call.fault


def test_a_message_with_an_agent_and_a_time_keeps_both() -> None:
    transcript = Transcript()
    follow_messages([{"role": "user", "content": "yes", "agent": "clerk", "time": 3.0}], transcript)
    assert (transcript.events[0].agent, transcript.events[0].time) == ("clerk", 3.0)


@pytest.mark.parametrize("kind", [{"name": "pay"}, ["tool_use"], 7])
def test_a_part_whose_type_is_no_text_is_refused_from_an_agent_and_no_words_from_a_user(kind: Any) -> None:
    part = {"type": kind, "name": "pay", "input": {}}
    with pytest.raises(UsageError, match="message 0 has a part that cannot be read"):
        follow_messages([{"role": "assistant", "content": [part]}], Transcript())
    transcript = Transcript()
    follow_messages([{"role": "user", "content": [{"type": "text", "text": "yes"}, part]}], transcript)
    assert [(event.text, event.captured) for event in transcript.events if isinstance(event, Message)] == [
        ("yes", True),
        ("", False),
    ]
