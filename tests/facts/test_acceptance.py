"""Whether a call was accepted is the same whether its result has been read already or is searched as text."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace

from bylaw.facts.acceptance import accepted
from bylaw.facts.failing import line_to_write
from bylaw.policy.tool import Tool
from bylaw.trace.event import Result
from tests.examples import examples

NAMES = ("error", "isError", "success", "ok", "status", "text", "content", "type", "id", 'a "status"', "code", "errors")
WORDS = ("", "error", "rejected", "booked", "false", 'said "error"', '{"error": "no such order"}', "text")
scalars = some.sampled_from(WORDS) | some.booleans() | some.none() | some.integers(0, 2)
records = some.dictionaries(
    some.sampled_from(NAMES),
    scalars | some.dictionaries(some.sampled_from(NAMES), scalars, max_size=2) | some.lists(scalars, max_size=2),
    max_size=3,
)
TOOLS = (None, Tool("get_order", "read"), Tool("book", "write"), Tool("set_status", "write", parameters={"status": {}}))


@given(records, some.sampled_from(TOOLS), some.sampled_from((None, True, False)), some.booleans())
@examples(100)
def test_reading_a_result_beforehand_changes_nothing(
    record: dict[str, Any], tool: Tool | None, error: bool | None, is_printed: bool
) -> None:
    result = Result(0, str(record) if is_printed else json.dumps(record), error)
    assert accepted(tool, result, result.value()) is accepted(tool, Result(0, result.content, error))


def test_data_inside_of_a_text_is_told_the_same_way_before_and_after_it_is_read() -> None:
    content = json.dumps({"type": "text", "text": json.dumps({"error": "no such order"})})
    result = Result(0, content)
    assert result.value() == {"error": "no such order"}
    assert accepted(None, result, result.value()) is accepted(None, Result(0, content))


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ('{"error": "no such order"}', False),
        ('{"order": {"error": "none"}}', True),
        ('{"status": "failed"}', False),
        ('{"status": "rejected", "reason": "late"}', False),
        ('{"status": "rejected", "booking": 7}', None),
        ('{"success": false}', False),
        ('{"ok": true}', True),
    ],
)
def test_a_record_tells_by_its_own_fields_whether_a_write_was_done(content: str, wanted: bool | None) -> None:
    result = Result(0, content)
    assert accepted(Tool("book", "write"), result, result.value()) is wanted
    assert accepted(Tool("book", "write"), result) is wanted


@pytest.mark.parametrize(
    ("content", "error", "wanted"),
    [
        ("ok", None, True),
        ("ok", True, None),
        ("Error: no such order", None, False),
        ("Error: no such order", True, False),
        ("Error: busy", None, None),
        ('{"error": "busy"}', None, None),
        ("", True, None),
    ],
)
def test_a_tool_may_name_the_errors_that_are_sure_refusals(
    content: str, error: bool | None, wanted: bool | None
) -> None:
    tool = Tool("refund", "write", surely_refused="no such")
    assert accepted(tool, Result(0, content, error=error)) is wanted


@pytest.mark.parametrize(
    "content",
    [
        "Error 503: upstream timed out",
        "ERROR insufficient funds",
        "Error [E42]: insufficient funds",
        "HTTP 500",
        "HTTP/1.1 422 Unprocessable Entity",
        "502 Bad Gateway",
        "503",
        "timeout",
        "Request timed out after 30 s",
        "Failed: insufficient funds",
        "The refund failed",
        "ValueError: amount",
        "Traceback (most recent call last): ...",
        "Unable to refund",
        '"ERROR insufficient funds"',
        '{"statusCode": 422, "body": "amount too high"}',
        '{"code": "ERR_42", "message": "insufficient funds"}',
        '{"message": "upstream timed out"}',
        '{"errors": ["amount too high"]}',
    ],
)
def test_of_a_write_that_nobody_declares_what_looks_like_an_error_tells_nothing(content: str) -> None:
    tool, result = Tool("refund", "write"), Result(0, content)
    assert accepted(tool, result) is None
    assert accepted(tool, result, result.value()) is None
    assert accepted(tool, Result(0, content, error=False)) is True, "the log says that it is no error"
    assert accepted(replace(tool, refused="^Sorry"), Result(0, content)) is True, "the pack says what is one"
    line = yaml.safe_load(line_to_write("write", content))
    assert accepted(replace(tool, **line), Result(0, content)) is False, "the line to write settles it"


@pytest.mark.parametrize(
    "content",
    [
        "refunded",
        "",
        "null",
        "500 points were added",
        "Refund issued. The customer's earlier payment failed.",
        "503 of 503 seats are booked",
        '{"code": 200, "message": "OK"}',
        '{"code": "WELCOME10", "message": "added"}',
        '{"order_id": "7", "message": "Refunded after the time-out", "errors": []}',
    ],
)
def test_what_a_write_tells_otherwise_was_done(content: str) -> None:
    result = Result(0, content)
    assert accepted(Tool("refund", "write"), result) is True
    assert accepted(Tool("refund", "write"), result, result.value()) is True
