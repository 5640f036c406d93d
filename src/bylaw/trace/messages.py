"""Messages of a live conversation, in whatever shape a framework keeps them, put into a transcript one by one."""

from collections.abc import Iterable
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from bylaw.errors import UsageError
from bylaw.trace.document import Malformed
from bylaw.trace.event import Message
from bylaw.trace.readers.chat import ChatMessage, follow
from bylaw.trace.readers.langchain import chat_message, is_langchain
from bylaw.trace.transcript import Transcript


class _PlainFunction(Struct, forbid_unknown_fields=True, gc=False):
    name: str
    arguments: str


class _PlainCall(Struct, forbid_unknown_fields=True, gc=False):
    id: str
    function: _PlainFunction
    type: str = "function"


class _PlainMessage(Struct, forbid_unknown_fields=True, gc=False):
    """A message that says nothing but what most do: `ChatMessage` knows all the others."""

    role: Literal["user", "assistant", "tool"]
    content: str | None = None
    tool_calls: list[_PlainCall] | None = None
    tool_call_id: str | None = None
    name: str | None = None


class _Plain(Struct, array_like=True, gc=False):
    """Messages as one record, since what is known of a record's type is kept, and of a list's it is not."""

    messages: list[_PlainMessage]


def follow_messages(messages: Iterable[Any], transcript: Transcript) -> None:
    """Add messages to a transcript: OpenAI's, Anthropic's or LangChain's, as dicts or as the objects of their SDKs."""
    listed = list(messages)
    try:
        if (plain := _plain(listed)) is not None:
            _follow_plain(plain, transcript)
        else:
            follow(_chat(listed) or [_message(message, place) for place, message in enumerate(listed)], transcript)
    except Malformed as error:
        raise UsageError(str(error), hint="give messages as they went to the model") from error


def _plain(messages: list[Any]) -> list[_PlainMessage] | None:
    """All of them at once where each is a plain dict, as most are; None where one says more."""
    try:
        return msgspec.convert((messages,), _Plain).messages
    except msgspec.ValidationError:
        return None


def _chat(messages: list[Any]) -> list[ChatMessage] | None:
    """All of them at once where each is a dict with a role; None where one has to be looked at."""
    for message in messages:
        if message.__class__ is not dict or "role" not in message or "lc" in message:
            return None
    try:
        return msgspec.convert(messages, list[ChatMessage])
    except msgspec.ValidationError:
        return None


def _follow_plain(messages: list[_PlainMessage], transcript: Transcript) -> None:
    """What `follow` does with such messages."""
    add, time = transcript.events.append, transcript.time
    for message in messages:
        role, content = message.role, message.content
        if role == "tool":
            is_told = content is not None
            transcript.answer(
                content, message.tool_call_id or "", message.name or "", "agent", "", None, captured=is_told
            )
            continue
        transcript.turn += 1
        by = "user" if role == "user" else "agent"
        if content:
            add(Message(by, content, transcript.turn, "", time))
        for call in message.tool_calls or ():
            function = call.function
            if not function.name:
                raise Malformed("a tool call has no name")
            transcript.call(function.name, function.arguments, call.id, by)


def _message(message: Any, place: int) -> ChatMessage:
    record = _record(message)
    if record is None:
        kind = type(message).__name__
        raise UsageError(f"message {place} is a `{kind}`", hint="give a dict, or an object with `model_dump`")
    if is_langchain(record):
        return chat_message(record)
    try:
        return msgspec.convert(record, ChatMessage)
    except msgspec.ValidationError as error:
        raise UsageError(f"message {place} is malformed: {error}") from error


def _record(message: Any) -> dict[str, Any] | None:
    dump = getattr(message, "model_dump", None)
    record: Any = dump(mode="json") if callable(dump) else message
    return cast("dict[str, Any]", record) if isinstance(record, dict) else None
