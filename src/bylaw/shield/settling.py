"""Settles a decision: reads the entries of other writers, decides and writes, and starts again if another writer wrote
first.

Blocking callers and coroutines share the same steps. In an event loop, slow steps run in threads and never block the
loop.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from bylaw.errors import UsageError
from bylaw.record.entry import Draft
from bylaw.record.log import Log
from bylaw.shield.decision import Decision
from bylaw.shield.decision_service import DecisionService, WantedDecisions
from bylaw.shield.history import TRIES
from bylaw.shield.host import RunScheduled
from bylaw.shield.repeating import Repeated

MANY = 50
"""If there are at least this many drafts, the log's own thread writes them instead of the event loop."""
ASKING = 200
"""The maximum number of conversations that wait for a model or a host tool at once."""

Found = TypeVar("Found")


class SettlingStep(Struct, frozen=True):
    kind: Literal["catch_up", "read", "ask", "attempt", "write"]
    run: Callable[[], Any]
    drafts: Sequence[Draft] = ()


def settle(service: DecisionService, log: Log, wanted: WantedDecisions) -> list[Decision]:
    """Apply the mutations and decide the calls. When this function returns, the result is on disk."""
    steps = _steps(service, log, wanted)
    try:
        step = next(steps)
        while True:
            try:
                found = step.run()
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(found)
    except StopIteration as done:
        return done.value


def _steps(service: DecisionService, log: Log, wanted: WantedDecisions) -> Generator[SettlingStep, Any, list[Decision]]:
    known: int | None = None
    for _ in range(TRIES):
        yield SettlingStep("catch_up", service.catch_up)
        # The caller could not know what other writers have written in the meantime.
        known = service.state.events if known is None else known
        left, before = service.aligned(wanted, known), None
        if wanted.named is not None:
            before = yield SettlingStep("ask", partial(service.taken_before, wanted))
        if before is not None:
            left = _left_of(wanted, before)
            if not left.places:
                return _filled(before, ())
        try:
            attempt = yield SettlingStep("attempt", partial(service.attempt, left))
        except UsageError:
            if not (yield SettlingStep("read", service.was_overtaken)):
                raise
            continue
        if wanted.again is not None and not attempt.decisions:
            return []
        try:
            answers = yield SettlingStep("write", partial(log.append, attempt.drafts), attempt.drafts)
        except BaseException:
            service.forget()
            raise
        if service.is_written(attempt, answers, left.named):
            return attempt.decisions if before is None else _filled(before, attempt.decisions)
    raise service.journal.overtaken


def _left_of(wanted: WantedDecisions, answers: Sequence[Repeated]) -> WantedDecisions:
    """Return the part of a repeated request on which a new decision is required."""
    asked, places = list(wanted.asked), list[int]()
    for place, each in enumerate(answers):
        if not isinstance(each, Decision):
            asked[place] = replace(asked[place], given_up=each)
            places.append(place)
    return replace(wanted, asked=asked, places=places, first=(), named=None)


def _filled(answers: Sequence[Repeated], decisions: Sequence[Decision]) -> list[Decision]:
    """Fill the new decisions into the answers to a partly repeated request."""
    new = iter(decisions)
    return [each if isinstance(each, Decision) else next(new) for each in answers]


@cache
def _asking() -> ThreadPoolExecutor:
    """Return threads for slow requests to other services. The event loop has only a few threads of its own, and the log
    needs those.
    """
    return ThreadPoolExecutor(ASKING, thread_name_prefix="bylaw-asking")


class LoopSettling:
    """Settles the decisions of one session for coroutines, in order."""

    def __init__(
        self,
        service: DecisionService,
        log: Log | None,
        lock: threading.RLock,
        *,
        has_models: bool,
        scheduled: RunScheduled | None = None,
    ) -> None:
        """`scheduled` runs quick work in the loop or in a thread. If it is not given, all quick work runs in the
        loop.
        """
        self._service = service
        self._log = log
        self._lock = lock
        self._has_models = has_models
        self._scheduled = scheduled
        self._queue: asyncio.Lock | None = None

    async def settle(self, wanted: WantedDecisions) -> list[Decision]:
        """Apply the mutations and decide the calls. When the coroutine ends, the result is on disk."""
        service, log = self._service, self._log
        if log is None:
            return (await self._asked(partial(service.attempt, wanted))).decisions
        self._queue = self._queue or asyncio.Lock()
        async with self._queue:
            try:
                return await self._settle(log, _steps(service, log, wanted))
            finally:
                if service.journal.is_unsettled:
                    await asyncio.to_thread(self._alone, service.settle_reading)

    async def _settle(self, log: Log, steps: Generator[SettlingStep, Any, list[Decision]]) -> list[Decision]:
        resume: Callable[[], SettlingStep] = partial(next, steps)
        while True:
            try:
                step = self._alone(resume)
            except StopIteration as done:
                return done.value
            try:
                resume = partial(steps.send, await self._run(log, step))
            except BaseException as error:
                resume = partial(steps.throw, error)

    async def _run(self, log: Log, step: SettlingStep) -> Any:
        service, run = self._service, partial(self._alone, step.run)
        match step.kind:
            case "write":
                if len(step.drafts) > MANY:
                    return await self._beside(partial(log.append, step.drafts))
                return await log.append_async(step.drafts)
            case "ask":
                return await self._asked(step.run)
            case "attempt":
                reads_on = service.is_told_whole or bool(service.pack.book.limits)
                if reads_on and not log.reads_at_once and not self._may_ask_others:
                    return await asyncio.to_thread(run)
                return await self._asked(step.run)
            case "read":
                return await self._here(step.run) if log.reads_at_once else await asyncio.to_thread(run)
            case "catch_up":
                # The log writes quickly, but the host's tools and models may take long.
                catch_up = partial(self._alone, partial(service.catch_up, settled=self._may_ask_others))
                if not service.must_read:
                    return catch_up()
                if not self._may_ask_others and self._alone(service.take_for_new):
                    return None
                return await self._here(catch_up) if log.reads_at_once else await asyncio.to_thread(catch_up)

    async def _here(self, do: Callable[[], Found]) -> Found:
        """Run quick work in the loop or in a thread, as the host has chosen."""
        run = partial(self._alone, do)
        return run() if self._scheduled is None else await self._scheduled(run)

    async def _beside(self, do: Callable[[], Found]) -> Found:
        return await (asyncio.to_thread(do) if self._scheduled is None else self._scheduled(do, is_large=True))

    def _alone(self, do: Callable[[], Found]) -> Found:
        """Run work under the session's lock."""
        with self._lock:
            return do()

    @property
    def _may_ask_others(self) -> bool:
        """Whether a decision may wait for the host's tools or for a model."""
        return self._has_models or self._service.postures.resolve != "agent"

    async def _asked(self, do: Callable[[], Found]) -> Found:
        """Run, in a thread, work that may wait for other services."""
        if not self._may_ask_others:
            return await self._here(do)
        # A slow model must not delay decisions that do not need a model.
        context = contextvars.copy_context()

        def alone() -> Found:
            return context.run(self._alone, do)

        return await asyncio.get_running_loop().run_in_executor(_asking(), alone)
