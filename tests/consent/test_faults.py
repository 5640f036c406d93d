"""Small reproductions of faults in what a user's words were taken for."""

from pathlib import Path

import pytest

from bylaw.audit.request import Request
from bylaw.audit.run import audit, read_calls
from bylaw.pack import load_pack

FAULTS = Path(__file__).parents[3] / "shared" / "faults"


@pytest.mark.skipif(not FAULTS.exists(), reason="the reproductions are not at hand")
def test_a_caller_who_will_not_be_in_state_is_not_taken_for_one_who_will(tmp_path: Path) -> None:
    audit(Request((FAULTS / "not_in_state.jsonl",), "clinic"), tmp_path)
    (call,) = read_calls(tmp_path)
    (policy,) = [each for each in call["policies"] if each["id"] == "telehealth-location"]
    assert policy["evidence"] == "undetermined"


@pytest.mark.skipif(not FAULTS.exists(), reason="the reproductions are not at hand")
def test_code_of_rules_sees_what_was_said_as_the_reference_writes_it() -> None:
    assert load_pack(FAULTS / "statesaid").book.predicates["bad"].code is not None
