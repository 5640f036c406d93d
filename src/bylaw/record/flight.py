"""A transaction that is under way at a server, while the loop that sent it goes on with other things."""

import asyncio
import time
from collections.abc import Callable, Sequence
from selectors import EVENT_READ, EVENT_WRITE

from bylaw.record.database import HANGS, hung
from bylaw.record.entry import Conflict, Draft, Entry
from bylaw.record.store import Store

Landed = Callable[[list[list[Entry | Conflict]] | Exception], None]


class Flight:
    """The drafts of one transaction, from when they are sent to when they are on disk, or cannot be."""

    def __init__(
        self, store: Store, groups: Sequence[Sequence[Draft]], loop: asyncio.AbstractEventLoop, landed: Landed
    ) -> None:
        """`landed` is told what became of them, within the loop."""
        self._store = store
        self._steps = store.appending(groups)
        self._loop = loop
        self._landed = landed
        self._at = -1
        """What the loop watches: the connection, while it waits for the server."""
        self.since = time.monotonic()
        self._limit: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._limit = self._loop.call_later(HANGS, self._give_up)
        self._go_on()

    def _go_on(self) -> None:
        self._stop_watching()
        try:
            what = next(self._steps)
        except StopIteration as done:
            self._land(done.value)
        except Exception as error:
            self._land(error)
        else:
            self._at = self._store.connection.fileno()
            if what & EVENT_READ:
                self._loop.add_reader(self._at, self._go_on)
            if what & EVENT_WRITE:
                self._loop.add_writer(self._at, self._go_on)

    def _give_up(self) -> None:
        self._stop_watching()
        try:
            self._steps.throw(hung())
        except Exception as error:
            self._land(error)

    def land(self) -> None:
        """Stand still until it has landed: its loop has ended."""
        self._at = -1
        try:
            answers = self._store.gone_through(self._steps)
        except Exception as error:
            self._land(error)
        else:
            self._land(answers)

    def _stop_watching(self) -> None:
        if self._at >= 0:
            self._loop.remove_reader(self._at)
            self._loop.remove_writer(self._at)
            self._at = -1

    def _land(self, outcome: list[list[Entry | Conflict]] | Exception) -> None:
        if self._limit is not None:
            self._limit.cancel()
        self._landed(outcome)
