"""A live session in an event loop: the loop waits for the log, a model or the host's tools, and never stands still."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from bylaw.errors import UsageError
from bylaw.record.log import Log
from bylaw.shield.call_decisions import Attempt, Host, Wanted
from bylaw.shield.decision import Decision
from bylaw.shield.history import Named
from bylaw.shield.state import TRIES, SessionState

ASKING = 200
"""Conversations that wait for a model or the host's tools at once, at most."""

Found = TypeVar("Found")


@cache
def _asking() -> ThreadPoolExecutor:
    """The threads that wait for others; those of the event loop are few, and the log needs them."""
    return ThreadPoolExecutor(ASKING, thread_name_prefix="bylaw-asking")


class LoopSettling:
    """Settles what coroutines want of one session, one after the other."""

    def __init__(self, shield: Host, state: SessionState, lock: threading.RLock) -> None:
        self._shield = shield
        self._log = shield.log
        self._state = state
        self._lock = lock
        self._queue: asyncio.Lock | None = None

    async def settle(self, wanted: Wanted) -> list[Decision]:
        """Let things happen and decide, as `SessionState.attempt` does; what is answered is on disk."""
        if self._log is None:
            return (await self._attempt(wanted)).decisions
        self._queue = self._queue or asyncio.Lock()
        async with self._queue:
            try:
                return await self._settle_written(wanted, self._log)
            finally:
                if self._state.is_unsettled:
                    await asyncio.to_thread(self._settle_read)

    async def _settle_written(self, wanted: Wanted, log: Log) -> list[Decision]:
        for _ in range(TRIES):
            if not self._state.must_read:
                self._catch_up()
            elif self._may_ask_others or not self._begin():
                await self._in_thread(log, self._catch_up)
            named = wanted.named
            if named is not None and (before := self._taken_before(named, wanted)) is not None:
                return before
            try:
                attempt = await self._attempt(wanted)
            except UsageError:
                if not await self._in_thread(log, self._state.was_overtaken):
                    raise
                continue
            try:
                answers = await log.append_async(attempt.drafts)
            except BaseException:
                self._state.forget()
                raise
            with self._lock:
                if self._state.is_written(attempt, answers, named):
                    return attempt.decisions
        raise self._state.overtaken()

    async def _in_thread(self, log: Log, read: Callable[[], Found]) -> Found:
        """What reading the log says, in a thread where that takes its time."""
        return read() if log.reads_at_once else await asyncio.to_thread(read)

    def _catch_up(self) -> None:
        with self._lock:
            # What is decided now is written soon; a host's tools and models may take long.
            self._state.catch_up(settled=self._may_ask_others)

    def _settle_read(self) -> None:
        with self._lock:
            self._state.settle()

    def _taken_before(self, named: Named, wanted: Wanted) -> list[Decision] | None:
        with self._lock:
            return self._state.taken_before(named, len(wanted.asked), wanted.by)

    def _begin(self) -> bool:
        with self._lock:
            return self._state.take_for_new()

    @property
    def _may_ask_others(self) -> bool:
        """Whether a decision may ask the host's tools, or a model: they take their time, and are asked once."""
        return self._state.decider.resolves or self._shield.answers is not None or self._shield.requests is not None

    async def _attempt(self, wanted: Wanted) -> Attempt:
        if self._may_ask_others:
            # Each may wait long for a model, and nobody who needs none is to wait for it.
            context = contextvars.copy_context()
            return await asyncio.get_running_loop().run_in_executor(
                _asking(), lambda: context.run(self._attempt_alone, wanted)
            )
        reads_on = self._state.is_told_whole or bool(self._state.decider.pack.book.limits)
        if reads_on and self._log is not None and not self._log.reads_at_once:
            return await asyncio.to_thread(self._attempt_alone, wanted)
        return self._attempt_alone(wanted)

    def _attempt_alone(self, wanted: Wanted) -> Attempt:
        with self._lock:
            return self._state.attempt(wanted)
