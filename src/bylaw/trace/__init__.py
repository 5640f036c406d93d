"""Reads recorded conversations in all supported formats. Start at `event`, then `reader`."""

from typing import TYPE_CHECKING, Any

from bylaw.trace.event import Call, Event, Identities, Message, Party, Result, TaskOutcome, Trajectory

if TYPE_CHECKING:
    from bylaw.trace.reader import read, sniff

__all__ = ["Call", "Event", "Identities", "Message", "Party", "Result", "TaskOutcome", "Trajectory", "read", "sniff"]


def __getattr__(name: str) -> Any:
    # Every area needs the event model, but the readers are needed only to read files. So they are imported on first
    # use.
    if name in {"read", "sniff"}:
        from bylaw.trace import reader

        return getattr(reader, name)
    raise AttributeError(f"module `{__name__}` has no `{name}`")
