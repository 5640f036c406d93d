"""Group commit: many threads write, one of them waits for the disk for all.

Whoever appends is answered when the entry is on disk. While a batch is being synced the next one gathers, so a busy
service pays for one sync many times less often than once a decision, and an idle one waits for nobody.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from types import TracebackType

from bylaw.errors import BylawError
from bylaw.record.entry import Conflict, Draft, Entry
from bylaw.record.store import Store

BATCH = 512
"""Drafts in one transaction at most."""
BUSY = 4
"""Jobs in the last batch beyond which others are waited for."""
GATHER = 0.004
"""Seconds to wait for them: a batch costs as much as several decisions."""

Answers = list[Entry | Conflict]
_Future = Future[Answers] | asyncio.Future[Answers]
_Job = tuple[Sequence[Draft], _Future]
_Outcome = Answers | Exception


class LogError(BylawError):
    """The log could not be written, so nothing may be answered."""

    code = "BY701"


class Journal:
    """The way into a log, for many threads and coroutines."""

    def __init__(self, store: Store, *, is_shared: bool = False) -> None:
        self.store = store
        self._is_shared = is_shared
        """Other processes write to the same log, just as busily."""
        self.commits = 0
        """Transactions so far; each is one sync."""
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._write, name="bylaw-journal", daemon=True)
        self._thread.start()

    def append(self, drafts: Sequence[Draft]) -> Answers:
        """Write drafts one after the other, all or none; they are on disk when this returns."""
        return self.submit(drafts).result()

    async def append_async(self, drafts: Sequence[Draft]) -> Answers:
        """The same, for a coroutine."""
        future: asyncio.Future[Answers] = asyncio.get_running_loop().create_future()
        self._submit(drafts, future)
        return await future

    def submit(self, drafts: Sequence[Draft]) -> "Future[Answers]":
        """Hand drafts over; the future holds the answers once they are on disk."""
        future: Future[Answers] = Future()
        self._submit(drafts, future)
        return future

    def _submit(self, drafts: Sequence[Draft], future: _Future) -> None:
        if self._closed:
            future.set_exception(LogError("the log is closed"))
        else:
            self._jobs.put((drafts, future))

    def close(self) -> None:
        """Write what waits, then stop."""
        if not self._closed:
            self._closed = True
            self._jobs.put(None)
            self._thread.join()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _write(self) -> None:
        jobs: list[_Job] = []
        while (first := self._jobs.get()) is not None:
            if len(jobs) > BUSY:
                time.sleep(GATHER)
            jobs, last = [first], False
            try:
                with self.store.turn() if self._is_shared else nullcontext():
                    jobs, last = self._gather(first)
                    outcomes: Sequence[_Outcome] = self.store.append_groups([drafts for drafts, _ in jobs])
                self.commits += 1
            except Exception as error:
                # Whatever the database said: nobody may be told that something was written.
                outcomes = [LogError(f"`{self.store.name}` could not be written: {error}") for _ in jobs]
            _tell([future for _, future in jobs], outcomes)
            if last:
                return

    def _gather(self, first: _Job) -> tuple[list[_Job], bool]:
        """The job and those that wait behind it, up to a batch; and whether the log is to be closed after them."""
        jobs, size = [first], len(first[0])
        while size < BATCH:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return jobs, True
            jobs.append(job)
            size += len(job[0])
        return jobs, False


def _tell(futures: Sequence[_Future], outcomes: Sequence[_Outcome]) -> None:
    """Give each its outcome; an event loop is woken once for all that wait in it."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[_Future, _Outcome]]] = {}
    for future, outcome in zip(futures, outcomes, strict=True):
        if isinstance(future, Future):
            _settle([(future, outcome)])
        else:
            loops.setdefault(future.get_loop(), []).append((future, outcome))
    for loop, waiting in loops.items():
        # A loop that was closed meanwhile has nobody left who waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, waiting)


def _settle(waiting: Sequence[tuple[_Future, _Outcome]]) -> None:
    for future, outcome in waiting:
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
