"""Where a look-up's result is not in the log, what it may have shown is unknown: nobody is accused of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from bylaw import Pack, read, verdicts
from bylaw.facts.result_places import is_cut
from bylaw.trace import Trajectory

PACK = Pack.from_files(
    {
        "pack.yaml": "{format: 1, name: x, document: policy.md}",
        "policy.md": "Only known accounts.\nThe account is that of the supplier's record.\n",
        "tools.yaml": "tools:\n"
        "  get_supplier: {effect: read, parameters: {supplier_id: string}, trust: record}\n"
        "  pay: {effect: write, parameters: {supplier_id: string, account: string}, changes: []}\n",
        "entities.yaml": "entities: {Supplier: {key: supplier_id, read: get_supplier, fields: {account: string}}}\n",
        "guards/g.py": '''
def known_account(call: pay, facts):
    """Only known accounts."""
    return permit() if provenance(call.account).source in ["user", "record"] else deny("nobody names it")


def right_account(call: pay, facts):
    """The account is that of the supplier's record."""
    return permit() if facts.Supplier(call.supplier_id).account == call.account else deny("another account")
''',
    }
)
FULL = json.dumps({"supplier_id": "S1", "address": "1 Mill Lane", "account": "GB11"})


def call(id: str, tool: str, arguments: Any) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def judged(tmp_path: Path, *between: dict[str, Any], account: str = "GB11") -> dict[str, str]:
    paying = call("p", "pay", {"supplier_id": "S1", "account": account})
    messages = [{"role": "user", "content": "Pay supplier S1."}, *between, paying]
    file = tmp_path / "log.jsonl"
    file.write_text(json.dumps({"id": "one", "messages": messages}) + "\n")
    (trajectory,) = read(file)
    assert isinstance(trajectory, Trajectory)
    (verdict,) = [each for each in verdicts(PACK, trajectory).calls if each.made.call.tool == "pay"]
    return {each.policy.id: each.determined for each in verdict.policies}


LOOK_UP = call("a", "get_supplier", {"supplier_id": "S1"})


def answer(text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "a", "content": text}


def test_a_result_that_is_there_decides(tmp_path: Path):
    assert set(judged(tmp_path, LOOK_UP, answer(FULL)).values()) == {"compliant"}
    assert set(judged(tmp_path, LOOK_UP, answer(FULL), account="XX99").values()) == {"violation"}


@pytest.mark.parametrize("text", [None, FULL[:40] + "...[truncated]", "[REDACTED]", "<redacted>", "***"])
def test_where_a_value_came_from_is_open_where_a_result_is_not_there(tmp_path: Path, text: str | None):
    found = judged(tmp_path, LOOK_UP, *([] if text is None else [answer(text)]))
    assert found["known-account"] == "inconclusive", found
    assert judged(tmp_path)["known-account"] == "violation"


@pytest.mark.parametrize("text", ["[]", "{}", "[true]", "{'a': 1}", "[Bob, Ann]", "<html>x</html>", "* a", "paid", ""])
def test_what_is_whole_is_not_cut(text: str):
    assert not is_cut(text)
