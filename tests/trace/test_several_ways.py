"""A message that tells its calls in several ways: each call is read, and read once."""

import json

import pytest

from bylaw.trace import Call, Result, Trajectory, read

A1, A2 = {"id": "A1"}, {"id": "A2"}
CALLS = [{"id": "k1", "type": "function", "function": {"name": "look", "arguments": json.dumps(A1)}}]


def calls_in(tmp_path, record) -> list[tuple]:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(record) + "\n")
    (found,) = read(path)
    assert isinstance(found, Trajectory), found
    return [(event.tool, event.arguments, event.by) for event in found.events if isinstance(event, Call)]


@pytest.mark.parametrize(
    ("message", "count"),
    [
        ({"function_call": {"name": "look", "arguments": json.dumps(A1)}}, 1),
        ({"function_call": {"name": "look", "arguments": json.dumps(A2)}}, 2),
        ({"function_call": {"name": "change", "arguments": json.dumps(A1)}}, 2),
        ({"content": [{"type": "tool_use", "id": "k1", "name": "look", "input": A1}]}, 1),
        ({"content": [{"type": "tool_use", "id": "k1", "name": "look", "input": {}}]}, 1),
        ({"content": [{"type": "tool_use", "id": "k1", "name": "look", "input": A2}]}, 2),
        ({"content": [{"type": "tool_use", "id": "k2", "name": "look", "input": A1}]}, 2),
        ({"content": [{"type": "tool_use", "name": "look", "input": A1}]}, 1),
        ({"content": [{"type": "tool_call", "id": "k2", "name": "change", "args": A1}]}, 2),
        ({"content": [{"type": "function_call", "call_id": "k2", "name": "change", "arguments": json.dumps(A1)}]}, 2),
    ],
)
def test_calls_beside_tool_calls_are_read_once(tmp_path, message, count):
    found = calls_in(tmp_path, {"messages": [{"role": "assistant", "content": None, "tool_calls": CALLS, **message}]})
    assert len(found) == count
    assert ("look", A1, "agent") in found


def test_a_call_of_the_assistant_is_the_assistants_whoever_it_names(tmp_path):
    path = tmp_path / "x.jsonl"
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [{**CALLS[0], "requestor": "user"}]},
        {"role": "tool", "tool_call_id": "k1", "content": "{}", "requestor": "user"},
    ]
    path.write_text(json.dumps({"messages": messages}) + "\n")
    (found,) = read(path)
    call, result = found.events
    assert (call.by, result.call) == ("agent", 0)


def test_langchain_calls_of_the_provider_are_read_where_the_message_lacks_them(tmp_path):
    body = {"content": "", "tool_calls": [{"name": "look", "args": A1, "id": "k1", "type": "tool_call"}]}
    body["additional_kwargs"] = {"tool_calls": [*CALLS, {**CALLS[0], "id": "k2"}]}
    found = calls_in(
        tmp_path, {"messages": [{"type": "human", "data": {"content": "hi"}}, {"type": "ai", "data": body}]}
    )
    assert len(found) == 2


def test_a_langgraph_state_is_a_conversation_and_names_its_thread_and_agent(tmp_path):
    path = tmp_path / "x.jsonl"
    messages = [
        {"type": "human", "content": "hi"},
        {"type": "ai", "content": "", "tool_calls": [{"name": "look", "args": A1, "id": "k1"}]},
        {"type": "tool", "content": "{'id': 'A1'}", "tool_call_id": "k1", "status": "success"},
    ]
    config = {"configurable": {"thread_id": "t1"}}
    state = {"values": {"messages": messages}, "next": [], "config": config, "metadata": {"step": 3}, "agent": "desk"}
    path.write_text(json.dumps(state) + "\n" + json.dumps({"messages": messages, "agent": "desk"}) + "\n")
    first, second = read(path)
    assert (first.id, first.agent, first.format) == ("t1", "desk", "langchain")
    assert second.agent == "desk"
    assert first.events == second.events
    assert [event.value() for event in first.events if isinstance(event, Result)] == [A1]


def test_items_of_the_responses_api_share_the_turn_of_the_message_before_them(tmp_path):
    path = tmp_path / "x.jsonl"
    items = [
        {"role": "user", "content": "go"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One moment."}]},
        {"type": "function_call", "call_id": "k1", "name": "look", "arguments": json.dumps(A1)},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "k2", "name": "look", "arguments": json.dumps(A2)},
        {"type": "function_call_output", "call_id": "k2", "output": "two"},
        {"type": "function_call_output", "call_id": "k1", "output": "one"},
        {"type": "mcp_call", "id": "m1", "name": "change", "arguments": "{}", "output": "done", "error": None},
    ]
    path.write_text(json.dumps(items) + "\n")
    (found,) = read(path)
    said, first, second, *rest = found.events[1:]
    assert said.turn == first.turn == second.turn
    assert [(event.call, event.content) for event in rest if isinstance(event, Result)] == [
        (3, "two"),
        (2, "one"),
        (6, "done"),
    ]
