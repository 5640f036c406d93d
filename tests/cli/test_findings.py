"""What the terminal tells of findings: which policies were broken most, filters, what was put and answered."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bylaw.cli.explain import explain
from tests.audit.logs import HASTY, NO_RESULT, WRONG, Shop, record, ship
from tests.command import bylaw


@pytest.fixture
def audited(tmp_path: Path) -> Path:
    shop = Shop(tmp_path)
    talks = [record(*HASTY, id="near", agent="hasty"), record(*WRONG, id="wrong", agent="bold")]
    logs = shop.logs(*talks, record(*WRONG, id="again", agent="hasty"))
    ran = bylaw(tmp_path, "audit", logs, "--pack", shop.pack, "--world", shop.world)
    assert ran.returncode == 0
    (tmp_path / "shown").write_text(ran.stdout)
    return tmp_path


def listed(folder: Path, *options: str) -> list[str]:
    """The conversations whose findings are listed."""
    ran = bylaw(folder, "explain", "out", *options)
    assert ran.returncode == 0, ran.stderr
    return [line.rpartition(" of ")[2] for line in ran.stdout.splitlines() if " at step " in line]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ((), ["wrong", "again", "near"]),
        (("--verdict", "near-miss"), ["near"]),
        (("--verdict", "violation", "--verdict", "near_miss"), ["wrong", "again", "near"]),
        (("--agent", "hasty"), ["again", "near"]),
        (("--agent", "hasty", "--verdict", "violation"), ["again"]),
        (("--policy", "only-paid"), ["wrong", "again", "near"]),
        (("--policy", "no-gifts"), []),
        (("--tool", "ship"), ["wrong", "again", "near"]),
        (("--tool", "refund"), []),
        (("--severity", "low"), []),
    ],
)
def test_findings_are_chosen_by_what_one_looks_for(options: tuple[str, ...], wanted: list[str], audited: Path) -> None:
    assert listed(audited, *options) == wanted


def test_where_no_finding_is_of_that_kind_it_says_how_many_there_are(audited: Path) -> None:
    assert "None of the 3 findings match." in bylaw(audited, "explain", "out", "--policy", "no-gifts").stdout


def test_calls_without_a_verdict_are_told_and_listed_with_what_failed(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    guard = next((shop.pack / "guards").glob("*.py"))
    said = guard.read_text().replace("if facts.Order(call.order_id).paid:", "if money(call.order_id) > 0:")
    guard.write_text(said)
    logs = shop.logs(record(*WRONG, id="wrong"), record(*HASTY, id="near"))
    shown = bylaw(tmp_path, "audit", logs, "--pack", shop.pack, "--world", shop.world).stdout
    assert "Guards that failed, leaving calls without a verdict: only-paid at guards/shop.py:" in " ".join(
        shown.split()
    )
    assert "(2 calls)" in " ".join(shown.split())
    assert "2 calls have no verdict" in bylaw(tmp_path, "explain", "out").stdout
    assert listed(tmp_path, "--verdict", "inconclusive") == ["wrong", "near"]
    assert "`OPEN` is not an amount" in bylaw(tmp_path, "explain", "out", "--verdict", "inconclusive").stdout
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert [*summary["failed_guards"]] == ["only-paid"]
    assert "OPEN" not in json.dumps(summary)


def test_a_filter_beside_an_id_is_an_error(audited: Path) -> None:
    ran = bylaw(audited, "explain", "out", "near", "--agent", "hasty")
    assert (ran.returncode, "an id cannot be combined with filters" in ran.stderr) == (2, True)


def test_the_policies_that_were_broken_most_are_in_a_table(audited: Path) -> None:
    shown = (audited / "shown").read_text()
    table = shown.partition("Policies broken")[2]
    (row,) = [line.split() for line in table.splitlines() if line.startswith(" only-paid")]
    assert row == ["only-paid", "high", "2", "1", "3"]


def told(executed: bool | None, events: list[dict[str, Any]], **more: Any) -> str:
    line = {"trajectory": "t", "tool": "ship", "step": 0, "executed": executed, "policies": [], "rules": []} | more
    out = StringIO()
    explain(line | {"determined": "compliant"}, {}, events, Console(file=out, width=200))
    return out.getvalue()


CALL = {"type": "call", "tool": "ship", "arguments": {}}


def test_a_result_that_does_not_say_is_not_called_a_result_that_was_not_captured() -> None:
    unclear = {"type": "result", "call": 0, "text": "Error corrected in your file: shipped."}
    assert "(the result does not show whether the call was executed)" in told(None, [CALL, unclear])
    assert "(result not captured)" in told(None, [CALL])
    assert "(result not captured)" in told(None, [CALL, unclear | {"text": ""}])


def test_the_summary_counts_only_results_that_were_not_captured(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    unclear = ship("PAID", "Error corrected in your file: it is shipped.")
    shop.audit(shop.logs(record(unclear), record(ship("PAID", NO_RESULT))))
    lines = [json.loads(line) for line in (tmp_path / "out" / "calls.jsonl").read_text().splitlines()]
    assert [line["executed"] for line in lines] == [None, None]
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["by_tool"]["ship"]["result_not_captured"] == 1


def test_a_finding_about_consent_shows_what_was_put_and_what_was_answered() -> None:
    why = {"reason": "differs", "told_at": 0, "answered_at": 1}
    broken = {
        "rule": "confirm",
        "because": "not agreed",
        "predicates": [{"name": "agreed", "value": False, "why": why}],
    }
    said = [
        {"type": "message", "by": "agent", "text": "Shall I ship A1?"},
        {"type": "message", "by": "user", "text": "Yes, but A2."},
        CALL,
    ]
    text = told(True, said, step=2, rules=[broken])
    assert "the agent asked at step 0: Shall I ship A1?" in text
    assert "the user answered at step 1: Yes, but A2." in text
    del why["told_at"]
    assert "the user said at step 1: Yes, but A2." in told(True, said, step=2, rules=[broken])


def test_a_document_given_and_found_is_never_called_missing(tmp_path: Path) -> None:
    logs = tmp_path / "run.json"
    read = {"role": "tool", "tool_call_id": "c", "content": "{}"}
    made = {"id": "c", "type": "function", "function": {"name": "get_user_details", "arguments": '{"user_id": "ada"}'}}
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, "tool_calls": [made]}, read]
    logs.write_text(json.dumps([{"task_id": 0, "reward": 1.0, "info": {}, "traj": messages, "trial": 0}]))
    (tmp_path / "policy.md").write_text("# Another policy\n\nBe kind.\n")
    ran = bylaw(tmp_path, "audit", logs, "--pack", "tau-airline/tau1", "--document", "policy.md")
    assert "Citations give only" not in " ".join(ran.stdout.split())
    without = bylaw(tmp_path, "audit", logs, "--pack", "tau-airline/tau1")
    assert "Citations give only the heading and the line" in " ".join(without.stdout.split())


def test_a_document_given_twice_is_an_error(tmp_path: Path) -> None:
    ran = bylaw(tmp_path, "check", "clinic", "--document", "a.md", "--document", "b.md")
    assert (ran.returncode, ran.stderr) == (2, "bylaw: BY001 --document was given 2 times; pass it only once\n")
