"""`bylaw align thoughts` and `bylaw align score` as they are typed."""

import json
from pathlib import Path

from tests.command import bylaw

LOGS = Path(__file__).parents[2] / "lab" / "tests" / "align" / "recorded" / "logs.jsonl"
TURN = {
    "required": ["P1"],
    "recalled": ["P1"],
    "hallucinated": 0,
    "thought_words": 5,
    "format_ok": True,
    "expected": {"judge": 10},
    "predicted": {"tool": "t", "arguments": {}},
    "verdict": "near_miss",
}


def test_turns_are_scored_with_the_switches_that_are_set(tmp_path: Path) -> None:
    line = json.dumps(TURN).encode()
    plain = bylaw(tmp_path, "align", "score", stdin=line)
    assert (plain.returncode, json.loads(plain.stdout)["total"]) == (0, 2)
    floor = bylaw(tmp_path, "align", "score", "--mismatch", "floor", "--compliance", "0.5", stdin=line)
    found = json.loads(floor.stdout)
    assert (found["turn"], found["compliance"], found["total"]) == (-3, 0.5, -1.5)
    assert bylaw(tmp_path, "align", "score", "--mismatch", "never", stdin=line).returncode == 2

    for weight in ("nan", "inf"):
        ran = bylaw(tmp_path, "align", "score", "--compliance", weight, stdin=line)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert f"`{weight}` is not a weight" in ran.stderr
        assert "Traceback" not in ran.stderr


def test_a_bad_line_costs_itself_and_the_status(tmp_path: Path) -> None:
    ran = bylaw(tmp_path, "align", "score", stdin=b"{}\n" + json.dumps(TURN).encode())
    first, second = map(json.loads, ran.stdout.splitlines())
    assert ran.returncode == 3
    assert "missing required field" in first["error"]
    assert second["total"] == 2
    assert "BY102 <stdin>:1: not a turn" in ran.stderr


def test_thoughts_go_to_the_output_or_to_a_file(tmp_path: Path) -> None:
    shown = bylaw(tmp_path, "align", "thoughts", LOGS, "--pack", "clinic", "--limit", "7")
    assert len(shown.stdout.splitlines()) == 7
    written = bylaw(tmp_path, "align", "thoughts", LOGS, "--pack", "clinic", "--limit", "7", "--out", "t.jsonl")
    assert written.stdout == "wrote t.jsonl\n"
    assert (tmp_path / "t.jsonl").read_text() == shown.stdout
    other = bylaw(tmp_path, "align", "thoughts", LOGS, "--pack", "clinic", "--limit", "7", "--seed", "2")
    assert other.stdout != shown.stdout


def test_what_cannot_be_is_said_before_anything_is_done(tmp_path: Path) -> None:
    for more, why in (
        (["--llm", "some-model"], "verified thoughts do not use a model"),
        (["--written", "--thresholds", "style=11"], "`style=11` is not a threshold"),
        (["--written", "--thresholds", "wit=5"], "`wit=5` is not a threshold"),
        (["--written", "--llm", "recorded"], "no recordings folder"),
    ):
        ran = bylaw(tmp_path, "align", "thoughts", LOGS, "--pack", "clinic", "--limit", "2", *more)
        assert ran.returncode == 2, more
        assert why in ran.stderr


def test_a_record_that_cannot_be_read_is_named_and_the_others_have_thoughts(tmp_path: Path) -> None:
    (tmp_path / "logs.jsonl").write_text(LOGS.read_text().splitlines()[0] + '\n{"messages": [\n')
    ran = bylaw(tmp_path, "align", "thoughts", "logs.jsonl", "--pack", "clinic")
    assert ran.returncode == 3
    assert ran.stdout
    assert "BY102 logs.jsonl:2" in ran.stderr


def test_a_batch_waits_and_goes_on(tmp_path: Path) -> None:
    """One turn through a folder: the draft, its four reviews, and the thought."""
    ask = ("align", "thoughts", LOGS, "--pack", "clinic", "--limit", "1", "--written", "--llm", "batch:q")
    for step, count in ((1, 1), (2, 4)):
        ran = bylaw(tmp_path, *ask)
        assert ran.returncode == 2
        assert f"{count} request{'s wait' if count > 1 else ' waits'} for an answer" in ran.stderr
        answers = []
        for line in (tmp_path / "q" / "requests" / f"00{step}.jsonl").read_text().splitlines():
            asked = json.loads(line)
            name = asked["body"]["response_format"]["json_schema"]["name"]
            said = (
                {"notes": "n", "thought": "I look."}
                if name == "generate"
                else {"analysis": "a", "rating": 10, "advice": ""}
            )
            answers.append(json.dumps({"custom_id": asked["custom_id"], "text": json.dumps(said)}))
        (tmp_path / "q" / f"answers-{step}.jsonl").write_text("\n".join(answers))
    done = bylaw(tmp_path, *ask)
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert found["thought"] == "I look."
    (only,) = found["rounds"]
    assert (only["passed"], only["complete"]) == (True, not found["required"])
