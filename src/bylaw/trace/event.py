"""What happens in a conversation: messages, tool calls and tool results, in order.

A step is an event's position in its trajectory. Instructions (system prompts) are not events.
An agent turn that says something and calls two tools is three events that share one `turn`.
"""

from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

Party = Literal["user", "agent"]


class Message(Struct, frozen=True, tag="message", gc=False):
    """Something the user or the agent said."""

    by: Party
    text: str
    turn: int = 0
    """Events of one turn share a number; it grows along the trajectory."""
    agent: str = ""
    """Which agent spoke or was spoken to, where a trajectory has several; empty for the main one."""
    time: float | None = None
    """Seconds since the epoch, where the source says when."""


class Call(Struct, frozen=True, tag="call", gc=False):
    """A tool call. Calls of one turn do not see each other's results."""

    tool: str
    arguments: dict[str, Any]
    id: str = ""
    """The source's own id; may be empty, reused or duplicated."""
    by: Party = "agent"
    turn: int = 0
    agent: str = ""
    fault: str = ""
    """Why the arguments are not to be trusted: not captured, not JSON, not an object."""
    time: float | None = None


class Result(Struct, frozen=True, tag="result", gc=False):
    """What a tool returned. `content` is kept as it came and decoded only when asked for."""

    call: int | None
    """Step of the call this answers; None for a result that answers no call in the trajectory."""
    content: str | Raw
    """Text, or JSON not yet decoded."""
    error: bool | None = None
    """What the source says of failure; None where it does not say."""
    captured: bool = True
    """False where the source recorded that a result came but not what it was."""
    tool: str = ""
    agent: str = ""
    time: float | None = None

    def value(self) -> Any:
        """The content as data: decoded where it is JSON, else the text itself."""
        content = self.content
        if isinstance(content, Raw):
            try:
                return msgspec.json.decode(content)
            except RecursionError:
                return bytes(content).decode("utf-8", "replace")
        return decode_text(content)


Event = Message | Call | Result


def decode_text(text: str) -> Any:
    """`text` as data where it is JSON, else, or where it is nested without end, as it is."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
