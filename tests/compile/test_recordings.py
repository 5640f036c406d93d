"""Compiling from recordings: the same bytes without a model, and no recording that nobody asks for."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from bylaw.compile.assemble import assemble
from bylaw.compile.pipeline import compile_pack
from bylaw.llm import Answer, Pending, Request, Usage
from bylaw.llm.chat import ChatError
from bylaw.llm.recorded import Batch, Recorded, Recordings
from tests.command import bylaw
from tests.compile.shop import LIMIT, POLICY, Scripted, compiled, source, tools_file
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
        _answer(tmp_path, f"round-{rounds}", chat, _requests(tmp_path))
    assert rounds == 3


def test_a_batch_that_is_half_answered_goes_on_and_asks_only_for_the_rest(tmp_path: Path) -> None:
    chat, told = Scripted(), list[str]()
    with pytest.raises(Pending):
        compile_pack(source(), Batch(tmp_path), progress=told.append)
    first = {request.name: request for request in _requests(tmp_path)}
    assert first.keys() == {"extract", "things"}
    assert not [line for line in told if "used" in line]
    _answer(tmp_path, "half", chat, [first["extract"]])
    with pytest.raises(Pending) as waits:
        compile_pack(source(), Batch(tmp_path), progress=told.append)
    # What the document says can be asked about further; what hangs on the tools' data cannot.
    waiting = _requests(tmp_path)
    assert sorted(request.name for request in waiting) == ["cover", "sort", "things"]
    assert waits.value.count == 3
    assert told[-2:] == [
        "asking 3 (cover, sort, things), 1 answered",
        "1 answer is used; requests without an answer were written to the folder",
    ]
    _answer(tmp_path, "rest", chat, waiting)
    for number in range(9):
        try:
            work, _ = compile_pack(source(), Batch(tmp_path))
            break
        except Pending:
            _answer(tmp_path, f"round-{number}", chat, _requests(tmp_path))
    else:
        raise AssertionError("it does not end")
    asked = [request.key for requests in chat.rounds for request in requests]
    assert len(asked) == len(set(asked)), "nothing is asked twice"
    assert assemble(source(), work, name="shop") == compiled()[1]


def test_rules_are_refined_while_guards_wait(tmp_path: Path) -> None:
    chat, shop = Scripted(refine="verifiable: true"), replace(source(), refinements=2)
    for number in range(4):
        with pytest.raises(Pending):
            compile_pack(shop, Batch(tmp_path))
        waiting = [request for request in _requests(tmp_path) if request.name not in ("guards", "cases")]
        _answer(tmp_path, f"round-{number}", chat, waiting)
    assert [request.name for request in waiting] == ["refine"]


def test_a_half_answered_batch_is_told_on_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text(POLICY)
    (tmp_path / "tools.json").write_text(tools_file())
    given = ("--document", "policy.md", "--tools", "tools.json", "--llm", "batch:questions", "--out", "shop")
    assert "asking 2 (extract, things), 0 answered" in bylaw(tmp_path, "compile", *given).stdout
    questions = tmp_path / "questions"
    _answer(questions, "half", Scripted(), [each for each in _requests(questions) if each.name == "extract"])
    done = bylaw(tmp_path, "compile", *given)
    assert done.returncode == 2
    assert "1 answer is used; requests without an answer were written to the folder" in done.stdout
    assert "questions/requests/002.jsonl: 3 requests wait for an answer" in done.stderr
    assert {each.name for each in _requests(questions)} == {"cover", "sort", "things"}


def test_a_finished_draft_with_a_policy_that_lacks_a_check_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text(POLICY)
    (tmp_path / "tools.json").write_text(tools_file())
    given = ("--document", "policy.md", "--tools", "tools.json", "--llm", "batch:questions", "--out", "shop")
    chat = Scripted(guards="# cannot refund-window: no tool shows the day\n" + LIMIT)
    for number in range(4):
        done = bylaw(tmp_path, "compile", *given)
        if done.returncode != 2:
            break
        _answer(tmp_path / "questions", f"round-{number}", chat, _requests(tmp_path / "questions"))
    assert "unenforced: refund-window: no tool shows the day" in done.stdout
    assert done.returncode == 0


def test_an_answer_that_failed_on_the_way_does_not_count_as_one(tmp_path: Path) -> None:
    with pytest.raises(Pending):
        compile_pack(source(), Batch(tmp_path))
    waiting = _requests(tmp_path)
    expired = [json.dumps({"custom_id": each.key, "response": None, "error": {"code": "expired"}}) for each in waiting]
    (tmp_path / "expired.jsonl").write_text("\n".join(expired))
    with pytest.raises(Pending, match="2 requests wait for an answer, 2 of which must be answered again"):
        compile_pack(source(), Batch(tmp_path))


def test_a_compile_may_end_with_what_is_answered(tmp_path: Path) -> None:
    chat = Scripted()
    for number in (1, 2):
        with pytest.raises(Pending):
            compile_pack(source(), Batch(tmp_path), as_is=True)
        _answer(tmp_path, f"round-{number}", chat, _requests(tmp_path))
    work, _ = compile_pack(source(), Batch(tmp_path), as_is=True)
    assert {check.failed for check in work.checks.values()} == {"a request about this policy has no answer yet"}
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

    from bylaw.llm import ModelMessage

    newest = sorted((folder / "requests").glob("*.jsonl"))[-1]
    made: list[Request] = []
    for line in newest.read_bytes().splitlines():
        record = msgspec.json.decode(line)
        body = record["body"]
        form = body.get("response_format", {}).get("json_schema", {})
        messages = tuple(ModelMessage(each["role"], each["content"]) for each in body["messages"])
        attempt = int(record["custom_id"].rpartition("-")[2])
        name = form.get("name") or _named(messages[0].content)
        made.append(Request(messages, form.get("schema"), name, attempt))
        assert made[-1].key == record["custom_id"]
    return made


def _named(instructions: str) -> str:
    """Which prompt asked, for those that want plain text."""
    from bylaw.compile.desk import Prompt

    for name in ("things", "cases", "guards", "rules", "rule_cases", "refine"):
        blank = dict.fromkeys(("tools", "others", "more", "general", "things", "policies", "policy", "rule", "now"), "")
        if Prompt(name, str).request(blank).messages[0].content == instructions:
            return name
    raise AssertionError(instructions[:60])


def _answer(folder: Path, name: str, chat: Scripted, requests: Sequence[Request]) -> None:
    """Answers of a model, in a file of their own."""
    lines = [_line(request, answer.text) for request, answer in zip(requests, chat.ask(requests), strict=True)]
    (folder / f"{name}.jsonl").write_text("".join(lines))


def _line(request: Request, text: str) -> str:
    return json.dumps({"custom_id": request.key, "text": text}) + "\n"


class Failing:
    """Behind a network that loses everything."""

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        return [Answer("", "failed", "gave up after 6 tries: connection lost") for _ in requests]


def test_a_model_that_never_answers_is_not_taken_for_one_that_found_nothing() -> None:
    with pytest.raises(ChatError, match=r"none of . requests was answered: gave up after 6 tries: connection lost"):
        compile_pack(source(), Failing())


class Counting(Scripted):
    """A model that counts its tokens."""

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        return [replace(answer, usage=Usage(1_000, 500)) for answer in super().ask(requests)]


def test_tokens_are_counted_and_priced(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text(POLICY)
    (tmp_path / "tools.json").write_text(tools_file())
    _, desk = compile_pack(source(), Keeping(Counting(), Recordings(tmp_path / "kept")))
    given = ("compile", "--document", "policy.md", "--tools", "tools.json", "--price", "2,10")
    done = bylaw(tmp_path, *given, "--llm", "recorded", "--kept", "kept", "--out", "shop")
    count = len(desk.asked)
    money = f"${count * (1_000 * 2 + 500 * 10) / 1_000_000:.2f}"
    assert f"asked and answered: {count * 1_000:,} tokens in and {count * 500:,} out, {money}" in done.stdout, (
        done.stderr
    )
    assert ", about $" in bylaw(tmp_path, *given, "--dry-run").stdout
    assert "`cheap` is not a price" in bylaw(tmp_path, *given[:-1], "cheap").stderr
