"""A message that stands in a log twice happened once; a call that was made twice did not."""

import json
from typing import Any

import pytest

from bylaw.trace.event import Call
from bylaw.trace.readers.openai import follow_messages
from bylaw.trace.transcript import Transcript

ARGS = {"to": "AC-22", "amount": "250.00"}
Messages = list[dict[str, Any]]


def openai(id: str, shown: str = "sent", args: dict[str, Any] = ARGS, **more: Any) -> tuple[Any, Any]:
    call = {"id": id, "type": "function", "function": {"name": "transfer", "arguments": json.dumps(args)}}
    told = {"role": "tool", "tool_call_id": id, "content": shown, **more}
    return {"role": "assistant", "content": None, "tool_calls": [call], **more}, told


def anthropic(id: str, shown: str = "sent", **more: Any) -> tuple[Any, Any]:
    call = {"type": "tool_use", "id": id, "name": "transfer", "input": ARGS}
    answer = {"type": "tool_result", "tool_use_id": id, "content": shown}
    return {"role": "assistant", "content": [call], **more}, {"role": "user", "content": [answer], **more}


def responses(id: str, shown: str = "sent", **more: Any) -> tuple[Any, Any]:
    call = {"type": "function_call", "call_id": id, "name": "transfer", "arguments": json.dumps(ARGS), **more}
    return call, {"type": "function_call_output", "call_id": id, "output": shown, **more}


def calls(messages: Messages) -> int:
    transcript = Transcript()
    follow_messages([{"role": "user", "content": "Send it."}, *messages], transcript)
    return sum(isinstance(event, Call) for event in transcript.events)


@pytest.mark.parametrize("shape", [openai, anthropic, responses])
def test_the_very_same_message_happened_once(shape: Any):
    call, told = shape("call_Xy12ab")
    for copies in ([call, call, told], [call, told, call, told], [call, told, call], [call, call, call, told, told]):
        assert calls(copies) == 1
    call, told = shape("1", timestamp="2026-11-18T04:00:00Z")
    assert calls([call, told, call, told]) == 1


@pytest.mark.parametrize("shape", [openai, anthropic, responses])
def test_what_may_be_another_call_is_one(shape: Any):
    call, told = shape("call_Xy12ab")
    assert calls([call, shape("call_Xy12ab", "failed")[1], call, told]) == 2
    assert calls([call, told, {"role": "user", "content": "Again."}, call, told]) == 2
    assert calls([call, told, {"role": "assistant", "content": "Again."}, call, told]) == 2
    # Some hosts begin to count anew in every turn.
    for id in ("1", "call_0", "functions.transfer:0"):
        call, told = shape(id)
        assert calls([call, told, call, told]) == 2
    # The same count at another time.
    again = shape("1", timestamp="2026-11-18T04:05:00Z")
    assert calls([*shape("1", timestamp="2026-11-18T04:00:00Z"), *again]) == 2


def test_without_an_id_or_with_other_arguments_it_is_another():
    call, told = openai("")
    assert calls([call, call, told, told]) == 2
    other, _ = openai("call_Xy12ab", args={"to": "AC-22", "amount": "1"})
    call, told = openai("call_Xy12ab")
    assert calls([call, told, other, told]) == 2
