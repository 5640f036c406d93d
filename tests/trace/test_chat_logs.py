"""The ordinary things that chat logs do, one test each."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec import Raw

from bylaw.errors import BylawError, FormatError, RecordError
from bylaw.trace import Call, Message, Result, Trajectory, read, sniff


def write(folder: Path, *conversations: object, name: str = "logs.jsonl") -> Path:
    path = folder / name
    text = "".join(json.dumps(each) + "\n" for each in conversations)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def only(path: Path) -> Trajectory:
    (trajectory,) = read(path)
    assert isinstance(trajectory, Trajectory), trajectory
    return trajectory


def conversation(folder: Path, *messages: dict, **about: object) -> Trajectory:
    return only(write(folder, {"messages": list(messages), **about}))


def calling(*calls: tuple[str, object, str], text: str | None = None) -> dict:
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for name, arguments, id in calls
        ],
    }


def result(content: object, id: str | None = None, **more: object) -> dict:
    return {"role": "tool", "content": content, **({"tool_call_id": id} if id is not None else {}), **more}


def answers(trajectory: Trajectory) -> list[tuple[int | None, str | Raw]]:
    return [(event.call, event.content) for event in trajectory.events if isinstance(event, Result)]


def test_arguments_may_be_a_json_string_or_an_object(tmp_path):
    found = conversation(tmp_path, calling(("a", '{"x": 1}', "1"), ("b", {"x": 1}, "2")))
    assert [event.arguments for event in found.events] == [{"x": 1}, {"x": 1}]


def test_text_and_calls_of_one_message_share_a_turn(tmp_path):
    found = conversation(
        tmp_path, {"role": "user", "content": "hi"}, calling(("a", "{}", "1"), ("b", "{}", "2"), text="wait")
    )
    assert [type(event) for event in found.events] == [Message, Message, Call, Call]
    assert len({event.turn for event in found.events[1:]}) == 1
    assert found.events[0].turn < found.events[1].turn


def test_results_out_of_order_find_their_calls_by_id(tmp_path):
    found = conversation(
        tmp_path, calling(("a", "{}", "1"), ("b", "{}", "2")), result("of b", "2"), result("of a", "1")
    )
    assert answers(found) == [(1, "of b"), (0, "of a")]


def test_results_without_ids_pair_by_order(tmp_path):
    found = conversation(tmp_path, calling(("a", "{}", ""), ("b", "{}", "")), result("of a"), result("of b"))
    assert answers(found) == [(0, "of a"), (1, "of b")]


def test_results_under_unknown_ids_answer_no_call(tmp_path):
    found = conversation(tmp_path, calling(("a", "{}", "1"), ("b", "{}", "2")), result("x", "8"), result("y", "9"))
    assert answers(found) == [(None, "x"), (None, "y")]


def test_a_missing_result_does_not_shift_later_ones(tmp_path):
    found = conversation(tmp_path, calling(("a", "{}", "")), calling(("b", "{}", "")), result("of b"))
    assert answers(found) == [(1, "of b")]


def test_a_reused_id_answers_the_latest_turn(tmp_path):
    found = conversation(
        tmp_path,
        calling(("a", "{}", "1")),
        result("first", "1"),
        calling(("b", "{}", "1")),
        result("second", "1"),
    )
    assert answers(found) == [(0, "first"), (2, "second")]


def test_an_id_used_twice_in_one_turn_pairs_by_order(tmp_path):
    found = conversation(
        tmp_path, calling(("a", "{}", "1"), ("b", "{}", "1")), result("of a", "1"), result("of b", "1")
    )
    assert answers(found) == [(0, "of a"), (1, "of b")]


def test_a_second_result_is_kept_and_answers_nothing(tmp_path):
    found = conversation(
        tmp_path, calling(("a", "{}", "1"), ("b", "{}", "2")), result("one", "1"), result("again", "1")
    )
    assert answers(found) == [(0, "one"), (None, "again")]


def test_a_result_that_answers_no_call_is_kept(tmp_path):
    assert answers(conversation(tmp_path, result("stray", "7"))) == [(None, "stray")]


def test_tool_errors_are_read_where_they_are_said(tmp_path):
    found = conversation(
        tmp_path,
        calling(("a", "{}", "1"), ("b", "{}", "2"), ("c", "{}", "3")),
        result("no", "1", error=True),
        result("yes", "2", error=False),
        result("?", "3"),
    )
    assert [event.error for event in found.events if isinstance(event, Result)] == [True, False, None]


def test_content_that_is_not_json_is_its_own_value(tmp_path):
    found = conversation(tmp_path, calling(("a", "{}", "1")), result("not found", "1"))
    assert found.events[1].value() == "not found"


def test_content_in_parts_becomes_text_and_other_data_stays_json(tmp_path):
    found = conversation(
        tmp_path,
        calling(("a", "{}", "1"), ("b", "{}", "2")),
        result([{"type": "text", "text": '{"x":'}, {"type": "text", "text": "1}"}], "1"),
        result({"x": [1, 2]}, "2"),
    )
    assert [event.value() for event in found.events[2:]] == [{"x": 1}, {"x": [1, 2]}]


@pytest.mark.parametrize("more", [{}, {"more": 1}])
def test_null_content_of_the_users_was_not_recorded(tmp_path, more):
    null = {"content": None, **more}
    found = conversation(tmp_path, {"role": "assistant", **null}, {"role": "user", **null})
    assert [(each.by, each.text, each.captured) for each in found.events] == [("user", "", False)]


def test_a_message_in_parts_is_its_text(tmp_path):
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "x"}}]
    assert conversation(tmp_path, {"role": "user", "content": parts}).events[0].text == "look"


def test_a_refusal_is_said(tmp_path):
    found = conversation(tmp_path, {"role": "assistant", "content": None, "refusal": "I cannot"})
    assert found.events == [Message("agent", "I cannot")]


def test_system_messages_anywhere_are_instructions(tmp_path):
    found = conversation(
        tmp_path,
        {"role": "system", "content": "one"},
        {"role": "user", "content": "hi"},
        {"role": "developer", "content": "two"},
    )
    assert (found.instructions, len(found.events)) == ("one\n\ntwo", 1)


def test_legacy_function_calls_are_calls(tmp_path):
    found = conversation(
        tmp_path,
        {"role": "assistant", "content": None, "function_call": {"name": "a", "arguments": '{"x": 1}'}},
        {"role": "function", "name": "a", "content": "done"},
    )
    assert (found.events[0].tool, answers(found)) == ("a", [(0, "done")])


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [("{oops", "not JSON"), ("[1]", "not an object"), (None, "not captured"), ([1], "not an object"), ("", "")],
)
def test_malformed_arguments_are_a_fault_of_the_call(tmp_path, arguments, fault):
    (call,) = conversation(tmp_path, calling(("a", arguments, "1"))).events
    assert call.arguments == {}
    assert fault in call.fault
    assert bool(fault) == bool(call.fault)


def test_a_user_may_call_tools(tmp_path):
    message = {"role": "user", "content": None, "tool_calls": [{"id": "1", "name": "reboot", "arguments": {}}]}
    found = conversation(tmp_path, message, result("ok", "1", requestor="user"))
    assert (found.events[0].by, answers(found)) == ("user", [(0, "ok")])


def test_blocks_of_tool_use_are_calls_and_results(tmp_path):
    found = conversation(
        tmp_path,
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "wait"},
                {"type": "tool_use", "id": "1", "name": "a", "input": {"x": 1}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "1", "content": "done", "is_error": False}],
        },
    )
    assert [type(event) for event in found.events] == [Message, Call, Result]
    assert answers(found) == [(1, "done")]


def test_items_of_the_responses_api_are_read(tmp_path):
    found = conversation(
        tmp_path,
        {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "function_call", "call_id": "1", "name": "a", "arguments": "{}"},
        {"type": "function_call", "call_id": "2", "name": "b", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "2", "output": "of b"},
        {"type": "reasoning", "summary": []},
    )
    assert answers(found) == [(2, "of b")]
    assert found.events[1].turn == found.events[2].turn


@pytest.mark.parametrize(
    "thoughts",
    [
        {"summary": [{"type": "summary_text", "text": "**Looking** at it"}]},
        {"id": "rs_1", "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]},
        {"summary": [{"type": "summary_text", "text": "a"}], "encrypted_content": "gAAA", "status": "completed"},
        {"summary": [], "content": [{"type": "reasoning_text", "text": "Shall I?"}]},
        {"summary": "I look at the account."},
    ],
)
def test_thoughts_of_the_responses_api_say_nothing(tmp_path, thoughts):
    rest = (
        {"type": "function_call", "call_id": "1", "name": "a", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "of a"},
    )
    asked = {"role": "user", "content": "hi"}
    with_thoughts = conversation(tmp_path, asked, {"type": "reasoning", **thoughts}, *rest)
    assert with_thoughts.events == conversation(tmp_path, asked, *rest).events


def test_a_summary_elsewhere_may_hold_a_call(tmp_path):
    held = {"role": "assistant", "summary": [{"type": "function_call", "name": "a", "arguments": "{}"}]}
    (found,) = read(write(tmp_path, {"messages": [{"role": "user", "content": "hi"}, held]}))
    assert isinstance(found, RecordError)


def test_sub_agents_keep_their_names(tmp_path):
    found = conversation(
        tmp_path,
        {**calling(("a", "{}", "1")), "agent": "helper"},
        result("ok", "1"),
        {"role": "assistant", "content": "hi"},
    )
    assert [event.agent for event in found.events] == ["helper", "helper", ""]


def test_an_empty_conversation_is_a_conversation(tmp_path):
    assert only(write(tmp_path, {"messages": []})).events == []


def test_ids_agents_outcomes_and_tools_are_read(tmp_path):
    tool = {"type": "function", "function": {"name": "a", "parameters": {"type": "object"}}}
    found = conversation(
        tmp_path,
        id=7,
        model="openai/gpt-x",
        reward=1,
        metadata={"task": "t"},
        tools=[tool, {"name": "b", "inputSchema": {}, "annotations": {"readOnlyHint": True}}],
    )
    assert (found.id, found.agent, found.details) == ("7", "gpt-x", {"task": "t"})
    assert (found.outcome.good, found.outcome.source) == (True, "reward")
    assert found.tools[0] == {"name": "a", "parameters": {"type": "object"}}
    assert found.tools[1]["annotations"] == {"readOnlyHint": True}


def test_without_an_id_the_file_and_position_name_it(tmp_path):
    path = write(tmp_path, [{"role": "user", "content": "a"}], {"messages": []}, name="runs.2.jsonl.gz")
    assert [(each.id, each.agent) for each in read(path)] == [
        ("runs.2.jsonl.gz#0", "runs"),
        ("runs.2.jsonl.gz#1", "runs"),
    ]


def test_the_caller_may_name_the_agent(tmp_path):
    (found,) = read(write(tmp_path, {"messages": [], "agent": "a"}), agent="b")
    assert found.agent == "b"


def test_times_are_read(tmp_path):
    found = conversation(
        tmp_path,
        {"role": "user", "content": "a", "timestamp": "2024-05-15T15:00:00Z"},
        {"role": "user", "content": "b", "time": 12.5},
    )
    assert [event.time for event in found.events] == [1715785200.0, 12.5]


@pytest.mark.parametrize("layout", ["list", "pretty", "bare", "lists"])
def test_one_document_may_hold_conversations(tmp_path, layout):
    talk = [{"role": "user", "content": "hi"}]
    document = {"list": [{"messages": talk}], "pretty": [{"messages": talk}], "bare": talk, "lists": [talk]}[layout]
    path = tmp_path / "doc.json"
    path.write_text(json.dumps(document, indent=2 if layout == "pretty" else None))
    assert sniff(path) == "openai"
    assert only(path).events == [Message("user", "hi")]


def test_a_corrupted_line_does_not_lose_its_neighbours(tmp_path):
    path = write(tmp_path, {"id": "a", "messages": []}, {"id": "b", "messages": []}, {"id": "c", "messages": []})
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1][:7]
    path.write_bytes(b"\n".join(lines))
    first, broken, last = read(path)
    assert (first.id, last.id) == ("a", "c")
    assert isinstance(broken, RecordError)
    assert str(broken).startswith(f"{path}:2: not JSON")


def test_a_corrupted_first_line_does_not_hide_the_format(tmp_path):
    path = write(tmp_path, {"id": "a", "messages": []}, {"id": "b", "messages": []})
    path.write_bytes(path.read_bytes()[5:])
    assert [type(each) for each in read(path)] == [RecordError, Trajectory]


def test_a_record_of_the_wrong_shape_says_where_and_why(tmp_path):
    path = write(
        tmp_path, {"messages": []}, {"messages": [{"role": "user", "content": "x"}, {"content": "y"}]}, {"a": 1}
    )
    _, no_role, no_messages = read(path)
    assert str(no_role) == f"{path}:2: message 1 has no role"
    assert str(no_messages).startswith(f"{path}:3: object missing required field `messages`")


def test_a_truncated_gzip_gives_what_could_be_read(tmp_path):
    talk = {"messages": [{"role": "user", "content": "x" * 50}]}
    path = write(tmp_path, *({**talk, "id": str(n), "pad": str(n * 7919)} for n in range(5000)), name="logs.jsonl.gz")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    *found, last = read(path)
    assert len(found) > 1000
    assert isinstance(last, RecordError)
    assert "truncated" in str(last)


def test_a_truncated_document_gives_what_could_be_read(tmp_path):
    path = tmp_path / "doc.json"
    path.write_text(json.dumps([{"id": str(n), "messages": []} for n in range(9)])[:-30])
    *found, last = read(path)
    assert [each.id for each in found] == [str(n) for n in range(8)][: len(found)]
    assert len(found) >= 7
    assert isinstance(last, RecordError)


def test_a_damaged_member_does_not_lose_its_neighbours(tmp_path):
    path = tmp_path / "doc.json"
    path.write_text('[{"id": "a", "messages": []}, {"id": "b", "messages": [}]}, {"id": "c", "messages": []}]')
    kinds = [each.id if isinstance(each, Trajectory) else type(each) for each in read(path)]
    assert kinds == ["a", RecordError, "c"]


def test_what_python_writes_beyond_json_is_read(tmp_path):
    path = tmp_path / "logs.jsonl"
    path.write_text(
        '{"messages": [{"role": "user", "content": "\\ud83d x"}], "metadata": {"score": NaN}}\n{"messages": []}\n'
    )
    first, _ = read(path)
    assert first.events[0].text == "? x"
    assert first.details == {"score": None}


@pytest.mark.parametrize("content", [b"", b"  \n", b"hello\n", b'{"a": 1}', b"[1, 2]", b"\x00\x01"])
def test_a_file_in_no_known_format_is_refused(tmp_path, content):
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(FormatError):
        read(path)


def test_a_missing_file_is_an_error_of_ours(tmp_path):
    with pytest.raises(BylawError):
        read(tmp_path / "none.jsonl")


def test_a_byte_order_mark_is_no_content(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"id": "a", "messages": []}\n')
    assert only(path).id == "a"


@pytest.mark.parametrize("name", ["time", "timestamp", "start_time", "started_at", "created_at"])
def test_a_conversations_time_is_that_of_messages_without_one(tmp_path: Path, name: str) -> None:
    messages = [
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "Hello.", "timestamp": "2025-03-03T10:05:00Z"},
        {"role": "user", "content": "Thanks."},
    ]
    (found,) = read(write(tmp_path, {"id": "c", name: "2025-03-03T10:00:00Z", "messages": messages}))
    began = datetime(2025, 3, 3, 10, tzinfo=UTC).timestamp()
    assert [event.time for event in found.events] == [began, began + 300, began + 300]
    (plain,) = read(write(tmp_path, {"id": "c", name: "last spring", "messages": messages[:1]}))
    assert plain.events[0].time is None
