"""Writes requests as a page that anybody can answer, and records the answers."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bylaw.llm import Answer, Request
from bylaw.llm.recorded import answer_line

TOP = """# Requests to a language model, to be answered one by one

You are the model. Below are {count} requests. Each stands by itself: answer it from its own words alone, as if you saw
no other, and read no other file and no other source. Each has instructions, a question, and the JSON schema of the
answer.

For each request append one line of JSON to `{answers}` as soon as you have the answer:

    {{"custom_id": "THE KEY OF THE REQUEST", "answer": {{...}}}}

where `answer` is an object of the schema. One line for each request, in their order, nothing else in the file. Do not
change an answer once it is written. Do not use a script to make up answers: read each request and answer it yourself.
"""


def page(requests: Iterable[Request], answers: Path) -> str:
    """Return the page. Instructions and schemas that several requests share appear only once."""
    asked = list(requests)
    parts = [TOP.format(count=len(asked), answers=answers)]
    kinds: dict[tuple[str, bytes], str] = {}
    for request in asked:
        shared = (request.messages[0].content, msgspec.json.encode(request.schema))
        if shared not in kinds:
            kinds[shared] = f"{request.name.upper()}-{len(kinds) + 1}"
            parts.append(
                f"## Instructions {kinds[shared]}\n\n{shared[0]}\n\nSchema of the answer: `{shared[1].decode()}`\n"
            )
    for number, request in enumerate(asked, 1):
        kind = kinds[request.messages[0].content, msgspec.json.encode(request.schema)]
        parts.append(
            f"## Request {number}\n\nkey: `{request.key}`\ninstructions: {kind}\n\n{request.messages[1].content}\n"
        )
    return "\n---\n\n".join(parts)


def take(file: Path, requests: Sequence[Request], model: str) -> tuple[bytes, list[str]]:
    """Return the lines that record the answers in a file, and the errors in rejected answers. If a request has several
    answers, the first one is used.
    """
    known = {request.key: request for request in requests}
    lines: dict[str, bytes] = {}
    wrong: list[str] = []
    for line in file.read_bytes().splitlines():
        if not line.strip():
            continue
        try:
            said: dict[str, Any] = msgspec.json.decode(line)
            key, answer = said["custom_id"], said["answer"]
        except (msgspec.DecodeError, KeyError, TypeError) as error:
            wrong.append(f"{line[:80]!r}: {error}")
            continue
        if key in known and key not in lines:
            text = answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()
            lines[key] = answer_line(known[key], Answer(text), model)
        elif key not in known:
            wrong.append(f"{key}: asked for by nobody")
    return b"".join(lines.values()), wrong
