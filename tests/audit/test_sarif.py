"""SARIF: what code hosts need to show a finding where it was recorded."""

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from bylaw.audit.export import level, write_sarif
from bylaw.audit.request import unique_names
from bylaw.audit.row import Charge, Finding
from bylaw.audit.store import Store

from .desk import bylaw, secretive, talk, write_desk, write_logs
from .test_baseline import careless
from .test_waiver import SIGNED, waivers

WORLD = ("--pack", "pack", "--world", "world.json")


def run_of(path: Path) -> dict[str, Any]:
    """The one run of a SARIF file that keeps the rules of the format which matter here."""
    log = json.loads(path.read_text(encoding="utf-8"))
    assert log["version"] == "2.1.0"
    assert set(log) == {"$schema", "version", "runs"}
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
    for result in run["results"]:
        assert result["message"]["text"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert ids[result["ruleIndex"]] == result["ruleId"]
        (location,) = result["locations"]
        assert location["physicalLocation"]["region"]["startLine"] >= 1
        assert location["physicalLocation"]["artifactLocation"]["uri"]
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
        for suppression in result.get("suppressions", ()):
            assert suppression["kind"] in ("inSource", "external")
            assert suppression["status"] in ("accepted", "underReview", "rejected")
    assert len({"baselineState" in result for result in run["results"]}) <= 1
    return run


def test_every_policy_of_a_finding_is_a_result_at_the_record_it_was_found_in(tmp_path: Path) -> None:
    write_desk(tmp_path, [careless("one"), careless("two")])
    (tmp_path / "my logs").mkdir()
    (tmp_path / "logs.jsonl").rename(tmp_path / "my logs/näme.jsonl")
    bylaw(tmp_path, "audit", "my logs/näme.jsonl", *WORLD, "--sarif", "deep/down/s.sarif")
    run = run_of(tmp_path / "deep/down/s.sarif")
    findings = list(Store(tmp_path / "out").findings())
    assert len(run["results"]) == sum(len(finding.charges) for finding in findings) == 4
    for finding, result in zip(findings, run["results"], strict=True):
        place = result["locations"][0]["physicalLocation"]
        assert unquote(place["artifactLocation"]["uri"]) == "my logs/näme.jsonl"
        assert place["region"]["startLine"] == {"one": 1, "two": 2}[finding.trajectory]
        assert result["partialFingerprints"] == {"bylawFinding/v1": finding.id}
        assert "baselineState" not in result
    rule = run["tool"]["driver"]["rules"][0]
    assert rule["help"]["text"] == "An account is closed only for a customer who is not a partner."
    assert rule["properties"]["severity"] == "high"


def test_results_say_what_is_new_and_what_is_suppressed(tmp_path: Path) -> None:
    write_desk(tmp_path, [careless("one")])
    bylaw(tmp_path, "audit", "logs.jsonl", *WORLD, "--out", "old")
    write_logs(tmp_path / "logs.jsonl", [careless("one"), careless("two")])
    waivers(tmp_path, f"policy: ask-first, {SIGNED}")
    bylaw(
        tmp_path, "audit", "logs.jsonl", *WORLD, "--baseline", "old", "--waivers", "waivers.yaml", "--sarif", "s.sarif"
    )
    results = run_of(tmp_path / "s.sarif")["results"]
    stand = {(r["properties"]["trajectory"], r["ruleId"]): r for r in results}
    assert stand["one", "no-partner"]["baselineState"] == "unchanged"
    assert stand["two", "no-partner"]["baselineState"] == "new"
    assert stand["one", "ask-first"]["baselineState"] == "unchanged"
    assert "suppressions" not in stand["one", "no-partner"]
    assert stand["two", "ask-first"]["suppressions"] == [
        {"kind": "external", "status": "accepted", "justification": "known since May (ada, until 2099-12-31)"}
    ]


@pytest.mark.parametrize(
    ("verdict", "severity", "executed", "loud"),
    [
        ("violation", "high", True, "error"),
        ("violation", "medium", None, "error"),
        ("violation", "low", True, "warning"),
        ("near_miss", "high", True, "warning"),
        ("near_miss", "low", True, "note"),
        ("uninformed", "high", True, "note"),
        ("violation", "high", False, "note"),
    ],
)
def test_a_result_is_as_loud_as_verdict_and_severity(
    verdict: str, severity: str, executed: bool | None, loud: str
) -> None:
    charge = Charge("p", severity, verdict, "")
    assert level(Finding("1", "call", "x", "t", "a", 1, verdict, executed, (charge,)), charge) == loud


def test_two_logs_of_one_name_are_not_mixed_up(tmp_path: Path) -> None:
    write_desk(tmp_path, [careless("one")])
    bylaw(tmp_path, "audit", "logs.jsonl", *WORLD)
    write_sarif(tmp_path / "out", tmp_path / "s.sarif", files=[Path("a/logs.jsonl"), Path("b/logs.jsonl")])
    place = run_of(tmp_path / "s.sarif")["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "logs.jsonl"


def test_an_audit_without_findings_is_a_run_without_results(tmp_path: Path) -> None:
    write_desk(tmp_path, [talk("quiet", "Hello.")])
    bylaw(tmp_path, "audit", "logs.jsonl", *WORLD, "--sarif", "s.sarif")
    assert run_of(tmp_path / "s.sarif")["results"] == []


@pytest.mark.skipif("SARIF_SCHEMA" not in os.environ, reason="SARIF_SCHEMA names no copy of the official schema")
def test_the_official_schema_accepts_it(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(Path(os.environ["SARIF_SCHEMA"]).read_text())
    hostile = talk("\x00\u202e</script>", "x" * 5000, ("close_account", {"customer_id": "\ud83d\ude00\x07"}, "ok"))
    write_desk(tmp_path, [*secretive(), hostile])
    bylaw(tmp_path, "audit", "logs.jsonl", *WORLD, "--out", "old", "--redact", "--redact-key", "long enough")
    waivers(tmp_path, f"policy: ask-first, {SIGNED}")
    bylaw(tmp_path, "audit", "logs.jsonl", *WORLD, "--waivers", "waivers.yaml", "--sarif", "s.sarif")
    validator = jsonschema.validators.validator_for(schema)(schema)
    assert list(validator.iter_errors(json.loads((tmp_path / "s.sarif").read_text()))) == []


def test_conversations_of_one_id_in_two_files_are_told_apart(tmp_path: Path) -> None:
    write_desk(tmp_path, [careless("one")])
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "logs.jsonl").write_bytes((tmp_path / "logs.jsonl").read_bytes())
    said = bylaw(tmp_path, "audit", "a", "b", *WORLD, "--sarif", "s.sarif")
    assert "1 conversation has the same id as another" in " ".join(said.split())
    summary = json.loads((tmp_path / "out" / "summary.json").read_bytes())
    assert (summary["files"], summary["repeated_ids"]) == (["a/logs.jsonl", "b/logs.jsonl"], 1)
    found = run_of(tmp_path / "s.sarif")["results"]
    places = {each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in found}
    assert places == {"a/logs.jsonl", "b/logs.jsonl"}
    explained = bylaw(tmp_path, "explain", "out", "one~2")
    assert "this one is b/logs.jsonl#" in " ".join(explained.split())
    assert "another conversation" not in bylaw(tmp_path, "explain", "out", "one")


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["a/x.json", "b/y.json"], ["x.json", "y.json"]),
        (["a/x.json", "b/x.json", "y.json"], ["a/x.json", "b/x.json", "y.json"]),
        (["a/b/x.json", "c/b/x.json", "b/x.json"], ["a/b/x.json", "c/b/x.json", "b/x.json"]),
        (["x.json", "x.json"], ["x.json", "x.json"]),
    ],
)
def test_files_are_called_by_as_much_of_their_path_as_tells_them_apart(files: list[str], names: list[str]) -> None:
    called = unique_names([Path(file) for file in files])
    assert [called[Path(file)] for file in files] == names


def test_characters_that_cannot_be_seen_are_written_out_for_every_reader(tmp_path: Path) -> None:
    hidden = "\u202e\u2066\x9b31m"
    write_desk(tmp_path, [careless(f"one{hidden}")])
    pack = tmp_path / "pack" / "pack.yaml"
    pack.write_text(pack.read_text() + f"title: {json.dumps('desk' + hidden)}\n")
    bylaw(tmp_path, "audit", "logs.jsonl", *WORLD, "--sarif", "s.sarif", "--junit", "j.xml")
    told = [(tmp_path / name).read_text(encoding="utf-8") for name in ("s.sarif", "j.xml")]
    told.append(json.dumps(run_of(tmp_path / "s.sarif"), ensure_ascii=False))
    for text in (*told, bylaw(tmp_path, "check", "pack", "--json")):
        assert not set(hidden[:3]) & set(text)
    assert "one\\u202e\\u2066\\u009b31m" in told[1]
