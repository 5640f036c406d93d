"""Could that earlier call have been this one? A cut-off, redacted or differently spelt record means "possibly"."""

from typing import Any

import pytest

from bylaw.facts.call_record import CallRecord, could_be_same_call, had, may_have_run, record_of
from bylaw.policy.tool import Tool
from bylaw.trace.event import Call, Result

TOOL = Tool("pay", "write", parameters={"to": {}, "amount": {}, "note": {}}, required=("to", "amount"))
NOW = {"to": "AC-22", "amount": "250.00"}


def made(arguments: dict[str, Any], fault: str = "", step: int = 0) -> CallRecord:
    return record_of(Call("pay", arguments, fault=fault), step, step, TOOL)


@pytest.mark.parametrize(
    "recorded",
    [
        NOW,
        {"to": "ac22", "amount": 250},
        {"to": "[REDACTED]", "amount": "250.00"},
        {"to": "<ACCOUNT>", "amount": "250.00"},
        {"to": "AC-22", "amount": "***"},
        {"to": "AC-2...", "amount": "250.00"},
        {"to": "A\u2026", "amount": "250.00"},
        {"to": "XXXX2", "amount": "250.00"},
        {"to": "\u2588\u2588\u2588", "amount": "250.00"},
        {"amount": "250.00"},
        {"to": "AC-22", "amount": "250.00", "trace_id": "7"},
        {"to": "AC-22", "amount": "250.00", "note": None},
    ],
)
def test_a_record_that_may_stand_for_the_call_could_be_it(recorded: dict[str, Any]) -> None:
    assert could_be_same_call(made(recorded), made(NOW, step=1))
    assert had(made(recorded), NOW) is not False


def test_an_unreadable_record_could_be_any_call_of_the_tool() -> None:
    assert could_be_same_call(made({}, fault="not JSON"), made(NOW, step=1))
    assert had(made({}, fault="not JSON"), NOW) is None


@pytest.mark.parametrize(
    "recorded",
    [
        {"to": "AC-23", "amount": "250.00"},
        {"to": "[REDACTED]", "amount": "251.00"},
        {"to": "AC-3...", "amount": "250.00"},
        {"to": "AC-22", "amount": "250.00", "note": "rent"},
    ],
)
def test_a_readable_difference_means_another_call(recorded: dict[str, Any]) -> None:
    assert not could_be_same_call(made(recorded), made(NOW, step=1))


def test_ignored_arguments_make_no_other_call() -> None:
    later = made({**NOW, "note": "rent"}, step=1)
    assert not could_be_same_call(made(NOW), later)
    assert could_be_same_call(made(NOW), later, frozenset({"note"}))


def test_a_call_without_a_result_may_have_run() -> None:
    call = made(NOW)
    assert may_have_run(call, 5)
    call.result, call.delivered, call.accepted = Result(0, "no", error=True, refused=True), 1, False
    assert not may_have_run(call, 5)
