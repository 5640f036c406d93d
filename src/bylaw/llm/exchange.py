"""Lines of OpenAI's Batch API: requests as they go out, answers as they come back. Recordings are such lines too."""

import codecs
import time
from pathlib import Path
from typing import Any, cast

import msgspec

from bylaw.llm.chat import Answer, ChatError, Fault, Request, Usage

_REFUSING = ("content_filter", "refusal")


def request_line(request: Request, model: str) -> bytes:
    line = {"custom_id": request.key, "method": "POST", "url": "/v1/chat/completions", "body": request.body(model)}
    return msgspec.json.encode(line) + b"\n"


def requested_keys(file: Path) -> set[str]:
    lines = (msgspec.json.decode(line) for line in file.read_bytes().splitlines() if line.strip())
    return {str(record["custom_id"]) for record in lines}


def answer_line(request: Request, answer: Answer, model: str) -> bytes:
    """One line of a batch's output, as a recording keeps it."""
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
    """The answers of one file by their requests' keys; `{"custom_id", "text"}`, as a person writes them, will do."""
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
            hint = "remove one of them"
            raise ChatError(f"`{key}` has two answers in this file", place=f"{file}:{number}", hint=hint)
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
        hint = "a batch's output has `response.body.choices`"
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
        fault, why = "truncated", "the answer was cut at its longest"
    return Answer(str(message.get("content") or ""), fault, why, usage)
