"""A person's answer settles an undecided call in every output, and only the call that the person saw."""

import json
from pathlib import Path
from typing import Any

import pytest

from bylaw.audit.attestation import talk_digest
from bylaw.audit.audited import conversations_in_logs
from tests.answering.test_consent import AUDIT, FILES, OPEN, summary, talk
from tests.command import bylaw


@pytest.fixture(name="folder")
def write(tmp_path: Path) -> Path:
    (tmp_path / "desk").mkdir()
    for name, text in FILES.items():
        (tmp_path / "desk" / name).write_text(text, encoding="utf-8")
    write_talks(tmp_path, talk("one", OPEN), talk("two", OPEN))
    return tmp_path


def write_talks(folder: Path, *talks: dict[str, Any]) -> None:
    (folder / "talk.jsonl").write_text("\n".join(map(json.dumps, talks)), encoding="utf-8")


def attest(folder: Path, *given: dict[str, Any], file: str = "attestations.yaml") -> None:
    about = {"by": "Ann", "on": "2026-11-19", "reason": "I was on the call"}
    (folder / file).write_text(json.dumps({"attestations": [about | each for each in given]}), encoding="utf-8")


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out" / name).read_text(encoding="utf-8").splitlines()]


def test_an_answer_settles_the_call_in_counts_findings_and_exit_status(folder: Path) -> None:
    assert bylaw(folder, *AUDIT, "--fail-on", "rule").returncode == 0
    assert summary(folder)["counts"]["undecided"] == 2
    attest(folder, {"finding": "one:3", "answer": "fine"}, {"finding": "two:3", "answer": "wrong"})
    done = bylaw(folder, *AUDIT, "--fail-on", "rule", "--report")
    assert done.returncode == 1
    counts = summary(folder)["counts"]
    assert (counts["undecided"], counts["broken_rules"]) == (0, 1)
    assert summary(folder)["open"] == {"calls": 0, "rules": {}}
    assert summary(folder)["settled"] == {"confirm": {"yes": 1, "no": 1}}
    said = "Settled by a person: confirm was followed 1 time, not followed 1 time."
    assert said in " ".join(done.stdout.split())
    assert said in (folder / "out" / "report.html").read_text(encoding="utf-8")
    (broken,) = lines(folder, "findings.jsonl")
    assert broken["trajectory"] == "two"
    assert "a person (Ann) says that the rule was not followed: I was on the call" in broken["because"]
    told = {line["trajectory"]: line["answered"] for line in lines(folder, "calls.jsonl")}
    marks = {"by": "person", "name": "Ann", "on": "2026-11-19", "because": "I was on the call"}
    assert told == {
        "one": [{"rule": "confirm", "value": True} | marks],
        "two": [{"rule": "confirm", "value": False} | marks],
    }


def test_tables_say_who_settled_a_call_and_why(folder: Path) -> None:
    pytest.importorskip("duckdb")
    attest(folder, {"finding": "one:3", "answer": "fine"}, file="mine.yaml")
    bylaw(folder, *AUDIT, "--attestations", "mine.yaml", "--format", "parquet")
    told = bylaw(folder, "sql", "out", "SELECT conversation, settled_by, settled_because FROM calls", "--to", "jsonl")
    rows = {each["conversation"]: each for each in map(json.loads, told.stdout.splitlines())}
    assert rows["one"]["settled_by"] == "person"
    assert rows["one"]["settled_because"] == "I was on the call"
    assert rows["two"]["settled_by"] is None


def test_an_answer_counts_only_for_the_conversation_that_was_read(folder: Path) -> None:
    bylaw(folder, *AUDIT)
    events = next(conversations_in_logs(folder / "out"))["events"]
    attest(folder, {"finding": "one:3", "answer": "fine", "talk": talk_digest(events, 3)})
    bylaw(folder, *AUDIT)
    assert summary(folder)["counts"]["undecided"] == 1
    write_talks(folder, talk("one", "Well, that would be one of the worst ideas."), talk("two", OPEN))
    bylaw(folder, *AUDIT)
    assert summary(folder)["counts"]["undecided"] == 2


def test_a_guard_without_a_verdict_is_settled_too(folder: Path) -> None:
    policies = "policies: [{id: shut, spans: [Tell the customer what you cancel]}]"
    (folder / "desk" / "policies.yaml").write_text(policies, encoding="utf-8")
    (folder / "desk" / "rules.yaml").unlink()
    (folder / "desk" / "guards").mkdir()
    guard = "def shut(call: cancel_order, facts):\n    return permit() if call.order_id != 'R-1' else deny('shut')\n"
    (folder / "desk" / "guards" / "shut.py").write_text(guard, encoding="utf-8")
    text = (folder / "talk.jsonl").read_text(encoding="utf-8")
    (folder / "talk.jsonl").write_text(text.replace('{\\"order_id\\": \\"R-7\\"}', "not json"), encoding="utf-8")
    bylaw(folder, *AUDIT)
    assert summary(folder)["counts"]["undecided"] == 2
    attest(folder, {"finding": "one:3", "answer": "fine"}, {"finding": "two:3", "answer": "wrong"})
    assert bylaw(folder, *AUDIT, "--fail-on", "violation").returncode == 1
    counts = summary(folder)["counts"]
    assert (counts["undecided"], counts["violations"]) == (0, 1)


def test_an_answer_that_cannot_be_read_is_told_with_its_file(folder: Path) -> None:
    attest(folder, {"finding": "one:3", "answer": "maybe"})
    done = bylaw(folder, *AUDIT)
    assert done.returncode == 2
    assert "attestations.yaml" in done.stderr
    assert "answer (fine or wrong)" in done.stderr
    done = bylaw(folder, *AUDIT, "--attestations", "none.yaml")
    assert "no such file" in done.stderr
