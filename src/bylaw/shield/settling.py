"""Makes a decision: reads entries from other writers, decides and writes. Starts again if another writer wrote first.

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
from bylaw.shield.history import TRIES, Attempt
from bylaw.shield.host import RunScheduled
from bylaw.shield.repeating import Repeated

LONG = 300
"""Conversations with more log entries are read outside the event loop."""
MANY = 50
"""The minimum number of drafts that are written by the log's own thread instead of the event loop."""
ASKING = 200
"""The maximum number of conversations that may wait for a model or a host tool at once."""

Found = TypeVar("Found")


class SettlingStep(Struct, frozen=True):
    kind: Literal["read", "attempt", "write"]
    run: Callable[[], Any]
    drafts: Sequence[Draft] = ()


_Steps = Generator[SettlingStep, Any, list[Decision]]


def settle(service: DecisionService, log: Log, wanted: WantedDecisions) -> list[Decision]:
    """Apply the mutations and decide the calls. The result is on disk when this function returns."""
    steps = _steps(service, log, wanted)
    step = next(steps)
    while isinstance(step, SettlingStep):
        step = _run(steps, step)
    return step


def _steps(service: DecisionService, log: Log, wanted: WantedDecisions, *, hurries: bool = False) -> _Steps:
    """Yield the steps that may take a long time.

    With `hurries`, decide before the entries are known to be on disk, and do not read the log for a conversation that
    is probably new.
    """
    known: int | None = None
    for _ in range(TRIES):
        if service.must_read and not (hurries and service.take_for_new()):
            yield SettlingStep("read", partial(service.catch_up, settled=not hurries))
        # The caller could not know the new entries from other writers.
        known = service.state.events if known is None else known
        try:
            attempt, before = yield SettlingStep("attempt", partial(_attempted, service, wanted, known))
        except UsageError:
            if not (yield SettlingStep("read", service.was_overtaken)):
                raise
            continue
        if attempt is None:
            return _filled(before or (), ())
        if wanted.again is not None and not attempt.decisions:
            return []
        try:
            answers = yield SettlingStep("write", partial(log.append, attempt.drafts), attempt.drafts)
        except BaseException:
            service.forget()
            raise
        if service.is_written(attempt, answers, wanted.named if before is None else None):
            return attempt.decisions if before is None else _filled(before, attempt.decisions)
    raise service.journal.overtaken


def _attempted(
    service: DecisionService, wanted: WantedDecisions, known: int
) -> tuple[Attempt | None, Sequence[Repeated] | None]:
    """Make the missing decisions of an earlier request. Return the attempt, if needed, and the earlier answers to a
    repeated request.
    """
    before = service.taken_before(wanted) if wanted.named is not None else None
    if before is None:
        return service.attempt(service.aligned(wanted, known)), None
    left = _left_of(wanted, before)
    return service.attempt(left) if left.places else None, before


def _run(steps: _Steps, step: SettlingStep) -> SettlingStep | list[Decision]:
    try:
        found = step.run()
    except BaseException as error:
        return _next(steps.throw, error)
    return _next(steps.send, found)


def _next(resume: Callable[[Any], SettlingStep], value: Any) -> SettlingStep | list[Decision]:
    try:
        return resume(value)
    except StopIteration as done:
        return done.value


def _run_on(steps: _Steps, step: SettlingStep) -> SettlingStep | list[Decision]:
    """Run a step, and the attempt that follows what was read."""
    found = _run(steps, step)
    return _run(steps, found) if isinstance(found, SettlingStep) and found.kind == "attempt" else found


def _left_of(wanted: WantedDecisions, answers: Sequence[Repeated]) -> WantedDecisions:
    asked, places = list(wanted.asked), list[int]()
    for place, each in enumerate(answers):
        if not isinstance(each, Decision):
            asked[place] = replace(asked[place], given_up=each)
            places.append(place)
    return replace(wanted, asked=asked, places=places, first=(), named=None)


def _filled(answers: Sequence[Repeated], decisions: Sequence[Decision]) -> list[Decision]:
    new = iter(decisions)
    return [each if isinstance(each, Decision) else next(new) for each in answers]


@cache
def _asking() -> ThreadPoolExecutor:
    """Return threads for slow requests to other services. The event loop has only a few threads, which the log
    needs.
    """
    return ThreadPoolExecutor(ASKING, thread_name_prefix="bylaw-asking")


class LoopSettling:
    """Makes the decisions of one session for coroutines, in order."""

    def __init__(
        self,
        service: DecisionService,
        log: Log | None,
        lock: threading.RLock,
        *,
        has_models: bool,
        scheduled: RunScheduled | None = None,
    ) -> None:
        """`scheduled` runs quick work in the loop or in a thread. By default, quick work runs in the loop."""
        self._service = service
        self._log = log
        self._lock = lock
        self._has_models = has_models
        self._scheduled = scheduled
        self._queue: asyncio.Lock | None = None

    async def settle(self, wanted: WantedDecisions) -> list[Decision]:
        """Apply the mutations and decide the calls. The result is on disk when the coroutine ends."""
        service, log = self._service, self._log
        if log is None:
            return (await self._asked(partial(service.attempt, wanted))).decisions
        self._queue = self._queue or asyncio.Lock()
        async with self._queue:
            try:
                steps = _steps(service, log, wanted, hurries=not self._may_ask_others)
                step: SettlingStep | list[Decision] = self._alone(next, steps)
                while isinstance(step, SettlingStep):
                    step = await self._run(log, steps, step)
                return step
            finally:
                if service.journal.is_unsettled:
                    await asyncio.to_thread(self._alone, service.settle_reading)

    async def _run(self, log: Log, steps: _Steps, step: SettlingStep) -> SettlingStep | list[Decision]:
        """Run a step and the quick steps after it. Return the next step or the decisions."""
        service, may_ask, kind = self._service, self._may_ask_others, step.kind
        if kind == "write":
            return await self._write(log, steps, step.drafts)
        if kind == "attempt" and may_ask:
            return await self._asked(partial(_run, steps, step))
        if log.reads_at_once:
            is_large = kind == "read" and service.live is None and service.journal.has_more_than(LONG)
            return await self._here(partial(_run if may_ask else _run_on, steps, step), is_large=is_large)
        if kind == "attempt" and not (service.is_told_whole or service.pack.book.limits):
            return await self._here(partial(_run, steps, step))
        return await asyncio.to_thread(self._alone, _run, steps, step)

    async def _write(self, log: Log, steps: _Steps, drafts: Sequence[Draft]) -> SettlingStep | list[Decision]:
        try:
            if len(drafts) > MANY:
                answers = await self._beside(partial(log.append, drafts))
            else:
                answers = await log.journal.append_async(drafts)
        except BaseException as error:
            return self._alone(_next, steps.throw, error)
        return self._alone(_next, steps.send, answers)

    async def _here(self, do: Callable[[], Found], *, is_large: bool = False) -> Found:
        if self._scheduled is None:
            return self._alone(do)
        return await self._scheduled(partial(self._alone, do), is_large=is_large)

    async def _beside(self, do: Callable[[], Found]) -> Found:
        return await (asyncio.to_thread(do) if self._scheduled is None else self._scheduled(do, is_large=True))

    def _alone(self, do: Callable[..., Found], *given: Any) -> Found:
        with self._lock:
            return do(*given)

    @property
    def _may_ask_others(self) -> bool:
        return self._has_models or self._service.postures.resolve != "agent"

    async def _asked(self, do: Callable[[], Found]) -> Found:
        if not self._may_ask_others:
            return await self._here(do)
        # A slow model must not delay decisions that need no model.
        context = contextvars.copy_context()

        def alone() -> Found:
            return context.run(self._alone, do)

        return await asyncio.get_running_loop().run_in_executor(_asking(), alone)
