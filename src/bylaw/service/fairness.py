"""Schedules tenants fairly in one event loop. Large or slow work runs in a separate thread and gives way to small
requests.
"""

import asyncio
import time
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from bylaw.text.cost import Cost, current

LARGE = 16 * 1024
"""After a request with at least this many bytes, the tenant's work moves to the separate thread."""
SLOW = 0.01
"""Work is considered slow after this many CPU seconds."""
SPARE = 0.05
"""How much slow work a tenant may do in the loop, in CPU seconds. Any work may be slow once, for example during a
garbage collection.
"""
SHARE = 20
"""Slow work no longer counts after this multiple of its duration. It therefore takes at most a twentieth of the loop's
time.
"""
ACTIVE = 1.0
"""For this many seconds after its last request, a tenant is considered active."""
TOGETHER = 2
"""The number of concurrent requests per tenant while other tenants are active."""
REST = 3
"""How long a tenant pauses after work in the thread, as a multiple of the work's duration. Only applies while other
tenants are active.
"""
LINGER = 0.02
"""After small work, the loop is considered busy for this many seconds, because the log's thread still has to write the
decision, and the loop has to send the response.
"""
PATIENCE = 4
"""The maximum time that work in a thread waits for a busy loop. It is a multiple of the work's own time."""

Found = TypeVar("Found")


class Scheduler:
    """Decides where each tenant's work runs, and in which order."""

    def __init__(self, together: int = TOGETHER) -> None:
        """Allow `together` concurrent requests per tenant, for requests that wait for a model or a tool."""
        self._together = together
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="bylaw-beside")
        self._is_free = asyncio.Lock()
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Tenants take turns in the thread. Only one request per tenant waits for it."""
        self._large: Counter[str] = Counter()
        self._paid_at: dict[str, float] = {}
        """When each tenant's slow work will no longer count."""
        self._rests_until: dict[str, float] = {}
        self._asked: OrderedDict[str, float] = OrderedDict()
        """The time of each tenant's last request. The most recent is last."""
        self._answering: Counter[str] = Counter()
        self._waiting: defaultdict[str, deque[asyncio.Future[None]]] = defaultdict(deque)
        """Requests that wait for other requests of the same tenant."""
        self._busy_until = 0.0
        """Until when the loop is considered busy."""

    async def request(self, tenant: str, size: int, answer: Callable[[], Awaitable[Found]]) -> Found:
        """When it is the tenant's turn, answer a request of `size` bytes."""
        self._asked[tenant] = time.monotonic()
        self._asked.move_to_end(tenant)
        if self._may_enter(tenant):
            self._answering[tenant] += 1
        else:
            await self._wait(tenant)
        is_large = size >= LARGE
        self._large[tenant] += is_large
        if not self._moves(tenant):
            self._busy_until = time.monotonic() + LINGER
        try:
            with Cost():
                return await answer()
        finally:
            self._large[tenant] -= is_large
            self._leave(tenant)

    async def run(self, tenant: str, work: Callable[[], Found], *, is_large: bool = False) -> Found:
        """Run a tenant's work in the loop or in the thread."""
        if is_large or self._moves(tenant):
            async with self._turns[tenant]:
                # The earlier large or slow work may have ended by now.
                if is_large or self._moves(tenant):
                    return await self._run_beside(tenant, work)
        return self._run_here(tenant, work)

    async def _run_beside(self, tenant: str, work: Callable[[], Found]) -> Found:
        if (rest := self._rests_until.get(tenant, 0.0) - time.monotonic()) > 0 and self._has_others(tenant):
            await asyncio.sleep(rest)
        async with self._is_free:
            piece, context = _Piece(self), copy_context()
            try:
                return await asyncio.get_running_loop().run_in_executor(
                    self._beside, lambda: context.run(piece.do, work)
                )
            finally:
                if piece.worked > SLOW:
                    self._paid_at[tenant] = time.monotonic() + SHARE * (SPARE + piece.worked)
                self._rests_until[tenant] = time.monotonic() + REST * piece.took

    def _run_here(self, tenant: str, work: Callable[[], Found]) -> Found:
        begin = time.thread_time()
        try:
            return work()
        finally:
            now, took = time.monotonic(), time.thread_time() - begin
            self._busy_until = now + LINGER
            if took > SLOW:
                self._paid_at[tenant] = max(now, self._paid_at.get(tenant, now)) + SHARE * took

    def _moves(self, tenant: str) -> bool:
        return bool(self._large[tenant]) or self._paid_at.get(tenant, 0.0) > time.monotonic() + SHARE * SPARE

    def _may_enter(self, tenant: str) -> bool:
        return self._answering[tenant] < self._together or not self._has_others(tenant)

    async def _wait(self, tenant: str) -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[tenant].append(waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            if not waiting.cancelled():
                self._leave(tenant)
            raise

    def _leave(self, tenant: str) -> None:
        self._answering[tenant] -= 1
        waiting = self._waiting.get(tenant, ())
        while waiting and self._may_enter(tenant):
            if not (first := waiting.popleft()).done():
                first.set_result(None)
                self._answering[tenant] += 1
        if not self._answering[tenant]:
            del self._answering[tenant]
            self._waiting.pop(tenant, None)

    def _has_others(self, tenant: str) -> bool:
        for latest in reversed(self._asked):
            if latest != tenant:
                return time.monotonic() - self._asked[latest] < ACTIVE
        return False

    @property
    def busy_for(self) -> float:
        """How long the thread should wait, in seconds."""
        return self._busy_until - time.monotonic()


class _Piece:
    """Work in the thread. It pauses while the loop is busy."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.worked = 0.0
        self.took = 0.0
        """How long the work itself has taken, in seconds, without waiting for other work."""
        self._waited = 0.0

    def do(self, work: Callable[[], Found]) -> Found:
        """Run the work. At each of its steps, pause if necessary."""
        started, begin, cost = time.monotonic(), time.thread_time(), current()

        def pause() -> None:
            while (seconds := self._scheduler.busy_for) > 0:
                if self._waited > PATIENCE * (time.thread_time() - begin + LINGER):
                    break
                time.sleep(seconds)
                self._waited += seconds

        try:
            if cost is not None:
                cost.pause = pause
                pause()
            return work()
        finally:
            self.worked = time.thread_time() - begin
            self.took = time.monotonic() - started - self._waited
            if cost is not None:
                cost.pause = None
