"""`bylaw audit --llm`: what a rule hangs on is asked for, round by round, until it is found."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.command import bylaw

from .desk import FILES, reader


@pytest.fixture(name="folder")
def write(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / "desk").mkdir(exist_ok=True)
        (tmp_path / "desk" / name).write_text(text, encoding="utf-8")
    function = {"name": "cancel_order", "arguments": '{"order_id": "R-7"}'}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Please cancel R-7, my own order."},
        {"role": "assistant", "content": "I would cancel order R-7. Shall I?"},
        {"role": "user", "content": "No!"},
        {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "1", "content": "cancelled"},
    ]
    (tmp_path / "talk.jsonl").write_bytes(msgspec.json.encode({"id": "one", "messages": messages}))
    return tmp_path


def findings(folder: Path) -> list[str]:
    file = folder / "out" / "findings.jsonl"
    return [msgspec.json.decode(line)["rule"] for line in file.read_bytes().splitlines()] if file.is_file() else []


def answer(folder: Path) -> int:
    """Answer what was written down; how much that was."""
    lines: dict[str, bytes] = {}
    for file in sorted((folder / "asked" / "requests").glob("*.jsonl")):
        for line in file.read_bytes().splitlines():
            asked = msgspec.json.decode(line)
            text = asked["body"]["messages"][1]["content"]
            said = reader(asked["body"]["response_format"]["json_schema"]["name"], text)
            told = {"custom_id": asked["custom_id"], "text": msgspec.json.encode(said).decode()}
            lines[asked["custom_id"]] = msgspec.json.encode(told)
    (folder / "asked" / "answers.jsonl").write_bytes(b"\n".join(lines.values()))
    return len(lines)


def test_an_audit_finds_with_a_model_what_it_leaves_open_without(folder: Path) -> None:
    assert bylaw(folder, "audit", "talk.jsonl", "--pack", "desk").returncode == 0
    assert findings(folder) == []
    asking = ("audit", "talk.jsonl", "--pack", "desk", "--llm", "batch:asked")
    before = -1
    for _ in range(6):
        done = bylaw(folder, *asking)
        if (count := answer(folder)) == before:
            break
        assert done.returncode == 3
        assert "for an answer in asked/requests. Save the answers, then run" in done.stdout
        before = count
    assert done.returncode == 0
    assert "for an answer" not in done.stdout
    assert findings(folder) == ["confirm"], "the customer said no"
    assert before == 6, "two plans, the second once more with the first as an example; told, yes and owner"


def test_what_goes_with_a_model_needs_one(folder: Path) -> None:
    done = bylaw(folder, "audit", "talk.jsonl", "--pack", "desk", "--memory", "m")
    assert done.returncode == 2
    assert "require `--llm`" in done.stderr
    done = bylaw(folder, "audit", "talk.jsonl", "--pack", "desk", "--llm", "batch:asked", "--jobs", "2")
    assert done.returncode == 2


def test_a_model_that_cannot_be_reached_is_no_clean_result(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    done = bylaw(folder, "audit", "talk.jsonl", "--pack", "desk", "--llm", "small")
    assert done.returncode == 3
    assert "The model was not asked: no connection to the model at http://127.0.0.1:9/v1" in done.stdout
    (told,) = msgspec.json.decode((folder / "out" / "summary.json").read_bytes())["unanswered"]
    assert "no connection to the model" in told
