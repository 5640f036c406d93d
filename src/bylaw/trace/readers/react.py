"""Runs of agents that write their tool calls as text (ReAct, tau-bench's `react` and `act`), told as calls."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec
from msgspec import Struct

from bylaw.trace.readers.chat import ChatMessage, Function, ToolCall

_MARK = "Action:"
_ANSWER = "API output: "
_RESPOND = "respond"


class WrittenAction(Struct):
    """What the agent wrote after the mark."""

    name: str
    arguments: dict[str, object]


_ACTION = msgspec.json.Decoder(WrittenAction)


def is_react(messages: Sequence[ChatMessage]) -> bool:
    """Whether calls are written as text: an action that is not one of the API's calls, and an answer to it."""
    return not any(message.tool_calls or message.role == "tool" for message in messages) and any(
        _action(asked) is not None and _answer(answered) is not None for asked, answered in pairwise(messages)
    )


def told_as_calls(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    """The same messages with the actions as calls and their outputs as results; thoughts are nobody's to hear."""
    is_asked = False
    for message in messages:
        action = _action(message)
        answer = _answer(message) if is_asked else None
        is_asked = action is not None and action.name != _RESPOND
        if action is not None and is_asked:
            yield ChatMessage("assistant", tool_calls=[ToolCall(function=Function(action.name, action.arguments))])
        elif action is not None:
            yield ChatMessage("assistant", action.arguments.get("content"))
        elif answer is not None:
            yield ChatMessage("tool", answer)
        elif message.role == "assistant" and isinstance(message.content, str):
            # What the benchmark cannot parse it passes on to the user.
            yield ChatMessage("assistant", message.content.rpartition(_MARK)[2].strip())
        else:
            yield message


def _action(message: ChatMessage) -> WrittenAction | None:
    if message.role != "assistant" or not isinstance(message.content, str):
        return None
    try:
        return _ACTION.decode(message.content.rpartition(_MARK)[2].strip())
    except msgspec.DecodeError:
        return None


def _answer(message: ChatMessage) -> str | None:
    content = message.content
    if message.role == "user" and isinstance(content, str) and content.startswith(_ANSWER):
        return content.removeprefix(_ANSWER)
    return None
