"""Group commit: many threads and coroutines append entries, and one sync saves the entries of all of them.

An append returns when its entries are on disk. During a sync, the next batch is collected. A busy service therefore
needs far fewer syncs than it makes decisions.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType

from bylaw.errors import BylawError
from bylaw.record.entry import Conflict, Draft, Entry
from bylaw.record.store import Store

BATCH = 512
"""The maximum number of drafts per transaction."""
RECENT = 10.0
"""For this many seconds after a write has failed, `fault` returns the reason."""

Answers = list[Entry | Conflict]
_Future = Future[Answers] | asyncio.Future[Answers]
_Job = tuple[Sequence[Draft], _Future]
_Outcome = Answers | Exception


class LogError(BylawError):
    """Raised if the log could not be read or written. Decisions that depend on it must not be returned."""

    code = "BY701"


class Journal:
    """Writes to a log in one thread, on behalf of many threads and coroutines."""

    def __init__(self, store: Store, *, wrote: Callable[[str, str], None] | None = None) -> None:
        """`wrote` is called for each conversation that has new entries."""
        self.store = store
        self._wrote = wrote
        self.commits = 0
        """The number of transactions so far. Each was synced once."""
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._due = threading.Event()
        """Set while there are jobs, or when the log is closing."""
        self._loops: set[asyncio.AbstractEventLoop] = set()
        """Event loops that will set `_due` at the end of their current iteration."""
        self._since = 0.0
        """When the current write began. 0.0 if nothing is being written."""
        self._fault: tuple[float, str] | None = None
        """The time of the last failed transaction and the reason for its failure."""
        self._closed = False
        self._thread = threading.Thread(target=self._write, name="bylaw-journal", daemon=True)
        self._thread.start()

    def append(self, drafts: Sequence[Draft]) -> Answers:
        """Write all drafts in order, or none of them. On return, they are on disk."""
        future: Future[Answers] = Future()
        self._put(drafts, future)
        self._due.set()
        return future.result()

    async def append_async(self, drafts: Sequence[Draft]) -> Answers:
        """Like `append`, for coroutines. Appends from the same iteration of a loop are submitted together."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answers] = loop.create_future()
        self._put(drafts, future)
        if loop not in self._loops:
            self._loops.add(loop)
            loop.call_soon(self._end_turn, loop)
        return await future

    def _end_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loops.discard(loop)
        self._due.set()

    def _put(self, drafts: Sequence[Draft], future: _Future) -> None:
        if self._closed:
            raise LogError("the log is closed")
        self._jobs.put((drafts, future))

    @property
    def waits_for(self) -> float:
        """How long the current transaction has been running, in seconds. 0.0 if there is none."""
        return time.monotonic() - since if (since := self._since) else 0.0

    @property
    def fault(self) -> str:
        """Why a recent transaction failed. Empty if none has failed recently."""
        since, why = self._fault or (0.0, "")
        return why if why and time.monotonic() - since < RECENT else ""

    def close(self) -> None:
        """Write everything pending, then stop."""
        if not self._closed:
            self._closed = True
            self._due.set()
            self._thread.join()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _write(self) -> None:
        while not (self._closed and self._jobs.empty()):
            if self._jobs.empty():
                self._due.wait()
                self._due.clear()
            jobs = self._gather([])
            if not jobs:
                continue
            self._since = time.monotonic()
            try:
                with self.store.connection.turn():
                    jobs = self._gather(jobs)
                    outcomes = self._appended([drafts for drafts, _ in jobs])
            except Exception as error:
                outcomes = [self._unwritten(error) for _ in jobs]
            faults = [each for each in outcomes if isinstance(each, Exception)]
            if faults and not self.store.connection.is_there:
                # Let the waiting decisions fail too, because they may depend on entries from other writers that the
                # server has lost.
                jobs = self._gather(jobs)
                outcomes = [*outcomes, *faults[:1] * (len(jobs) - len(outcomes))]
            self._fault = (time.monotonic(), str(faults[0])) if len(faults) == len(jobs) else None
            self._since = 0.0
            self._tell(jobs, outcomes)

    def _gather(self, jobs: list[_Job]) -> list[_Job]:
        """Return the jobs, with waiting jobs added up to the size of a batch."""
        size = sum(len(drafts) for drafts, _ in jobs)
        with suppress(queue.Empty):
            while size < BATCH:
                jobs.append(job := self._jobs.get_nowait())
                size += len(job[0])
        return jobs

    def _appended(self, groups: Sequence[Sequence[Draft]]) -> Sequence[_Outcome]:
        """Write groups of drafts and return the outcome of each group. If one group cannot be written, the others still
        are.
        """
        try:
            answers = self.store.append_groups(groups)
        except Exception as error:
            if len(groups) == 1 or not self.store.connection.is_there:
                return [self._unwritten(error) for _ in groups]
        else:
            self.commits += 1
            return answers
        found: list[_Outcome] = []
        for drafts in groups:
            if len(found) > 1 and all(isinstance(each, Exception) for each in found[-2:]):
                # After two failures in a row, the cause is the database and not the drafts.
                found.append(found[-1])
            else:
                found += self._appended([drafts])
        return found

    def _unwritten(self, error: Exception) -> LogError:
        """Return the error to raise. After a database error, nothing counts as written."""
        return LogError(f"`{self.store.name}` could not be written: {error}")

    def _tell(self, jobs: Sequence[_Job], outcomes: Sequence[_Outcome]) -> None:
        """Resolve each future. Wake each event loop only once."""
        loops: dict[asyncio.AbstractEventLoop, list[tuple[_Future, _Outcome]]] = {}
        for (drafts, future), outcome in zip(jobs, outcomes, strict=True):
            if drafts and self._wrote is not None and isinstance(outcome, list) and isinstance(outcome[0], Entry):
                # All drafts of a job belong to one conversation.
                self._wrote(drafts[0].tenant, drafts[0].conversation)
            if isinstance(future, Future):
                _resolve([(future, outcome)])
            else:
                loops.setdefault(future.get_loop(), []).append((future, outcome))
        for loop, waiting in loops.items():
            # If the loop is closed, no coroutine waits in it.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_resolve, waiting)


def _resolve(waiting: Sequence[tuple[_Future, _Outcome]]) -> None:
    for future, outcome in waiting:
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
