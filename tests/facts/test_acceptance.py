"""Declared and flagged failures count; a result that only looks like an error proves nothing about a write."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace

from bylaw import BylawError, Pack
from bylaw.facts.call_record import accepted, declaration_for
from bylaw.policy.tool import Tool
from bylaw.trace import Trajectory, read
from bylaw.trace.event import Result
from tests.engine.test_conversation import FILES
from tests.examples import examples

NAMES = ("error", "isError", "success", "ok", "status", "text", "content", "type", "id", 'a "status"', "code", "errors")
WORDS = ("", "error", "rejected", "booked", "false", 'said "error"', '{"error": "no such order"}', "text")
scalars = some.sampled_from(WORDS) | some.booleans() | some.none() | some.integers(0, 2)
records = some.dictionaries(
    some.sampled_from(NAMES),
    scalars | some.dictionaries(some.sampled_from(NAMES), scalars, max_size=2) | some.lists(scalars, max_size=2),
    max_size=3,
)
WRITE, READ = Tool("refund", "write"), Tool("get_order", "read")


@given(records, some.sampled_from((None, READ, WRITE)), some.sampled_from((None, True, False)), some.booleans())
@examples(100)
def test_decoding_a_result_beforehand_changes_nothing(
    record: dict[str, Any], tool: Tool | None, error: bool | None, is_printed: bool
) -> None:
    result = Result(0, str(record) if is_printed else json.dumps(record), error)
    assert accepted(tool, result, result.value()) is accepted(tool, Result(0, result.content, error))


@given(records | some.text(), some.sampled_from((None, WRITE)))
@examples(100)
def test_no_text_of_a_result_alone_proves_that_a_write_did_not_run(content: Any, tool: Tool | None) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    result = Result(0, text)
    value = result.value()
    if not (isinstance(value, dict) and value.get("isError") is True):
        assert accepted(tool, result) is not False


@pytest.mark.parametrize(
    "content",
    [
        "Error: no such order",
        "Error executing tool refund: timeout",
        "Error corrected in your file: A0520 is cancelled.",
        "Error 503: upstream timed out",
        "ERROR insufficient funds",
        "[ERROR] no",
        "HTTP 500",
        "HTTP/1.1 422 Unprocessable Entity",
        "502 Bad Gateway",
        "503",
        "timeout",
        "Request timed out after 30 s",
        "Failed: insufficient funds",
        "The refund failed",
        "ValueError: amount",
        "Unknown tool refund",
        "Traceback (most recent call last): ...",
        "Not allowed, and not done (refund): the policy forbids it",
        '"ERROR insufficient funds"',
        "\n\n" + '{"error": "no such order"}',
        '{"success": false, "message": "the card was declined"}',
        '{"ok": 0}',
        '{"status": "rejected", "reason": "late"}',
        '{"refunded": "50.00", "error": "receipt mail failed"}',
        '{"statusCode": 422, "body": "amount too high"}',
        '{"message": "upstream request timed out"}',
        '{"errors": ["amount too high"]}',
        '{"success": true, "success": false}',
    ],
)
def test_a_write_whose_result_looks_like_an_error_may_have_been_executed(content: str) -> None:
    result = Result(0, content)
    assert accepted(WRITE, result) is None
    assert accepted(None, result) is None, "a tool that is not declared"
    assert accepted(WRITE, Result(0, content, error=False)) is True, "the log says that it is not an error"
    assert accepted(replace(WRITE, refused="^Sorry"), result) is True, "the pack declares all failures"
    line = yaml.safe_load(declaration_for("write", content))
    assert accepted(replace(WRITE, **line), result) is False, "the proposed declaration settles it"


@pytest.mark.parametrize(
    "content",
    [
        "refunded",
        "",
        "null",
        "500 points were added",
        "Refund issued. The customer's earlier payment failed.",
        "503 of 503 seats are booked",
        "Cancelled. No error.",
        "Errands are done",
        '{"code": 200, "message": "OK"}',
        '{"code": "WELCOME10", "message": "added"}',
        '{"order_id": "7", "message": "Refunded after the time-out", "errors": []}',
        '{"success": null}',
        '{"status": 0}',
        '{"order": {"success": false}}',
        '[{"success": false}]',
    ],
)
def test_any_other_result_of_a_write_means_that_it_was_executed(content: str) -> None:
    assert accepted(WRITE, Result(0, content)) is True


@pytest.mark.parametrize("result", [Result(0, "x", error=True), Result(0, '{"isError": true, "content": []}')])
def test_a_failure_flag_of_the_log_counts(result: Result) -> None:
    assert accepted(WRITE, result) is False
    assert accepted(None, result) is False
    assert accepted(replace(WRITE, surely_refused="no such"), result) is None, "only some errors are sure refusals"
    assert accepted(WRITE, replace(result, refused=False)) is None, "the shield could not tell"


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("Error: no such order", False),
        ('{"order": 1, "error": "gone"}', False),
        ('{"success": "False"}', False),
        ('{"status": "error"}', False),
        ("Order failed to ship on 3 May", None),
        ('{"status": "failed"}', True),
        ('{"status": "rejected", "reason": "late"}', True),
        ('{"order": {"error": "none"}}', True),
    ],
)
def test_the_status_in_a_look_up_is_a_fact_of_the_record(content: str, wanted: bool | None) -> None:
    assert accepted(READ, Result(0, content)) is wanted


def test_a_declared_pattern_decides_whatever_the_result_looks_like() -> None:
    tool = replace(WRITE, refused="declined")
    assert accepted(tool, Result(0, '{"success": false}')) is True
    assert accepted(tool, Result(0, '{"success": true, "note": "declined"}')) is False


def test_a_pattern_of_the_file_holds_for_every_tool_without_its_own() -> None:
    tools = """refused: "^Sorry"
tools:
  get_order: {effect: read, parameters: {order_id: string}}
  refund: {effect: write, refused: "^No", parameters: {order_id: string}, changes: []}
  cancel: {effect: write, parameters: {order_id: string}, changes: []}
"""
    declared = Pack.from_files({**FILES, "tools.yaml": tools}).schema.tools
    assert [declared[name].refused for name in ("get_order", "refund", "cancel")] == ["^Sorry", "^No", "^Sorry"]
    with pytest.raises(BylawError, match="is not a valid pattern"):
        Pack.from_files({**FILES, "tools.yaml": tools.replace("^Sorry", "(")})


def test_the_error_texts_of_tau_bench_count_as_its_failure_flag(tmp_path: Path) -> None:
    called = {"id": "c", "type": "function", "function": {"name": "cancel", "arguments": "{}"}}
    answers = ["Error: user not found", "Unknown action cancel", "Error corrected: cancelled"]
    runs = [
        {
            "task_id": number,
            "reward": 0.0,
            "info": {},
            "trial": 0,
            "traj": [
                {"role": "user", "content": "Cancel it"},
                {"role": "assistant", "content": None, "tool_calls": [called]},
                {"role": "tool", "tool_call_id": "c", "name": "cancel", "content": answer},
            ],
        }
        for number, answer in enumerate(answers)
    ]
    file = tmp_path / "runs.json"
    file.write_text(json.dumps(runs))
    runs_read = [run for run in read(file) if isinstance(run, Trajectory)]
    results = [event for run in runs_read for event in run.events if isinstance(event, Result)]
    assert [result.error for result in results] == [True, True, None]
