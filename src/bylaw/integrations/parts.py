"""The parts of a history as frameworks keep it: what was said, asked for and answered."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from bylaw.integrations.alignment import Mark
from bylaw.shield import Decision

NOT_TEXT = "(not text)"
"""Stands for a message of the user's that has no words."""


class Asked(Struct, frozen=True):
    """A call that the agent asks for."""

    id: str
    tool: str
    arguments: dict[str, Any] | str

    @property
    def function(self) -> dict[str, str]:
        """As chat messages tell it."""
        given = self.arguments
        text = given if isinstance(given, str) else msgspec.json.encode(given).decode()
        return {"name": self.tool, "arguments": text}


class Heard(Struct, frozen=True):
    """The user said something."""

    text: str
    key: str = ""
    """The framework's id for the message."""
    whole: bool = True
    """False where there was more to it than text: a voice note, a picture, a file."""

    @property
    def words(self) -> str:
        """What it is told and known by; of a message without text, that there was one."""
        return self.text if self.text.strip() else NOT_TEXT

    @property
    def mark(self) -> Mark:
        """What it is known by."""
        return Mark("user", self.words, key=self.key)


class Turn(Struct, frozen=True):
    """What the agent says and asks for at once."""

    text: str
    calls: tuple[Asked, ...] = ()
    key: str = ""

    @property
    def mark(self) -> Mark:
        """What it is known by."""
        return Mark("agent", self.text, tuple(call.id for call in self.calls), self.key)


class Answered(Struct, frozen=True):
    """What a tool answered, or what the agent was told in its place."""

    id: str
    content: Any
    error: bool | None = None
    captured: bool = True
    """False where nobody knows what became of the call."""


class Summary(Struct, frozen=True):
    """What a model or a framework wrote in the place of earlier messages: nobody said it."""


Part = Heard | Turn | Answered | Summary


def is_same(decision: Decision, tool: str, arguments: Mapping[str, Any] | str) -> bool:
    """Whether a decision is about this very call."""
    given = as_object(arguments)
    if given is None:
        return decision.tool == tool and not decision.allowed
    return decision.tool == tool and decision.arguments == given


def as_object(arguments: Mapping[str, Any] | str) -> dict[str, Any] | None:
    """Arguments as data; None where they cannot be read."""
    if not isinstance(arguments, str):
        return dict(arguments)
    try:
        return msgspec.json.decode(arguments or "{}", type=dict[str, Any])
    except msgspec.DecodeError:
        return None


def plain(content: Any) -> Any:
    """A result as data: what frameworks return as objects of their own is taken as they print it for the model."""
    try:
        msgspec.json.encode(content)
    except (TypeError, ValueError, RecursionError):
        return str(content)
    return content


def as_text(content: Any) -> str:
    """A result as the model reads it."""
    return content if isinstance(content, str) else msgspec.json.encode(content, enc_hook=str).decode()
