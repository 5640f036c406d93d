"""Stores answers by the hash of their question. An interrupted run can be resumed, and repeating a run costs
nothing.
"""

import codecs
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import msgspec

from bylaw.llm.chat import Answer, Chat, ChatError, Fault, Pending, Request, Usage, checked

_REFUSING = ("content_filter", "refusal")


def request_line(request: Request, model: str) -> bytes:
    line = {"custom_id": request.key, "method": "POST", "url": "/v1/chat/completions", "body": request.body(model)}
    return msgspec.json.encode(line) + b"\n"


def requested_keys(file: Path) -> set[str]:
    lines = (msgspec.json.decode(line) for line in file.read_bytes().splitlines() if line.strip())
    return {str(record["custom_id"]) for record in lines}


def answer_line(request: Request, answer: Answer, model: str) -> bytes:
    """Return a line of a recording in the format of batch output."""
    finish = {"truncated": "length", "refused": "content_filter"}.get(answer.fault, "stop")
    body = {
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": answer.text}, "finish_reason": finish}],
        "usage": {"prompt_tokens": answer.usage.asked, "completion_tokens": answer.usage.answered},
    }
    line = {"custom_id": request.key, "response": {"status_code": 200, "body": body}, "error": None}
    return msgspec.json.encode(line) + b"\n"


def read_answers(file: Path) -> dict[str, Answer]:
    """Read the answers in a file by request key. Handwritten `{"custom_id", "text"}` lines are also accepted."""
    found: dict[str, Answer] = {}
    for number, line in enumerate(file.read_bytes().removeprefix(codecs.BOM_UTF8).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            record = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ChatError(f"not JSON: {error}", place=f"{file}:{number}") from None
        if not isinstance(record, dict) or not isinstance(key := cast(dict[str, Any], record).get("custom_id"), str):
            raise ChatError("a line needs a `custom_id`", place=f"{file}:{number}")
        fields = cast(dict[str, Any], record)
        if "method" in fields:
            continue
        answer = _answer(fields, f"{file}:{number}")
        earlier = found.get(key)
        if earlier is None or earlier.is_worse(answer):
            found[key] = answer
        elif not answer.is_worse(earlier) and earlier != answer:
            raise ChatError(f"`{key}` has two answers in this file", place=f"{file}:{number}", hint=_ONE_ANSWER)
    return found


def _answer(fields: dict[str, Any], place: str) -> Answer:
    if isinstance(text := fields.get("text"), str):
        return Answer(text)
    response = fields.get("response")
    if (
        fields.get("error")
        or not isinstance(response, dict)
        or cast(dict[str, Any], response).get("status_code") != 200
    ):
        why = msgspec.json.encode(fields.get("error") or response).decode()[:300]
        return Answer("", "failed", why)
    try:
        return completion_answer(cast(dict[str, Any], response)["body"])
    except (KeyError, IndexError, TypeError, AttributeError):
        hint = "batch output has `response.body.choices`"
        raise ChatError("not a chat completion", place=place, hint=hint) from None


def completion_answer(body: dict[str, Any]) -> Answer:
    choice: dict[str, Any] = body["choices"][0]
    message: dict[str, Any] = choice["message"]
    used: dict[str, Any] = body.get("usage") or {}
    usage = Usage(int(used.get("prompt_tokens") or 0), int(used.get("completion_tokens") or 0))
    fault: Fault = ""
    why = ""
    if message.get("refusal") or choice.get("finish_reason") in _REFUSING:
        fault, why = "refused", str(message.get("refusal") or choice["finish_reason"])
    elif choice.get("finish_reason") == "length":
        fault, why = "truncated", "the answer was cut off at its maximum length"
    return Answer(str(message.get("content") or ""), fault, why, usage)


_ONE_ANSWER = "remove the line with the answer that should not count"


class Recordings:
    """The answers in a folder's `*.jsonl` files. New answers go to a separate file."""

    def __init__(self, folder: Path, *, file: str = "answers.jsonl") -> None:
        self.folder = folder
        self._file = folder / file
        self._answers: dict[str, Answer] = {}
        self.places: dict[str, Path] = {}
        self.failed: dict[str, str] = {}
        """Requests that never got an answer, with the reasons. These requests will be sent again."""
        for each in sorted(folder.glob("*.jsonl")) if folder.is_dir() else ():
            for key, answer in read_answers(each).items():
                if answer.fault == "failed":
                    self.failed.setdefault(key, answer.why)
                    continue
                earlier = self._answers.get(key)
                if earlier is None or earlier.is_worse(answer):
                    self._answers[key], self.places[key] = answer, each
                else:
                    _require_one(key, (earlier, self.places[key]), (answer, each))

    def __len__(self) -> int:
        return len(self._answers)

    def keys(self) -> frozenset[str]:
        return frozenset(self._answers)

    def find(self, request: Request) -> Answer | None:
        found = self._answers.get(request.key)
        return None if found is None else checked(found, request)

    def keep(self, request: Request, answer: Answer, model: str) -> None:
        """Append an answer and flush it to disk. The answer of a failed request is not stored."""
        if answer.fault == "failed":
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._file.open("ab") as out:
            out.write(answer_line(request, answer, model))
        self._answers[request.key], self.places[request.key] = answer, self._file


def _require_one(key: str, one: tuple[Answer, Path], other: tuple[Answer, Path]) -> None:
    """Raise an error if two files have different answers to one question. A faulty answer is ignored if there is a
    complete one.
    """
    (first, place), (second, also) = one, other
    if first.text != second.text and not first.is_worse(second) and not second.is_worse(first):
        raise ChatError(f"`{key}` has another answer in {place}", place=str(also), hint=_ONE_ANSWER)


@runtime_checkable
class Finder(Protocol):
    """Finds existing answers without asking a model."""

    def find(self, request: Request) -> Answer | None:
        """Return the existing answer, or None."""
        ...


class Recorded:
    """Returns answers from recordings. Other questions go to `chat`. If there is no chat, a missing answer is an
    error.
    """

    def __init__(self, recordings: Recordings, chat: Chat | None = None, *, keeps: bool = False) -> None:
        self.recordings = recordings
        self.behind = chat
        self._keeps = keeps
        """Whether to store answers from a batch folder too. An endpoint's answers are always stored."""

    def find(self, request: Request) -> Answer | None:
        """Return the answer from the recordings or a batch folder, or None."""
        found = self.recordings.find(request)
        if not isinstance(self.behind, Batch) or (other := self.behind.find(request)) is None:
            return found
        if found is not None:
            places = self.recordings.places, self.behind.places
            _require_one(request.key, (found, places[0][request.key]), (other, places[1][request.key]))
            if not found.is_worse(other):
                return found
        if self._keeps:
            self.recordings.keep(request, other, "batch")
        return other

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        found = {request.key: self.find(request) for request in requests}
        missing = {request.key: request for request in requests if found[request.key] is None}
        if missing and self.behind is None:
            first = next(iter(missing.values()))
            hint = "the prompts have changed since they were recorded; ask a model with --llm"
            message = f"{len(missing)} of {len(found)} requests have no recorded answer; the first is `{first.key}`"
            raise ChatError(message, place=str(self.recordings.folder), hint=hint)
        if missing and self.behind is not None:
            asked = list(missing.values())
            found.update(zip(missing, self.behind.ask(asked), strict=True))
            for request in asked if self._keeps else ():
                if (answer := found[request.key]) is not None:
                    self.recordings.keep(request, answer, "batch")
        return [answer for request in requests if (answer := found[request.key]) is not None]


REQUESTS = "requests"
_SHOWN = 3
"""The maximum number of remarks of each kind to show. Further remarks are only counted."""


class Batch:
    """Writes requests to `DIR/requests/NNN.jsonl` and reads answers from `DIR/*.jsonl`."""

    def __init__(self, folder: Path, *, model: str = "batch") -> None:
        self._folder = folder
        self._model = model
        self._used: set[str] = set()
        self._answers: Recordings | None = None

    def find(self, request: Request) -> Answer | None:
        """Return the folder's answer to a request. Return None if the request failed."""
        found = self._known().find(request)
        if found is not None:
            self._used.add(request.key)
        return found

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """Return the answers. If any are missing, write the requests to a file and raise `Pending`."""
        answers = self._answers = Recordings(self._folder)
        self._used |= {request.key for request in requests}
        found = {request.key: answers.find(request) for request in requests}
        waiting = {request.key: request for request in requests if found[request.key] is None}
        if waiting:
            unasked, failed = self.unasked, [answers.failed[key] for key in waiting if key in answers.failed]
            place = str(self._write(waiting))
            raise Pending(len(waiting), place, str(self._folder), unasked, failed, self._unread())
        return [answer for request in requests if (answer := found[request.key]) is not None]

    @property
    def places(self) -> Mapping[str, Path]:
        return self._known().places

    @property
    def unasked(self) -> list[str]:
        """Answers that match no request, with their files."""
        known = set(self._used)
        for file in (self._folder / REQUESTS).glob("*.jsonl"):
            known |= requested_keys(file)
        places = sorted(self._known().places.items())
        return [f"`{key}` in {file.name}" for key, file in places if key not in known]

    @property
    def remarks(self) -> list[str]:
        """Describe problems in the folder for the person who supplied the answers."""
        told = {
            "an answer without a request": self.unasked,
            "not read, because its name does not end in .jsonl": self._unread(),
        }
        lines: list[str] = []
        for what, places in told.items():
            lines += [f"{what}: {each}" for each in places[:_SHOWN]]
            lines += [f"{what}: {len(places) - _SHOWN} more"] if len(places) > _SHOWN else []
        return lines

    def _known(self) -> Recordings:
        if self._answers is None:
            self._answers = Recordings(self._folder)
        return self._answers

    def _unread(self) -> list[str]:
        found = sorted(self._folder.glob("*")) if self._folder.is_dir() else []
        return [path.name for path in found if path.is_file() and path.suffix in (".json", ".txt", ".ndjson")]

    def _write(self, waiting: dict[str, Request]) -> Path:
        """Write requests to a new file. Requests that were written before go to the same file again."""
        folder = self._folder / REQUESTS
        folder.mkdir(parents=True, exist_ok=True)
        text = b"".join(request_line(request, self._model) for request in waiting.values())
        files = sorted(folder.glob("*.jsonl"))
        same = next((file for file in files if file.read_bytes() == text), None)
        last = max((int(file.stem) for file in files if file.stem.isdigit()), default=0)
        file = same or folder / f"{last + 1:03}.jsonl"
        file.write_bytes(text)
        return file
