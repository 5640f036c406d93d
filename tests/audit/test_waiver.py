"""Waivers: who answers for a finding, why, and until when."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bylaw.audit.row import Charge, Finding
from bylaw.audit.store import Store
from bylaw.audit.waiver import WaiverError, Waivers, read_waivers

from .desk import bylaw, write_desk
from .test_baseline import careless

SIGNED = "owner: ada, reason: known since May, expires: 2099-12-31"


def waivers(folder: Path, *entries: str, head: str = "waivers:\n") -> Path:
    path = folder / "waivers.yaml"
    path.write_text(head + "".join(f"  - {{{entry}}}\n" for entry in entries))
    return path


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    write_desk(tmp_path, [careless("one"), careless("two")])
    return tmp_path


def audited(desk: Path, *entries: str, status: int = 0, arguments: tuple[str, ...] = ()) -> tuple[str, dict[str, Any]]:
    waivers(desk, *entries)
    said = bylaw(
        desk, "audit", "logs.jsonl", "--pack", "pack", "--world", "world.json", "--waivers", "waivers.yaml", *arguments,
        status=status,
    )  # fmt: skip
    return said, json.loads((desk / "out/comparison.json").read_text())


def test_a_policy_is_waived_for_some_calls(desk: Path) -> None:
    said, found = audited(desk, f'policy: no-partner, trajectory: "o*", tool: close_account, agent: desk-*, {SIGNED}')
    assert [finding["trajectory"] for finding in found["waived"]] == ["one"]
    waiver = found["waived"][0]["waivers"][0]
    assert waiver == {
        "owner": "ada",
        "reason": "known since May",
        "expires": "2099-12-31",
        "place": "waivers.yaml:2",
    }
    assert "ada until 2099-12-31: known since May" in said
    assert found["counts"]["new"] == 3


def test_one_finding_is_waived_by_its_id(desk: Path) -> None:
    bylaw(desk, "audit", "logs.jsonl", "--pack", "pack", "--world", "world.json")
    first, *rest = Store(desk / "out").findings()
    _, found = audited(desk, f"finding: {first.id}, verdicts: {verdicts(first)}, {SIGNED}")
    assert [finding["finding"] for finding in found["waived"]] == [first.id]
    assert len(found["new"]) == len(rest)


def verdicts(finding: Finding) -> str:
    return "{" + ", ".join(f"{each.policy}: {each.verdict}" for each in finding.charges) + "}"


def test_a_waiver_of_one_finding_without_verdicts_waives_nothing_and_is_told_them(desk: Path) -> None:
    bylaw(desk, "audit", "logs.jsonl", "--pack", "pack", "--world", "world.json")
    first = next(Store(desk / "out").findings())
    said, found = audited(desk, f"finding: {first.id}, {SIGNED}")
    assert found["waived"] == []
    assert f"write `verdicts: {verdicts(first)}`" in " ".join(said.split())


GIVEN = "{a: near_miss}"
WORSE = [(("a", "near_miss"), True), (("a", "uninformed"), True), (("a", "violation"), False)]


@pytest.mark.parametrize(("charge", "is_waived"), [*WORSE, (("b", "near_miss"), False)])
def test_a_waiver_counts_for_the_verdicts_it_was_given_for(
    tmp_path: Path, charge: tuple[str, str], is_waived: bool
) -> None:
    policy, verdict = charge
    finding = Finding("f", "call", "x", "t", "a", 1, verdict, True, (Charge(policy, "high", verdict, ""),))
    given = read_waivers(waivers(tmp_path, f"finding: f, verdicts: {GIVEN}, {SIGNED}"))
    assert bool(given.waive(finding)) is is_waived
    other = Charge("new", "high", "violation", "")
    assert not given.waive(replace(finding, charges=(*finding.charges, other)))
    both = read_waivers(waivers(tmp_path, f"finding: f, verdicts: {GIVEN}, {SIGNED}", f"policy: new, {SIGNED}"))
    assert bool(both.waive(replace(finding, charges=(*finding.charges, other)))) is is_waived


def test_the_owner_and_the_reason_are_in_no_output_of_a_redacted_audit(desk: Path) -> None:
    outputs = ("--sarif", "s.sarif", "--junit", "j.xml", "--report")
    given = "owner: Ada Lovelace, reason: Ines called us, expires: 2099-12-31"
    redact = ("--redact", "--redact-key", "a long secret key", *outputs)
    said, found = audited(desk, f"policy: no-partner, {given}", arguments=redact)
    assert found["waived"]
    files = [*(desk / "out").iterdir(), desk / "s.sarif", desk / "j.xml"]
    every = said + "".join(file.read_text() for file in files)
    assert "Lovelace" not in every
    assert "Ines" not in every


def test_waived_findings_do_not_count_for_fail_on(desk: Path) -> None:
    both = (f"policy: no-partner, {SIGNED}", f"policy: ask-first, {SIGNED}")
    audited(desk, *both, arguments=("--fail-on", "near_miss", "--fail-on", "rule"))
    audited(desk, both[0], arguments=("--fail-on", "near_miss"))
    audited(desk, both[0], arguments=("--fail-on", "rule"), status=1)
    audited(desk, both[1], arguments=("--fail-on", "near_miss"), status=1)


def test_an_expired_waiver_is_said_and_waives_nothing(desk: Path) -> None:
    said, found = audited(
        desk,
        "policy: no-partner, owner: ada, reason: old, expires: 2020-01-31",
        arguments=("--fail-on", "near_miss"),
        status=1,
    )
    assert found["waived"] == []
    assert found["expired_waivers"][0]["policy"] == "no-partner"
    assert "waivers.yaml:2 expired on 2020-01-31" in said


def test_a_waiver_holds_on_the_day_it_expires(desk: Path) -> None:
    path = waivers(desk, "policy: no-partner, owner: ada, reason: old, expires: 2020-01-31")
    finding = Finding(
        "1", "call", "x", "t", "a", 1, "violation", True, (Charge("no-partner", "high", "violation", ""),)
    )
    assert read_waivers(path, today=date(2020, 1, 31)).waive(finding)
    assert not read_waivers(path, today=date(2020, 2, 1)).waive(finding)


def test_a_waiver_for_a_finding_that_is_not_there_is_said(desk: Path) -> None:
    said, found = audited(desk, f"finding: 0123456789ab, {SIGNED}")
    assert "waivers.yaml:2 has no effect: finding `0123456789ab` was not found" in " ".join(said.split())
    assert found["unused_waivers"][0]["finding"] == "0123456789ab"


def test_a_finding_under_two_policies_needs_both_waived(tmp_path: Path) -> None:
    charges = tuple(Charge(policy, "high", "violation", "") for policy in ("a", "b"))
    finding = Finding("1", "call", "x", "t", "a", 1, "violation", True, charges)
    one = read_waivers(waivers(tmp_path, f"policy: a, {SIGNED}"))
    assert one.waive(finding) == ()
    both = read_waivers(waivers(tmp_path, f"policy: a, {SIGNED}", f"policy: b, {SIGNED}"))
    assert len(both.waive(finding)) == 2


def test_a_rule_is_not_waived_by_a_waiver_for_a_tool(tmp_path: Path) -> None:
    finding = Finding("1", "rule", "x", "t", "a", 1, "violation", None, (Charge("a", "high", "violation", ""),))
    assert not read_waivers(waivers(tmp_path, f"policy: a, tool: x, {SIGNED}")).waive(finding)
    assert read_waivers(waivers(tmp_path, f"policy: a, {SIGNED}")).waive(finding)


def test_every_fault_of_a_file_is_named_with_its_line(desk: Path) -> None:
    waivers(
        desk,
        "policy: a, owner: ada",
        f"policy: a, finding: b, {SIGNED}",
        "finding: b, owner: ada, reason: x, expires: soon, tool: t, colour: red",
        SIGNED,
        f"finding: b, verdicts: {{a: fine}}, {SIGNED}",
        f"policy: b, verdicts: {{b: violation}}, {SIGNED}",
    )
    said = bylaw(desk, "audit", "logs.jsonl", "--pack", "pack", "--waivers", "waivers.yaml", status=2)
    for part in (
        "BY601",
        "waivers.yaml:2: the waiver has no `reason`; add a reason",
        "waivers.yaml:2: the waiver has no `expires`; add an expiry date such as 2026-12-31",
        "waivers.yaml:3: a waiver needs either a `finding` or a `policy`",
        "waivers.yaml:4: `colour` is not a key of a waiver",
        "waivers.yaml:4: `soon` is not a date; write it like 2026-12-31",
        "waivers.yaml:4: a waiver of one finding cannot have filters; remove tool",
        "waivers.yaml:6: `verdicts` must map each policy to a verdict; write it like {late-fee: near_miss}",
        "waivers.yaml:7: `verdicts` are allowed only in a waiver of one `finding`",
        "waivers.yaml:5: a waiver needs either a `finding` or a `policy`",
    ):
        assert part in said, said
    assert not (desk / "out").exists()


def test_a_bare_list_of_waivers_is_read_too(tmp_path: Path) -> None:
    path = waivers(tmp_path, f"policy: a, {SIGNED}", head="")
    assert [waiver.policy for waiver in read_waivers(path).unused] == ["a"]
    path.write_text("- {policy: a}\n")
    with pytest.raises(WaiverError, match=r"waivers.yaml:1: the waiver has no `owner`"):
        read_waivers(path)
    path.write_text("nothing: here\n")
    with pytest.raises(WaiverError, match="expected a list of waivers"):
        read_waivers(path)


def test_no_waivers_waive_nothing() -> None:
    none = Waivers(today=date(2026, 1, 1))
    assert (none.expired, none.unused) == ((), ())
