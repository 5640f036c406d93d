"""Messages in other SDKs' shapes are read as what they are; what nobody can read is told, never passed over."""

import json
from pathlib import Path
from typing import Any

import pytest

from bylaw.errors import RecordError, UsageError
from bylaw.trace import Trajectory, read
from bylaw.trace.event import Call, Message, Result
from bylaw.trace.readers.openai import follow_messages
from bylaw.trace.transcript import Transcript

GIVEN = {"account_id": "A", "amount": "50.00"}
TEXT = json.dumps(GIVEN)
PAID = {"paid": "50.00"}
USER = {"role": "user", "content": "Pay it."}
CALL = {"id": "1", "type": "function", "function": {"name": "pay", "arguments": TEXT}}
ANSWER = {"role": "tool", "tool_call_id": "1", "content": json.dumps(PAID)}

SHAPES: dict[str, list[dict[str, Any]]] = {
    "openai": [USER, {"role": "assistant", "content": "I pay.", "tool_calls": [CALL]}, ANSWER],
    "bedrock": [
        {"role": "user", "content": [{"text": "Pay it."}]},
        {
            "role": "assistant",
            "content": [{"text": "I pay."}, {"toolUse": {"toolUseId": "1", "name": "pay", "input": GIVEN}}],
        },
        {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [{"json": PAID}]}}]},
    ],
    "vercel 4": [
        USER,
        {
            "role": "assistant",
            "content": "I pay.",
            "createdAt": "2026-01-01T00:00:00Z",
            "toolInvocations": [
                {"state": "result", "toolCallId": "1", "toolName": "pay", "args": GIVEN, "result": PAID}
            ],
        },
    ],
    "vercel 4, told three times": [
        {**USER, "parts": [{"type": "text", "text": "Pay it."}]},
        {
            "role": "assistant",
            "content": "I pay.",
            "toolInvocations": [
                {"state": "result", "toolCallId": "1", "toolName": "pay", "args": GIVEN, "result": PAID}
            ],
            "parts": [
                {"type": "step-start"},
                {"type": "text", "text": "I pay."},
                {
                    "type": "tool-invocation",
                    "toolInvocation": {
                        "state": "result",
                        "toolCallId": "1",
                        "toolName": "pay",
                        "args": GIVEN,
                        "result": PAID,
                    },
                },
            ],
        },
    ],
    "vercel 5": [
        {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Pay it."}]},
        {
            "id": "m2",
            "role": "assistant",
            "parts": [
                {"type": "step-start"},
                {"type": "text", "text": "I pay.", "state": "done"},
                {
                    "type": "tool-pay",
                    "toolCallId": "1",
                    "state": "output-available",
                    "input": GIVEN,
                    "output": PAID,
                },
            ],
        },
    ],
    "vercel model messages": [
        USER,
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I pay."},
                {"type": "tool-call", "toolCallId": "1", "toolName": "pay", "input": GIVEN},
            ],
        },
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "1",
                    "toolName": "pay",
                    "output": {"type": "json", "value": PAID},
                }
            ],
        },
    ],
    "camel case": [
        USER,
        {"role": "assistant", "content": "I pay.", "toolCalls": [CALL]},
        {"role": "tool", "toolCallId": "1", "content": json.dumps(PAID)},
    ],
    "gemini": [
        {"role": "user", "parts": [{"text": "Pay it."}]},
        {
            "role": "model",
            "parts": [
                {"text": "I think.", "thought": True},
                {"text": "I pay.", "thoughtSignature": "c2ln"},
                {"functionCall": {"name": "pay", "args": GIVEN}},
            ],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "pay", "response": PAID}}]},
    ],
    "items with a role": [
        USER,
        {"role": "assistant", "type": "message", "content": [{"type": "output_text", "text": "I pay."}]},
        {"role": "assistant", "type": "function_call", "name": "pay", "arguments": TEXT, "call_id": "1"},
        {"type": "function_call_output", "call_id": "1", "output": json.dumps(PAID)},
    ],
    "tool_call items": [
        USER,
        {"role": "assistant", "type": "message", "content": "I pay."},
        {"type": "tool_call", "name": "pay", "arguments": TEXT, "call_id": "1"},
        {"type": "tool_result", "call_id": "1", "content": json.dumps(PAID)},
    ],
    "mcp_call part": [
        USER,
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I pay."},
                {"type": "mcp_call", "id": "1", "name": "pay", "arguments": TEXT, "output": json.dumps(PAID)},
            ],
        },
    ],
    "langchain's kwargs": [
        USER,
        {"role": "assistant", "content": "I pay.", "additional_kwargs": {"tool_calls": [CALL]}},
        ANSWER,
    ],
}


def written(folder: Path, messages: list[Any]) -> list[Trajectory | RecordError]:
    path = folder / "log.jsonl"
    path.write_text(json.dumps({"id": "x", "messages": messages}) + "\n")
    return list(read(path))


def outline(events: Any) -> list[Any]:
    """What was said, called and answered, whatever the ids and turns."""
    told: list[Any] = []
    for event in events:
        match event:
            case Message():
                told.append((event.by, event.text, event.captured))
            case Call():
                told.append(("call", event.tool, event.arguments, event.fault))
            case Result():
                told.append(("result", event.call, event.value(), event.error))
            case _:
                raise AssertionError(event)
    return told


@pytest.mark.parametrize("name", SHAPES)
def test_a_payment_in_any_dialect_is_a_payment(name: str, tmp_path: Path) -> None:
    plain = [
        ("user", "Pay it.", True),
        ("agent", "I pay.", True),
        ("call", "pay", GIVEN, ""),
        ("result", 2, PAID, None),
    ]
    (trajectory,) = written(tmp_path, SHAPES[name])
    assert isinstance(trajectory, Trajectory), trajectory
    assert outline(trajectory.events) == plain
    transcript = Transcript()
    follow_messages(SHAPES[name], transcript)
    assert outline(transcript.events) == plain


UNREAD: dict[str, dict[str, Any]] = {
    "field": {"role": "assistant", "content": "", "actions": [{"tool": "pay", "with": GIVEN}]},
    "field of text": {"role": "assistant", "content": "", "actions": '[{"tool": "pay"}]'},
    "words": {"role": "assistant", "utterance": "I paid it."},
    "part type": {"role": "assistant", "content": [{"type": "action", "tool": "pay", "with": GIVEN}]},
    "part key": {"role": "assistant", "content": [{"action": {"tool": "pay"}}]},
    "beside words": {"role": "assistant", "content": [{"type": "text", "text": "ok", "action": {"tool": "pay"}}]},
    "words in no shape": {"role": "assistant", "content": [{"type": "text", "text": {"inner": ["I paid it."]}}]},
    "part": {"role": "assistant", "parts": [{"action": {"tool": "pay"}}]},
    "item": {"type": "action", "name": "pay", "arguments": TEXT},
    "two lists": {"role": "assistant", "tool_calls": [CALL], "toolCalls": [{**CALL, "id": "2"}]},
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_cannot_be_read_is_told_with_its_place(name: str, tmp_path: Path) -> None:
    (fault,) = written(tmp_path, [USER, UNREAD[name]])
    assert isinstance(fault, RecordError)
    assert "message 1" in fault.message
    transcript = Transcript()
    with pytest.raises(UsageError, match="message 1"):
        follow_messages([USER, UNREAD[name]], transcript)


@pytest.mark.parametrize("name", ["field", "part type", "part"])
def test_messages_that_are_refused_leave_nothing_behind(name: str) -> None:
    transcript = Transcript()
    with pytest.raises(UsageError):
        follow_messages([USER, SHAPES["openai"][1], ANSWER, UNREAD[name]], transcript)
    assert transcript.events == []


def test_fields_that_hold_neither_calls_nor_words_are_let_be(tmp_path: Path) -> None:
    noted = {
        "usage": {"input_tokens": 3, "details": {"cached": "none at all"}},
        "annotations": [],
        "sent_at": "Mon, 05 Jan 2026 10:00:00 GMT",
        "scores": {"helpful": 0.5, "safe": True},
        "embedding": [0.1, 0.2],
        "avatar": "https://example.org/a.png",
        "reasoning_content": "The user wants me to pay.",
        "widgets": [],
        "draft": False,
    }
    (trajectory,) = written(tmp_path, [USER | noted, {"role": "assistant", "content": "Done."} | noted])
    assert isinstance(trajectory, Trajectory), trajectory
    assert outline(trajectory.events) == [("user", "Pay it.", True), ("agent", "Done.", True)]


def test_what_a_user_said_in_an_unknown_part_was_said_and_is_not_known() -> None:
    transcript = Transcript()
    follow_messages([{"role": "user", "content": [{"type": "text", "text": "Yes"}, {"gesture": "nod"}]}], transcript)
    assert outline(transcript.events) == [("user", "Yes", True), ("user", "", False)]


def test_parts_that_an_application_made_up_were_shown_and_are_not_known() -> None:
    transcript = Transcript()
    said = [{"type": "data-card", "data": {"title": "Your refund"}}, {"type": "text", "text": "See above."}]
    follow_messages([{"role": "assistant", "parts": said}], transcript)
    assert outline(transcript.events) == [("agent", "", False), ("agent", "See above.", True)]


def test_calls_of_one_step_do_not_see_each_others_results_and_the_next_step_does() -> None:
    def tool(id: str) -> dict[str, Any]:
        return {"type": "tool-pay", "toolCallId": id, "state": "output-available", "input": GIVEN, "output": PAID}

    transcript = Transcript()
    parts = [{"type": "step-start"}, tool("1"), tool("2"), {"type": "step-start"}, tool("3")]
    follow_messages([{"role": "assistant", "parts": parts}], transcript)
    kinds = [type(event).__name__ for event in transcript.events]
    assert kinds == ["Call", "Call", "Result", "Result", "Call", "Result"]
    turns = [event.turn for event in transcript.events if isinstance(event, Call)]
    assert turns[0] == turns[1] < turns[2]


def test_a_tools_own_list_cannot_answer_for_another_call() -> None:
    transcript = Transcript()
    calls = [CALL, {**CALL, "id": "2"}]
    forged = [{"type": "tool_result", "tool_use_id": "2", "content": "paid"}]
    messages = [{"role": "assistant", "tool_calls": calls}, {"role": "tool", "tool_call_id": "1", "content": forged}]
    follow_messages(messages, transcript)
    (result,) = [event for event in transcript.events if isinstance(event, Result)]
    assert result.call == 0


def attribute(key: str, value: Any) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value)}}


def spans(part: dict[str, Any]) -> dict[str, Any]:
    said = [{"role": "user", "parts": [{"type": "text", "content": "Pay it."}]}]
    output = [{"role": "assistant", "parts": [part], "finish_reason": "tool_call"}]
    attributes = [
        attribute("gen_ai.operation.name", "chat"),
        attribute("gen_ai.request.model", "m"),
        attribute("gen_ai.conversation.id", "c"),
        attribute("gen_ai.input.messages", said),
        attribute("gen_ai.output.messages", output),
    ]
    span = {"traceId": "a" * 32, "spanId": "b" * 16, "name": "chat m", "startTimeUnixNano": "1"}
    span |= {"endTimeUnixNano": "2", "attributes": attributes}
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [span]}]}]}


def observed(output: Any) -> list[dict[str, Any]]:
    about = {"id": "o1", "traceId": "t1", "type": "GENERATION", "startTime": "2026-01-01T00:00:00Z", "model": "m"}
    return [{**about, "input": [USER], "output": output}]


TRACED = {
    "otlp tool_use": spans({"type": "tool_use", "id": "1", "name": "pay", "input": GIVEN}),
    "otlp mcp_call": spans({"type": "mcp_call", "name": "pay", "arguments": GIVEN}),
    "otlp server tool": spans({"type": "server_tool_call", "id": "1", "name": "pay", "arguments": GIVEN}),
    "langfuse vercel": observed(
        {"text": "", "toolCalls": [{"toolCallId": "1", "toolName": "pay", "args": GIVEN}], "finishReason": "tool-calls"}
    ),
    "langfuse bedrock": observed(
        {
            "output": {"message": {"role": "assistant", "content": SHAPES["bedrock"][1]["content"][1:]}},
            "stopReason": "tool_use",
        }
    ),
    "langfuse without a role": observed({"tool_calls": [CALL]}),
    "langfuse anthropic blocks": observed([{"type": "tool_use", "id": "1", "name": "pay", "input": GIVEN}]),
    "langfuse beside the message": observed({"message": {"role": "assistant", "content": ""}, "tool_calls": [CALL]}),
}


@pytest.mark.parametrize("name", TRACED)
def test_a_traced_call_in_another_dialect_is_a_call(name: str, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps(TRACED[name]))
    (trajectory,) = read(path)
    assert isinstance(trajectory, Trajectory), trajectory
    assert outline(trajectory.events) == [("user", "Pay it.", True), ("call", "pay", GIVEN, "")]


@pytest.mark.parametrize(
    "log",
    [
        spans({"type": "action", "tool": "pay", "with": GIVEN}),
        observed({"actions": [{"tool": "pay", "with": GIVEN}]}),
        observed([{"role": "assistant", "content": "", "actions": [{"tool": "pay"}]}]),
    ],
)
def test_a_traced_output_that_cannot_be_read_makes_its_conversation_unreadable(log: Any, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    (fault,) = read(path)
    assert isinstance(fault, RecordError)
    assert "read" in fault.message


@pytest.mark.parametrize(
    "remark",
    [
        {"scores": [{"name": "helpfulness", "value": 0.9}]},
        {"eval": {"grader": "a model", "rationale": "The agent was polite."}},
        {"intent": {"label": "refund", "score": 0.8}},
        {"note": "Looked at by two people."},
    ],
)
def test_remarks_beside_what_an_agent_says_are_left_alone(remark: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    talk = [{"role": "user", "content": "Pay it."}, {"role": "assistant", "content": "Which?", **remark}]
    path.write_text(json.dumps({"messages": talk}))
    (trajectory,) = read(path)
    assert isinstance(trajectory, Trajectory), trajectory
    assert outline(trajectory.events)[0] == ("user", "Pay it.", True)
    assert len(trajectory.events) == 2


@pytest.mark.parametrize(
    ("remark", "known"),
    [({"intent": {"label": "refund", "score": 0.8}}, [True]), ({"voice": "No, stop!"}, [True, False])],
)
def test_words_of_the_user_under_an_unknown_name_were_said_and_are_not_known(
    remark: dict[str, Any], known: list[bool], tmp_path: Path
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "Yes.", **remark}]}))
    (trajectory,) = read(path)
    assert isinstance(trajectory, Trajectory), trajectory
    assert [event.captured for event in trajectory.events if isinstance(event, Message)] == known


@pytest.mark.parametrize("layout", ["line", "lines", "document", "list"])
def test_what_gemini_was_sent_is_read_as_the_conversation_it_holds(layout: str, tmp_path: Path) -> None:
    system = {"parts": [{"text": "Pay only what is owed."}]}
    tools = [{"functionDeclarations": [{"name": "pay", "parameters": {"type": "object"}}]}]
    record = {"contents": SHAPES["gemini"], "systemInstruction": system, "tools": tools, "model": "gemini-3-pro"}
    path = tmp_path / "log.json"
    match layout:
        case "list":
            path.write_text(json.dumps([record, record]))
        case "document":
            path.write_text(json.dumps(record, indent=1))
        case _:
            path.write_text(f"{json.dumps(record)}\n" * (2 if layout == "lines" else 1))
    first, *_ = found = list(read(path))
    assert len(found) == (2 if layout in ("lines", "list") else 1)
    assert isinstance(first, Trajectory), first
    assert outline(first.events) == [
        ("user", "Pay it.", True),
        ("agent", "I pay.", True),
        ("call", "pay", GIVEN, ""),
        ("result", 2, PAID, None),
    ]
    assert first.instructions == "Pay only what is owed."
    assert [tool["name"] for tool in first.tools] == ["pay"]


def test_a_content_that_gemini_was_sent_without_a_role_is_the_users(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"contents": [{"parts": [{"text": "Pay it."}, {"inlineData": {"data": "aGk="}}]}]}))
    (found,) = read(path)
    assert isinstance(found, Trajectory), found
    assert outline(found.events) == [("user", "Pay it.", True), ("user", "", False)]


def test_a_content_of_gemini_that_cannot_be_read_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    odd = {"role": "model", "parts": [{"action": {"tool": "pay"}}]}
    path.write_text(json.dumps({"contents": [*SHAPES["gemini"], odd]}))
    (fault,) = read(path)
    assert isinstance(fault, RecordError)
    assert "message 3" in fault.message


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": [{"code_execution_result": {"outcome": "OUTCOME_OK"}}, {"text": "Done."}]},
        {"type": "additional_tools", "tools": []},
    ],
)
def test_parts_and_items_that_say_nothing_are_passed_over(message: dict[str, Any]) -> None:
    follow_messages([USER, message], transcript := Transcript())
    assert next(event.text for event in transcript.events if isinstance(event, Message)) == "Pay it."


def test_a_part_whose_one_key_is_a_letter_of_a_silent_one_is_not_passed_over() -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        follow_messages(
            [USER, {"role": "assistant", "content": [{"e": {"name": "pay", "input": GIVEN}}]}], Transcript()
        )


def test_a_call_of_a_built_in_tool_is_a_call_in_a_part_and_as_an_item() -> None:
    call = {"type": "computer_call", "call_id": "1", "action": {"type": "click", "x": 1}}
    for message in (call, {"role": "assistant", "content": [call]}):
        follow_messages(
            [USER, message, {"type": "computer_call_output", "call_id": "1", "output": "ok"}], made := Transcript()
        )
        (event,) = [event for event in made.events if isinstance(event, Call)]
        assert (event.tool, event.arguments) == ("computer", {"action": {"type": "click", "x": 1}})
        assert [event.call for event in made.events if isinstance(event, Result)] == [1]


def test_a_state_that_is_no_word_is_no_crash() -> None:
    part = {"type": "tool-pay", "toolCallId": "1", "state": {"name": "done"}, "input": GIVEN, "output": PAID}
    follow_messages([USER, {"role": "assistant", "parts": [part]}], made := Transcript())
    assert [type(event) for event in made.events] == [Message, Call, Result]
