"""Group commit: many threads write, and one sync saves all their entries.

An append returns when its entry is on disk. During a sync, the next batch is collected. A busy service therefore makes
far fewer syncs than decisions.

Appends by coroutines in the same turn of their loop are submitted together. A loop that only makes decisions may write
by itself at the end of each turn. With a database server, a thread waits while the loop continues.
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
"""After a failed write, the same failure is reported for this many seconds without a new attempt."""

Answers = list[Entry | Conflict]
_Future = Future[Answers] | asyncio.Future[Answers]
_Job = tuple[Sequence[Draft], _Future]
_Outcome = Answers | Exception


class LogError(BylawError):
    """The log could not be written, so decisions must not be returned."""

    code = "BY701"


class Journal:
    """Writes to a log on behalf of many threads and coroutines."""

    def __init__(self, store: Store, *, wrote: Callable[[str, str], None] | None = None, in_loop: bool = False) -> None:
        """`wrote` is called for each conversation with new entries. If `in_loop` is set, event loops write their own
        entries.
        """
        self.store = store
        self._wrote = wrote
        self._in_loop = in_loop and store.connection.reads_at_once
        self._alone = threading.Lock()
        """The lock of the thread that is writing in this process."""
        self._is_telling = False
        """Whether a loop has written, but the waiting coroutines have not resumed yet."""
        self.commits = 0
        """The number of transactions, each with one sync."""
        self._jobs: queue.SimpleQueue[list[_Job] | None] = queue.SimpleQueue()
        self._gathered: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
        """Each loop's drafts from its current turn."""
        self._since = 0.0
        """When the thread's current write began. It is 0.0 if the thread is not writing."""
        self._fault: tuple[float, str] | None = None
        """The time of the last failed transaction and the reason for its failure."""
        self._closed = False
        self._thread = threading.Thread(target=self._write, name="bylaw-journal", daemon=True)
        self._thread.start()

    def append(self, drafts: Sequence[Draft]) -> Answers:
        """Write all drafts in order, or none of them. On return, they are on disk."""
        return self.submit(drafts).result()

    async def append_async(self, drafts: Sequence[Draft]) -> Answers:
        """Like `append`, for coroutines."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answers] = loop.create_future()
        gathered = self._gathered.get(loop)
        if gathered is None:
            gathered = self._gathered[loop] = []
            loop.call_soon(self._hand_over, loop)
        gathered.append((drafts, future))
        return await future

    def submit(self, drafts: Sequence[Draft]) -> "Future[Answers]":
        """Submit drafts. The future resolves once they are on disk."""
        future: Future[Answers] = Future()
        self._put([(drafts, future)])
        return future

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        jobs = self._gathered.pop(loop, [])
        if not self._in_loop or self._closed or self._since:
            # The loop does not wait for the thread's current transaction.
            self._put(jobs)
        else:
            try:
                with self._alone, self.store.connection.turn():
                    outcomes = self._taken(jobs)
            except Exception as error:
                outcomes = [self._unwritten(error) for _ in jobs]
            self._tell_loop(loop, jobs, outcomes)

    def _tell_loop(self, loop: asyncio.AbstractEventLoop, jobs: list[_Job], outcomes: Sequence[_Outcome]) -> None:
        # A closed loop has no waiting coroutines.
        with suppress(RuntimeError):
            _settle([(future, outcome) for (_, future), outcome in zip(jobs, outcomes, strict=True)])
            loop.call_soon(self._told)
            self._is_telling = True

    def _told(self) -> None:
        self._is_telling = False

    async def let_others_go_on(self) -> None:
        """Let coroutines resume if their entries were written in this turn. Await this before the next decision."""
        if self._is_telling:
            await asyncio.sleep(0)

    def _put(self, jobs: list[_Job]) -> None:
        if not self._closed:
            self._jobs.put(jobs)
            return
        for _, future in jobs:
            if not future.done():
                future.set_exception(LogError("the log is closed"))

    @property
    def waits_for(self) -> float:
        """How long the thread's current transaction has been running, in seconds. Without a transaction, this
        is 0.0.
        """
        return time.monotonic() - since if (since := self._since) else 0.0

    @property
    def fault(self) -> str:
        """Why a recent transaction failed, or an empty string."""
        since, why = self._fault or (0.0, "")
        return why if why and time.monotonic() - since < RECENT else ""

    def close(self) -> None:
        """Write everything pending, then stop."""
        if not self._closed:
            self._in_loop = False
            for loop in list(self._gathered):
                self._hand_over(loop)
            self._closed = True
            self._jobs.put(None)
            self._thread.join()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _write(self) -> None:
        while (first := self._jobs.get()) is not None:
            jobs, last = first, False
            self._since = time.monotonic()
            try:
                with self._alone, self.store.connection.turn():
                    jobs, last = self._gather(first)
                    outcomes = self._taken(jobs)
            except Exception as error:
                outcomes = [self._unwritten(error) for _ in jobs]
            fault = next((each for each in outcomes if isinstance(each, Exception)), None)
            if fault is not None and not self.store.connection.is_there:
                # New decisions may depend on entries from other writers that the server has lost.
                late, last = self._gather([], last=last)
                jobs, outcomes = [*jobs, *late], [*outcomes, *(fault for _ in late)]
            self._since = 0.0
            _tell([future for _, future in jobs], outcomes)
            if last:
                return

    def _taken(self, jobs: Sequence[_Job]) -> Sequence[_Outcome]:
        return self._noted(jobs, self._appended([drafts for drafts, _ in jobs]))

    def _noted(self, jobs: Sequence[_Job], outcomes: Sequence[_Outcome]) -> Sequence[_Outcome]:
        first = next(iter(outcomes), None)
        is_fault = isinstance(first, Exception) and all(isinstance(each, Exception) for each in outcomes)
        self._fault = (time.monotonic(), str(first)) if is_fault else None
        if self._wrote is not None:
            self._tell_written(jobs, outcomes, self._wrote)
        return outcomes

    def _appended(self, groups: Sequence[Sequence[Draft]]) -> Sequence[_Outcome]:
        try:
            return self._outcomes(groups, self.store.append_groups(groups))
        except Exception as error:
            return self._outcomes(groups, error)

    def _outcomes(self, groups: Sequence[Sequence[Draft]], outcome: list[Answers] | Exception) -> Sequence[_Outcome]:
        """Return the outcome for each group. A failed group does not affect other groups."""
        if not isinstance(outcome, Exception):
            self.commits += 1
            return outcome
        if len(groups) == 1 or not self.store.connection.is_there:
            return [self._unwritten(outcome) for _ in groups]
        found: list[_Outcome] = []
        for drafts in groups:
            if len(found) > 1 and all(isinstance(each, Exception) for each in found[-2:]):
                # After two failures in a row, the cause is the database and not the drafts.
                found.append(found[-1])
            else:
                found += self._appended([drafts])
        return found

    def _unwritten(self, error: Exception) -> LogError:
        """Return the error to raise. After a database error, report nothing as written."""
        return LogError(f"`{self.store.name}` could not be written: {error}")

    def _tell_written(
        self, jobs: Sequence[_Job], outcomes: Sequence[_Outcome], wrote: Callable[[str, str], None]
    ) -> None:
        for (drafts, _), outcome in zip(jobs, outcomes, strict=True):
            if drafts and not isinstance(outcome, Exception) and isinstance(outcome[0], Entry):
                # All drafts in a group are for one conversation.
                wrote(drafts[0].tenant, drafts[0].conversation)

    def _gather(self, first: list[_Job], *, last: bool = False) -> tuple[list[_Job], bool]:
        """Collect waiting jobs for a batch. Return them, and whether to close the log afterwards."""
        jobs, size = list(first), sum(len(drafts) for drafts, _ in first)
        while size < BATCH and not last:
            try:
                more = self._jobs.get_nowait()
            except queue.Empty:
                break
            if more is None:
                return jobs, True
            jobs += more
            size += sum(len(drafts) for drafts, _ in more)
        return jobs, last


def _tell(futures: Sequence[_Future], outcomes: Sequence[_Outcome]) -> None:
    """Resolve each future and wake each event loop only once."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[_Future, _Outcome]]] = {}
    for future, outcome in zip(futures, outcomes, strict=True):
        if isinstance(future, Future):
            _settle([(future, outcome)])
        else:
            loops.setdefault(future.get_loop(), []).append((future, outcome))
    for loop, waiting in loops.items():
        # A closed loop has no waiting coroutines.
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
