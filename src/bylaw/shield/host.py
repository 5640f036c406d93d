"""What a live conversation needs to know of its host: the shield's settings, and how the user is reached."""

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
    """Does a piece of work, outside the event loop if it is large."""

    def __call__(self, work: Callable[[], Any], *, is_large: bool = False) -> Awaitable[Any]: ...


class Host(Protocol):
    """What the sessions of one shield share."""

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
        """The pack of now, or the one that a conversation began under, with its postures."""
        ...


class Channel(Struct):
    """How the host reaches the user of a conversation."""

    puts_cards: bool = False
    """It puts cards and questions to the user itself, though it does not report what else is said."""
    reports_user: bool = False
    """It reports what the user says, so that the user can be asked again, whatever was missed before."""
    files_questions: bool = False
    """It neither reports what the user says nor asks them: a person answers in their place."""
