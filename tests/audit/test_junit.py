"""JUnit XML: one suite per agent, one case per write call, as build servers read it."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from .desk import bylaw, talk, write_desk, write_logs
from .test_baseline import CLOSED, careful, careless
from .test_waiver import SIGNED, waivers

WORLD = ("--pack", "pack", "--world", "world.json", "--junit", "build/j.xml")


def suites(folder: Path) -> dict[str, ElementTree.Element]:
    """The suites by name; every count is the number of what it counts."""
    root = ElementTree.parse(folder / "build/j.xml").getroot()
    assert root.tag == "testsuites"
    for element in (root, *root):
        assert int(element.get("tests", "")) == len(list(element.iter("testcase")))
        assert int(element.get("failures", "")) == len(list(element.iter("failure")))
        assert int(element.get("skipped", "")) == len(list(element.iter("skipped")))
        assert element.get("errors") == "0"
        assert float(element.get("time", "")) == 0
    for case in root.iter("testcase"):
        assert case.get("classname")
        assert case.get("name")
        assert len(case) <= 1
    return {str(suite.get("name")): suite for suite in root}


def test_findings_fail_and_compliant_calls_pass(tmp_path: Path) -> None:
    write_desk(tmp_path, [careless("one"), careful("two"), careless("three") | {"agent": "other-bot"}])
    bylaw(tmp_path, "audit", "logs.jsonl", *WORLD)
    found = suites(tmp_path)
    assert list(found) == ["desk-bot", "other-bot"]
    call, passed, rule = found["desk-bot"]
    assert (call.get("classname"), call.get("name")) == ("close_account", "one step 1")
    failure = call.find("failure")
    assert failure is not None
    assert failure.get("type") == "near_miss"
    assert failure.get("message") == "near-miss: not looked up: Customer[C1].partner"
    assert "no-partner (high): near-miss" in (failure.text or "")
    assert len(passed) == 0
    assert rule.get("classname") == "ask-first"


def test_known_waived_refused_and_unsettled_findings_are_skipped_with_the_reason(tmp_path: Path) -> None:
    refused = talk("refused", "Close C1.", "Sure?", ("close_account", {"customer_id": "C2"}, "Error: no"))
    write_desk(tmp_path, [careless("one")])
    bylaw(tmp_path, "audit", "logs.jsonl", *WORLD, "--out", "old")
    unsettled = talk("unsettled", "Close it.", "Sure?", ("close_account", {"customer_id": "C9"}, "ok"))
    write_logs(tmp_path / "logs.jsonl", [careless("one"), careless("two"), refused, unsettled])
    waivers(tmp_path, f"policy: ask-first, trajectory: two, {SIGNED}")
    bylaw(tmp_path, "audit", "logs.jsonl", *WORLD, "--baseline", "old", "--waivers", "waivers.yaml")
    told = {
        (case.get("classname"), str(case.get("name")).split()[0]): (case[0].tag, str(case[0].get("message")))
        for case in suites(tmp_path)["desk-bot"]
        if len(case)
    }
    assert told["close_account", "one"][0] == "skipped"
    assert told["close_account", "one"][1].startswith("already in the baseline; near-miss")
    assert told["close_account", "two"][0] == "failure"
    assert told["ask-first", "two"][1].startswith("waived: known since May (ada, until 2099-12-31)")
    assert told["close_account", "refused"][0] == "skipped"
    assert told["close_account", "refused"][1].startswith("refused; violation")


def test_hostile_text_stays_xml(tmp_path: Path) -> None:
    name = "a\x00\x1b]\ufffe\n<b>&\"'\u202e" + "]]>"
    record = careless(name) | {"agent": 'bot "<&>\x07'}
    write_desk(tmp_path, [record, talk("empty", "hi", CLOSED) | {"agent": "\n"}])
    bylaw(tmp_path, "audit", "logs.jsonl", *WORLD)
    found = suites(tmp_path)
    case = found['bot "<&>\\u0007'][0]
    assert case.get("name") == "a\\u0000\\u001b]\\ufffe\n<b>&\"'\\u202e]]> step 1"


def test_an_audit_without_write_calls_is_no_suite(tmp_path: Path) -> None:
    write_desk(tmp_path, [talk("quiet", "Hello.")])
    bylaw(tmp_path, "audit", "logs.jsonl", *WORLD)
    assert suites(tmp_path) == {}


def test_a_call_that_no_guard_binds_is_skipped_and_not_passed(tmp_path: Path) -> None:
    write_desk(tmp_path, [talk("one", "Note it.", "Sure?", ("note_account", {"customer_id": "C1"}, "ok"))])
    tools = tmp_path / "pack" / "tools.yaml"
    tools.write_text(
        f"{tools.read_text().rstrip()}\n  note_account: {{effect: write, parameters: {{customer_id: string}}}}\n"
    )
    done = bylaw(tmp_path, "audit", "logs.jsonl", *WORLD)
    (case,) = (case for case in suites(tmp_path)["desk-bot"] if case.get("classname") == "note_account")
    assert (case[0].tag, case[0].get("message")) == ("skipped", "not judged: no guard applies to this tool")
    assert "no guard" in done
    assert "because no guard applies: note_account" in " ".join(done.split())


def test_only_what_the_run_fails_on_fails_in_junit_too(tmp_path: Path) -> None:
    write_desk(tmp_path, [careless("one")])

    def failures(*arguments: str, status: int = 0) -> int:
        bylaw(tmp_path, "audit", "logs.jsonl", *WORLD, *arguments, status=status)
        return len(list(suites(tmp_path)["desk-bot"].iter("failure")))

    assert failures() == 2
    assert failures("--fail-on", "violation") == 0
    (call, rule) = suites(tmp_path)["desk-bot"]
    assert str(call[0].get("message")).startswith("does not fail the run; near-miss")
    assert failures("--fail-on", "near-miss", status=1) == 1
    assert failures("--fail-on", "near-miss", "--fail-on", "rule", status=1) == 2
    assert rule.get("classname") == "ask-first"
