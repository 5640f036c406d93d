"""What is asked of a language model, and what it answers. Nothing else in Bylaw knows where an answer comes from."""

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
"""The least fault first."""
Shape = TypeVar("Shape")


class ChatError(BylawError):
    """A model cannot be asked, or what came back for it cannot be read."""

    code = "BY801"


class Pending(ChatError):
    """Requests were written down and wait for their answers; asked again once they are there, the work goes on."""

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
        """Answers whose `custom_id` no request has, each with its place."""
        hint = f"write the answers to a file of their own, `{folder}/*.jsonl`, then run the same command again"
        message = f"{count} request{'s wait' if count != 1 else ' waits'} for an answer"
        if failed:
            message += f", {len(failed)} of them again: the first came back as {failed[0]}"
        if unasked:
            more = f" and {len(unasked) - 3} more" if len(unasked) > 3 else ""
            message += f"; no request has the `custom_id` of {', '.join(unasked[:3])}{more}"
        if unread:
            message += f"; {', '.join(unread[:3])} was not read: answers belong in files named *.jsonl"
        super().__init__(message, place=place, hint=hint)


class Unreachable(ChatError):
    """Nothing ever came back from where the model should be: asking on would only take time."""


class ModelMessage(Struct, frozen=True):
    role: Role
    content: str


class Request(Struct, frozen=True):
    """One question, with all that its answer may depend on."""

    messages: tuple[ModelMessage, ...]
    schema: dict[str, Any] | None = None
    """JSON schema that the answer must have; None for plain text."""
    name: str = "answer"
    """What the answer is, for people and for the endpoint; no part of the question."""
    attempt: int = 1
    """Asked once more, the same question is another one."""
    max_tokens: int = 1024
    """Where an answer is cut; no part of the question."""

    @property
    def key(self) -> str:
        """The question's content hash, with the attempt: what an answer is kept by."""
        asked = {"messages": [msgspec.to_builtins(message) for message in self.messages], "schema": self.schema}
        return f"{hashlib.sha256(msgspec.json.encode(asked, order='sorted')).hexdigest()[:32]}-{self.attempt}"

    def body(self, model: str) -> dict[str, Any]:
        """As a chat completion of the OpenAI API."""
        asked = msgspec.to_builtins(self.messages)
        body: dict[str, Any] = {"model": model, "messages": asked, "max_tokens": self.max_tokens}
        if self.schema is not None:
            wrapped = {"name": self.name, "schema": self.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": wrapped}
        return body


class Usage(Struct, frozen=True):
    """Tokens that went in and came out."""

    asked: int = 0
    answered: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.asked + other.asked, self.answered + other.answered)


class Answer(Struct, frozen=True):
    """What came back. A refusal, a cut or malformed answer is a value too: what to do is the asker's choice."""

    text: str
    fault: Fault = ""
    why: str = ""
    usage: Usage = Usage()

    def is_worse(self, other: "Answer") -> bool:
        """Whether the other one, which came for the same question, counts in its place: a whole answer does."""
        return _FAULTS.index(self.fault) > _FAULTS.index(other.fault)

    def read(self, shape: type[Shape]) -> "Shape | None":
        """The answer as data of a shape; None where it is not."""
        if self.fault:
            return None
        try:
            return msgspec.json.decode(bare_json(self.text), type=shape, strict=False)
        except (msgspec.DecodeError, RecursionError):
            return None


class Chat(Protocol):
    """Whoever answers."""

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """The answers, in the order of the requests. `Pending` where some have yet to come."""
        ...


_FENCED = re.compile(r"^```[^\n`]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def unfenced(text: str) -> str:
    """What was asked for, without the fence that models like to put around it, and without words beside the fence."""
    text = text.strip()
    if blocks := _FENCED.findall(text):
        return max(blocks, key=len).strip()
    if text.startswith("```"):
        text = text.split("\n", 1)[-1].removesuffix("```").strip()
    return text


def bare_json(text: str) -> str:
    """JSON without a fence, and without words before and after it."""
    text = unfenced(text)
    start, end = re.search(r"^[{\[]", text, re.MULTILINE), max(text.rfind("}"), text.rfind("]"))
    return text[start.start() : end + 1] if start is not None and start.start() < end else text


def checked(answer: Answer, request: Request) -> Answer:
    """The answer, marked as malformed if JSON was asked for and it is not JSON."""
    if answer.fault or request.schema is None:
        return answer
    try:
        msgspec.json.decode(bare_json(answer.text))
    except (msgspec.DecodeError, RecursionError) as error:
        return msgspec.structs.replace(answer, fault="malformed", why=f"not JSON: {error}")
    return answer


def schema_of(shape: type) -> dict[str, Any]:
    """The JSON schema of a shape, flat and closed, as endpoints with strict schemas want it."""
    (schema,), parts = msgspec.json.schema_components((shape,), ref_template="{name}")
    return _closed(schema, parts)


_LEFT_OUT = frozenset(("title", "description", "default", "discriminator"))
"""What says nothing to a model, and would make another question of it whenever we word it anew."""


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
        # Names of fields are no annotations: one may well be called `description`.
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
    """`{{include: name}}` on a line of its own is another file."""
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
    """The request that a prompt of a folder makes with these values."""
    instructions, question = _parts(folder, name)
    filled = _NAME.sub(lambda match: given[match[1]], question)
    messages = (ModelMessage("system", instructions), ModelMessage("user", filled))
    return Request(messages, schema=schema, name=name, attempt=attempt, max_tokens=max_tokens)


LETTERS_PER_TOKEN = 4
"""English in common tokenizers; an estimate needs no better."""
ANSWERED_SHARE = 0.5
"""Answers are taken to be half as long as they may be."""


class Price(Struct, frozen=True):
    """What a million tokens cost."""

    asked: float = 0.0
    answered: float = 0.0

    def of(self, usage: Usage) -> float:
        return (usage.asked * self.asked + usage.answered * self.answered) / 1_000_000

    def text(self, usage: Usage) -> str:
        """Tokens in words, with what they cost where there is a price."""
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
    """What some requests would take, without asking any."""
    asked = sum(-(-len(message.content) // LETTERS_PER_TOKEN) for each in requests for message in each.messages)
    answered = round(sum(each.max_tokens for each in requests) * ANSWERED_SHARE)
    usage = Usage(asked, answered)
    return Estimate(len(requests), usage, price.of(usage))
