"""Reads messages from spans, in any provider's format, and returns them as chat messages."""

from typing import Any, cast

import msgspec
from msgspec.structs import replace

from bylaw.trace.document import Malformed
from bylaw.trace.readers.chat import SILENT_ITEMS, ChatMessage, ToolCall, name_and_arguments, object_of, text_id
from bylaw.trace.readers.openai import as_chat, is_langchain
from bylaw.trace.readers.parts import (
    PartAnswer,
    answer_in,
    answers_in,
    call_in,
    may_tell,
    named,
    unwrapped,
    words_in,
)
from bylaw.trace.recorded_value import plain_text, read_json

MessageMark = tuple[Any, ...]


def messages_in(recorded: Any, role: str) -> list[ChatMessage]:
    """Return the messages in a recorded input or output.

    Text without a message becomes a message from `role`. The text and the calls of a turn become one message, even if
    they were recorded separately.
    """
    return merged([each for message in _messages_in(recorded, role) for each in spread(message)])


_CALLING = ("tool_calls", "toolCalls", "toolInvocations", "function_call", "functionCall")
"""Keys that contain calls, in a message or on their own."""


def _messages_in(recorded: Any, role: str, *, listed: bool = False) -> list[ChatMessage]:
    if isinstance(recorded, str):
        if recorded[:1] in ("[", "{") and not isinstance(value := read_json(recorded), str):
            return _messages_in(value, role)
        return [ChatMessage(role=role, content=recorded)] if recorded else []
    if isinstance(recorded, list):
        return [message for each in cast(list[Any], recorded) for message in _messages_in(each, role, listed=True)]
    if not isinstance(recorded, dict):
        return []
    value = cast(dict[str, Any], recorded)
    if choices := value.get("choices"):
        return _messages_in(choices[0], role)
    if isinstance(value.get("parts"), list) and ("role" in value or "kind" not in value):
        return [message_of_parts(value, role)]
    for name in ("generations", "message", "messages", "contents", "candidates"):
        if isinstance(value.get(name), list | dict):
            return _beside(value, _messages_in(value[name], role), role)
    return _single(value, role, listed=listed)


def _beside(value: dict[str, Any], messages: list[ChatMessage], role: str) -> list[ChatMessage]:
    calls = {name: value[name] for name in _CALLING if value.get(name)}
    if not calls or any(message.tool_calls or spread(message) != [message] for message in messages):
        return messages
    return messages + as_chat(calls, "an output", role)


def _single(message: dict[str, Any], role: str, *, listed: bool) -> list[ChatMessage]:
    if is_langchain(message):
        return as_chat(message, "a message")
    if "role" not in message and message.get("type") not in (None, "message"):
        if message["type"] in SILENT_ITEMS:
            return []
        call = call_in(message)
        if call or role == "user" or answer_in(message):
            return [message_of_parts({"parts": [message]}, "assistant" if call else role)]
    if "role" in message or any(message.get(name) for name in _CALLING):
        return as_chat(message, "a message", role)
    for name in ("input", "output", "content", "prompt", "text"):
        if name in message:
            return _messages_in(message[name], role)
    if not may_tell(message):
        return []
    if role == "user" and not listed:
        # These are only the variables of a prompt template, so the user's text was not recorded.
        return [ChatMessage("user", "", captured=False)]
    keys = ", ".join(f"`{name}`" for name in list(message)[:4])
    raise Malformed(f"a message cannot be read: it has {keys}, but neither a role nor content")


def message_of_parts(message: dict[str, Any], role: str = "user") -> ChatMessage:
    """Return a message with parts in the GenAI or Gemini format."""
    said = str(message.get("role") or role)
    return ChatMessage("assistant" if said == "model" else said, message["parts"])


def _told(answer: PartAnswer) -> ChatMessage:
    """Return a result that is a part of a message as a separate message."""
    # ADK writes this text instead of an object that it cannot encode.
    told = ChatMessage("tool", answer.content, tool_call_id=answer.id, name=answer.tool or None, is_error=answer.error)
    told.captured = answer.content != "<not serializable>"
    return told


def spread(message: ChatMessage) -> list[ChatMessage]:
    """Split a message that contains calls and results into separate messages."""
    content = message.content
    if not isinstance(content, list) or message.role not in {"assistant", "user", "tool"}:
        return [message]
    parts = cast(list[Any], content)
    if message.role == "tool":
        answers = [] if message.tool_call_id else answers_in(parts)
        return [_told(each) for each in answers] or [message]
    calls: list[ToolCall] = []
    told_answers: list[ChatMessage] = []
    rest: list[Any] = []
    for part in parts:
        block = cast(dict[str, Any], part) if isinstance(part, dict) else {}
        answer = answer_in(block)
        if answer is not None:
            told_answers.append(_told(answer))
        if message.role == "assistant" and (call := call_in(block)):
            calls.append(ToolCall(call[2], name=call[0], arguments=call[1]))
        elif answer is None:
            rest.append(part)
    if message.role == "assistant" and (odd := next((part for part in rest if words_in(part) is None), None)):
        raise Malformed(f"a message has a part that cannot be read: {named(odd)}")
    if not calls and not told_answers:
        return [message]
    told = {text_id(call.id) for call in message.tool_calls or ()}
    fresh = [call for call in calls if not call.id or call.id not in told]
    made = replace(message, tool_calls=[*(message.tool_calls or ()), *fresh] or None, content=rest or None)
    if not rest and not made.tool_calls:
        return told_answers
    return [made, *told_answers] if message.role == "assistant" else [*told_answers, made]


def merged(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Merge the calls of a turn into one message. Some histories list each call separately."""
    told: list[ChatMessage] = []
    for message in messages:
        last = told[-1] if told else None
        if last is None or last.role != "assistant" or message.role != "assistant" or not message.tool_calls:
            told.append(message)
            continue
        texts = [text for text in (plain_text(last.content), plain_text(message.content)) if text]
        last.content = "\n".join(texts) or None
        last.tool_calls = [*(last.tool_calls or ()), *message.tool_calls]
    return told


def marks(message: ChatMessage) -> list[MessageMark]:
    """Return marks that identify a message in any recording: one per call or, without calls, one for the text."""
    calls: list[MessageMark] = [call_mark(call) for call in message.tool_calls or ()]
    if message.function_call is not None and message.function_call.name:
        call = message.function_call
        calls.append(("call", call.name, msgspec.json.encode(object_of(call.arguments), order="sorted")))
    if calls:
        # In a history, some tracers omit the text of messages that contain calls.
        return calls
    content = message.content
    if isinstance(content, dict):
        content = msgspec.json.encode(content, order="sorted").decode()
    return [(message.role, plain_text(content), text_id(message.tool_call_id))]


def call_mark(call: ToolCall) -> MessageMark:
    """Return a mark that identifies a call in different recordings, even if its id differs."""
    name, arguments = name_and_arguments(call)
    return "call", name, msgspec.json.encode(object_of(arguments), order="sorted")


def tool_arguments(recorded: Any) -> Any:
    """Return a tool's arguments without the wrapper that a tracer added."""
    recorded = read_json(recorded)
    wrapping = cast(dict[str, Any], recorded) if isinstance(recorded, dict) else {}
    if wrapping.keys() == {"args", "kwargs"} and not wrapping["args"]:
        return wrapping["kwargs"]
    return wrapping["inputs"] if wrapping.keys() == {"inputs"} else cast(Any, recorded)


def tool_result(recorded: Any) -> Any:
    """Return a tool's result without the wrapper that a tracer or library added."""
    return tool_outcome(recorded)[0]


def tool_outcome(recorded: Any) -> tuple[Any, bool]:
    """Return a tool's result, and whether its wrapper reports a failure."""
    value = read_json(recorded) if not isinstance(recorded, str) or recorded[:1] == "{" else recorded
    match value:
        case {"type": "tool", "content": content} | {"type": "tool", "data": {"content": content}}:
            return content, False
        case {"lc": _, "kwargs": {"content": content}}:
            return content, False
        case {"output": output, **rest} if not rest:
            return tool_outcome(output)
        case {"tool_name": _, "raw_output": raw, "is_error": failed, **rest}:
            # If LlamaIndex cannot store a value as data, it prints the value in the blocks.
            shown: Any = raw
            if not isinstance(shown, dict | list | str):
                shown = plain_text(rest.get("blocks") or rest.get("content"))
            return cast(Any, shown), failed is True
        case {"name": str(), "id": _, "response": dict()} if len(cast(dict[str, Any], value)) == 3:
            content, failed = unwrapped(cast(dict[str, Any], value)["response"])
            return content, failed is True
        case _:
            return recorded, False
