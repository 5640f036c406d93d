"""Text parts are read under whichever name their words stand; what cannot be read is kept, never emptied."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bylaw.trace import Trajectory, read
from bylaw.trace.event import Message, Raw, Result
from bylaw.trace.readers.parts import is_all_words
from bylaw.trace.recorded_value import part_text, plain_text, read_content


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "a: 1"},
        {"type": "text", "content": "a: 1"},
        {"type": "output_text", "content": "a: 1"},
        {"type": "text", "text": {"value": "a: 1", "annotations": []}},
        {"type": "text", "content": [{"type": "text", "text": "a: 1"}]},
    ],
)
def test_the_words_of_a_text_part_are_read(part: dict[str, Any]):
    assert part_text(part) == "a: 1"
    assert read_content([part, {"type": "image", "data": "x"}]) == "a: 1"
    assert plain_text([part]) == "a: 1"


def test_a_text_part_that_cannot_be_read_is_kept_as_data():
    part = {"type": "text", "text": {"body": "a: 1"}}
    assert part_text(part) is None
    content = read_content([part])
    assert isinstance(content, Raw)
    assert msgspec.json.decode(content) == [part]


def test_a_text_part_without_words_is_empty():
    assert part_text({"type": "text"}) == ""
    assert part_text({"type": "text", "text": None}) == ""


def test_a_lone_part_is_what_it_says():
    assert Result(None, Raw(b'{"type": "text", "content": "{\\"a\\": 1}"}')).value() == {"a": 1}
    assert Result(None, Raw(b'[{"type": "text", "content": "{\\"a\\": 1}"}]')).value() == {"a": 1}
    told = {"type": "note", "content": "bring snacks"}
    assert Result(None, Raw(json.dumps(told).encode())).value() == told


def test_runs_whose_messages_are_parts_are_read_like_those_of_plain_text(tmp_path: Path):
    def part(text: str | None) -> list[dict[str, Any]]:
        return [{"type": "text", "content": text}]

    call: dict[str, Any] = {"function": "read_inbox", "args": {}, "id": "1"}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": part("Help the user.")},
        {"role": "user", "content": part("Any news?")},
        {"role": "assistant", "content": part(None), "tool_calls": [call]},
        {"role": "tool", "content": part("subject: news"), "tool_call_id": "1", "tool_call": call, "error": None},
        {"role": "assistant", "content": part(""), "tool_calls": [{**call, "id": "2"}]},
        {"role": "tool", "content": part(""), "tool_call_id": "2", "tool_call": call, "error": "no inbox"},
    ]
    file = tmp_path / "runs.jsonl"
    file.write_text(json.dumps({"suite_name": "s", "user_task_id": "u", "messages": messages}) + "\n")
    (run,) = read(file)
    assert isinstance(run, Trajectory)
    assert [event.text for event in run.events if isinstance(event, Message)] == ["Any news?"]
    assert [event.content for event in run.events if isinstance(event, Result)] == ["subject: news", "no inbox"]


TEXT, PICTURE = {"type": "text", "text": "Shall I?"}, {"type": "image_url", "image_url": {"url": "x"}}


@pytest.mark.parametrize(
    ("more", "is_all"),
    [
        ({"content": "Shall I?"}, True),
        ({"content": [TEXT, {"type": "thinking", "thinking": "Hm."}]}, True),
        ({"content": [{"text": "Shall I?"}, {"reasoningContent": {}}]}, True),
        ({"content": [TEXT, PICTURE]}, False),
        ({"content": [PICTURE]}, False),
        ({"content": [{"text": "Shall I?"}, {"document": {}}]}, False),
        ({"content": [TEXT, {"type": "file", "file": {}}]}, False),
        ({"content": "Shall I?", "audio": {"id": "a"}}, False),
        ({"content": "Shall I?", "images": [PICTURE]}, False),
    ],
)
def test_an_agents_message_with_media_is_known_only_in_part(tmp_path: Path, more: dict[str, Any], is_all: bool):
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"messages": [{"role": "assistant", **more}]}) + "\n")
    (found,) = read(path)
    assert isinstance(found, Trajectory)
    events = [event for event in found.events if isinstance(event, Message)]
    assert all(event.captured for event in events) is is_all
    assert is_all_words(more["content"]) is (is_all or "audio" in more or "images" in more)
