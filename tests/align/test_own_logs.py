"""From a user's own logs to rows: nothing that an audit flags is learned from, and no empty word earns a reward."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bylaw.align.dataset import read_rows
from bylaw.align.grader import Grader, gold_of
from bylaw.align.prompt import pack_named
from bylaw.align.reward import PAPER
from bylaw.errors import UsageError
from tests.align.own_logs import AIRLINE, EMPTY, audited_airline, audited_demo, faulty, learned, lines, run
from tests.command import bylaw


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return audited_demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def data(demo: Path) -> Path:
    """The sets that the audit of them leaves."""
    run("align", "data", "--audit", demo / "audit", "--out", demo / "data")
    return demo / "data"


def earned(data: Path, pack: str, output: str, **more: Any) -> list[float]:
    grader = Grader(pack_named(pack), **more)
    return [grader.grade(output, gold_of(row)).total for row in read_rows(data / "rl.jsonl")]


def test_no_row_comes_from_a_conversation_that_the_audit_flags(demo: Path, data: Path, tmp_path: Path) -> None:
    logs, found = demo / "logs.jsonl", faulty(demo / "audit")
    ways: dict[str, Sequence[object]] = {
        "bare": (logs,),
        "world": (logs, "--world", demo / "clinic.sqlite"),
    }
    assert len(found) > 12
    assert len(learned(data)) > 12
    for name, said in ways.items():
        run("align", "data", *said, "--out", tmp_path / name)
        # What a world flags, hindsight leaves open: either way it is left out.
        assert learned(tmp_path / name) == learned(data)
    assert not learned(data) & found
    world, bare = ((tmp_path / name / "README.md").read_text() for name in ("world", "bare"))
    assert "| flagged: a near-miss |" in world
    assert "| open: an uninformed write |" in bare


def test_what_is_open_or_flagged_is_kept_where_that_is_asked_for(demo: Path, tmp_path: Path) -> None:
    logs, found = demo / "logs.jsonl", faulty(demo / "audit")
    run("align", "data", logs, "--out", tmp_path / "open", "--keep-open")
    assert 2 < len(learned(tmp_path / "open") & found) < 8
    run("align", "data", logs, "--out", tmp_path / "all", "--keep-all")
    assert len(learned(tmp_path / "all") & found) > 12
    # No thought is made up for what should not have been done.
    blind = [row for row in read_rows(tmp_path / "all" / "stage2.jsonl") if row["id"] in found]
    bare = [
        message["content"] for row in blind for message in row["messages"] if message["content"].startswith('{"name":')
    ]
    assert len(bare) > 7


def test_an_empty_word_earns_nothing_and_the_gold_turn_everything(data: Path) -> None:
    rows = list(read_rows(data / "rl.jsonl"))
    assert any("text" in row["expected"] for row in rows)
    assert all(row["slots"] for row in rows if "text" in row["expected"])
    for output in EMPTY:
        assert max(earned(data, "clinic", output)) <= 1, output
    assert max(earned(data, "clinic", "ok", switches=PAPER)) <= 1
    grader = Grader(pack_named("clinic"))
    assert min(grader.grade(row["gold"], gold_of(row)).turn for row in rows) == 3
    assert "only a judge model can grade them (`--for-judge`)" in (data / "README.md").read_text()


def test_texts_for_a_judge_are_kept_on_request(demo: Path, tmp_path: Path) -> None:
    run("align", "data", "--audit", demo / "audit", "--out", tmp_path, "--for-judge")
    rows = list(read_rows(tmp_path / "rl.jsonl"))
    assert sum("text" in row["expected"] and not row["slots"] for row in rows) > 3
    assert "only a judge" not in (tmp_path / "README.md").read_text()


def test_answers_are_graded_against_rows_by_the_pack_of_the_data(data: Path) -> None:
    rows = list(read_rows(data / "rl.jsonl"))
    asked = [{"answer": rows[0]["gold"]}, {"answer": "ok", "row": 1}]
    asked += [{"answer": rows[3]["gold"], "task": rows[3]["task"], "turn": rows[3]["turn"]}]
    stdin = "\n".join(map(json.dumps, asked)).encode()
    ran = bylaw(data, "align", "score", "--rows", "rl.jsonl", stdin=stdin)
    assert ran.returncode == 0, ran.stderr
    first, ok, third = map(json.loads, ran.stdout.splitlines())
    assert first["turn"] == third["turn"] == 3
    assert ok["total"] <= 1

    bad = b'{"answer": "ok", "row": 0}\n{"answer": 1}\n{"answer": "ok", "task": "nobody"}\n{"answer": "ok", "row": 1}'
    ran = bylaw(data, "align", "score", "--rows", "rl.jsonl", stdin=bad)
    assert ran.returncode == 3
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ["error" in line for line in found] == [True, True, True, False]
    assert "<stdin>:1: there is no row 0" in ran.stderr
    assert "<stdin>:3: there is no row of task `nobody`" in ran.stderr


def test_the_paper_s_nothing_for_the_wrong_kind_of_turn_is_a_switch(data: Path) -> None:
    row = next(n for n, row in enumerate(read_rows(data / "rl.jsonl"), start=1) if "tool" in row["expected"])
    stdin = json.dumps({"answer": "Hello.", "row": row}).encode()
    for said, worth in (((), -3), (("--mismatch", "paper"), 0)):
        ran = bylaw(data, "align", "score", "--rows", "rl.jsonl", *said, stdin=stdin)
        assert json.loads(ran.stdout)["turn"] == worth


def test_without_a_manifest_the_pack_must_be_named_and_a_changed_one_is_told(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "data")
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(tmp_path / "data" / "rl.jsonl", alone)
    answer = b'{"answer": "ok", "row": 1}'
    ran = bylaw(alone, "align", "score", "--rows", "rl.jsonl", stdin=answer)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "cannot tell which pack `rl.jsonl` was made with; name the pack with --pack" in ran.stderr
    assert bylaw(alone, "align", "score", "--rows", "rl.jsonl", "--pack", "clinic", stdin=answer).returncode == 0
    ran = bylaw(alone, "align", "score", "--rows", "rl.jsonl", "--pack", "tau-airline/tau2", stdin=answer)
    assert ran.returncode == 2
    assert "which is not in pack `tau-airline/tau2`" in ran.stderr
    made = tmp_path / "data" / "data.json"
    made.write_text(made.read_text().replace('"pack_digest": "', '"pack_digest": "0'))
    ran = bylaw(tmp_path / "data", "align", "score", "--rows", "rl.jsonl", stdin=answer)
    assert ran.returncode == 2
    assert "pack `clinic` has changed since the rows were written" in ran.stderr


def test_an_audit_that_cannot_speak_for_the_logs_is_refused(demo: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "data")
    with pytest.raises(UsageError, match="cannot be combined"):
        run("align", "data", "--audit", demo / "audit", "--world", demo / "clinic.sqlite", *out)
    with pytest.raises(UsageError, match=r"this folder has no summary\.json"):
        run("align", "data", "--audit", demo, *out)
    for name, change, why in (
        ("redacted", lambda folder: (folder / "audited.json").unlink(), "does not record where its logs are"),
        ("older", lambda folder: _edit(folder, "digest", "0" * 64), "another version of pack `clinic`"),
    ):
        shutil.copytree(demo / "audit", tmp_path / name)
        change(tmp_path / name)
        with pytest.raises(UsageError, match=why):
            run("align", "data", "--audit", tmp_path / name, *out)
    few = tmp_path / "few.jsonl"
    few.write_bytes(b"".join((demo / "logs.jsonl").read_bytes().splitlines(keepends=True)[:5]))
    with pytest.raises(UsageError, match="the audit judged 38 conversations, but the logs have 5"):
        run("align", "data", few, "--audit", demo / "audit", *out)
    assert not (tmp_path / "data").exists()


def _edit(folder: Path, name: str, value: str) -> None:
    summary = json.loads((folder / "summary.json").read_text())
    summary["pack"][name] = value
    (folder / "summary.json").write_text(json.dumps(summary))


def test_written_thoughts_stand_in_stage_2_and_a_turn_without_one_ends_the_conversation(
    demo: Path, data: Path, tmp_path: Path
) -> None:
    thoughts = tmp_path / "thoughts.jsonl"
    logs = demo / "logs.jsonl"
    run("align", "thoughts", logs, "--pack", "clinic", "--out", thoughts)
    found = lines(thoughts)
    for place, line in enumerate(found):
        line["thought"] = f"I weigh this, number {place}." if line["thought"] else None
    # The second turn of one conversation that is learned from was never good enough.
    whole = {row["id"]: row for row in read_rows(data / "stage2.jsonl")}
    name = next(iter(whole))
    turns = [line for line in found if line["turn"].rpartition("@")[0] == name]
    turns[1]["thought"] = None
    thoughts.write_text("".join(json.dumps(line) + "\n" for line in found))
    run("align", "data", "--audit", demo / "audit", "--out", tmp_path / "written", "--thoughts", thoughts)
    rows = {row["id"]: row for row in read_rows(tmp_path / "written" / "stage2.jsonl")}
    assert rows.keys() == whole.keys()
    said = [each["content"] for row in rows.values() for each in row["messages"] if each["role"] == "assistant"]
    assert all(text.startswith("<think>I weigh this, number ") for text in said)
    assert len([each for each in rows[name]["messages"] if each["role"] == "assistant"]) == 1
    other = next(each for each in rows if each != name)
    assert [each["role"] for each in rows[other]["messages"]] == [each["role"] for each in whole[other]["messages"]]
    card = (tmp_path / "written" / "README.md").read_text()
    assert (
        "In 1 of them, a turn has no acceptable written thought; that turn and all later turns were left out." in card
    )
    assert "A model wrote the thoughts" in card

    thoughts.write_text('{"turn": "x@1", "thought": "<think>I look.</think>"}\n')
    with pytest.raises(UsageError, match=r"thoughts\.jsonl:1: a thought must not contain `<think>` tags"):
        run("align", "data", logs, "--out", tmp_path / "no", "--thoughts", thoughts)
    thoughts.write_text('{"turn": "x@1", "thought": "I look."}\n')
    with pytest.raises(UsageError, match=r"no written thought for the first turn \d"):
        run("align", "data", logs, "--out", tmp_path / "no", "--thoughts", thoughts)


@pytest.mark.shared
def test_an_airline_s_run_becomes_rows_that_its_own_pack_grades(tmp_path: Path) -> None:
    if not AIRLINE.exists():
        pytest.skip("the recorded conversations are not here")
    logs, world = AIRLINE / "tau2" / "runs" / "gpt-4.1.json.gz", AIRLINE / "tau2" / "db.json.gz"
    audited_airline(tmp_path)
    policy = ("--document", AIRLINE / "tau2" / "policy.md")
    for name, said in {"world": (logs, "--world", world, "--pack", "tau-airline/tau2"), "audit": ()}.items():
        given = said or ("--audit", tmp_path / "audit")
        run("align", "data", *given, *policy, "--out", tmp_path / name)
    assert learned(tmp_path / "world") == learned(tmp_path / "audit")
    assert not learned(tmp_path / "audit") & faulty(tmp_path / "audit")
    # Few: a write whose consent is open is left out, and of these an airline's talk has many.
    assert len(learned(tmp_path / "audit")) >= 3
    for output in EMPTY:
        assert max(earned(tmp_path / "audit", "tau-airline/tau2", output)) <= 1, output
    rows = list(read_rows(tmp_path / "audit" / "rl.jsonl"))
    grader = Grader(pack_named("tau-airline/tau2"))
    found = [grader.grade(row["gold"], gold_of(row)) for row in rows]
    assert min(each.turn for each in found) == 3
    assert sum(each.policy_recall for each in found) > 0.9 * len(found)
    # By another pack's policies the same thoughts recall next to nothing of what they should.
    needing = [row for row in rows if row["required"]]
    clinic = Grader(pack_named("clinic"))
    assert all(clinic.grade(row["gold"], gold_of(row)).policy_recall < 1 for row in needing)
