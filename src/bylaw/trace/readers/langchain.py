"""LangChain messages: `messages_to_dict`, `dumpd` and plain dumps of message objects."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec
from msgspec import Struct

from bylaw.errors import RecordError
from bylaw.trace.document import Layout, Malformed, Record, decode, elements, objects, records, tell
from bylaw.trace.readers.chat import ChatMessage, Function, Id, ToolCall, follow, text_id
from bylaw.trace.source import Source
from bylaw.trace.trajectory import Trajectory
from bylaw.trace.transcript import Transcript

FORMAT = "langchain"

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


class Talk(Struct):
    """A conversation that says more than its messages."""

    messages: list[dict[str, Any]] | None = None
    values: dict[str, Any] | None = None
    """A LangGraph state has the messages there, and its thread in `config` or `checkpoint`."""
    config: dict[str, Any] | None = None
    checkpoint: dict[str, Any] | None = None
    id: Id = None
    thread_id: Id = None
    agent: str | None = None
    metadata: dict[str, Any] | None = None


class Extra(Struct):
    """What the model's provider recorded of a message."""

    tool_calls: list[ToolCall] | None = None
    function_call: Function | None = None
    refusal: str | None = None


class Body(Struct):
    """The fields of a message, whatever stands around them."""

    content: Any = None
    tool_calls: list[ToolCall] | None = None
    invalid_tool_calls: list[ToolCall] | None = None
    tool_call_id: Id = None
    name: str | None = None
    status: str | None = None
    additional_kwargs: Extra | None = None


_TALK = msgspec.json.Decoder(Talk)
_MESSAGES = msgspec.json.Decoder(list[dict[str, Any]])


def read(source: Source, layout: Layout, *, single: bool = False) -> Iterator[Trajectory | RecordError]:
    """The conversations of a file; `single` where the whole document is one list of messages."""
    broken: list[RecordError] = []
    pieces = records(source, layout)
    if single:
        parts = list(objects(source, elements(source, *source.document())))
        broken = [part for part in parts if isinstance(part, RecordError)]
        whole = b",".join(bytes(part.raw) for part in parts if isinstance(part, Record))
        pieces = iter([Record(b"[" + whole + b"]", 0)])
    for record in pieces:
        if isinstance(record, RecordError):
            yield record
            continue
        try:
            yield _conversation(source, record)
        except Malformed as error:
            yield record.fault(source, str(error))
    yield from broken


def _conversation(source: Source, record: Record) -> Trajectory:
    if bytes(record.raw).lstrip().startswith(b"["):
        talk = Talk(decode(_MESSAGES, record.raw))
    else:
        talk = decode(_TALK, record.raw)
    transcript = Transcript()
    follow([_message(message) for message in _messages(talk)], transcript)
    about = talk.metadata or {}
    named = talk.agent or about.get("agent") or about.get("lc_agent_name") or about.get("agent_name")
    return Trajectory(
        id=text_id(talk.id) or _thread(talk) or f"{source.name}#{record.index}",
        events=transcript.events,
        agent=source.agent or (named if isinstance(named, str) else "") or source.agent_by_name,
        instructions="\n\n".join(transcript.instructions),
        file=source.name,
        position=record.position,
        format=FORMAT,
        details=talk.metadata or {},
    )


def _messages(talk: Talk) -> list[dict[str, Any]]:
    listed = talk.messages
    if listed is None and talk.values is not None:
        try:
            return msgspec.convert(talk.values.get("messages"), list[dict[str, Any]])
        except msgspec.ValidationError as error:
            raise Malformed(f"`values.messages`: {tell(error)}") from error
    if listed is None:
        raise Malformed("neither `messages` nor `values.messages` in it")
    return listed


def _thread(talk: Talk) -> str:
    """The conversation's id where the checkpointer keeps it."""
    settings: Any = (talk.config or {}).get("configurable")
    known: Any = cast("dict[str, Any]", settings).get("thread_id") if isinstance(settings, dict) else None
    return text_id(talk.thread_id) or text_id(known) or text_id((talk.checkpoint or {}).get("thread_id"))


def _message(message: dict[str, Any]) -> ChatMessage:
    """A message of LangChain's, or a plain one that an application put among them."""
    if is_langchain(message) or "role" not in message:
        return chat_message(message)
    try:
        return msgspec.convert(message, ChatMessage)
    except msgspec.ValidationError as error:
        raise Malformed(f"a message is malformed: {tell(error)}") from error


def is_langchain(message: dict[str, Any]) -> bool:
    """Whether a message is one of LangChain's."""
    return "lc" in message or (str(message.get("type")) in _ROLES and "role" not in message)


def chat_message(message: dict[str, Any]) -> ChatMessage:
    """A LangChain message as a chat message."""
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
        body = msgspec.convert(recorded, Body)
    except msgspec.ValidationError as error:
        raise Malformed(f"a message is malformed: {tell(error)}") from error
    extra = body.additional_kwargs or Extra()
    return ChatMessage(
        role=role,
        content=body.content,
        tool_calls=_calls(body, extra),
        tool_call_id=body.tool_call_id,
        name=body.name if role == "tool" else None,
        is_error=True if body.status == "error" else None,
        function_call=extra.function_call,
        refusal=extra.refusal,
    )


def _calls(body: Body, extra: Extra) -> list[ToolCall]:
    """The calls of a message; the provider's own list tells the same ones again."""
    calls = [*(body.tool_calls or ()), *(body.invalid_tool_calls or ())]
    told = {text_id(call.id) for call in calls}
    return calls + [call for call in extra.tool_calls or () if not calls or text_id(call.id) not in told]
