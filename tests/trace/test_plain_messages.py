"""The quick way for messages that say nothing unusual puts the same into a transcript as the way for all messages."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from bylaw.errors import UsageError
from bylaw.trace.document import Malformed, Record
from bylaw.trace.event import Result
from bylaw.trace.messages import follow_messages
from bylaw.trace.readers.chat import ChatMessage, follow
from bylaw.trace.readers.openai import conversation
from bylaw.trace.source import Source
from bylaw.trace.transcript import Transcript
from tests.examples import examples

texts = some.sampled_from(["", "yes", "Not allowed, and not done (cancel).", '{"id": 1}'])
ids = some.sampled_from(["", "a", "b"])
names = some.sampled_from(["look_up", "change", ""])
functions = some.fixed_dictionaries(
    {"name": names, "arguments": some.sampled_from(["", "{}", '{"id": "7"}', '{"id": 1, "id": 2}', "[]", "no"])}
)
calls = some.fixed_dictionaries({"id": ids, "function": functions}, optional={"type": some.just("function")})
messages = some.fixed_dictionaries(
    {"role": some.sampled_from(["user", "assistant", "tool", "system", "developer"])},
    optional={
        "content": some.none() | texts,
        "tool_calls": some.none() | some.lists(calls, max_size=2),
        "tool_call_id": some.none() | ids,
        "name": some.none() | names,
    },
)


def put(messages: list[dict[str, Any]], transcript: Transcript, *, by_all_ways: bool) -> str:
    """What is wrong with them; empty where nothing is."""
    try:
        if by_all_ways:
            follow(msgspec.convert(messages, list[ChatMessage]), transcript)
        else:
            follow_messages(messages, transcript)
    except (Malformed, UsageError) as error:
        return str(error).partition("; ")[0]
    return ""


def told(transcript: Transcript) -> tuple[Any, ...]:
    """All that a transcript knows."""
    return tuple(getattr(transcript, name) for name in Transcript.__slots__)


TWICE = {"id": "a", "type": "function", "function": {"name": "change", "arguments": '{"id": 1, "id": 2}'}}


@given(some.lists(messages, max_size=4), some.lists(messages, max_size=6))
@example([], [{"role": "assistant", "content": None, "tool_calls": [TWICE]}])
@examples(170)
def test_plain_messages_mean_what_all_messages_mean(before: list[dict[str, Any]], then: list[dict[str, Any]]) -> None:
    one, other = Transcript(), Transcript()
    for transcript, by_all_ways in ((one, False), (other, True)):
        put(before, transcript, by_all_ways=by_all_ways)
        transcript.time = 17.0
    assert put(then, one, by_all_ways=False) == put(then, other, by_all_ways=True)
    assert told(one) == told(other)


def asking(id: str, tool: str) -> dict[str, Any]:
    function = {"name": tool, "arguments": '{"id": "7"}'}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def answering(id: str, tool: str = "") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": "{}", **({"name": tool} if tool else {})}


@pytest.mark.parametrize(
    "listed",
    [
        [asking("a", "look_up"), answering("a"), asking("b", "change"), answering("b")],
        [asking("a", "look_up"), answering("a"), asking("b", "change"), answering("a")],
        [asking("a", "look_up"), asking("b", "change"), answering("b", "change"), answering("a", "look_up")],
        [asking("a", "look_up"), answering("c", "change"), answering("c")],
    ],
)
def test_plain_results_answer_the_calls_that_all_ways_join_them_to(listed: list[dict[str, Any]]) -> None:
    one, other = Transcript(), Transcript()
    assert put(listed, one, by_all_ways=False) == put(listed, other, by_all_ways=True)
    assert told(one) == told(other)
    assert one.returned == {event.tool for event in one.events if isinstance(event, Result) and event.call is not None}


@given(some.lists(messages, max_size=6), some.booleans())
@examples(170)
def test_plain_lines_read_as_all_lines_do(listed: list[dict[str, Any]], is_plain: bool) -> None:
    more = [] if is_plain else [{"role": "assistant", "content": "", "nobody knows": 1}]
    record = Record(msgspec.json.encode({"id": "a", "messages": [*listed, *more]}), 0)
    source, transcript = Source(Path("log.jsonl")), Transcript()
    if fault := put(listed, transcript, by_all_ways=True):
        with pytest.raises(Malformed, match=re.escape(fault)):
            conversation(source, record)
    else:
        read = conversation(source, record)
        assert (read.id, read.events) == ("a", transcript.events)
        assert read.instructions == "\n\n".join(transcript.instructions)


def test_a_message_that_says_more_is_not_taken_for_a_plain_one() -> None:
    transcript = Transcript()
    follow_messages([{"role": "user", "content": "yes", "agent": "clerk", "time": 3.0}], transcript)
    assert (transcript.events[0].agent, transcript.events[0].time) == ("clerk", 3.0)
