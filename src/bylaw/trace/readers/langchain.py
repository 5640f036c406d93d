"""LangChain messages: `messages_to_dict`, `dumpd` and plain dumps of message objects."""

from typing import Any, cast

import msgspec
from msgspec import Struct

from bylaw.trace.document import Malformed, tell
from bylaw.trace.readers.chat import ChatMessage, Function, Id, ToolCall, text_id

_ROLES = {
    "human": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "tool": "tool",
    "system": "system",
    "developer": "developer",
    "function": "tool",
}
_CLASSES = {"Human": "human", "AI": "ai", "Tool": "tool", "System": "system", "Function": "function"}


class Extra(Struct):
    """What the model's provider recorded of a message."""

    tool_calls: list[ToolCall] | None = None
    function_call: Function | None = None
    refusal: str | None = None


class MessageBody(Struct):
    """The fields of a message, whatever stands around them."""

    content: Any = None
    tool_calls: list[ToolCall] | None = None
    invalid_tool_calls: list[ToolCall] | None = None
    tool_call_id: Id = None
    name: str | None = None
    status: str | None = None
    additional_kwargs: Extra | None = None


def mixed_message(message: dict[str, Any]) -> ChatMessage:
    """A message of LangChain's, or a plain one that an application put among them."""
    if is_langchain(message) or "role" not in message:
        return chat_message(message)
    try:
        return msgspec.convert(message, ChatMessage)
    except msgspec.ValidationError as error:
        raise Malformed(f"a message is malformed: {tell(error)}") from error


def is_langchain(message: dict[str, Any]) -> bool:
    return "lc" in message or (str(message.get("type")) in _ROLES and "role" not in message)


def chat_message(message: dict[str, Any]) -> ChatMessage:
    kind: Any = message.get("type")
    recorded: Any = message
    if "lc" in message:
        path = message.get("id")
        name = str(cast(list[Any], path)[-1]) if isinstance(path, list) and path else ""
        kind = next((kind for start, kind in _CLASSES.items() if name.startswith(start)), kind)
        recorded = message.get("kwargs")
    elif "data" in message:
        recorded = message["data"]
    role = _ROLES.get(str(kind))
    if role is None:
        raise Malformed(f"a message has the unknown type `{kind}`")
    try:
        body = msgspec.convert(recorded, MessageBody)
    except msgspec.ValidationError as error:
        raise Malformed(f"a message is malformed: {tell(error)}") from error
    extra = body.additional_kwargs or Extra()
    return ChatMessage(
        role=role,
        content=body.content,
        tool_calls=_calls(body, extra),
        tool_call_id=body.tool_call_id,
        name=body.name,
        is_error=True if body.status == "error" else None,
        function_call=extra.function_call,
        refusal=extra.refusal,
    )


def _calls(body: MessageBody, extra: Extra) -> list[ToolCall]:
    """The calls of a message; the provider's own list tells the same ones again."""
    calls = [*(body.tool_calls or ()), *(body.invalid_tool_calls or ())]
    told = {text_id(call.id) for call in calls}
    return calls + [call for call in extra.tool_calls or () if not calls or text_id(call.id) not in told]
