"""Makes a decision: reads entries from other writers, decides, and writes. If another writer wrote first, it starts
again.

Blocking callers and coroutines share these steps. In an event loop, slow steps run in threads and never block the loop.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, TypeVar

from msgspec.structs import replace

from bylaw.errors import UsageError
from bylaw.record.entry import Draft
from bylaw.record.journal import Answers
from bylaw.shield.decision import Decision
from bylaw.shield.decision_service import DecisionService, WantedDecisions
from bylaw.shield.history import TRIES, Attempt
from bylaw.shield.repeating import Repeated

LONG = 300
"""Conversations with more log entries than this are read outside the event loop."""
WAITING = 200
"""The maximum number of conversations that may wait for a model, a host tool or a database server at once."""

Found = TypeVar("Found")


class Settlement:
    """A request that is being decided. It ends when its decisions are on disk."""

    decisions: list[Decision] | None = None
    """The decisions. None until they are on disk."""
    _known: int | None = None
    """The number of events of which the caller could know. Later events came from other writers."""
    _attempt: Attempt
    _earlier: Sequence[Repeated] | None = None
    """The earlier answers, if the request is repeated."""
    _is_given_up = False
    """Whether the caller no longer waits. A thread may still be about to decide."""

    def __init__(self, service: DecisionService, wanted: WantedDecisions) -> None:
        self._service = service
        self._wanted = wanted
        self._tries = TRIES

    def decide(self) -> Sequence[Draft]:
        """Read the log and decide. Return the entries to write. If there are none, `decisions` is already set."""
        service, wanted = self._service, self._wanted
        while not self._is_given_up:
            if not self._tries:
                raise service.journal.overtaken
            self._tries -= 1
            if service.must_read:
                service.catch_up()
            self._known = service.state.events if self._known is None else self._known
            try:
                self._earlier = service.taken_before(wanted) if wanted.named is not None else None
                if self._earlier is None:
                    left = service.aligned(wanted, self._known)
                else:
                    left = _left_of(wanted, self._earlier)
                    if not left.places:
                        return self._end([])
                self._attempt = service.attempt(left)
            except UsageError:
                if not service.was_overtaken():
                    raise
                continue
            if wanted.again is not None and not self._attempt.decisions:
                return self._end([])
            if not self._attempt.drafts:
                self.finish([])
            return self._attempt.drafts
        return ()

    def give_up(self) -> None:
        """Discard what is not on disk. Nothing is decided any more."""
        self._is_given_up = True
        self._service.forget()

    def finish(self, answers: Answers) -> None:
        """Set `decisions` if the log accepted the entries. If it did not, `decide` must be called again."""
        attempt, named = self._attempt, self._wanted.named if self._earlier is None else None
        if self._service.is_written(attempt, answers, named):
            self._end(attempt.decisions)

    def _end(self, decisions: Sequence[Decision]) -> Sequence[Draft]:
        new = iter(decisions)
        earlier = self._earlier
        self.decisions = (
            [*new] if earlier is None else [each if isinstance(each, Decision) else next(new) for each in earlier]
        )
        return ()


def settle(service: DecisionService, wanted: WantedDecisions) -> list[Decision]:
    """Apply the mutations and decide the calls. With a log, the result is on disk when this function returns."""
    if (log := service.journal.log) is None:
        return service.attempt(wanted).decisions
    request = Settlement(service, wanted)
    try:
        while request.decisions is None:
            if drafts := request.decide():
                request.finish(log.append(drafts))
        return request.decisions
    except BaseException:
        service.forget()
        raise
    finally:
        service.settle_reading()


def _left_of(wanted: WantedDecisions, answers: Sequence[Repeated]) -> WantedDecisions:
    """Return the calls of a repeated request that must be decided again."""
    asked, places = list(wanted.asked), list[int]()
    for place, each in enumerate(answers):
        if not isinstance(each, Decision):
            asked[place] = replace(asked[place], given_up=each)
            places.append(place)
    return replace(wanted, asked=asked, places=places, first=(), named=None)


@cache
def _threads() -> ThreadPoolExecutor:
    """Return the threads that wait for models, host tools and database servers."""
    return ThreadPoolExecutor(WAITING, thread_name_prefix="bylaw-waiting")


class LoopSettling:
    """Makes the decisions of one session for coroutines, in order."""

    def __init__(self, service: DecisionService, lock: threading.RLock) -> None:
        self._service = service
        self._lock = lock
        self._queue = asyncio.Lock()

    async def settle(self, wanted: WantedDecisions) -> list[Decision]:
        """Apply the mutations and decide the calls. With a log, the result is on disk when the coroutine ends."""
        service, log = self._service, self._service.journal.log
        if log is None:
            return (await self._run(wanted, partial(service.attempt, wanted))).decisions
        async with self._queue:
            request = Settlement(service, wanted)
            try:
                while request.decisions is None:
                    if drafts := await self._run(wanted, request.decide):
                        self._alone(request.finish, await log.journal.append_async(drafts))
                return request.decisions
            except BaseException:
                self._alone(request.give_up)
                raise
            finally:
                if service.journal.is_unsettled:
                    await asyncio.to_thread(self._alone, service.settle_reading)

    async def _run(self, wanted: WantedDecisions, do: Callable[[], Found]) -> Found:
        """Run a step in the loop or, if the step may take long, in a thread."""
        service = self._service
        if service.may_wait(wanted):
            loop, context = asyncio.get_running_loop(), contextvars.copy_context()
            return await loop.run_in_executor(_threads(), lambda: context.run(self._alone, do))
        if service.scheduled is None:
            return self._alone(do)
        is_large = service.live is None and service.journal.has_more_than(LONG)
        return await service.scheduled(partial(self._alone, do), is_large=is_large)

    def _alone(self, do: Callable[..., Found], *given: Any) -> Found:
        with self._lock:
            return do(*given)
