"""A folder in the place of a model, recordings by content hash, and what asking would take."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from bylaw.llm import Answer, ModelMessage, Pending, Request
from bylaw.llm.chat import ChatError, Price, bare_json, checked, estimate, schema_of, unfenced
from bylaw.llm.recorded import Batch, Recorded, Recordings, read_answers
from bylaw.llm.source import at_hand, open_chat

SCHEMA = {"type": "object", "properties": {"open": {"type": "boolean"}}}


def _question(text: str, **more: Any) -> Request:
    return Request((ModelMessage("user", text),), **more)


def _output(request: Request, text: str, finish: str = "stop") -> str:
    message = {"role": "assistant", "content": text}
    body = {"choices": [{"message": message, "finish_reason": finish}], "usage": {"prompt_tokens": 5}}
    return json.dumps({"custom_id": request.key, "response": {"status_code": 200, "body": body}, "error": None})


def test_a_batch_writes_what_waits_stops_and_goes_on_with_the_answers(tmp_path: Path) -> None:
    questions = [_question("one"), _question("two", schema=SCHEMA)]
    batch = Batch(tmp_path)
    with pytest.raises(Pending) as waits:
        batch.ask(questions)
    assert waits.value.count == 2
    lines = [json.loads(line) for line in (tmp_path / "requests" / "001.jsonl").read_text().splitlines()]
    assert [line["custom_id"] for line in lines] == [question.key for question in questions]
    assert lines[0]["url"] == "/v1/chat/completions"
    assert lines[1]["body"]["response_format"]["json_schema"]["schema"] == SCHEMA
    (tmp_path / "some-name.jsonl").write_text(_output(questions[1], '{"open": true}') + "\n")
    with pytest.raises(Pending) as waits:
        batch.ask(questions)
    assert waits.value.count == 1
    (tmp_path / "by-hand.jsonl").write_text(json.dumps({"custom_id": questions[0].key, "text": "eins"}))
    assert [answer.text for answer in batch.ask(questions)] == ["eins", '{"open": true}']


def test_an_answer_that_nobody_asked_for_is_told(tmp_path: Path) -> None:
    batch, first, second = Batch(tmp_path), _question("one"), _question("two")
    with pytest.raises(Pending):
        batch.ask([first])
    (tmp_path / "answers.jsonl").write_text(json.dumps({"custom_id": first.key[1:], "text": "eins"}))
    with pytest.raises(Pending) as waits:
        batch.ask([first])
    assert f"no request has the `custom_id` of `{first.key[1:]}` in answers.jsonl" in waits.value.message
    (tmp_path / "more.jsonl").write_text(json.dumps({"custom_id": first.key, "text": "eins"}))
    assert batch.ask([first])[0].text == "eins"
    assert batch.unasked == [f"`{first.key[1:]}` in answers.jsonl"]
    with pytest.raises(Pending) as waits:
        batch.ask([second])
    assert first.key not in "".join(waits.value.unasked), "asked for in an earlier round"
    assert str(tmp_path) in waits.value.hint


def test_the_same_requests_are_written_once(tmp_path: Path) -> None:
    for _ in range(3):
        with pytest.raises(Pending):
            Batch(tmp_path).ask([_question("one")])
    assert len(list((tmp_path / "requests").iterdir())) == 1
    with pytest.raises(Pending):
        Batch(tmp_path).ask([_question("two")])
    assert len(list((tmp_path / "requests").iterdir())) == 2


def test_a_question_is_known_by_what_is_asked_and_by_nothing_else() -> None:
    one = _question("one")
    assert one.key == _question("one", name="other", max_tokens=9).key
    assert one.key != _question("One").key
    assert one.key != _question("one", schema=SCHEMA).key
    assert one.key != _question("one", attempt=2).key
    assert one.key != Request((ModelMessage("system", "one"),)).key
    assert one.key.endswith("-1")


def test_refusals_and_cuts_come_through_a_batch(tmp_path: Path) -> None:
    questions = [_question(name, schema=SCHEMA) for name in "abc"]
    lines = [
        _output(questions[0], "", "content_filter"),
        _output(questions[1], '{"op', "length"),
        _output(questions[2], "open"),
    ]
    (tmp_path / "answers.jsonl").write_text("\n".join(lines))
    faults = [answer.fault for answer in Batch(tmp_path).ask(questions)]
    assert faults == ["refused", "truncated", "malformed"]


@pytest.mark.parametrize("line", [{"response": {"status_code": 429, "body": {}}}, {"error": {"code": "expired"}}])
@pytest.mark.parametrize("file", ["answers.jsonl", "zanswers.jsonl"])
def test_a_line_that_failed_is_asked_again_and_a_later_answer_counts(line: Any, file: str, tmp_path: Path) -> None:
    questions = [_question("a"), _question("b")]
    lines = [json.dumps({"custom_id": questions[0].key, **line}), _output(questions[1], "fine")]
    (tmp_path / "answers.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(
        Pending, match="1 request waits for an answer, 1 of which must be answered again: the first came back as"
    ) as error:
        Batch(tmp_path).ask(questions)
    assert questions[0].key in Path(error.value.place).read_text()
    with (tmp_path / file).open("a") as more:
        more.write(_output(questions[0], "now") + "\n")
    assert [answer.text for answer in Batch(tmp_path).ask(questions)] == ["now", "fine"]


@pytest.mark.parametrize("finish", ["content_filter", "length"])
@pytest.mark.parametrize("files", [("a", "b"), ("b", "a"), ("a", "a")])
def test_a_whole_answer_counts_more_than_a_refused_or_cut_one(
    finish: str, files: tuple[str, str], tmp_path: Path
) -> None:
    question = _question("a")
    for name, line in zip(files, (_output(question, "", finish), _output(question, "fine")), strict=True):
        with (tmp_path / f"{name}.jsonl").open("a") as file:
            file.write(f"{line}\n")
    assert Batch(tmp_path).ask([question])[0].text == "fine"


def test_two_different_answers_are_an_error_that_names_both_files(tmp_path: Path) -> None:
    question = _question("a")
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text(_output(question, f"of {name}"))
    told = f"{tmp_path / 'b.jsonl'}: `{question.key}` has another answer in {tmp_path / 'a.jsonl'}; remove the line"
    with pytest.raises(ChatError, match=re.escape(told)):
        Batch(tmp_path).ask([question])
    with pytest.raises(ChatError, match=re.escape(told)):
        Batch(tmp_path).find(question)
    (tmp_path / "a.jsonl").unlink()
    assert Batch(tmp_path).ask([question])[0].text == "of b"


def test_an_answer_that_was_kept_and_then_replaced_is_an_error(tmp_path: Path) -> None:
    question, kept, file = _question("a"), tmp_path / "kept", tmp_path / "a.jsonl"
    file.write_text(_output(question, "first"))
    open_chat(f"batch:{tmp_path}", kept=kept, keeps=True).ask([question])
    file.write_text(_output(question, "second"))
    chat = open_chat(f"batch:{tmp_path}", kept=kept, keeps=True)
    with pytest.raises(ChatError, match=f"has another answer in {kept / 'answers.jsonl'}"):
        chat.ask([question])
    with pytest.raises(ChatError, match="has another answer"):
        at_hand(chat)(question)
    (kept / "answers.jsonl").unlink()
    assert open_chat(f"batch:{tmp_path}", kept=kept, keeps=True).ask([question])[0].text == "second"


def test_a_whole_answer_replaces_a_kept_one_that_was_refused(tmp_path: Path) -> None:
    question, kept = _question("a"), tmp_path / "kept"
    kept.mkdir()
    (kept / "answers.jsonl").write_text(_output(question, "", "content_filter") + "\n")
    (tmp_path / "a.jsonl").write_text(_output(question, "fine"))
    for _ in range(2):
        assert open_chat(f"batch:{tmp_path}", kept=kept, keeps=True).ask([question])[0].text == "fine"


def test_an_answer_that_is_used_was_asked_for_whatever_became_of_its_request(tmp_path: Path) -> None:
    found, other = _question("found"), _question("other")
    (tmp_path / "a.jsonl").write_text(_output(found, "fine") + "\n" + _output(other, "fine"))
    batch = Batch(tmp_path)
    assert batch.find(found) is not None
    assert batch.remarks == [f"an answer without a request: `{other.key}` in a.jsonl"]


def test_many_remarks_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join(_output(_question(str(number)), "fine") for number in range(9)))
    remarks = Batch(tmp_path).remarks
    assert len(remarks) == 4
    assert remarks[-1] == "an answer without a request: 6 more"


def test_a_file_that_is_not_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(_output(_question("a"), "fine"))
    with pytest.raises(Pending, match=r"a\.json was not read: answers belong in files named"):
        Batch(tmp_path).ask([_question("a")])


def test_a_mark_of_the_byte_order_is_no_part_of_an_answer(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(_output(_question("a"), "fine"), encoding="utf-8-sig")
    assert Batch(tmp_path).ask([_question("a")])[0].text == "fine"


@pytest.mark.parametrize("said", ["batch:", "batch:file.jsonl"])
def test_a_batch_needs_a_folder(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.jsonl").touch()
    with pytest.raises(ChatError, match="does not name a folder"):
        open_chat(said)


def test_what_a_batch_answered_is_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    first, second = _question("first"), _question("second")
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / "a.jsonl").write_text(_output(first, "one") + "\n" + _output(second, "two"))
    chat = open_chat(f"batch:{tmp_path / 'q'}", kept=tmp_path / "kept", keeps=True)
    found = at_hand(chat)(first)
    assert found is not None
    assert found.text == "one"
    assert chat.ask([first, second])[1].text == "two"
    assert Recordings(tmp_path / "kept").keys() == {first.key, second.key}
    open_chat(f"batch:{tmp_path / 'q'}", kept=tmp_path / "other").ask([first, second])
    assert not (tmp_path / "other").exists()


JSON, YAML = '{"open": true}', "open: true\nwhy: it is"


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "```json\n{}\n```",
        "```\n{}\n```\n",
        "Here it is:\n\n```json\n{}\n```\n\nTell me if you need more.",
        "An example is\n```\n1\n```\nand the answer\n```\n{}\n```",
        "```json\n{}",
    ],
)
def test_an_answer_may_stand_in_a_fence_with_words_around_it(text: str) -> None:
    assert bare_json(text.replace("{}", JSON)) == JSON
    assert unfenced(text.replace("{}", YAML)) == YAML


@pytest.mark.parametrize("text", ["Here it is:\n{}", "{}\nThat is all.", "Sure.\n\n{}\n\nThat is all."])
def test_json_may_have_words_around_it(text: str) -> None:
    answer = Answer(text.replace("{}", JSON))
    assert checked(answer, _question("a", schema=SCHEMA)) == answer
    assert answer.read(dict[str, bool]) == {"open": True}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "answers.jsonl:2: not JSON"),
        ("[]", "answers.jsonl:2: a line needs a `custom_id`"),
        ('{"custom_id": 3}', "answers.jsonl:2: a line needs a `custom_id`"),
        ('{"custom_id": "x", "response": {"status_code": 200, "body": {}}}', "answers.jsonl:2: not a chat completion"),
        ('{"custom_id": "first", "text": "b"}', "answers.jsonl:2: `first` has two answers in this file"),
    ],
)
def test_an_answer_that_cannot_be_read_is_named_with_its_place(tmp_path: Path, line: str, why: str) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text('{"custom_id": "first", "text": "a"}\n' + line)
    with pytest.raises(ChatError) as error:
        read_answers(file)
    assert why in str(error.value)


def test_recordings_answer_for_free_and_say_when_a_prompt_has_changed(tmp_path: Path) -> None:
    known, new = _question("known"), _question("new")
    (tmp_path / "r.jsonl").write_text(_output(known, "yes"))
    assert Recorded(Recordings(tmp_path)).ask([known, known])[1].text == "yes"
    with pytest.raises(ChatError, match="1 of 2 requests have no recorded answer"):
        Recorded(Recordings(tmp_path)).ask([known, new])


def test_one_question_asked_twice_at_once_goes_out_once(tmp_path: Path) -> None:
    with pytest.raises(Pending) as waits:
        Recorded(Recordings(tmp_path / "kept"), Batch(tmp_path)).ask([_question("a"), _question("a"), _question("b")])
    assert waits.value.count == 2


def test_a_word_says_which_model_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_MODEL", raising=False)
    assert isinstance(open_chat(f"batch:{tmp_path}"), Batch)
    assert isinstance(open_chat("recorded", kept=tmp_path), Recorded)
    with pytest.raises(ChatError, match="no model"):
        open_chat("")


def test_an_estimate_asks_nothing() -> None:
    found = estimate([_question("x" * 400, max_tokens=200)] * 10, Price(asked=2.0, answered=8.0))
    assert (found.requests, found.usage.asked, found.usage.answered) == (10, 1000, 1000)
    assert found.cost == pytest.approx(0.01)
    assert str(found) == "10 requests, about 1,000 tokens in and 1,000 out, about $0.01"


class Inner(Struct):
    """A part."""

    why: str
    grave: int = 3


class Outer(Struct):
    """The whole."""

    errors: list[Inner]
    good: str = ""


def test_schemas_are_flat_and_closed_as_strict_endpoints_want_them() -> None:
    inner = {
        "type": "object",
        "properties": {"why": {"type": "string"}, "grave": {"type": "integer"}},
        "required": ["why", "grave"],
        "additionalProperties": False,
    }
    assert schema_of(Outer) == {
        "type": "object",
        "properties": {"errors": {"type": "array", "items": inner}, "good": {"type": "string"}},
        "required": ["errors", "good"],
        "additionalProperties": False,
    }
    assert msgspec.json.encode(schema_of(Outer))


class Named(Struct):
    """Fields whose names are words of JSON schema."""

    title: str
    description: str = "none"


def test_a_field_may_be_called_description() -> None:
    assert schema_of(Named)["required"] == ["title", "description"]
    assert schema_of(Named)["properties"] == {"title": {"type": "string"}, "description": {"type": "string"}}
