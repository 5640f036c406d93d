"""Reads conversations saved by LangChain, Pydantic AI, ADK, LlamaIndex, Claude or Agent Framework."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import msgspec

from bylaw.errors import RecordError
from bylaw.trace.document import Malformed, Record, conversations_in, decode, is_list, read_each, reason, trajectory_of
from bylaw.trace.event import Trajectory, agent_of_model
from bylaw.trace.reader import Look
from bylaw.trace.readers.chat import ChatMessage, ToolCall, follow, text_id
from bylaw.trace.readers.openai import Named, as_chat, chat_message
from bylaw.trace.readers.recorded import message_of_parts, spread
from bylaw.trace.recorded_value import plain_text
from bylaw.trace.source import Source
from bylaw.trace.transcript import Transcript

Fields = dict[str, Any]


class SavedTalk(Named):
    """The messages of a conversation, the events of an ADK session, or the state of a LangGraph thread."""

    messages: list[Fields] | None = None
    events: list[Fields] | None = None
    values: Fields | None = None
    """The messages of a LangGraph state. The thread's id is in `config` or `checkpoint`."""
    config: Fields | None = None
    checkpoint: Fields | None = None
    agent: str | None = None
    model: str | None = None
    metadata: Fields | None = None


_TALK = msgspec.json.Decoder(SavedTalk)
_MESSAGES = msgspec.json.Decoder(list[Fields])


def read(source: Source, found: Look) -> Iterator[Trajectory | RecordError]:
    pieces = conversations_in(source, found.layout, single=found.single)
    return read_each(source, pieces, lambda record: _conversation(source, record, found.format))


def _conversation(source: Source, record: Record, format: str) -> Trajectory:
    talk = SavedTalk(decode(_MESSAGES, record.raw)) if is_list(record) else decode(_TALK, record.raw)
    listed = _listed(talk, format)
    transcript = Transcript()
    follow((message for each in _TOLD[format](listed) for message in each), transcript)
    about = talk.metadata or {}
    named = talk.agent or about.get("agent") or about.get("lc_agent_name") or about.get("agent_name")
    if not isinstance(named, str):
        authors = (each.get("author") for each in listed if format == "adk")
        named = next((str(author) for author in authors if author not in (None, "user")), "")
    return trajectory_of(
        source,
        record,
        transcript,
        format,
        id=next((text_id(id) for id in _ids(talk) if id is not None), ""),
        agent=named or (agent_of_model(talk.model) if talk.model else ""),
        details=about,
    )


def _listed(talk: SavedTalk, format: str) -> list[Fields]:
    if talk.events is not None and format == "adk":
        return talk.events
    if talk.messages is not None:
        return talk.messages
    if talk.values is None:
        raise Malformed("it contains neither `messages`, `events` nor `values.messages`")
    try:
        return msgspec.convert(talk.values.get("messages"), list[Fields])
    except msgspec.ValidationError as error:
        raise Malformed(f"`values.messages`: {reason(error)}") from error


def _ids(talk: SavedTalk) -> Iterator[Any]:
    """Yield the possible ids of the conversation. The last two are LangGraph's."""
    yield from (talk.id, talk.conversation_id, talk.session_id, talk.thread_id)
    settings = (talk.config or {}).get("configurable")
    yield cast(Fields, settings).get("thread_id") if isinstance(settings, dict) else None
    yield (talk.checkpoint or {}).get("thread_id")


def langchain(messages: Iterable[Fields]) -> Iterator[list[ChatMessage]]:
    """Convert LangChain's messages, and plain messages from the application, to chat messages."""
    for place, message in enumerate(messages):
        yield as_chat(message, f"message {place}") if "role" in message else [chat_message(message)]


def pydantic_ai(messages: Iterable[Fields]) -> Iterator[list[ChatMessage]]:
    """Convert the output of `all_messages_json()`, which consists of requests and responses with parts."""
    for message in messages:
        told: list[ChatMessage] = []
        texts: list[str] = []
        calls: list[ToolCall] = []
        if isinstance(said := message.get("instructions"), str):
            told.append(ChatMessage("system", said))
        for part in cast(list[Fields], message.get("parts") or ()):
            id, tool = text_id(part.get("tool_call_id")), part.get("tool_name")
            match part.get("part_kind"):
                case "system-prompt":
                    told.append(ChatMessage("system", part.get("content")))
                case "user-prompt":
                    told.append(ChatMessage("user", part.get("content")))
                case "tool-return" | "builtin-tool-return":
                    failed = part.get("outcome") in ("failed", "denied")
                    told.append(_answer(part.get("content"), id, tool, True if failed else None))
                case "retry-prompt" if tool:
                    told.append(_answer(part.get("content"), id, tool, True))
                case "text":
                    texts.append(str(part.get("content") or ""))
                case "tool-call" | "builtin-tool-call":
                    calls.append(_call(tool, part.get("args"), id))
                case "thinking" | "file" | "compaction" | "retry-prompt":
                    # There is nothing to check, because the library itself creates a `retry-prompt` without a tool.
                    pass
                case kind:
                    raise Malformed(f"a part of the unknown kind `{kind}`")
        if message.get("kind") == "response":
            told.append(ChatMessage("assistant", "\n".join(filter(None, texts)) or None, calls or None))
        yield told


def adk(events: Iterable[Fields]) -> Iterator[list[ChatMessage]]:
    """Convert the events of an ADK session. The contents of the events are in Gemini's format."""
    for event in events:
        content = event.get("content")
        if not isinstance(content, dict) or event.get("partial"):
            continue
        said = cast(Fields, content)
        role = "user" if event.get("author") == "user" else "assistant"
        yield spread(message_of_parts({**said, "role": role, "parts": said.get("parts") or []}))


def llama_index(messages: Iterable[Fields]) -> Iterator[list[ChatMessage]]:
    """Convert chat messages with blocks. A call is one of the blocks, or a separate field of the message."""
    for message in messages:
        about = cast(Fields, message.get("additional_kwargs") or {})
        role = str(message.get("role"))
        blocks = [{"type": each.get("block_type"), **each} for each in cast(list[Fields], message.get("blocks") or ())]
        content = blocks or message.get("content")
        if role in {"tool", "function"}:
            yield [_answer(plain_text(content), text_id(about.get("tool_call_id")), about.get("name"))]
        else:
            calls = msgspec.convert(about.get("tool_calls") or None, list[ToolCall] | None)
            yield [ChatMessage({"chatbot": "assistant", "model": "assistant"}.get(role, role), content, calls)]


_SILENT_CONTENTS = {"function_approval_request", "function_approval_response", "error", "hosted_vector_store"}


def agent_framework(messages: Iterable[Fields]) -> Iterator[list[ChatMessage]]:
    """Convert Agent Framework messages. Text, calls and results are separate entries in a message's contents."""
    for message in messages:
        contents, role = cast(list[Fields], message.get("contents") or []), str(message.get("role"))
        silent = {"text"} if role == "user" else {"text", *_SILENT_CONTENTS}
        text = "".join(str(each.get("text") or "") for each in contents if each.get("type") == "text")
        rest: list[Fields] = [
            {**each, "arguments": each.get("arguments") or {}} if each.get("type") == "function_call" else each
            for each in contents
            if each.get("type") not in silent
        ]
        yield [ChatMessage(role, [text, *rest] if text else rest)]


def claude(messages: Iterable[Fields]) -> Iterator[list[ChatMessage]]:
    """Convert the SDK's message objects.

    The field `type`, or the set of fields, identifies the class of a message. Blocks have no type.
    """
    for message in messages:
        kind = str(message.get("type") or "")
        content = message.get("content")
        if "content" not in message or kind in {"SystemMessage", "ResultMessage", "StreamEvent"}:
            continue
        role = "assistant" if kind == "AssistantMessage" or (not kind and "model" in message) else "user"
        if not isinstance(content, list):
            yield [ChatMessage(role, content)]
            continue
        yield [ChatMessage(role, [_block(cast(Fields, each)) for each in cast(list[Any], content)])]


def _block(block: Fields) -> Fields:
    if "type" in block:
        return block
    kinds = {"tool_use_id": "tool_result", "input": "tool_use", "thinking": "thinking", "text": "text"}
    return {"type": next((kind for name, kind in kinds.items() if name in block), "unknown"), **block}


def _call(tool: Any, arguments: Any, id: str) -> ToolCall:
    if not isinstance(tool, str) or not tool:
        raise Malformed("a tool call has no name")
    return ToolCall(id, name=tool, arguments={} if arguments is None else arguments)


def _answer(content: Any, id: str, tool: Any, error: bool | None = None) -> ChatMessage:
    name = tool if isinstance(tool, str) else None
    return ChatMessage("tool", content, tool_call_id=id, name=name, is_error=error)


_TOLD: dict[str, Callable[[Iterable[Fields]], Iterator[list[ChatMessage]]]] = {
    "langchain": langchain,
    "pydantic-ai": pydantic_ai,
    "adk": adk,
    "llama-index": llama_index,
    "agent-framework": agent_framework,
    "claude": claude,
}
