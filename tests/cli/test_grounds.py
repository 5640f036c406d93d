"""What is held against one call stands together in the list of findings."""

import json
from io import StringIO
from pathlib import Path

from rich.console import Console

from bylaw.audit.row import Charge, Finding
from bylaw.audit.store import Store
from bylaw.cli.explain import Wanted, print_findings

_SAID = {"strict": "violation", "determined": "violation", "severity": "high"}


def test_a_calls_policies_and_rules_are_one_entry(tmp_path: Path) -> None:
    weak = {"id": "owner", "strict": "uninformed", "determined": "uninformed", "severity": "high"}
    call = {"trajectory": "t", "agent": "a", "step": 4, "tool": "bill", "executed": True, "finding": "aaa"}
    policies = [_SAID | {"id": name} for name in ("fee", "fee-list", "fee-table", "late")]
    call |= {"strict": "violation", "determined": "violation", "policies": [*policies, weak]}
    rule = {"trajectory": "t", "agent": "a", "step": 4, "rule": "ask", "policy": "ask", "because": "", "finding": "bbb"}
    (tmp_path / "calls.jsonl").write_text(json.dumps(call, separators=(",", ":")) + "\n")
    (tmp_path / "findings.jsonl").write_text(json.dumps(rule) + "\n" + json.dumps(rule | {"step": 9, "finding": "ccc"}))
    (tmp_path / "summary.json").write_text("{}")
    out = StringIO()
    print_findings(Store(tmp_path), Console(file=out, width=100, highlight=False))
    assert [line.rstrip() for line in out.getvalue().splitlines()[:-1]] == [
        "high   aaa violation fee, fee-list and 2 more",
        "       bill at step 4 of t",
        "       bbb also rule ask",
        "medium ccc rule ask",
        "       ask at step 9 of t",
    ]


def test_a_policy_that_says_less_of_a_call_is_not_among_those_it_violates() -> None:
    charges = (Charge("fee", "high", "violation", ""), Charge("owner", "high", "uninformed", ""))
    finding = Finding("aaa", "call", "bill", "t", "a", 4, "violation", True, charges)
    assert Wanted(policies=("fee",), verdicts=("violation",)).holds(finding)
    assert Wanted(policies=("owner",)).holds(finding)
    assert not Wanted(policies=("owner",), verdicts=("violation",)).holds(finding)
