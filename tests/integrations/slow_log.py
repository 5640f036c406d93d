"""A decision log whose database answers late, and a clock that shows whether an event loop stood still meanwhile."""

import asyncio
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from bylaw.record import Log

LATE = 1.2
"""Seconds that the database takes for each answer."""
SLOW = ("conversation", "append", "settle", "named", "asked", "approve", "reject", "read_stops", "latest_uses")
"""What of a log asks the database."""


def slow_log(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Log:
    """A log that other processes write to as well, so that it is read before every step, late."""
    log = Log(str(folder / "log.sqlite"), is_shared=True)
    for name in SLOW:
        monkeypatch.setattr(log, name, _late(getattr(log, name)))
    return log


def _late(work: Any) -> Any:
    def late(*given: Any, **more: Any) -> Any:
        time.sleep(LATE)
        return work(*given, **more)

    return late


async def longest_pause(work: Awaitable[Any]) -> float:
    """How long the event loop stood still at most while this was done."""
    pauses = [0.0]

    async def tick() -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.01)
            pauses.append(time.perf_counter() - last)
            last = time.perf_counter()

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)  # or the clock would begin at the first thing that the work waits for
    await work
    ticking.cancel()
    return max(pauses)
