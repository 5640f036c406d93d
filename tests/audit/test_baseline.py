"""Findings beside those of an earlier audit: new, still there, fixed, gone, waived."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bylaw.audit.baseline import compare_audits, is_graver, read_baseline
from bylaw.audit.row import Charge, Finding
from bylaw.audit.store import Store
from bylaw.errors import UsageError

from .desk import bylaw, looked_up, talk, write_desk, write_logs

CLOSED = ("close_account", {"customer_id": "C1"}, "ok")
LOOK = ("get_customer", {"customer_id": "C1"}, looked_up())
ALSO = ("get_customer", {"customer_id": "C3"}, "Error: not found")


def careless(name: str) -> dict[str, Any]:
    """Closes an account without a look, and without asking."""
    return talk(name, "Close C1.", CLOSED)


def careful(name: str) -> dict[str, Any]:
    return talk(name, "Close C1.", "Sure?", "Yes.", LOOK, CLOSED)


def silent(name: str) -> dict[str, Any]:
    return talk(name, "Hello.", "Hello!")


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    write_desk(tmp_path, [careless("stays"), careless("gets-better"), careless("stops"), careless("leaves")])
    bylaw(tmp_path, "audit", "logs.jsonl", "--pack", "pack", "--world", "world.json", "--out", "old")
    write_logs(tmp_path / "logs.jsonl", [careless("stays"), careful("gets-better"), silent("stops"), careless("comes")])
    return tmp_path


def again(desk: Path, *arguments: str, status: int = 0) -> tuple[str, dict[str, Any]]:
    said = bylaw(
        desk, "audit", "logs.jsonl", "--pack", "pack", "--world", "world.json", "--baseline", "old", *arguments,
        status=status,
    )  # fmt: skip
    return said, json.loads((desk / "out/comparison.json").read_text())


def names(found: list[dict[str, Any]]) -> list[str]:
    return sorted({finding["trajectory"] for finding in found})


def test_findings_are_new_still_there_fixed_or_gone(desk: Path) -> None:
    said, found = again(desk)
    assert names(found["new"]) == ["comes"]
    assert names(found["still"]) == ["stays"]
    assert names(found["fixed"]) == ["gets-better", "stops"]
    assert names(found["gone"]) == ["leaves"]
    # A call and a rule in each.
    assert found["counts"] == {"new": 2, "still": 2, "fixed": 4, "gone": 2, "waived": 0, "refused": 0}
    assert "2 new, 2 unchanged, 4 fixed, 0 waived, 2 gone" in " ".join(said.split())
    assert found["new"][0]["tool"] == "close_account"
    assert found["new"][1]["rule"] == "ask-first"


def test_only_new_findings_count_for_fail_on(desk: Path) -> None:
    again(desk, "--fail-on", "near_miss", status=1)
    write_logs(desk / "logs.jsonl", [careless("stays")])
    again(desk, "--fail-on", "near_miss", "--fail-on", "rule")
    bylaw(desk, "audit", "logs.jsonl", "--pack", "pack", "--fail-on", "rule", status=1)


def test_a_severity_keeps_milder_findings_from_counting(desk: Path) -> None:
    again(desk, "--fail-on", "rule", "--min-severity", "medium", status=1)
    again(desk, "--fail-on", "rule", "--min-severity", "high")
    again(desk, "--fail-on", "near_miss", "--min-severity", "high", status=1)


def test_an_audit_may_be_its_own_baseline(desk: Path) -> None:
    said = bylaw(desk, "audit", "logs.jsonl", "--pack", "pack", "--baseline", "old", "--out", "old")
    assert "against old" in said
    assert not any(finding.trajectory == "leaves" for finding in Store(desk / "old").findings())


def test_a_finding_keeps_its_id_when_talk_and_look_ups_move(desk: Path) -> None:
    moved = talk("stays", "Hello?", "Hello!", "Close C1.", ALSO, CLOSED)
    before = {f.id for f in Store(desk / "old").findings() if f.trajectory == "stays" and f.kind == "call"}
    write_logs(desk / "logs.jsonl", [moved])
    _, found = again(desk)
    assert [finding["finding"] for finding in found["still"]] == list(before)


def test_a_second_call_of_the_same_tool_is_another_finding(desk: Path) -> None:
    write_logs(desk / "logs.jsonl", [talk("stays", "Close C1.", CLOSED, "And C2.", CLOSED)])
    _, found = again(desk)
    assert len({finding["finding"] for finding in found["new"] + found["still"]}) == 4


def test_what_is_graver_than_before_is_new(desk: Path) -> None:
    def finding(*charges: tuple[str, str]) -> Finding:
        made = tuple(Charge(policy, "high", verdict, "") for policy, verdict in charges)
        return Finding("1", "call", "close_account", "t", "a", 1, "near_miss", True, made)

    then = finding(("a", "near_miss"))
    assert not is_graver(finding(("a", "near_miss")), then)
    assert not is_graver(finding(("a", "uninformed")), then)
    assert is_graver(finding(("a", "violation")), then)
    assert is_graver(finding(("a", "near_miss"), ("b", "uninformed")), then)


def test_a_folder_without_an_audit_is_no_baseline(desk: Path) -> None:
    said = bylaw(desk, "audit", "logs.jsonl", "--pack", "pack", "--baseline", "pack", status=2)
    assert "this folder has no summary.json" in said
    assert not (desk / "out").exists()
    with pytest.raises(UsageError):
        read_baseline(desk)


def test_a_comparison_of_an_audit_with_itself_is_all_still_there(desk: Path) -> None:
    old = read_baseline(desk / "old")
    same = compare_audits(desk / "old", {f.trajectory for f in old.findings["determined"].values()}, baseline=old)
    assert (same.new, same.fixed, same.gone, same.waived) == ([], [], [], [])
    assert len(same.still) == len(old.findings["determined"]) > 0


def test_what_was_refused_and_is_now_done_is_new(tmp_path: Path) -> None:
    refused = talk("one", "Close C2.", ("close_account", {"customer_id": "C2"}, "Error: try later"))
    done = talk("one", "Close C2.", ("close_account", {"customer_id": "C2"}, "ok"))
    write_desk(tmp_path, [refused])
    world = ("--pack", "pack", "--world", "world.json")
    bylaw(tmp_path, "audit", "logs.jsonl", *world, "--out", "old")
    write_logs(tmp_path / "logs.jsonl", [done])
    _, found = again(tmp_path, "--fail-on", "violation", status=1)
    assert [each["tool"] for each in found["new"] if "tool" in each] == ["close_account"]
    bylaw(tmp_path, "audit", "logs.jsonl", *world, "--out", "old")
    write_logs(tmp_path / "logs.jsonl", [refused])
    _, found = again(tmp_path, "--fail-on", "violation")
    assert [each["tool"] for each in found["refused"] if "tool" in each] == ["close_account"]


def paying(account: str, amount: str, **about: str) -> dict[str, Any]:
    record = talk("x", "Close it.", ("close_account", {"customer_id": account, "note": amount}, "ok"))
    if "id" in about:
        return record
    record.pop("id")
    return record


@pytest.mark.parametrize("named", [{"id": "x"}, {}])
def test_another_call_under_the_same_name_is_new(tmp_path: Path, named: dict[str, str]) -> None:
    write_desk(tmp_path, [paying("C1", "150.00", **named)])
    bylaw(tmp_path, "audit", "logs.jsonl", "--pack", "pack", "--world", "world.json", "--out", "old")
    _, same = again(tmp_path, "--fail-on", "near_miss", "--fail-on", "rule")
    assert not same["new"]
    write_logs(tmp_path / "logs.jsonl", [paying("C2", "9000000.00", **named)])
    _, other = again(tmp_path, "--fail-on", "near_miss", status=1)
    assert not other["still"]
    assert len(other["new"]) == 2


def test_a_baseline_of_an_earlier_version_is_refused(desk: Path) -> None:
    file = desk / "old" / "summary.json"
    summary = json.loads(file.read_text())
    del summary["finding_ids"]
    file.write_text(json.dumps(summary))
    with pytest.raises(UsageError, match="the audit was produced by an earlier version of Bylaw"):
        read_baseline(desk / "old")


def test_what_one_policy_no_longer_objects_to_is_fixed_though_another_still_does(desk: Path) -> None:
    """Findings are matched by call and policy."""
    old = read_baseline(desk / "old")
    findings = list(Store(desk / "old").findings())
    call = next(each for each in findings if each.kind == "call")
    other = Charge("other", "high", "violation", "also wrong")
    before = {**old.findings["determined"], call.id: replace(call, charges=(*call.charges, other))}
    worse = tuple(replace(each, verdict="violation") for each in call.charges)
    now = [replace(each, charges=worse) if each.id == call.id else each for each in findings]
    names = {each.trajectory for each in findings}
    baseline = replace(old, findings={**old.findings, "determined": before})
    found = compare_audits(desk / "old", names, baseline=baseline, findings=now)
    assert [(each.id, [charge.policy for charge in each.charges]) for each in found.fixed] == [(call.id, ["other"])]
    own = call.charges[0].policy
    alike = sum(own in {charge.policy for charge in each.charges} for each in findings)
    assert found.by_policy["other"] == {"new": 0, "still": 0, "fixed": 1}
    assert found.by_policy[own] == {"new": 1, "still": alike - 1, "fixed": 0}
