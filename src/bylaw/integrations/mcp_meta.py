"""What a call says of itself in `_meta`: which conversation and turn it belongs to, who makes it, what was said."""
# pyright: basic, reportMissingImports=false

from collections.abc import Mapping
from typing import Any

import msgspec

from bylaw.errors import UsageError
from bylaw.integrations.history import Heard, Part, Summary, Turn
from bylaw.trace.readers.parts import heard
from bylaw.trace.recorded_value import repeated_key

CONVERSATION = "bylaw/conversation"
"""The conversation that the call belongs to."""
TURN = "bylaw/turn"
"""The agent's turn that asked for it, a number or a text; 1 and "1" are the same turn. Calls of one turn do not count
on each other's results."""
AGENT = "bylaw/agent"
"""The inner agent that makes it for the main one: it has seen only what was shown to itself, and what it was told is
not the user's word."""
CONTEXT = "bylaw/context"
"""What the client vouches for, such as `{"signed_in_as": "C1"}`. Another principal has a conversation of their own."""
MESSAGES = "bylaw/messages"
"""What user and assistant said since the last call, as chat messages; what was told before may be told again. Without
it, rules about what was said stay open. Calls and results are no talk: those the proxy sees itself, and it takes
nobody's word for them."""
NAME = 300
"""Characters in the name of a conversation, or of an agent, at most."""
_TALK = {"role", "content", "name", "id", "timestamp", "type"}
"""What a message that only says something may hold."""
_NOTES = ("system", "developer")
"""Who writes what nobody has said: instructions, or a summary in the place of earlier messages."""


def name_in(given: Any, of: str) -> str:
    """A name that was given, as text."""
    if isinstance(given, bool) or not isinstance(given, int | str) or len(str(given)) > NAME:
        raise UsageError(f"the name of {of} is not a text of at most {NAME} characters")
    return str(given)


def context_in(given: Any, where: str) -> dict[str, Any]:
    """What is vouched for there, by name; JSON text is read."""
    if isinstance(given, str):
        try:
            read = msgspec.json.decode(given)
        except msgspec.DecodeError:
            read = ()
        if read and (twice := repeated_key(given)):
            raise UsageError(f"{where} gives `{twice}` twice")
        given = read
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise UsageError(f"{where} is not an object of names and values", hint='such as `{"signed_in_as": "C1"}`')
    return given


def agent_in(meta: Mapping[str, Any]) -> str:
    """The inner agent that makes the call; empty for the main one."""
    return name_in(meta[AGENT], "the agent") if meta.get(AGENT) else ""


def turn_in(meta: Mapping[str, Any]) -> str | None:
    """The name of the turn, where the call says one."""
    turn = meta.get(TURN)
    if turn is None:
        return None
    if isinstance(turn, bool) or not isinstance(turn, int | str):
        raise UsageError(f"`{TURN}` is neither a whole number nor a text")
    return str(turn)


def said_in(meta: Mapping[str, Any]) -> list[Part] | None:
    """What user and agent said to each other, and nothing else; None where the call does not tell."""
    if MESSAGES not in meta:
        return None
    messages = meta[MESSAGES]
    if not isinstance(messages, list):
        raise UsageError(f"`{MESSAGES}` is not a list")
    said: list[Part] = []
    for place, message in enumerate(messages):
        text = _talk(message)
        if text is None:
            raise UsageError(
                f"message {place} of `{MESSAGES}` is not a plain message from `user` or `assistant`",
                hint="leave out calls and results: the proxy has seen those itself",
            )
        key = str(message.get("id") or "")
        match message["role"]:
            case "user":
                is_theirs = not message.get("name")
                said.append(Heard(text if is_theirs else "", key, is_theirs and heard(message.get("content"))[1]))
            case "assistant":
                said.append(Turn(text, (), key))
            case _:
                said.append(Summary())
    return said


def _talk(message: Any) -> str | None:
    """The text of a message that does nothing but say it; None for any other."""
    if not isinstance(message, Mapping) or message.get("role") not in ("user", "assistant", *_NOTES):
        return None
    if (
        any(value not in (None, "", [], {}) for name, value in message.items() if name not in _TALK)
        or message.get("type", "message") != "message"
    ):
        return None
    content = message.get("content")
    if isinstance(content, str):
        return content
    texts = [_part(part) for part in content] if isinstance(content, list) else [None]
    return None if None in texts else "\n".join(text for text in texts if text)


def _part(part: Any) -> str | None:
    """The words of a part of a message: of a picture and the like none; None for a call, a result, or what is no
    part."""
    match part:
        case {"type": "text" | "input_text" | "output_text", "text": str(text)} if not part.get("name"):
            return text
        case {"type": "image" | "image_url" | "input_image" | "audio" | "input_audio" | "file" | "input_file"}:
            return ""
        case {"type": "document" | "video" | "thinking" | "redacted_thinking" | "reasoning"}:
            return ""
        case _:
            return None
