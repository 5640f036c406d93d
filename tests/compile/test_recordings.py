"""Compiling from recordings: the same bytes without a model, and no recording that nobody asks for."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bylaw.compile.assemble import assemble
from bylaw.compile.pipeline import compile_pack
from bylaw.llm import Answer, Pending, Request
from bylaw.llm.batch import Batch
from bylaw.llm.chat import ChatError
from bylaw.llm.recorded import Recorded, Recordings
from tests.compile.shop import Scripted, source
from tests.docs.walkthrough import ROOT


class Keeping:
    """Answers as another does, and keeps what it answered."""

    def __init__(self, chat: Scripted, recordings: Recordings) -> None:
        self._chat = chat
        self._recordings = recordings

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        answers = self._chat.ask(requests)
        for request, answer in zip(requests, answers, strict=True):
            self._recordings.keep(request, answer, "scripted")
        return answers


def test_recordings_make_the_same_bytes_and_all_of_them_are_asked_for(tmp_path: Path) -> None:
    work, _ = compile_pack(source(), Keeping(Scripted(), Recordings(tmp_path)))
    again, desk = compile_pack(source(), Recorded(Recordings(tmp_path)))
    assert assemble(source(), again, name="shop") == assemble(source(), work, name="shop")
    assert Recordings(tmp_path).keys() == desk.asked.keys()


def test_a_prompt_without_its_recording_is_said_not_guessed(tmp_path: Path) -> None:
    with pytest.raises(ChatError, match="have no recorded answer"):
        compile_pack(source(), Recorded(Recordings(tmp_path)))


def test_a_batch_goes_round_by_round_and_loses_nothing(tmp_path: Path) -> None:
    chat, rounds = Scripted(), 0
    while True:
        try:
            compile_pack(source(), Batch(tmp_path))
            break
        except Pending:
            rounds += 1
        waiting = _requests(tmp_path)
        with (tmp_path / f"round-{rounds}.jsonl").open("w") as out:
            for request in waiting:
                out.write(_line(request, chat.ask([request])[0].text))
    assert rounds == 3


def test_a_compile_may_end_with_what_is_answered(tmp_path: Path) -> None:
    chat = Scripted()
    for number in (1, 2):
        with pytest.raises(Pending):
            compile_pack(source(), Batch(tmp_path), as_is=True)
        with (tmp_path / f"round-{number}.jsonl").open("w") as out:
            for request in _requests(tmp_path):
                out.write(_line(request, chat.ask([request])[0].text))
    work, _ = compile_pack(source(), Batch(tmp_path), as_is=True)
    assert {check.failed for check in work.checks.values()} == {"a question about it has no answer yet"}
    assert {"refund-window", "refund-limit", "confirm-refunds"} == work.checks.keys()
    assert "refund-window" in assemble(source(), work, name="shop")["compiled.yaml"]


def test_the_same_compile_is_the_same_in_another_process() -> None:
    code = (
        "from tests.compile.shop import *; from bylaw.compile.pipeline import compile_pack;"
        "from bylaw.compile.assemble import assemble; import hashlib;"
        "print(hashlib.sha256(repr(assemble(source(), compile_pack(source(), Scripted())[0], name='s')).encode())"
        ".hexdigest())"
    )
    ran = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert ran[0] == ran[1]


def _requests(folder: Path) -> list[Request]:
    import msgspec

    from bylaw.llm import Message

    newest = sorted((folder / "requests").glob("*.jsonl"))[-1]
    made: list[Request] = []
    for line in newest.read_bytes().splitlines():
        record = msgspec.json.decode(line)
        body = record["body"]
        form = body.get("response_format", {}).get("json_schema", {})
        messages = tuple(Message(each["role"], each["content"]) for each in body["messages"])
        attempt = int(record["custom_id"].rpartition("-")[2])
        name = form.get("name") or _named(messages[0].content)
        made.append(Request(messages, form.get("schema"), name, attempt))
        assert made[-1].key == record["custom_id"]
    return made


def _named(instructions: str) -> str:
    """Which prompt asked, for those that want plain text."""
    from bylaw.compile.prompt import render

    for name in ("things", "cases", "guards", "rules", "rule_cases"):
        blank = dict.fromkeys(("tools", "others", "who", "general", "things", "policies", "now"), "")
        if render(name, blank).messages[0].content == instructions:
            return name
    raise AssertionError(instructions[:60])


def _line(request: Request, text: str) -> str:
    import json

    return json.dumps({"custom_id": request.key, "text": text}) + "\n"


class Failing:
    """Behind a network that loses everything."""

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        return [Answer("", "failed", "gave up after 6 tries: connection lost") for _ in requests]


def test_a_model_that_never_answers_is_not_taken_for_one_that_found_nothing() -> None:
    with pytest.raises(ChatError, match=r"none of . requests was answered: gave up after 6 tries: connection lost"):
        compile_pack(source(), Failing())
