"""Looking at a file is quick and misses nothing, however its first lines read."""

import json
import time
from pathlib import Path

import pytest

from bylaw.errors import FormatError, RecordError
from bylaw.trace import Call, Trajectory, read
from bylaw.trace.recorded_value import seconds

TALK = {"messages": [{"role": "user", "content": "hi"}]}


def lines(path: Path, *texts: str) -> Path:
    path.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    return path


@pytest.mark.parametrize("opening", ["[", '{"a":', "[{", '[{"messages":[{'])
def test_brackets_without_end_are_no_format_and_take_no_time(tmp_path, opening):
    path = lines(tmp_path / "x.json", opening * 300_000)
    begun = time.process_time()
    with pytest.raises(FormatError):
        list(read(path))
    assert time.process_time() - begun < 5


def test_a_log_that_begins_with_twenty_broken_lines_is_still_read(tmp_path):
    found = list(read(lines(tmp_path / "x.jsonl", *['{"a":'] * 20, json.dumps(TALK), json.dumps(TALK))))
    assert [type(each) for each in found] == [RecordError] * 20 + [Trajectory] * 2


def test_lines_that_only_python_could_write_are_lines(tmp_path):
    odd = json.dumps({**TALK, "note": "half \ud800", "reward": float("nan")})
    found = list(read(lines(tmp_path / "x.jsonl", odd, odd, odd)))
    assert [type(each) for each in found] == [Trajectory] * 3


@pytest.mark.parametrize(
    "when",
    [
        *(1e30, -1e30, 1e18, 253402300800, "9999-12-31T23:59:59-12:00", "0001-01-01T00:00+23:00", "9" * 400),
        *("06/01/2026 10:00", "01.06.2026 10:00", "Monday", "Mon, 99 Jun 2026 10:00:00 GMT"),
    ],
)
def test_a_time_that_is_no_date_is_not_known(tmp_path, when):
    assert seconds(when) is None
    call = {"id": "1", "function": {"name": "a", "arguments": "{}"}}
    talk = {"messages": [{"role": "assistant", "tool_calls": [call], "time": when}]}
    (found,) = read(lines(tmp_path / "x.jsonl", json.dumps(talk)))
    assert isinstance(found, Trajectory)
    assert isinstance(made := found.events[0], Call)
    assert made.time is None


def test_a_time_of_any_length_ends_no_file(tmp_path):
    row = {"id": "g", "traceId": "t", "type": "GENERATION", "startTime": 10**400, "input": 3, "output": []}
    (found,) = read(lines(tmp_path / "x.jsonl", *[json.dumps(row)] * 2))
    assert isinstance(found, RecordError)
    assert seconds(10**400) is None


def test_a_time_within_the_calendar_is_kept():
    assert seconds(1_700_000_000) == 1_700_000_000.0
    for same in (1741770000000, 1741770000000000, "1741770000", "1741770000000", "Wed, 12 Mar 2025 09:00:00 GMT"):
        assert seconds(same) == 1_741_770_000.0
    assert seconds("20250312") == 1_741_737_600.0
    assert seconds("2025-03-12T09:00:00") == seconds("2025-03-12T10:00:00+01:00") == 1_741_770_000.0


@pytest.mark.parametrize(
    "first",
    [
        {"resourceSpans": []},
        {"resourceLogs": []},
        {"observations": []},
        {"batch": []},
        {"id": "r", "run_type": "chain", "trace_id": "t"},
        {"runs": []},
    ],
)
def test_records_of_another_format_do_not_vanish(tmp_path, first):
    found = list(read(lines(tmp_path / "x.jsonl", json.dumps(first), json.dumps(TALK), json.dumps({"id": 1, **TALK}))))
    assert [str(each).partition(": ")[0][-2:] for each in found if isinstance(each, RecordError)] == [":2", ":3"]


def test_spans_without_ids_are_all_read(tmp_path):
    def span(session: str) -> dict[str, object]:
        said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": f"hi from {session}"}]}])
        facts = {"gen_ai.operation.name": "chat", "session.id": session, "gen_ai.input.messages": said}
        return {"attributes": [{"key": key, "value": {"stringValue": value}} for key, value in facts.items()]}

    request = {"resourceSpans": [{"scopeSpans": [{"spans": [span("a"), span("b"), span("c")]}]}]}
    found = [each for each in read(lines(tmp_path / "x.jsonl", json.dumps(request))) if isinstance(each, Trajectory)]
    assert sorted(each.id for each in found) == ["a", "b", "c"]
