"""Group commit: many threads write, one of them waits for the disk for all.

Whoever appends is answered when the entry is on disk. While a batch is being synced the next one gathers, so a busy
service pays for one sync many times less often than once a decision, and an idle one waits for nobody. What coroutines
append in one turn of their loop is handed over together.

Where a loop does nothing but decide, such as the service's, it may write by itself at the end of each turn: whatever
comes meanwhile would wait for the log anyway, and two threads that take turns at the interpreter are slower than one.
Where a server writes, the thread waits for it and the loop goes on meanwhile.
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
"""Drafts in one transaction at most."""
RECENT = 10.0
"""Seconds for which it is told that the log could not be written, where nobody has tried again since."""

Answers = list[Entry | Conflict]
_Future = Future[Answers] | asyncio.Future[Answers]
_Job = tuple[Sequence[Draft], _Future]
_Outcome = Answers | Exception


class LogError(BylawError):
    """The log could not be written, so nothing may be answered."""

    code = "BY701"


class Journal:
    """The way into a log, for many threads and coroutines."""

    def __init__(self, store: Store, *, wrote: Callable[[str, str], None] | None = None, in_loop: bool = False) -> None:
        """`wrote` is told of each conversation that was written to; `in_loop`, loops write by themselves."""
        self.store = store
        self._wrote = wrote
        self._in_loop = in_loop and store.connection.reads_at_once
        self._alone = threading.Lock()
        """Held by whoever of this process writes."""
        self._is_telling = False
        """A loop has written, and those whose it was have not gone on yet."""
        self.commits = 0
        """Transactions so far; each is one sync."""
        self._jobs: queue.SimpleQueue[list[_Job] | None] = queue.SimpleQueue()
        """What was handed over, as it was."""
        self._gathered: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
        """By loop, what was appended in its present turn."""
        self._since = 0.0
        """When the thread began to write; 0.0 if it does not."""
        self._fault: tuple[float, str] | None = None
        """When the last transaction could not be written, and why."""
        self._closed = False
        self._thread = threading.Thread(target=self._write, name="bylaw-journal", daemon=True)
        self._thread.start()

    def append(self, drafts: Sequence[Draft]) -> Answers:
        """Write drafts one after the other, all or none; they are on disk when this returns."""
        return self.submit(drafts).result()

    async def append_async(self, drafts: Sequence[Draft]) -> Answers:
        """The same, for a coroutine."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answers] = loop.create_future()
        gathered = self._gathered.get(loop)
        if gathered is None:
            gathered = self._gathered[loop] = []
            loop.call_soon(self._hand_over, loop)
        gathered.append((drafts, future))
        return await future

    def submit(self, drafts: Sequence[Draft]) -> "Future[Answers]":
        """Hand drafts over; the future holds the answers once they are on disk."""
        future: Future[Answers] = Future()
        self._put([(drafts, future)])
        return future

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        """The turn of a loop is over."""
        jobs = self._gathered.pop(loop, [])
        if not self._in_loop or self._closed or self._since:
            # The loop does not wait for the transaction that is under way in the thread.
            self._put(jobs)
        else:
            try:
                with self._alone, self.store.connection.turn():
                    outcomes = self._taken(jobs)
            except Exception as error:
                outcomes = [self._unwritten(error) for _ in jobs]
            self._tell_loop(loop, jobs, outcomes)

    def _tell_loop(self, loop: asyncio.AbstractEventLoop, jobs: list[_Job], outcomes: Sequence[_Outcome]) -> None:
        # If the loop was closed meanwhile, nobody is waiting any more.
        with suppress(RuntimeError):
            _settle([(future, outcome) for (_, future), outcome in zip(jobs, outcomes, strict=True)])
            loop.call_soon(self._told)
            self._is_telling = True

    def _told(self) -> None:
        self._is_telling = False

    async def let_others_go_on(self) -> None:
        """To be awaited before anything else is decided: who was written down in this turn of the loop is answered
        first."""
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
        """Seconds that the transaction under way has taken in the journal's thread; 0.0 if there is none."""
        return time.monotonic() - since if (since := self._since) else 0.0

    @property
    def fault(self) -> str:
        """Why the last transaction, if it was a moment ago, could not be written."""
        since, why = self._fault or (0.0, "")
        return why if why and time.monotonic() - since < RECENT else ""

    def close(self) -> None:
        """Write what waits, then stop."""
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
                # What was decided meanwhile may rest on what others had written, and the server has lost.
                late, last = self._gather([], last=last)
                jobs, outcomes = [*jobs, *late], [*outcomes, *(fault for _ in late)]
            self._since = 0.0
            _tell([future for _, future in jobs], outcomes)
            if last:
                return

    def _taken(self, jobs: Sequence[_Job]) -> Sequence[_Outcome]:
        """What became of jobs, in their order."""
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
        """What became of each; one that cannot be written does not take the others with it."""
        if not isinstance(outcome, Exception):
            self.commits += 1
            return outcome
        if len(groups) == 1 or not self.store.connection.is_there:
            return [self._unwritten(outcome) for _ in groups]
        found: list[_Outcome] = []
        for drafts in groups:
            if len(found) > 1 and all(isinstance(each, Exception) for each in found[-2:]):
                # Two in a row: it is not they, it is the database.
                found.append(found[-1])
            else:
                found += self._appended([drafts])
        return found

    def _unwritten(self, error: Exception) -> LogError:
        """Whatever the database said: nobody may be told that something was written."""
        return LogError(f"`{self.store.name}` could not be written: {error}")

    def _tell_written(
        self, jobs: Sequence[_Job], outcomes: Sequence[_Outcome], wrote: Callable[[str, str], None]
    ) -> None:
        for (drafts, _), outcome in zip(jobs, outcomes, strict=True):
            if drafts and not isinstance(outcome, Exception) and isinstance(outcome[0], Entry):
                # Drafts that belong together are of one conversation.
                wrote(drafts[0].tenant, drafts[0].conversation)

    def _gather(self, first: list[_Job], *, last: bool = False) -> tuple[list[_Job], bool]:
        """Jobs and those that wait behind them, up to a batch; and whether the log is to be closed after them."""
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
    """Give each its outcome; an event loop is woken once for all that wait in it."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[_Future, _Outcome]]] = {}
    for future, outcome in zip(futures, outcomes, strict=True):
        if isinstance(future, Future):
            _settle([(future, outcome)])
        else:
            loops.setdefault(future.get_loop(), []).append((future, outcome))
    for loop, waiting in loops.items():
        # If the loop was closed meanwhile, nobody is waiting any more.
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
