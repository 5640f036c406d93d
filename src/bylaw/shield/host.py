"""The host of a live conversation: the shield's settings, and how the host reaches the user."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from bylaw.engine.conversation import OpenAnswers, OpenRequests
from bylaw.pack import Pack
from bylaw.policy.tool import Postures
from bylaw.record.log import Log
from bylaw.shield.history import Opening
from bylaw.shield.resolving import RunTool


class RunScheduled(Protocol):
    """Runs work for a coroutine. Large work runs outside the event loop."""

    def __call__(self, work: Callable[[], Any], *, is_large: bool = False) -> Awaitable[Any]: ...


class Host(Protocol):
    pack: Pack
    postures: Postures
    log: Log | None
    tenant: str
    clock: Callable[[], float]
    tools: RunTool | None
    answers: OpenAnswers | None
    requests: OpenRequests | None
    doubts: Mapping[str, str]
    scheduled: RunScheduled | None
    is_closed: bool
    unwritten: dict[int, Any]

    def pinned(self, opening: Opening | None = None) -> tuple[Pack, Postures]:
        """Return the pack and postures with which a conversation began. Without a conversation, return the current
        ones.
        """
        ...


class Channel(Struct):
    """How the host reaches the user of a conversation."""

    puts_cards: bool = False
    """Whether the host shows cards and questions to the user although it reports no other messages."""
    reports_user: bool = False
    """Whether the host reports the user's messages. If it does, the user can be asked."""
    files_questions: bool = False
    """Whether reviewers answer all questions, because the host neither reports user messages nor asks the user."""
