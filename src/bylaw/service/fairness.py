"""Schedules tenants fairly in one event loop. Large or slow work runs in a separate thread."""

import asyncio
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from functools import partial
from typing import TypeVar

from bylaw.text.cost import Cost

LARGE = 16 * 1024
"""During a request with at least this many bytes, the tenant's work runs in the separate thread."""
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

Found = TypeVar("Found")


class Scheduler:
    """Decides where each tenant's work runs, and in which order."""

    def __init__(self, together: int = TOGETHER) -> None:
        """Allow `together` concurrent requests per tenant while other tenants are active."""
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="bylaw-beside")
        self._gates = defaultdict[str, asyncio.Semaphore](partial(asyncio.Semaphore, together))
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Tenants take turns in the thread. Only one request per tenant waits for it."""
        self._large: Counter[str] = Counter()
        self._paid_at: dict[str, float] = {}
        """When each tenant's slow work will no longer count."""
        self._asked: OrderedDict[str, float] = OrderedDict()
        """The time of each tenant's last request. The most recent is last."""

    async def request(self, tenant: str, size: int, answer: Callable[[], Awaitable[Found]]) -> Found:
        """When it is the tenant's turn, answer a request of `size` bytes."""
        self._asked[tenant] = time.monotonic()
        self._asked.move_to_end(tenant)
        is_large = size >= LARGE
        async with self._gates[tenant] if self._has_others(tenant) else nullcontext():
            self._large[tenant] += is_large
            try:
                with Cost():
                    return await answer()
            finally:
                self._large[tenant] -= is_large

    async def run(self, tenant: str, work: Callable[[], Found], *, is_large: bool = False) -> Found:
        """Run a tenant's work in the loop or in the thread."""
        if is_large or self._moves(tenant):
            async with self._turns[tenant]:
                # The earlier large or slow work may have ended by now.
                if is_large or self._moves(tenant):
                    loop, context = asyncio.get_running_loop(), copy_context()
                    return await loop.run_in_executor(
                        self._beside, lambda: context.run(lambda: self._timed(tenant, work))
                    )
        return self._timed(tenant, work)

    def _timed(self, tenant: str, work: Callable[[], Found]) -> Found:
        begin = time.thread_time()
        try:
            return work()
        finally:
            took, now = time.thread_time() - begin, time.monotonic()
            if took > SLOW:
                self._paid_at[tenant] = max(now, self._paid_at.get(tenant, now)) + SHARE * took

    def _moves(self, tenant: str) -> bool:
        return bool(self._large[tenant]) or self._paid_at.get(tenant, 0.0) > time.monotonic() + SHARE * SPARE

    def _has_others(self, tenant: str) -> bool:
        for latest in reversed(self._asked):
            if latest != tenant:
                return time.monotonic() - self._asked[latest] < ACTIVE
        return False
