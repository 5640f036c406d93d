"""Tenants share one event loop. Large or slow work runs beside it, in one thread, and lets small requests go first."""

import asyncio
import time
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import copy_context
from typing import TypeVar

from bylaw.text.cost import Cost, counting, current

LARGE = 16 * 1024
"""Bytes of a request from which its tenant's requests run beside the loop while it is answered."""
SLOW = 0.01
"""Seconds of the processor's time after which a tenant's requests run beside it."""
SHARE = 20
"""How many times as long as the slow work they then run there, so slow work takes a twentieth of the loop at most."""
ACTIVE = 1.0
"""Seconds after its last request for which a tenant counts as active."""
TOGETHER = 2
"""Requests of one tenant that are answered at once, while others are active."""
REST = 3
"""How many times as long as its work beside the loop a tenant rests after it, while others are active."""
LINGER = 0.003
"""Seconds after its last small work for which the loop counts as busy: the answer may not be written yet."""
PATIENCE = 4
"""How many times as long as it has worked, work beside the loop waits for a busy loop at most."""

Found = TypeVar("Found")


class Scheduler:
    """Decides where the work of each tenant is done, and in which order."""

    def __init__(self, together: int = TOGETHER) -> None:
        """Where answers wait for a model or the host's tools, more requests of a tenant are answered `together`."""
        self._together = together
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="bylaw-beside")
        self._is_free = asyncio.Lock()
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By tenant: only one request of each waits for the thread, so that tenants take turns."""
        self.is_working = False
        """Whether a tenant's work is being done in the loop."""
        self._large: Counter[str] = Counter()
        """By tenant, its large requests that are being answered."""
        self._slow_until: dict[str, float] = {}
        self._rests_until: dict[str, float] = {}
        self._asked: OrderedDict[str, float] = OrderedDict()
        """When each tenant last sent a request, the latest at the end."""
        self._answering: Counter[str] = Counter()
        """By tenant, its requests that are being answered."""
        self._waiting: defaultdict[str, deque[asyncio.Future[None]]] = defaultdict(deque)
        """By tenant, its requests that wait until others of its requests are answered."""
        self._busy_until = 0.0
        """Until when the loop counts as busy."""

    @asynccontextmanager
    async def request(self, tenant: str, size: int) -> AsyncGenerator[None]:
        """A request of this size is being answered."""
        self._asked[tenant] = time.monotonic()
        self._asked.move_to_end(tenant)
        await self._enter(tenant)
        is_large = size >= LARGE
        self._large[tenant] += is_large
        if not is_large:
            self._busy_until = time.monotonic() + LINGER
        try:
            with counting(Cost()):
                yield
        finally:
            self._large[tenant] -= is_large
            self._leave(tenant)

    async def run(self, tenant: str, work: Callable[[], Found], *, is_large: bool = False) -> Found:
        """Do a piece of a tenant's work, in the loop or beside it."""
        cost = current()
        is_large = is_large or (cost is not None and cost.is_large) or bool(self._large[tenant])
        if not is_large and self._slow_until.get(tenant, 0.0) <= time.monotonic():
            return self._in_loop(tenant, work)
        async with self._turns[tenant]:
            if (rest := self._rests_until.get(tenant, 0.0) - time.monotonic()) > 0 and self._has_others(tenant):
                await asyncio.sleep(rest)
            async with self._is_free:
                piece, context = _Piece(self), copy_context()
                try:
                    return await asyncio.get_running_loop().run_in_executor(
                        self._beside, lambda: context.run(piece.do, work)
                    )
                finally:
                    self._note(tenant, piece.worked)
                    self._rests_until[tenant] = time.monotonic() + REST * piece.took

    def _in_loop(self, tenant: str, work: Callable[[], Found]) -> Found:
        begin = time.thread_time()
        self.is_working = True
        try:
            return work()
        finally:
            self.is_working = False
            self._busy_until = time.monotonic() + LINGER
            self._note(tenant, time.thread_time() - begin)

    async def _enter(self, tenant: str) -> None:
        """Wait until one more request of the tenant may be answered."""
        if self._answering[tenant] < self._together or not self._has_others(tenant):
            self._answering[tenant] += 1
            return
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[tenant].append(waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            if not waiting.cancelled():
                self._leave(tenant)
            raise

    def _leave(self, tenant: str) -> None:
        """A request of the tenant was answered: others of its requests may go on."""
        self._answering[tenant] -= 1
        waiting = self._waiting.get(tenant, ())
        while waiting and (self._answering[tenant] < self._together or not self._has_others(tenant)):
            if not (first := waiting.popleft()).done():
                first.set_result(None)
                self._answering[tenant] += 1
        if not self._answering[tenant]:
            del self._answering[tenant]
            self._waiting.pop(tenant, None)

    def _has_others(self, tenant: str) -> bool:
        """Whether another tenant is active."""
        latest = next((each for each in reversed(self._asked) if each != tenant), None)
        return latest is not None and time.monotonic() - self._asked[latest] < ACTIVE

    def _note(self, tenant: str, seconds: float) -> None:
        """Remember how long a piece of work took."""
        if seconds > SLOW:
            self._slow_until[tenant] = time.monotonic() + SHARE * seconds

    @property
    def busy_for(self) -> float:
        """Seconds for which work beside the loop is to wait."""
        return self._busy_until - time.monotonic()


class _Piece:
    """Work that is done beside the loop and waits while the loop is busy."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.worked = 0.0
        """Seconds of the processor's time that it has used."""
        self.took = 0.0
        """Seconds from its beginning to its end, without those in which it let others go first."""
        self._waited = 0.0

    def do(self, work: Callable[[], Found]) -> Found:
        """Do the work, and pause wherever it counts its steps."""
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
