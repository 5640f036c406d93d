"""The decision log of a service for its pages: values that the pack calls private are covered."""
# pyright: basic, reportMissingImports=false

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from bylaw.audit.cover import Redaction
from bylaw.audit.judged import conversation_row
from bylaw.console.app import Pages
from bylaw.pack import Pack
from bylaw.record import Log
from bylaw.record.entry import Entry
from bylaw.shield.history import History, read_history

T = TypeVar("T")
EVERY = 0.5
"""Seconds between two looks."""
STREAM = 8.0
"""Seconds that one stream lasts; the browser then asks again by itself."""


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
        self._service = service

    @property
    def layout(self) -> dict[str, Any]:
        return {"layout": "service.html", "pack": self._service.pack}


def known_by(request: Request) -> str:
    """What a page knows already: its last event where the browser asks again by itself, else as its address says."""
    return request.headers.get("last-event-id") or request.query_params.get("known", "")


def changes(look: Callable[[T], T], known: T) -> Response:
    """A line whenever `look`, which is given what is known, finds something else."""

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
