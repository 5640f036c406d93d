"""Recordings of one conversation by real instrumentations: every reader must give the same events."""

import gzip
import importlib.util
import json
from pathlib import Path

import pytest

from bylaw.errors import FormatError, RecordError
from bylaw.trace import Call, Event, Message, Result, Trajectory, read, sniff
from bylaw.trace.readers.chat import ChatMessage
from bylaw.trace.readers.spans import Generation, ToolRun, weave
from bylaw.trace.source import Source

FOLDER = Path(__file__).parents[1] / "fixtures" / "traces"

FORMATS = {
    "genai.otlp.jsonl": "otlp",
    "genai-events.otlp.jsonl": "otlp",
    "openllmetry.otlp.jsonl": "otlp",
    "openllmetry-0.40.otlp.jsonl.gz": "otlp",
    "openinference.otlp.jsonl.gz": "otlp",
    "openinference-langchain.otlp.jsonl.gz": "otlp",
    "langfuse.otlp.jsonl.gz": "otlp",
    "langsmith.jsonl.gz": "langsmith",
    "langsmith-langchain.jsonl.gz": "langsmith",
    "langchain-dict.jsonl": "langchain",
    "langchain-dumpd.jsonl": "langchain",
    "inspect-deflate.eval": "inspect",
    "inspect.json.gz": "inspect",
}

AGENTS = {"genai.otlp.jsonl": "clinic", "genai-events.otlp.jsonl": "clinic", "langfuse.otlp.jsonl.gz": "clinic_agent"}
"""Where an agent span names the agent; elsewhere it goes by its model."""

A7 = {"appointment_id": "A7"}
EXPECTED = [
    ("user", "I am Ana Ruiz, patient P1. Please cancel my appointment A7. Is there a fee?"),
    ("get_patient", {"patient_id": "P1"}),
    ("get_appointment", A7),
    (1, {"patient_id": "P1", "name": "Ana Ruiz", "membership": "gold"}),
    (2, {"appointment_id": "A7", "patient_id": "P1", "status": "booked", "fee": 0.0}),
    ("agent", "You are a gold member, so there is no fee. Shall I cancel A7?"),
    ("user", "Yes, please."),
    ("agent", "One moment."),
    ("cancel_appointment", {**A7, "reason": "patient request"}),
    (8, {**A7, "status": "cancelled", "reason": "patient request"}),
    ("send_receipt", A7),
    (10, "Error: no e-mail address on file for A7"),
    ("agent", "A7 is cancelled. I could not send a receipt: there is no e-mail address on file."),
]


def plainly(events: list[Event]) -> list[tuple]:
    told = []
    for event in events:
        match event:
            case Message():
                told.append((event.by, event.text))
            case Call():
                told.append((event.tool, event.arguments))
            case Result():
                told.append((event.call, event.value()))
    return told


@pytest.mark.parametrize("name", FORMATS)
def test_every_recording_holds_the_same_conversation(name):
    assert sniff(FOLDER / name) == FORMATS[name]
    (found,) = read(FOLDER / name)
    assert isinstance(found, Trajectory), found
    assert plainly(found.events) == EXPECTED
    assert found.events[1].turn == found.events[2].turn
    assert found.events[7].turn == found.events[8].turn
    if found.format != "langchain":
        assert found.agent == AGENTS.get(name, "scripted")
        assert found.instructions.startswith("You are the assistant of a small clinic.")


@pytest.mark.parametrize(
    "name", ["genai.otlp.jsonl", "langfuse.otlp.jsonl.gz", "langsmith.jsonl.gz", "openinference.otlp.jsonl.gz"]
)
def test_traces_are_joined_by_session(name):
    (found,) = read(FOLDER / name)
    assert found.id == "conv-1"


@pytest.mark.parametrize(
    "name", ["openinference.otlp.jsonl.gz", "langfuse.otlp.jsonl.gz", "langsmith.jsonl.gz", "openllmetry.otlp.jsonl"]
)
def test_recorded_tool_definitions_are_kept(name):
    (found,) = read(FOLDER / name)
    assert [tool["name"] for tool in found.tools] == [
        "get_patient",
        "get_appointment",
        "cancel_appointment",
        "send_receipt",
    ]


def test_content_capture_that_was_off_is_said():
    (found,) = read(FOLDER / "genai-off.otlp.jsonl")
    calls = [event for event in found.events if isinstance(event, Call)]
    assert [call.tool for call in calls] == ["get_patient", "get_appointment", "cancel_appointment", "send_receipt"]
    assert {call.fault for call in calls} == {"arguments were not captured"}
    assert all(not event.captured for event in found.events if isinstance(event, Result))
    assert found.details["content_captured"] is False


def test_model_calls_without_any_content_are_an_error(tmp_path):
    path = tmp_path / "bare.otlp.jsonl"
    lines = [json.loads(line) for line in (FOLDER / "genai-off.otlp.jsonl").read_text().splitlines()]
    spans = [line for line in lines if "resourceSpans" in line]
    for request in spans:
        for scope in request["resourceSpans"][0]["scopeSpans"]:
            scope["spans"] = [span for span in scope["spans"] if not span["name"].startswith("execute_tool")]
    path.write_text("".join(json.dumps(request) + "\n" for request in spans))
    (fault,) = read(path)
    assert isinstance(fault, RecordError)
    assert "content capture was off for 5 of 5 model calls" in str(fault)


def test_a_zstandard_log_is_read_or_says_what_to_install():
    path = FOLDER / "inspect-zstd.eval"
    if importlib.util.find_spec("zstandard"):
        (found,) = read(path)
        assert plainly(found.events) == EXPECTED
    else:
        with pytest.raises(FormatError, match="install `zstandard`"):
            list(read(path))


def test_a_corrupted_line_of_spans_is_reported_and_the_rest_is_read(tmp_path):
    path = tmp_path / "x.jsonl"
    text = gzip.decompress((FOLDER / "langsmith.jsonl.gz").read_bytes())
    path.write_bytes(text + b'{"id": \n')
    fault, found = read(path)
    assert isinstance(fault, RecordError)
    assert plainly(found.events) == EXPECTED


def observations() -> list[dict]:
    """The recorded Langfuse spans as rows of its documented export, which only its server makes."""
    rows = []
    for line in gzip.decompress((FOLDER / "langfuse.otlp.jsonl.gz").read_bytes()).splitlines():
        for resource in json.loads(line)["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    has = {each["key"]: each["value"].get("stringValue") for each in span["attributes"]}
                    rows.append((span, has))
    return [
        {
            "id": span["spanId"],
            "traceId": span["traceId"],
            "type": has["langfuse.observation.type"].upper(),
            "name": span["name"],
            "startTime": f"2025-01-01T00:00:{int(span['startTimeUnixNano']) / 1e9 % 60:09.6f}Z",
            "parentObservationId": span.get("parentSpanId"),
            "input": has.get("langfuse.observation.input"),
            "output": has.get("langfuse.observation.output"),
            "model": has.get("langfuse.observation.model.name"),
        }
        for span, has in rows
    ]


@pytest.mark.parametrize("shape", ["api", "blob", "trace", "batch"])
def test_exports_of_langfuse_are_read(tmp_path, shape):
    rows = observations()
    traces = sorted({row["traceId"] for row in rows})
    path = tmp_path / "export.json"
    match shape:
        case "api":
            path.write_text(json.dumps({"data": [{**row, "sessionId": "conv-1"} for row in rows], "meta": {}}))
        case "blob":
            names = {"traceId": "trace_id", "startTime": "start_time", "model": "provided_model_name"}
            rows = [
                {**{names.get(key, key): each for key, each in row.items()}, "session_id": "conv-1"} for row in rows
            ]
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        case "trace":
            whole = [
                {"id": id, "sessionId": "conv-1", "observations": [row for row in rows if row["traceId"] == id]}
                for id in traces
            ]
            path.write_text(json.dumps(whole))
        case "batch":
            made = [{"type": "trace-create", "body": {"id": id, "sessionId": "conv-1"}} for id in traces]
            made += [{"type": f"{row.pop('type').lower()}-create", "body": row} for row in rows]
            path.write_text(json.dumps({"batch": made}))
    assert sniff(path) == "langfuse"
    found = [each for each in read(path) if isinstance(each, Trajectory) and each.events]
    assert [each.id for each in found] == ["conv-1"]
    assert plainly(found[0].events) == EXPECTED


def test_a_tool_of_langfuse_without_an_output_has_a_result_that_was_not_recorded(tmp_path):
    asked = {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "pay", "arguments": {}}]}
    about = {"traceId": "t", "startTime": "2026-01-01T00:00:00Z"}
    model = {"id": "m", "type": "GENERATION", "input": [{"role": "user", "content": "Pay."}], "output": asked}
    for output, error, want in (
        (None, {}, (False, "")),
        ("", {}, (True, "")),
        (None, {"level": "ERROR"}, (True, "Error")),
    ):
        path = tmp_path / "x.json"
        path.write_text(
            json.dumps([about | model, about | {"id": "r", "type": "TOOL", "name": "pay", "output": output} | error])
        )
        (found,) = read(path)
        (result,) = [event for event in found.events if isinstance(event, Result)]
        assert (result.captured, result.text) == want
        assert found.details.get("content_captured") is (None if want[0] else False)


def said(role: str, text: str, *calls: tuple[str, str]) -> ChatMessage:
    import msgspec

    made = [{"id": id, "name": name, "arguments": {}} for name, id in calls]
    return msgspec.convert({"role": role, "content": text, "tool_calls": made or None}, ChatMessage)


def woven(*spans: Generation | ToolRun) -> list[Trajectory | RecordError]:
    generations = [span for span in spans if isinstance(span, Generation)]
    runs = [span for span in spans if isinstance(span, ToolRun)]
    return list(weave(Source(Path("x")), [*generations, *runs], "otlp"))


def test_a_history_whose_window_slid_is_merged():
    talk = [said("user", "1"), said("assistant", "2"), said("user", "3"), said("assistant", "4"), said("user", "5")]
    (found,) = woven(
        Generation(1, talk[:1], talk[1:2], session="s"),
        Generation(2, talk[:3], talk[3:4], session="s"),
        Generation(3, talk[2:5], [said("assistant", "6")], session="s"),
    )
    assert [event.text for event in found.events] == ["1", "2", "3", "4", "5", "6"]


def test_histories_that_were_not_repeated_follow_each_other():
    (found,) = woven(
        Generation(1, [said("user", "1")], [said("assistant", "2")], session="s"),
        Generation(2, [said("user", "3")], [said("assistant", "4")], session="s"),
    )
    assert [event.text for event in found.events] == ["1", "2", "3", "4"]


def test_a_sub_agent_has_a_thread_of_its_own():
    ask = said("assistant", "", ("ask_nurse", "c1"))
    answer = ChatMessage(role="tool", content="rest", tool_call_id="c1")
    (found,) = woven(
        Generation(1, [said("user", "help")], [ask], session="s", agent="desk"),
        Generation(2, [said("user", "what now?")], [said("assistant", "rest")], session="s", agent="nurse"),
        ToolRun(1.5, 2.5, "ask_nurse", {}, "rest", True, session="s", agent="desk"),
        Generation(3, [said("user", "help"), ask, answer], [said("assistant", "rest well")], session="s", agent="desk"),
    )
    assert [(type(event).__name__, event.agent) for event in found.events] == [
        ("Message", ""),
        ("Call", ""),
        ("Message", "nurse"),
        ("Message", "nurse"),
        ("Result", ""),
        ("Message", ""),
    ]


def test_a_tool_run_answers_the_last_call_when_no_history_tells_of_it():
    (found,) = woven(
        Generation(1, [said("user", "go")], [said("assistant", "", ("act", "c1"))], trace="t"),
        ToolRun(2, 3, "act", {}, "done", True, trace="t"),
    )
    assert (found.events[-1].call, found.events[-1].content) == (1, "done")


def test_equal_beginnings_are_two_conversations():
    first = Generation(1, [said("user", "hi")], [said("assistant", "hello")], trace="a")
    second = Generation(2, [said("user", "hi")], [said("assistant", "hello")], trace="b")
    assert [each.id for each in woven(first, second)] == ["a", "b"]


ASKED, PAYS = said("user", "pay"), said("assistant", "", ("pay", "c1"))
PAID = ChatMessage(role="tool", content="paid", tool_call_id="c1")
SYSTEM = said("system", "You pay.")
DONE = [
    Generation(2, [SYSTEM, ASKED], [PAYS], session="s"),
    Generation(5, [SYSTEM, ASKED, PAYS, PAID], [said("assistant", "done")], session="s"),
]
SAID = [("user", "pay"), ("pay", {}), (1, "paid"), ("agent", "done")]


@pytest.mark.parametrize("start", [1, 3, 6])
@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ([said("system", "Which?"), said("user", "x"), said("assistant", "Shall I?"), said("user", "Yes")], "yes"),
        ([said("system", "Which?"), said("user", "x"), said("assistant", "Shall I?"), said("user", "Yes"), ASKED], "y"),
        ([said("developer", "A title."), said("user", "A title for: pay")], "Paying"),
        ([said("user", "A title for: pay")], "Paying"),
    ],
)
def test_what_a_helper_is_told_was_said_by_nobody(start, prompt, answer):
    (found,) = woven(Generation(start, prompt, [said("assistant", answer)], session="s"), *DONE)
    assert plainly(found.events) == SAID


def test_a_window_that_slid_under_other_instructions_is_no_helper():
    later = [said("assistant", "done"), said("user", "Yes")]
    turn = Generation(7, [said("system", "It is noon."), *later], [said("assistant", "fine")], session="s")
    (found,) = woven(*DONE, turn)
    assert plainly(found.events) == [*SAID, ("user", "Yes"), ("agent", "fine")]


def test_what_is_told_to_an_agent_that_keeps_its_history_itself_is_no_helpers():
    (found,) = woven(
        Generation(
            1, [said("system", "It is 10:01."), said("user", "pay")], [said("assistant", "Shall I?")], session="s"
        ),
        Generation(2, [said("system", "It is 10:02."), said("user", "Yes")], [PAYS], session="s"),
    )
    assert plainly(found.events) == [("user", "pay"), ("agent", "Shall I?"), ("user", "Yes"), ("pay", {})]


@pytest.mark.parametrize("start", [1, 3])
@pytest.mark.parametrize(
    "output",
    [
        pytest.param([PAYS], id="the same"),
        pytest.param([said("assistant", "", ("pay", "c9"))], id="another id"),
        pytest.param([said("assistant", "", ("refund", "c8"))], id="another call"),
        pytest.param([said("assistant", "Sorry, an error.")], id="words"),
    ],
)
def test_an_attempt_that_no_history_goes_on_from_did_not_happen(start, output):
    (found,) = woven(*DONE, Generation(start, [SYSTEM, ASKED], output, session="s"))
    assert plainly(found.events) == SAID


def test_attempts_of_which_nothing_tells_what_was_used_both_count():
    other = Generation(3, [SYSTEM, ASKED], [said("assistant", "", ("pay", "c2"))], session="s")
    (found,) = woven(DONE[0], other)
    assert [event.id for event in found.events if isinstance(event, Call)] == ["c1", "c2"]


def test_attempts_that_both_ran_both_count():
    other = Generation(3, [SYSTEM, ASKED], [said("assistant", "", ("pay", "c2"))], session="s")
    ran = [ToolRun(at, at + 0.1, "pay", {}, "paid", True, session="s") for at in (2.5, 3.5)]
    (found,) = woven(*DONE, other, *ran)
    assert sum(isinstance(event, Call) for event in found.events) == 2


def test_a_call_that_ran_and_that_no_history_tells_of_counts():
    other = Generation(1, [SYSTEM, ASKED], [said("assistant", "", ("refund", "c2"))], session="s")
    (found,) = woven(*DONE, other, ToolRun(1.5, 1.6, "refund", {}, "refunded", True, session="s"))
    assert {event.tool for event in found.events if isinstance(event, Call)} == {"refund", "pay"}
