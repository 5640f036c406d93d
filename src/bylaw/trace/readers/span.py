"""What a tracer keeps of one model call or one run of a tool."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from bylaw.trace.readers.chat import ChatMessage

T = TypeVar("T")


def lineage(each: T | None, id_of: Callable[[T], str], parent_of: Callable[[T], T | None]) -> Iterator[T]:
    """A span, and those around it from the inside out; a circle is gone through once."""
    visited: set[str] = set()
    while each is not None and (id := id_of(each)) not in visited:
        visited.add(id)
        yield each
        each = parent_of(each)


class Generation(Struct):
    """One call of a model: the history it was given and what it said."""

    start: float
    history: list[ChatMessage]
    output: list[ChatMessage]
    session: str = ""
    trace: str = ""
    agent: str = ""
    model: str = ""
    tools: Sequence[Any] = ()
    called: bool = False
    """The source says that it called tools, whether or not it says which."""
    fault: str = ""
    """Why nothing of it can be read: then its conversation cannot be told as a whole."""


class ToolRun(Struct):
    start: float
    end: float
    tool: str
    arguments: Any = None
    result: Any = None
    captured: bool = False
    error: bool | None = None
    id: str = ""
    session: str = ""
    trace: str = ""
    agent: str = ""


def is_instruction(message: ChatMessage) -> bool:
    """Whether a message is the host's, to the model."""
    return message.role in {"system", "developer"}
