"""Voice runs of tau2-bench, which keep no messages but what each tick of their clock brought."""

from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from bylaw.trace.readers.chat import ChatMessage, ToolCall


class Tick(Struct, gc=False):
    """Who spoke, called and was answered within one tick."""

    agent_chunk: ChatMessage | None = None
    user_chunk: ChatMessage | None = None
    agent_tool_calls: list[ToolCall] | None = field(default=None)
    user_tool_calls: list[ToolCall] | None = field(default=None)
    agent_tool_results: list[ChatMessage] | None = field(default=None)
    user_tool_results: list[ChatMessage] | None = field(default=None)


def messages_of(ticks: Iterable[Tick]) -> Iterator[ChatMessage]:
    """The messages of the ticks in order; what one party says in a row, chunk by chunk, is one message."""
    spoken = ChatMessage()
    for message in _flat(ticks):
        if message.role != "tool" and not message.tool_calls and not message.content:
            continue
        is_speech = message.role != "tool" and not message.tool_calls and isinstance(message.content, str)
        if is_speech and message.role == spoken.role:
            spoken.content += message.content
            continue
        if spoken.role:
            yield spoken
            spoken = ChatMessage()
        if is_speech:
            spoken = ChatMessage(message.role, message.content)
        else:
            yield message
    if spoken.role:
        yield spoken


def _flat(ticks: Iterable[Tick]) -> Iterator[ChatMessage]:
    for tick in ticks:
        said = tick.agent_chunk.content if tick.agent_chunk else None
        yield ChatMessage("assistant", said, tick.agent_tool_calls)
        yield from tick.agent_tool_results or ()
        said = tick.user_chunk.content if tick.user_chunk else None
        yield ChatMessage("user", said, tick.user_tool_calls)
        yield from tick.user_tool_results or ()
