"""A person's answer settles an undecided call in every output, and only the call that the person saw."""

import json
from pathlib import Path
from typing import Any

import pytest

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
    """Write answers; each has seen what the audit in `out` shows of its call and policy."""
    about = {"by": "Ann", "on": "2026-11-19", "reason": "I was on the call"}
    shown = {f"{line['trajectory']}:{line['step']}": line.get("undecided", []) for line in lines(folder, "calls.jsonl")}
    for each in given:
        for name, value in shown[each["finding"]][0].items():
            each.setdefault(name, value)
    (folder / file).write_text(json.dumps({"attestations": [about | each for each in given]}), encoding="utf-8")


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out" / name).read_text(encoding="utf-8").splitlines()]


def undecided(line: dict[str, Any]) -> list[str]:
    return [each["policy"] for each in line["undecided"]]


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
    said = "Settled by a reviewer: confirm was followed 1 time, not followed 1 time."
    assert said in " ".join(done.stdout.split())
    assert said in (folder / "out" / "report.html").read_text(encoding="utf-8")
    (broken,) = lines(folder, "findings.jsonl")
    assert broken["trajectory"] == "two"
    assert "a reviewer (Ann) says that the rule was not followed: I was on the call" in broken["because"]
    told = {line["trajectory"]: line["answered"] for line in lines(folder, "calls.jsonl")}
    marks = {"by": "person", "name": "Ann", "on": "2026-11-19", "because": "I was on the call"}
    assert told == {
        "one": [{"rule": "confirm", "value": True} | marks],
        "two": [{"rule": "confirm", "value": False} | marks],
    }


def test_tables_say_who_settled_a_call_and_why(folder: Path) -> None:
    pytest.importorskip("duckdb")
    bylaw(folder, *AUDIT)
    attest(folder, {"finding": "one:3", "answer": "fine"}, file="mine.yaml")
    bylaw(folder, *AUDIT, "--attestations", "mine.yaml", "--format", "parquet")
    told = bylaw(folder, "sql", "out", "SELECT conversation, settled_by, settled_because FROM calls", "--to", "jsonl")
    rows = {each["conversation"]: each for each in map(json.loads, told.stdout.splitlines())}
    assert rows["one"]["settled_by"] == "person"
    assert rows["one"]["settled_because"] == "I was on the call"
    assert rows["two"]["settled_by"] is None


def test_an_answer_counts_only_for_the_conversation_that_was_read(folder: Path) -> None:
    bylaw(folder, *AUDIT)
    attest(folder, {"finding": "one:3", "answer": "fine"})
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
    bylaw(folder, *AUDIT)
    attest(folder, {"finding": "one:3", "answer": "maybe"})
    done = bylaw(folder, *AUDIT)
    assert done.returncode == 2
    assert "attestations.yaml" in done.stderr
    assert "answer (fine or wrong)" in done.stderr
    done = bylaw(folder, *AUDIT, "--attestations", "none.yaml")
    assert "no such file" in done.stderr


def test_an_answer_without_a_digest_settles_nothing_and_is_told(folder: Path) -> None:
    bylaw(folder, *AUDIT)
    attest(folder, {"finding": "one:3", "answer": "fine", "seen": "", "talk": "fd2ba4c7138cc696"})
    done = bylaw(folder, *AUDIT)
    assert summary(folder)["counts"]["undecided"] == 2
    assert "attestations.yaml: 1 answer without `seen` does not count" in done.stderr


@pytest.mark.parametrize("step", ["3", "³", "٣", "", "3:confirm"])
def test_an_answer_is_found_by_its_digest_whatever_its_call_is_called(folder: Path, step: str) -> None:
    bylaw(folder, *AUDIT)
    attest(folder, {"finding": "one:3", "answer": "fine"})
    text = (folder / "attestations.yaml").read_text(encoding="utf-8")
    (folder / "attestations.yaml").write_text(text.replace("one:3", f"one:{step}"), encoding="utf-8")
    assert bylaw(folder, *AUDIT).returncode == 0
    assert summary(folder)["counts"]["undecided"] == 1


@pytest.mark.parametrize("redact", [(), ("--redact", "--redact-key", "a long secret key")])
@pytest.mark.parametrize("own", [0, 1])
def test_of_two_conversations_with_one_id_the_one_that_was_read_is_settled(
    folder: Path, own: int, redact: tuple[str, ...]
) -> None:
    write_talks(folder, talk("one", OPEN), talk("one", OPEN.replace("ideas", "plans")))
    bylaw(folder, *AUDIT, *redact)
    names = [line["trajectory"] for line in lines(folder, "calls.jsonl")]
    assert names[1] == f"{names[0]}~2"
    attest(folder, {"finding": f"{names[own]}:3", "answer": "fine"})
    bylaw(folder, *AUDIT, *redact)
    left = [line["trajectory"] for line in lines(folder, "calls.jsonl") if line["open_rules"]]
    assert left == [names[1 - own]]


def test_an_answer_settles_the_policy_it_was_given_on_and_only_as_it_was(folder: Path) -> None:
    bylaw(folder, *AUDIT)
    attest(folder, {"finding": "one:3", "answer": "fine"})
    (folder / "desk" / "guards").mkdir()
    guard = "def shut(call: cancel_order, facts):\n    return deny('shut') if facts.Request.why == 'x' else permit()\n"
    (folder / "desk" / "guards" / "shut.py").write_text(guard, encoding="utf-8")
    entities = "entities: {Request: {key: [], fields: {why: {type: string, origin: user}}}}"
    (folder / "desk" / "entities.yaml").write_text(entities, encoding="utf-8")
    policies = FILES["policies.yaml"].replace("]}]", "]}, {id: shut, spans: [Tell the customer what you cancel]}]")
    (folder / "desk" / "policies.yaml").write_text(policies, encoding="utf-8")
    bylaw(folder, *AUDIT)
    (line,) = [each for each in lines(folder, "calls.jsonl") if each["trajectory"] == "one"]
    assert (line["strict"], undecided(line), line["open_rules"]) == ("inconclusive", ["shut"], [])
    rules = FILES["rules.yaml"].replace("ALWAYS (change", "ALWAYS NOT NOT (change")
    (folder / "desk" / "rules.yaml").write_text(rules, encoding="utf-8")
    bylaw(folder, *AUDIT)
    (line,) = [each for each in lines(folder, "calls.jsonl") if each["trajectory"] == "one"]
    assert undecided(line) == ["shut", "confirm"]


PRIVATE = """
entities: {Order: {key: order_id, fields: {phone: {type: string, private: true}}}}
observations: {cancel_order: [{as: Order, key: {order_id: call.order_id}}]}
"""


@pytest.mark.parametrize("answer", ["fine", "wrong"])
def test_a_persons_words_have_no_private_values_and_none_at_all_if_redacted(folder: Path, answer: str) -> None:
    (folder / "desk" / "entities.yaml").write_text(PRIVATE, encoding="utf-8")
    told = talk("one", OPEN)
    told["messages"][-1]["content"] = json.dumps({"order_id": "R-7", "phone": "+49 151 23456789"})
    write_talks(folder, told)
    about = {"answer": answer, "by": "Ann Bell", "reason": "Ines Lang called from +49 151 23456789"}
    for redact in ((), ("--redact", "--redact-key", "a long secret key")):
        bylaw(folder, *AUDIT, *redact)
        (folder / "attestations.yaml").unlink(missing_ok=True)
        bylaw(folder, *AUDIT, *redact)
        attest(folder, about | {"finding": f"{lines(folder, 'calls.jsonl')[0]['trajectory']}:3"})
        bylaw(folder, *AUDIT, *redact, "--report")
        assert summary(folder)["settled"] == {
            "confirm": {"yes" if answer == "fine" else "no": 1} | {"no" if answer == "fine" else "yes": 0}
        }
        every = "".join(file.read_text(encoding="utf-8") for file in (folder / "out").iterdir())
        assert "23456789" not in every
        assert ("Ann Bell" in every, "Ines Lang called" in every) == (not redact, not redact)
