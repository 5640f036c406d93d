"""A live session in an event loop: the loop waits for the log, a model or the host's tools, and never stands still."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import TypeVar

from bylaw.errors import UsageError
from bylaw.record.log import Log
from bylaw.shield.call_decisions import Attempt, CallDecisions, Host, Wanted
from bylaw.shield.decision import Decision
from bylaw.shield.state import TRIES, SessionState, overtaken
from bylaw.shield.taken_request import filled, left_of

ASKING = 200
"""Conversations that wait for a model or the host's tools at once, at most."""

Found = TypeVar("Found")


@cache
def _asking() -> ThreadPoolExecutor:
    """The threads that wait for others; those of the event loop are few, and the log needs them."""
    return ThreadPoolExecutor(ASKING, thread_name_prefix="bylaw-asking")


class LoopSettling:
    """Settles what coroutines want of one session, one after the other."""

    def __init__(self, shield: Host, state: CallDecisions, lock: threading.RLock) -> None:
        self._shield = shield
        self._state = state
        self._lock = lock
        self._queue: asyncio.Lock | None = None

    async def settle(self, wanted: Wanted) -> list[Decision]:
        """Let things happen and decide, as `SessionState.attempt` does; what is answered is on disk."""
        state = self._state
        if not isinstance(state, SessionState):
            return (await self._attempt(wanted)).decisions
        self._queue = self._queue or asyncio.Lock()
        async with self._queue:
            try:
                return await self._settle_written(wanted, state)
            finally:
                if state.is_unsettled:
                    await asyncio.to_thread(self._alone, state.settle)

    async def _settle_written(self, wanted: Wanted, state: SessionState) -> list[Decision]:
        log, named = state.log, wanted.named
        for _ in range(TRIES):
            # What is decided now is written soon; a host's tools and models may take long.
            catch_up = partial(self._alone, partial(state.catch_up, settled=self._may_ask_others))
            if not state.must_read:
                catch_up()
            elif self._may_ask_others or not self._alone(state.take_for_new):
                await self._in_thread(log, catch_up)
            left, before = wanted, None
            if named is not None and (before := await self._asked(partial(state.taken_before, wanted))) is not None:
                left = left_of(wanted, before)
                if not left.asked:
                    return filled(before, ())
            try:
                attempt = await self._attempt(left)
            except UsageError:
                if not await self._in_thread(log, state.was_overtaken):
                    raise
                continue
            try:
                answers = await log.append_async(attempt.drafts)
            except BaseException:
                state.forget()
                raise
            if self._alone(partial(state.is_written, attempt, answers, left.named)):
                return attempt.decisions if before is None else filled(before, attempt.decisions)
        raise overtaken(state.id)

    def _alone(self, do: Callable[[], Found]) -> Found:
        """One thing at a time, whatever else is asked of the session."""
        with self._lock:
            return do()

    async def _in_thread(self, log: Log, read: Callable[[], Found]) -> Found:
        """What reading the log says, in a thread where that takes its time."""
        return read() if log.reads_at_once else await asyncio.to_thread(read)

    @property
    def _may_ask_others(self) -> bool:
        """Whether a decision may ask the host's tools, or a model: they take their time, and are asked once."""
        return (
            self._state.postures.resolve != "agent"
            or self._shield.answers is not None
            or self._shield.requests is not None
        )

    async def _asked(self, do: Callable[[], Found]) -> Found:
        """Do what may ask others, and wait for them where they may be asked."""
        if not self._may_ask_others:
            return self._alone(do)
        # Each may wait long for a model, and nobody who needs none is to wait for it.
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(_asking(), lambda: context.run(self._alone, do))

    async def _attempt(self, wanted: Wanted) -> Attempt:
        log, attempt = self._shield.log, partial(self._state.attempt, wanted)
        reads_on = self._state.is_told_whole or bool(self._state.pack.book.limits)
        if reads_on and log is not None and not log.reads_at_once and not self._may_ask_others:
            return await asyncio.to_thread(self._alone, attempt)
        return await self._asked(attempt)
