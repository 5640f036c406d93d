"""A call that a shield refused is known as such in any log that kept what the agent was told."""

from typing import Any

import pytest

from bylaw import Pack
from bylaw.shield import Shield
from bylaw.trace import Call
from bylaw.trace.event import Result, tells_refusal, with_note
from bylaw.trace.readers.openai import follow_messages
from bylaw.trace.transcript import Transcript
from tests.engine.test_conversation import FILES


def told(content: str) -> Call:
    call: dict[str, Any] = {"id": "a", "function": {"name": "refund", "arguments": '{"order_id": "7"}'}}
    script = Transcript()
    answer = {"role": "tool", "tool_call_id": "a", "content": content}
    follow_messages([{"role": "assistant", "tool_calls": [call]}, answer], script)
    made = script.events[0]
    assert isinstance(made, Call)
    return made


@pytest.mark.parametrize("arguments", [{"order_id": "7"}, {}, {"order_id": ["7"]}])
def test_what_a_shield_says_marks_the_call_as_refused(arguments: dict[str, Any]) -> None:
    decision = Shield(Pack.from_files(FILES)).session().decide("refund", arguments)
    assert not decision.allowed
    assert told(decision.feedback).refused


@pytest.mark.parametrize("content", ["refunded", "Not done", "", "We said: Not allowed, and not done (refund)."])
def test_nothing_else_does(content: str) -> None:
    assert not told(content).refused


def test_advice_below_a_result_leaves_it_readable() -> None:
    assert Result(None, with_note('{"returned": true}', "refund goes ahead, but note: ...")).value() == {
        "returned": True
    }


def test_only_what_names_a_tool_is_a_shields_refusal() -> None:
    assert tells_refusal("Not done yet: ask first (refund). The user has not agreed.")
    assert not tells_refusal("Not done yet: ask first. Refunded 50.00")


def test_a_result_that_may_have_been_done_is_not_known():
    script = Transcript()
    function = {"name": "refund", "arguments": "{}"}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": function}]}
    told = {"role": "tool", "tool_call_id": "1", "content": "May have been done (refund): this call was made before."}
    follow_messages([call, told], script)
    made, result = script.events
    assert isinstance(made, Call)
    assert isinstance(result, Result)
    assert not made.refused
    assert not result.captured
