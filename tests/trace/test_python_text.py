"""What Python printed in place of JSON is read as the data it was."""

import collections
import dataclasses
import datetime
import decimal
import enum
import json
import math
import time
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as some

from bylaw.trace.event import Result, decode_text
from bylaw.trace.recorded_value import LONGEST, NotPython, read_python
from tests.examples import examples

keys = some.text(max_size=8) | some.integers(-99, 99) | some.booleans() | some.none()
values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False) | some.text(),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


def plain(value):
    """What a JSON log would have held; the first of two keys that JSON writes alike gives way to the second."""
    return json.loads(json.dumps(value).encode("utf-8", "surrogatepass"))


@examples(100)
@given(some.lists(values, max_size=3) | some.dictionaries(keys, values, max_size=4))
def test_what_python_prints_is_read_as_the_json_it_should_have_been(value):
    assert decode_text(repr(value)) == plain(value)


@examples(100)
@given(some.text(some.sampled_from("{}[]()'\"\\=,:. aN1<>None"), max_size=40))
def test_no_text_stops_the_reading_and_what_is_read_is_data(text):
    try:
        value = read_python(text)
    except NotPython:
        return
    json.dumps(value)


class Status(enum.Enum):
    OUT = "out"


@dataclasses.dataclass
class Loan:
    status: Status
    returned_on: datetime.date | None
    copies: list


AT = datetime.datetime(2025, 3, 12, 16, 30, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("printed", "meant"),
    [
        (repr(Loan(Status.OUT, None, [1])), {"status": "out", "returned_on": None, "copies": [1]}),
        (
            repr(Loan(Status.OUT, datetime.date(2025, 3, 1), [])),
            {"status": "out", "returned_on": "2025-03-01", "copies": []},
        ),
        ("status='out' returned_on=None", {"status": "out", "returned_on": None}),
        ("loans=[Loan(id='a b', fee=Decimal('1.50'))] total=1", {"loans": [{"id": "a b", "fee": "1.50"}], "total": 1}),
        (repr({"fee": decimal.Decimal("15.00")}), {"fee": "15.00"}),
        (repr({"at": AT}), {"at": "2025-03-12T16:30:00+00:00"}),
        ("at=datetime.datetime(2025, 3, 12, 16, 30, tzinfo=TzInfo(UTC))", {"at": "2025-03-12T16:30:00+00:00"}),
        ("at=datetime.datetime(2025, 3, 12, 16, 30, tzinfo=TzInfo(0))", {"at": "2025-03-12T16:30:00+00:00"}),
        (repr({"id": uuid.UUID(int=5)}), {"id": "00000000-0000-0000-0000-000000000005"}),
        (repr(collections.OrderedDict(a=1)), {"a": 1}),
        (repr(collections.defaultdict(list, a=[1])), {"a": [1]}),
        (repr(("a", 1)), ["a", 1]),
        (repr([math.inf]), [None]),
        ("None", None),
        ("namespace(a=1)", {"a": 1}),
    ],
)
def test_reprs_are_read(printed, meant):
    assert decode_text(printed) == meant


@pytest.mark.parametrize(
    "text",
    [
        *("status=ok all good", "(see note)", "Cancelled(A1)", "{'a': 1} and more", "{'a' 1}", "{'a': 1", "x="),
        *("<object object at 0x7f>", "{'a': <object object at 0x7f>}", "{'a': {...}}", "hello", "Done.", ""),
        *("__import__('os').system('true')", "f(x)(y)", "[1, 2 3]", "lambda: 1"),
    ],
)
def test_other_text_stays_text(text):
    assert decode_text(text) == text


@pytest.mark.parametrize("text", ["(" * 100_000, "[" * 500_000, "{'a': " * 100_000, "a=" * 200_000, "[1," * 200_000])
def test_nesting_and_length_cost_little(text):
    start = time.process_time()
    assert decode_text(text) == text
    assert decode_text("[" + "'a', " * LONGEST + "]").startswith("[")
    assert time.process_time() - start < 5


def test_a_text_part_and_an_mcp_result_are_what_they_hold():
    part = {"type": "text", "text": '{"a": 1}', "annotations": None}
    assert decode_text(json.dumps(part)) == {"a": 1}
    assert decode_text(json.dumps([part])) == {"a": 1}
    assert decode_text(json.dumps({"content": [part], "isError": False})) == {"a": 1}
    assert decode_text(json.dumps({"content": [part], "structuredContent": {"b": 2}, "isError": False})) == {"b": 2}
    failed = {"content": [part], "isError": True}
    assert decode_text(json.dumps(failed)) == failed
    spoken = {"type": "text", "text": "x", "by": "me"}
    assert decode_text(json.dumps(spoken)) == spoken


def test_json_is_told_from_what_python_prints_by_its_first_marks():
    assert all(Result(0, text).is_json() for text in ('{"a": 1}', "[]", " [[1]]", "{}", "-1", '"x"', "true", "[null]"))
    assert not any(Result(0, text).is_json() for text in ("{'a': 1}", "[{'a': 1}]", "a=1", "Loan(a=1)", "Done."))
