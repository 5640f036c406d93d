"""The decision log of a service as its pages read it: what the pack calls private is covered."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from bylaw.audit.cover import Redaction
from bylaw.audit.row import conversation_row
from bylaw.console.app import Pages
from bylaw.pack import Pack
from bylaw.record import Log
from bylaw.record.entry import Entry
from bylaw.shield.history import History, read_history


class Told(Struct, frozen=True):
    """A conversation as it may be shown."""

    events: list[dict[str, Any]]
    scrubbed: Callable[[str], str]
    """Takes the conversation's private values out of another text."""


class ServiceLog:
    """A log, and the pack that says what in it is private."""

    def __init__(self, log: Log, pack: Pack) -> None:
        self.log = log
        self.pack = pack
        self._redaction = Redaction(pack)
        self.layout = {"layout": "service.html", "pack": pack}
        """What the frame of its pages shows."""

    def entries(self, tenant: str, conversation: str) -> list[Entry]:
        """All that is kept of a conversation."""
        return self.log.conversation(tenant, conversation)

    def history(self, tenant: str, conversation: str) -> History | None:
        """A conversation; None where there is none of that name."""
        return read_history(self.entries(tenant, conversation))

    def told(self, history: History) -> Told:
        """What may be shown of a conversation."""
        trajectory = history.trajectory("")
        row = conversation_row(trajectory, trajectory.agent, None)
        if not self._redaction:
            return Told(row.events, str)
        cover = self._redaction.cover(trajectory.events, None, ())
        return Told(cover.conversation(row).events, cover.scrubbed)


class ServicePages(Pages):
    def __init__(self, service: ServiceLog) -> None:
        super().__init__(service.layout)
        self._service = service
