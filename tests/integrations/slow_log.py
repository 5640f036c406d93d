"""A decision log whose database answers late, and a look at whether an event loop stood still meanwhile."""

import asyncio
import threading
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from bylaw.record import Log

LATE = 0.1
"""Seconds that the database takes for each answer, at least."""
PATIENCE = 20.0
"""Seconds after which a loop that does nothing has stood still, however slow the machine is."""
SLOW = (
    "conversation",
    "append",
    "settle",
    "named",
    "asked",
    "approve",
    "reject",
    "stop_history",
    "latest_uses",
)
"""What of a log asks the database."""


class SlowLog(Log):
    """A log that other processes write to as well, so that it is read before every step, late.

    It answers only once the event loop has run again, so that no clock decides: a loop that waits for the log, or for
    somebody who holds a lock and waits for the log, never runs.
    """

    loop: asyncio.AbstractEventLoop | None = None
    thread = 0
    waits = 0
    """How often the database was asked."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder / "log.sqlite"), is_shared=True)
        self.held_up: list[str] = []
        """What kept the loop waiting."""

    def late(self, name: str) -> Any:
        work = getattr(self, name)

        def late(*given: Any, **more: Any) -> Any:
            if self.loop is not None:
                self.waits += 1
                if threading.get_ident() == self.thread or not self._goes_on(self.loop):
                    self.held_up.append(name)
            return work(*given, **more)

        return late

    @staticmethod
    def _goes_on(loop: asyncio.AbstractEventLoop) -> bool:
        time.sleep(LATE)
        ran = threading.Event()
        loop.call_soon_threadsafe(ran.set)
        return ran.wait(PATIENCE)


def slow_log(folder: Path, monkeypatch: pytest.MonkeyPatch) -> SlowLog:
    log = SlowLog(folder)
    for name in SLOW:
        monkeypatch.setattr(log, name, log.late(name))
    return log


async def held_up(work: Awaitable[Any], log: SlowLog) -> list[str]:
    """What of the log kept the event loop waiting while this was done."""
    log.loop, log.thread = asyncio.get_running_loop(), threading.get_ident()
    try:
        await work
    finally:
        log.loop = None
    assert log.waits, "the log was not asked"
    return log.held_up
