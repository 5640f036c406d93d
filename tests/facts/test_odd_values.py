"""Values as hostile as tools and logs may give them: of the field's type, or refused, and soon."""

import time
from decimal import Decimal

import pytest
from msgspec.structs import replace

from bylaw.facts.acceptance import accepted
from bylaw.facts.entity import UNSEEN, Field, FieldType
from bylaw.facts.value import coerce, is_same, loose
from bylaw.policy.tool import Tool
from bylaw.trace.event import Result

MONEY, NUMBER, WHOLE = Field("fee", "money"), Field("size", "number"), Field("count", "integer")


@pytest.mark.parametrize(
    "raw", ["1e-999999999", "1e999999999", "0e-999999999", "9" * 10_000, "NaN", "Infinity", "sNaN"]
)
def test_an_amount_that_exact_arithmetic_would_choke_on_is_none(raw):
    begun = time.process_time()
    with pytest.raises(ValueError, match="not an amount"):
        coerce(MONEY, raw)
    assert time.process_time() - begun < 0.2


def test_amounts_people_write_are_read():
    assert [coerce(MONEY, raw) for raw in ("$1,250.50", 15, 15.1, "0.00", " 7 ")] == [
        Decimal("1250.50"),
        Decimal(15),
        Decimal("15.1"),
        Decimal("0.00"),
        Decimal(7),
    ]


@pytest.mark.parametrize("raw", ["nan", "inf", "-Infinity", float("nan"), float("inf"), "9" * 5000])
def test_what_is_not_finite_is_no_number(raw):
    with pytest.raises(ValueError, match="not a number"):
        coerce(NUMBER, raw)


@pytest.mark.parametrize("raw", [float("inf"), float("nan"), Decimal("1e999999999"), 1.5])
def test_what_is_not_whole_is_no_whole_number(raw):
    with pytest.raises(ValueError, match="not a whole number"):
        coerce(WHOLE, raw)


FIELDS = (
    Field("ended", "date"),
    Field("note"),
    MONEY,
    Field("word", "enum"),
    Field("tier", "enum", ("gold",)),
    Field("controlled", "boolean"),
)


@pytest.mark.parametrize("field", FIELDS)
def test_null_is_not_known_unless_the_pack_says_that_there_may_be_none(field):
    assert coerce(field, None) is UNSEEN
    assert coerce(replace(field, nullable=True), None) is None


@pytest.mark.parametrize("content", ['{"error": "no such order"}', "Error: no such order"])
@pytest.mark.parametrize("space", ["", " " * 100, "\n" * 5000])
def test_space_before_a_refusal_does_not_hide_it(content, space):
    assert accepted(None, Result(0, space + content)) is False


@pytest.mark.parametrize(
    "content",
    [
        '{"success": false}',
        '{"success": false, "message": "the card was declined"}',
        '{"success":0}',
        '{"success": "False"}',
        '{"ok": false}',
        '{"status": false}',
        '{"status":false, "data": null}',
        '{"status": "error", "message": "busy"}',
        '{"error": "busy", "success": true}',
    ],
)
def test_a_record_that_says_no_was_refused(content):
    assert accepted(None, Result(0, content)) is False
    assert accepted(None, Result(0, content, error=False)) is True, "where the source says otherwise it knows better"


@pytest.mark.parametrize(
    "content",
    [
        '{"success": true}',
        '{"success": null}',
        '{"ok": 1}',
        '{"ok": "done"}',
        '{"status": "failed"}',
        '{"status": 0}',
        '{"status": null}',
        '{"error": null, "status": "sent"}',
        '{"order": {"success": false}}',
        '[{"success": false}]',
        "success: false",
    ],
)
def test_a_record_that_says_no_such_thing_was_accepted(content):
    assert accepted(None, Result(0, content)) is True


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"status": "failed"}', False),
        ('{"status": "Failed", "order_id": "7"}', False),
        ('{"status": "failure", "message": "busy"}', False),
        ('{"status": "declined"}', False),
        ('{"status": "rejected", "reason": "no such seat"}', False),
        # The payment may have been made, and be declined.
        ('{"status": "declined", "payment_id": "p1"}', None),
        ('{"status": "done"}', True),
        ('{"order": {"status": "failed"}}', True),
    ],
)
def test_the_status_in_a_writes_result_says_whether_it_was_done(content: str, told: bool | None) -> None:
    assert accepted(Tool("pay", "write"), Result(0, content)) is told
    assert accepted(Tool("get_payment", "read"), Result(0, content)) is True, "what a look-up shows is a fact"
    assert accepted(Tool("pay", "write", parameters={"status": {}}), Result(0, content)) is True
    assert accepted(Tool("pay", "write", refused="busy$"), Result(0, content)) is True
    assert accepted(Tool("pay", "write"), Result(0, content, error=False)) is True


@pytest.mark.parametrize(
    ("tool", "status"),
    [("reject_claim", "rejected"), ("decline_invitation", "declined"), ("deny_request", "denied")],
)
def test_a_tool_that_turns_things_down_has_done_so(tool: str, status: str) -> None:
    assert accepted(Tool(tool, "write"), Result(0, f'{{"status": "{status}"}}')) is True


def test_the_pattern_of_a_tool_decides_alone():
    tool = Tool("pay", "write", refused="declined")
    assert accepted(tool, Result(0, '{"success": false}')) is True
    assert accepted(tool, Result(0, '{"success": true, "note": "declined"}')) is False


@pytest.mark.parametrize(
    "text", ["20,00", "1,23", "4_0", "４０", "٤٠", "1.234,50", "0x10", "1 000", "--4", "$", "", "1,2345"]
)
@pytest.mark.parametrize("kind", ["money", "integer", "number"])
def test_a_number_that_can_be_read_in_two_ways_is_not_read(text: str, kind: FieldType) -> None:
    with pytest.raises(ValueError):
        coerce(Field("amount", kind), text)


@pytest.mark.parametrize(
    ("text", "amount"),
    [("1,234.50", "1234.50"), ("$20", "20"), ("-3", "-3"), (".5", "0.5"), ("12,345,678", "12345678")],
)
def test_an_amount_that_everybody_reads_alike_is_read(text: str, amount: str) -> None:
    assert coerce(Field("amount", "money"), text) == Decimal(amount)


@pytest.mark.parametrize(
    "odd", ["A05\u200b20", "A0520\x00", "\u2060A0520", "A\u00ad0520", "A0520\ufe0f", "A\u3164 0520"]
)
def test_an_id_with_characters_nobody_sees_may_be_the_plain_one(odd: str) -> None:
    assert loose(odd) == loose("A0520")
    assert is_same(odd, "A0520") is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Error: no such reservation", False),
        ("error", False),
        ("Error executing tool cancel: timeout", False),
        ("[ERROR] no", False),
        ("Unknown tool cancel_all", False),
        ("Error: the payment was not successful", False),
        ("Error corrected in your file: A0520 is cancelled.", None),
        ("Error: none. Cancelled successfully.", None),
        ("Errands are done", True),
        ("Cancelled. No error.", True),
    ],
)
def test_a_text_that_only_begins_with_error_is_not_surely_a_refusal(text: str, told: bool | None) -> None:
    assert accepted(None, Result(0, text)) is told


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("Errors: 0. Refunded 50.00", None),
        ("error-free refund of 50.00 done", None),
        ('{"refund_id": "R1", "error": "none"}', None),
        ('{"refund_id": "R1", "error": {"code": 0}}', None),
        ('{"refunded": "50.00", "error": "receipt mail failed"}', None),
        ('{"refunded": "50.00", "success": false}', None),
        ('{"error": "no such order", "code": 404, "message": "gone"}', False),
        ('{"success": false, "message": "no such order"}', False),
        ("Error: no such order", False),
        ("Error - no such order", False),
    ],
)
def test_an_error_beside_what_a_write_made_leaves_it_open(answer: str, told: bool | None) -> None:
    assert accepted(Tool("refund", "write"), Result(0, answer)) is told
    declared = Tool("refund", "write", refused="receipt mail|no such|none|Errors|error-free|code|false")
    assert accepted(declared, Result(0, answer)) is False


def test_an_error_in_what_a_look_up_shows_is_a_failure_as_before() -> None:
    assert accepted(Tool("look", "read"), Result(0, '{"order": 1, "error": "gone"}')) is False
