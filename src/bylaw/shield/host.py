"""The host of a live conversation: the shield's settings, and how the user is reached."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from bylaw.engine.conversation import OpenAnswers, OpenRequests
from bylaw.pack import Pack
from bylaw.policy.posture import Postures
from bylaw.record.log import Log
from bylaw.shield.history import Opening
from bylaw.shield.resolving import RunTool


class RunScheduled(Protocol):
    """Runs a piece of work, outside the event loop if it is large."""

    def __call__(self, work: Callable[[], Any], *, is_large: bool = False) -> Awaitable[Any]: ...


class Host(Protocol):
    """Settings shared by the sessions of one shield."""

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
        """The current pack, or the one a conversation began under, with its postures."""
        ...


class Channel(Struct):
    """How the host reaches the user of a conversation."""

    puts_cards: bool = False
    """Whether it shows cards and questions to the user itself, even though it does not report other messages."""
    reports_user: bool = False
    """Whether it reports the user's messages, so that the user can be asked again after any gap."""
    files_questions: bool = False
    """Whether it neither reports the user's messages nor asks them, so that a person answers instead."""
