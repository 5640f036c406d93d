"""Adds messages of a live conversation, in the shape of any framework, to a transcript."""

from collections.abc import Iterable
from typing import Any, cast

from bylaw.errors import UsageError
from bylaw.text.cost import spend
from bylaw.trace.document import Malformed
from bylaw.trace.readers.chat import ChatMessage, follow
from bylaw.trace.readers.openai import as_chat
from bylaw.trace.readers.parts import check_parts
from bylaw.trace.transcript import Transcript

READING = 20
"""Steps that one message counts for."""


def follow_messages(messages: Iterable[Any], transcript: Transcript) -> None:
    """Add messages to a transcript: OpenAI's, Anthropic's or LangChain's, as dicts or as the objects of their SDKs.

    Raises `UsageError`, and adds none of them, if one cannot be read.
    """
    try:
        chat = [each for place, message in enumerate(messages) for each in _read(message, place)]
        for place, message in enumerate(chat):
            if message.role == "user" and message.agent:
                # What is said to an inner agent is not the user's.
                message.name = message.name or message.agent
            if message.role == "assistant" and message.content.__class__ is list:
                check_parts(message.content, f"message {place}")
        follow(chat, transcript)
    except Malformed as error:
        raise UsageError(str(error), hint="give messages as they went to the model") from error


def _read(message: Any, place: int) -> list[ChatMessage]:
    spend(READING)
    dump = getattr(message, "model_dump", None)
    record: Any = dump(mode="json") if callable(dump) else message
    if not isinstance(record, dict):
        kind = type(message).__name__
        raise UsageError(f"message {place} is a `{kind}`", hint="give a dict, or an object with `model_dump`")
    return as_chat(cast("dict[str, Any]", record), f"message {place}")
