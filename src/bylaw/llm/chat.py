"""Requests to a language model and their answers. A caller need not know whether an answer comes from an endpoint, a
batch or a recording.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, cast

import msgspec
from msgspec import Struct

from bylaw.errors import BylawError

Role = Literal["system", "user", "assistant"]
Fault = Literal["", "refused", "truncated", "malformed", "failed"]
_FAULTS: tuple[Fault, ...] = ("", "malformed", "truncated", "refused", "failed")
"""Defects of an answer, from the least to the most severe."""
Shape = TypeVar("Shape")


class ChatError(BylawError):
    """Raised if a model cannot be reached or if its answer cannot be parsed."""

    code = "BY801"


class Pending(ChatError):
    """Raised after requests have been written to a batch folder. Run the command again when the answers are in the
    folder.
    """

    def __init__(
        self,
        count: int,
        place: str,
        folder: str,
        unasked: Sequence[str] = (),
        failed: Sequence[str] = (),
        unread: Sequence[str] = (),
    ) -> None:
        self.count = count
        self.unasked = tuple(unasked)
        """Answers with a `custom_id` that matches no request, and their locations."""
        hint = f"write the answers to a separate file, `{folder}/*.jsonl`, then run the same command again"
        message = f"{count} request{'s wait' if count != 1 else ' waits'} for an answer"
        if failed:
            message += f", {len(failed)} of which must be answered again: the first came back as {failed[0]}"
        if unasked:
            more = f" and {len(unasked) - 3} more" if len(unasked) > 3 else ""
            message += f"; no request has the `custom_id` of {', '.join(unasked[:3])}{more}"
        if unread:
            message += f"; {', '.join(unread[:3])} was not read: answers belong in files named *.jsonl"
        super().__init__(message, place=place, hint=hint)


class Unreachable(ChatError):
    """Raised if the endpoint has not answered any request, so that further requests would be pointless."""


class ModelMessage(Struct, frozen=True):
    role: Role
    content: str


class Request(Struct, frozen=True):
    """One question to a model, with everything that affects the answer."""

    messages: tuple[ModelMessage, ...]
    schema: dict[str, Any] | None = None
    """The JSON schema of the answer, or None for plain text."""
    name: str = "answer"
    """A label for readers of the batch file and for the endpoint. It is not part of the question."""
    attempt: int = 1
    """The attempt number. A request with a new number counts as a new question."""
    max_tokens: int = 1024
    """The maximum length of the answer, in tokens. It is not part of the question."""

    @property
    def key(self) -> str:
        """The hash of the question and the attempt number. It is the key for stored answers."""
        asked = {"messages": [msgspec.to_builtins(message) for message in self.messages], "schema": self.schema}
        return f"{hashlib.sha256(msgspec.json.encode(asked, order='sorted')).hexdigest()[:32]}-{self.attempt}"

    def body(self, model: str) -> dict[str, Any]:
        """Return the request body for OpenAI's chat completions API."""
        asked = msgspec.to_builtins(self.messages)
        body: dict[str, Any] = {"model": model, "messages": asked, "max_tokens": self.max_tokens}
        if self.schema is not None:
            wrapped = {"name": self.name, "schema": self.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": wrapped}
        return body


class Usage(Struct, frozen=True):
    asked: int = 0
    answered: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.asked + other.asked, self.answered + other.answered)


class Answer(Struct, frozen=True):
    """A model's answer. It may be refused, truncated or malformed; callers receive such answers too."""

    text: str
    fault: Fault = ""
    why: str = ""
    usage: Usage = Usage()

    def is_worse(self, other: "Answer") -> bool:
        """Whether another answer to the same question should replace this one."""
        return _FAULTS.index(self.fault) > _FAULTS.index(other.fault)

    def read(self, shape: type[Shape]) -> "Shape | None":
        """Parse the answer as `shape`. Return None if it does not match."""
        if self.fault:
            return None
        try:
            return msgspec.json.decode(bare_json(self.text), type=shape, strict=False)
        except (msgspec.DecodeError, RecursionError):
            return None


class Chat(Protocol):
    """Anything that answers requests."""

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """Return the answers in the order of the requests. Raise `Pending` if some are missing."""
        ...


_FENCED = re.compile(r"^```[^\n`]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def unfenced(text: str) -> str:
    """Return the text in the answer's code fence, or the whole answer if there is none."""
    text = text.strip()
    if blocks := _FENCED.findall(text):
        return max(blocks, key=len).strip()
    if text.startswith("```"):
        text = text.split("\n", 1)[-1].removesuffix("```").strip()
    return text


def bare_json(text: str) -> str:
    """Return the JSON in an answer, without surrounding text or a code fence."""
    text = unfenced(text)
    start, end = re.search(r"^[{\[]", text, re.MULTILINE), max(text.rfind("}"), text.rfind("]"))
    return text[start.start() : end + 1] if start is not None and start.start() < end else text


def checked(answer: Answer, request: Request) -> Answer:
    """Return the answer, marked as malformed if it should be JSON but is not."""
    if answer.fault or request.schema is None:
        return answer
    try:
        msgspec.json.decode(bare_json(answer.text))
    except (msgspec.DecodeError, RecursionError) as error:
        return msgspec.structs.replace(answer, fault="malformed", why=f"not JSON: {error}")
    return answer


def schema_of(shape: type) -> dict[str, Any]:
    """Return the JSON schema of a type, without references or extra properties, because strict endpoints require
    this.
    """
    (schema,), parts = msgspec.json.schema_components((shape,), ref_template="{name}")
    return _closed(schema, parts)


_LEFT_OUT = frozenset(("title", "description", "default", "discriminator"))
"""Schema keys that a model does not need. They are left out so that rewording them does not change the question's
hash.
"""


def _closed(schema: Any, parts: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_closed(item, parts) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    found = cast("dict[str, Any]", schema)
    if "$ref" in found:
        return _closed(parts[found["$ref"]], parts)
    kept = {name: _closed(value, parts) for name, value in found.items() if name not in {*_LEFT_OUT, "properties"}}
    if "properties" in found:
        # A field may be named `description`, so always keep field names.
        kept["properties"] = {
            name: _closed(value, parts) for name, value in cast("dict[str, Any]", found["properties"]).items()
        }
    if kept.get("type") == "object" and "properties" in kept:
        kept = {**kept, "additionalProperties": False, "required": list(kept["properties"])}
    return kept


_NAME = re.compile(r"\{\{(\w+)\}\}")


@cache
def _parts(folder: Path, name: str) -> tuple[str, str]:
    instructions, _, question = (folder / f"{name}.md").read_text(encoding="utf-8").partition("\n======\n")
    return _included(folder, instructions).strip(), question.strip()


def _included(folder: Path, text: str) -> str:
    """Replace each `{{include: name}}` line with the file's contents."""
    return re.sub(
        r"^\{\{include: (\w+)\}\}$",
        lambda match: (folder / f"{match[1]}.md").read_text(encoding="utf-8").strip(),
        text,
        flags=re.MULTILINE,
    )


def render(
    folder: Path,
    name: str,
    given: Mapping[str, str],
    *,
    schema: dict[str, Any] | None = None,
    attempt: int = 1,
    max_tokens: int = 4096,
) -> Request:
    instructions, question = _parts(folder, name)
    filled = _NAME.sub(lambda match: given[match[1]], question)
    messages = (ModelMessage("system", instructions), ModelMessage("user", filled))
    return Request(messages, schema=schema, name=name, attempt=attempt, max_tokens=max_tokens)


LETTERS_PER_TOKEN = 4
"""A typical number of characters per token in English text, which is accurate enough for an estimate."""
ANSWERED_SHARE = 0.5
"""The assumed length of an answer in estimates, as a share of the maximum length."""


class Price(Struct, frozen=True):
    """Prices per million tokens."""

    asked: float = 0.0
    answered: float = 0.0

    def of(self, usage: Usage) -> float:
        return (usage.asked * self.asked + usage.answered * self.answered) / 1_000_000

    def text(self, usage: Usage) -> str:
        """Return the token counts as text. If there is a price, include the cost."""
        money = f", ${self.of(usage):,.2f}" if self.of(usage) else ""
        return f"{usage.asked:,} tokens in and {usage.answered:,} out{money}"


class Estimate(Struct, frozen=True):
    requests: int
    usage: Usage
    cost: float

    def __str__(self) -> str:
        money = f", about ${self.cost:,.2f}" if self.cost else ""
        return (
            f"{self.requests:,} requests, about {self.usage.asked:,} tokens in and {self.usage.answered:,} out{money}"
        )


def estimate(requests: Sequence[Request], price: Price = Price()) -> Estimate:  # noqa: B008
    """Estimate the tokens of requests without sending the requests."""
    asked = sum(-(-len(message.content) // LETTERS_PER_TOKEN) for each in requests for message in each.messages)
    answered = round(sum(each.max_tokens for each in requests) * ANSWERED_SHARE)
    usage = Usage(asked, answered)
    return Estimate(len(requests), usage, price.of(usage))
