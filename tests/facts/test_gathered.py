"""A list of keys that a database lacks is gathered from the records that point back, as of each call."""

from typing import Any

import pytest

from bylaw.errors import PackError
from bylaw.pack import Pack
from bylaw.review.case import CaseResult, run_cases
from bylaw.scan.written import dump

TOOLS = """
tools:
  list_loans: {effect: read, parameters: {member_id: string}}
  lend: {effect: write, parameters: {member_id: string}, changes: [Member.loan_ids]}
  take_back: {effect: write, parameters: {loan_id: string}, effects: [{as: Loan, key: $args.loan_id, delete: true}]}
"""
ENTITIES = """
entities:
  Member: {key: member_id, fields: {name: string, loan_ids: {type: list, keys_of: Loan.member_id}}}
  Loan: {key: loan_id, fields: {member_id: string}}
observations:
  list_loans:
    - {each: "$.loans[*]", as: Loan}
    - {as: Member, key: $args.member_id, fields: {loan_ids: "$.loans[*].loan_id"}, only: true}
  lend: {as: Loan, fields: {member_id: $args.member_id}}
"""
GUARD = """
def two_at_most(call: lend, facts):
    \"\"\"Two at most.\"\"\"
    if len(facts.Member(call.member_id).loan_ids) >= 2:
        return deny("two are out")
    return permit()
"""
WORLD = {
    "Member[M1]": {"name": "Ann"},
    "Loan[L1]": {"member_id": "M1"},
    "Loan[L2]": {"member_id": "M2"},
}
LENT = {"call": "lend", "args": {"member_id": "M1"}, "result": {"loan_id": "L9"}}
BACK = {"call": "take_back", "args": {"loan_id": "L1"}, "result": {"ok": True}}
LISTED = {"call": "list_loans", "args": {"member_id": "M1"}, "result": {"loans": [{"loan_id": "L1"}]}}


def files(**more: str) -> dict[str, str]:
    return {
        "pack.yaml": "{format: 1, name: library, document: policy.md}",
        "policy.md": "# Library\n\nTwo at most.\n",
        "tools.yaml": TOOLS,
        "entities.yaml": ENTITIES,
        "guards/loans.py": GUARD,
        **more,
    }


def told(world: dict[str, Any], events: list[dict[str, Any]], want: dict[str, str]) -> CaseResult:
    case = {"note": "it", "policy": "two-at-most", "call": {"lend": {"member_id": "M1"}}, "world": world}
    pack = Pack.from_files(files(**{"cases/loans.yaml": dump([{**case, "events": events, "want": want}])}))
    (result,) = run_cases(pack)
    assert isinstance(result, CaseResult), result
    return result


@pytest.mark.parametrize(
    ("events", "want"),
    [
        ([], {"world": "permit", "evidence": "undetermined"}),
        ([LENT], {"world": "deny", "evidence": "undetermined"}),
        ([LENT, BACK], {"world": "permit"}),
        ([LISTED], {"world": "permit", "verdict": "compliant"}),
    ],
)
def test_a_database_gathers_the_keys_as_of_the_call(events: list[dict[str, Any]], want: dict[str, str]) -> None:
    result = told(WORLD, [{"user": "Hello."}, *events], want)
    assert result.passed, result.got


def test_a_column_of_that_name_counts_first() -> None:
    world = {**WORLD, "Member[M1]": {"name": "Ann", "loan_ids": ["L1", "L7"]}}
    assert told(world, [{"user": "Hello."}], {"world": "deny"}).passed


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("{type: list, keys_of: Loan.owner}", "`Loan.owner` is not a field"),
        ("{type: list, keys_of: Loan}", "`Loan` is not a field"),
        ("{type: string, keys_of: Loan.member_id}", "a field with `keys_of` is a list"),
        ("{type: list, keys_of: Pair.member_id}", "must each have one key field"),
    ],
)
def test_keys_of_names_a_field_that_points_back(said: str, fault: str) -> None:
    entities = ENTITIES.replace("{type: list, keys_of: Loan.member_id}", said)
    entities = entities.replace("  Loan:", "  Pair: {key: [a, b], fields: {member_id: string}}\n  Loan:")
    with pytest.raises(PackError, match=fault):
        Pack.from_files(files(**{"entities.yaml": entities}))
