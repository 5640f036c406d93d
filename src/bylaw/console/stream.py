"""Tells an open page, as server-sent events, that something has changed."""
# pyright: basic, reportMissingImports=false

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

T = TypeVar("T")
EVERY = 0.5
"""Seconds between two looks."""
STREAM = 8.0
"""Seconds that a browser listens at a time; it asks again by itself, and a server that stops waits no longer."""


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
