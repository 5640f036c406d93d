"""Messages of a live conversation, in whatever shape a framework keeps them, put into a transcript one by one."""

from collections.abc import Iterable
from typing import Any, cast

import msgspec
from msgspec import Struct

from bylaw.errors import UsageError
from bylaw.trace.document import Malformed
from bylaw.trace.plain_chat import PlainMessage, follow_plain
from bylaw.trace.readers.chat import ChatMessage, follow
from bylaw.trace.readers.dialects import KnownMessage, as_chat
from bylaw.trace.readers.langchain import chat_message, is_langchain
from bylaw.trace.readers.parts import check_parts
from bylaw.trace.transcript import Transcript

_KNOWN: Any = list[KnownMessage]


class _Plain(Struct, array_like=True, gc=False):
    """Messages as one record, since what is known of a record's type is kept, and of a list's it is not."""

    messages: list[PlainMessage]


def follow_messages(messages: Iterable[Any], transcript: Transcript) -> bool:
    """Add messages to a transcript: OpenAI's, Anthropic's or LangChain's, as dicts or as the objects of their SDKs.

    Whether any of them may say more than plain chat does, such as what a host vouches for.
    """
    listed = list(messages)
    try:
        if (plain := _plain(listed)) is not None:
            follow_plain(plain, transcript)
            return False
        chat = _chat(listed) or [each for place, message in enumerate(listed) for each in _message(message, place)]
        for place, message in enumerate(chat):
            # Before any of them is taken in: what is refused must not be half known.
            content: Any = message.content
            if message.role == "assistant" and content.__class__ is list:
                check_parts(content, f"message {place}")
        follow(chat, transcript)
        return True
    except Malformed as error:
        raise UsageError(str(error), hint="give messages as they went to the model") from error


def _plain(messages: list[Any]) -> list[PlainMessage] | None:
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
        return msgspec.convert(messages, _KNOWN)
    except msgspec.ValidationError:
        return None


def _message(message: Any, place: int) -> list[ChatMessage]:
    record = _record(message)
    if record is None:
        kind = type(message).__name__
        raise UsageError(f"message {place} is a `{kind}`", hint="give a dict, or an object with `model_dump`")
    if is_langchain(record):
        return [chat_message(record)]
    return as_chat(record, f"message {place}")


def _record(message: Any) -> dict[str, Any] | None:
    dump = getattr(message, "model_dump", None)
    record: Any = dump(mode="json") if callable(dump) else message
    return cast("dict[str, Any]", record) if isinstance(record, dict) else None
