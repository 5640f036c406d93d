"""An argument outside of what its tool declares is nobody's word: no guard takes it for another one."""

from typing import Any

import pytest

from bylaw.engine.session import Session
from bylaw.engine.settlement import CallVerdict
from bylaw.policy.tool import Misfit, Tool, misfit
from bylaw.trace.event import Call, Result

from .clinic import pack

SHOWN = '{"patient_id": "P1", "identity_checked": true, "contact_confirmed": true}'


def release(**changed: Any) -> CallVerdict:
    """The verdict on a release of records after the patient was looked up."""
    session = Session(pack())
    session.observe(Call("get_patient", {"patient_id": "P1"}, turn=1))
    session.observe(Result(0, SHOWN))
    arguments = {"patient_id": "P1", "person_id": "P1", "part": "visits", "delivery": "counter", **changed}
    call = Call("release_records", arguments, turn=2)
    session.judge(call)
    session.observe(call)
    session.observe(Result(2, '{"released": "x"}'))
    return session.settle()[-1]


def test_declared_words_are_judged() -> None:
    assert release().determined == "compliant"
    assert release(part="psychiatric_notes").determined == "uninformed"


@pytest.mark.parametrize(
    "part", ["Psychiatric_notes", "psychiatric_notes ", "psychiatric notes", ["psychiatric_notes"], None, "all", 1, {}]
)
def test_a_word_that_is_not_declared_is_inconclusive(part: Any) -> None:
    verdict = release(part=part)
    assert (verdict.strict, verdict.determined) == ("inconclusive", "inconclusive")
    assert any("argument `part` is" in policy.because for policy in verdict.policies)


def test_policies_that_do_not_read_the_misfit_still_speak() -> None:
    verdict = release(part="Psychiatric_notes", person_id="P2")
    found = {policy.policy.id: policy.determined for policy in verdict.policies}
    assert found["identity-checked"] == "compliant"
    assert "inconclusive" in found.values()


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"type": "string"}, "a", True),
        ({"type": "string"}, 15, True),
        ({"type": "string"}, ["a"], False),
        ({"type": "number"}, "15.00", True),
        ({"type": "integer"}, {}, False),
        ({"type": "boolean"}, "false", False),
        ({"type": "boolean"}, 0, False),
        ({"type": "boolean"}, False, True),
        ({"type": "array"}, "", False),
        ({"type": "array"}, [], True),
        ({"type": "object"}, [], False),
        ({"type": ["string", "null"]}, None, True),
        ({"type": ["string", "array"]}, ["a"], True),
        ({"type": "string"}, None, False),
        ({"enum": ["a", "b"]}, "a", True),
        ({"enum": ["a", "b"]}, "A", False),
        ({"enum": 5}, "A", True),
        ({"type": {}}, "A", True),
        ({"type": "date"}, [], True),
        ({}, None, True),
        (None, [], True),
    ],
)
def test_what_fits_a_parameter(schema: Any, value: Any, fits: bool) -> None:
    tool = Tool("t", "write", parameters={"x": schema}, required=("x",))
    assert isinstance(tool.fitted({"x": value, "y": 1})["x"], Misfit) is not fits


def test_an_optional_argument_may_be_null() -> None:
    tool = Tool("t", "write", parameters={"x": {"type": "string", "enum": ["a"]}})
    assert tool.fitted({"x": None}) == {"x": None}


@pytest.mark.parametrize(
    ("declared", "text", "read"),
    [
        ("integer", "7", 7),
        ("integer", "-7", -7),
        ("number", "48.00", 48.0),
        ("number", "7", 7),
        (["number", "null"], "7", 7),
        ("integer", "7.5", "7.5"),
        ("integer", "007", "007"),
        ("integer", "1,000", "1,000"),
        ("number", "1e3", "1e3"),
        ("number", " 7", " 7"),
        ("number", "７", "７"),
        ("number", "12345678901234567", "12345678901234567"),
        ("string", "7", "7"),
        (["string", "number"], "7", "7"),
    ],
)
def test_the_text_of_a_number_is_read_as_one_where_a_number_is_declared(declared: Any, text: str, read: Any) -> None:
    tool = Tool("t", "write", parameters={"x": {"type": declared}}, required=("x",))
    found = tool.fitted({"x": text})["x"]
    assert (found, type(found)) == (read, type(read))
    if read != text:
        assert misfit(tool, {"x": text}) == ""
        assert "has no argument `y`" in misfit(tool, {"x": text, "y": 1}), "what else is wrong is still found"
