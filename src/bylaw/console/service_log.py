"""Reads a service's decision log for the pages, and removes private values."""
# pyright: basic, reportMissingImports=false

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from bylaw.audit.redaction import Redaction
from bylaw.audit.row import conversation_row
from bylaw.console.app import Pages
from bylaw.pack import Pack
from bylaw.record import Log
from bylaw.record.entry import Entry
from bylaw.shield.history import History, read_history

T = TypeVar("T")
EVERY = 0.5
"""The interval between two polls, in seconds."""
STREAM = 8.0
"""The duration of a stream in seconds. After this time, the browser reconnects."""


class ShownConversation(Struct, frozen=True):
    """A conversation without its private values."""

    events: list[dict[str, Any]]
    scrubbed: Callable[[str], str]
    """A function that removes the conversation's private values from text."""


class ServiceLog:
    """A decision log, with the pack that declares its private fields."""

    def __init__(self, log: Log, pack: Pack) -> None:
        self.log = log
        self.pack = pack
        self._redaction = Redaction(pack)

    def entries(self, tenant: str, conversation: str) -> list[Entry]:
        return self.log.conversation(tenant, conversation)

    def history(self, tenant: str, conversation: str) -> History | None:
        return read_history(self.entries(tenant, conversation))

    def shown(self, history: History) -> ShownConversation:
        trajectory = history.trajectory("")
        row = conversation_row(trajectory, trajectory.agent, None)
        if not self._redaction:
            return ShownConversation(row.events, str)
        cover = self._redaction.cover(trajectory.events, None, ())
        return ShownConversation(cover.conversation(row).events, cover.scrubbed)


class ServicePages(Pages):
    def __init__(self, service: ServiceLog) -> None:
        self._service = service

    @property
    def layout(self) -> dict[str, Any]:
        return {"layout": "service.html", "pack": self._service.pack}


def known_by(request: Request) -> str:
    """Return the last event that the page has received. It is in the address or, after a reconnect, in a header."""
    return request.headers.get("last-event-id") or request.query_params.get("known", "")


def changes(look: Callable[[T], T], known: T) -> Response:
    """Send an event whenever `look(known)` returns a new value."""

    async def lines() -> AsyncIterator[str]:
        yield f"retry: {EVERY * 1000:.0f}\n\n"
        last, end = known, time.monotonic() + STREAM
        while time.monotonic() < end:
            found = await run_in_threadpool(look, last)
            if found != last:
                last = found
                yield f"event: changed\nid: {found}\ndata: {found}\n\n"
            await asyncio.sleep(EVERY)

    return StreamingResponse(lines(), media_type="text/event-stream")
