"""Schedules the work of several tenants fairly in one event loop. Large or slow work runs in a separate thread."""

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
"""A request of at least this many bytes is large. While it is handled, the tenant's work runs in the separate thread.
"""
SLOW = 0.01
"""Work that takes more than this many CPU seconds is slow."""
SPARE = 0.05
"""How many CPU seconds of slow work a tenant may do in the loop. It is not 0, because any work may be slow once, for
example during a garbage collection.
"""
SHARE = 20
"""Slow work is forgotten after this multiple of its duration, so that it takes at most a twentieth of the loop's time.
"""
ACTIVE = 1.0
"""A tenant is active for this many seconds after its last request."""
TOGETHER = 2
"""The number of concurrent requests that each tenant may have while other tenants are active."""

Found = TypeVar("Found")


class Scheduler:
    """Decides where and in which order the tenants' work runs."""

    def __init__(self, together: int = TOGETHER) -> None:
        """While other tenants are active, each tenant may have `together` concurrent requests."""
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="bylaw-beside")
        self._gates = defaultdict[str, asyncio.Semaphore](partial(asyncio.Semaphore, together))
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """A lock per tenant, so that only one request of a tenant waits for the thread and the tenants take turns."""
        self._large: Counter[str] = Counter()
        self._paid_at: dict[str, float] = {}
        """For each tenant, the time at which its slow work will be forgotten."""
        self._asked: OrderedDict[str, float] = OrderedDict()
        """The time of each tenant's last request, ordered from oldest to newest."""

    async def request(self, tenant: str, size: int, answer: Callable[[], Awaitable[Found]]) -> Found:
        """Handle a request of `size` bytes by calling `answer` when it is the tenant's turn."""
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
        """Run a tenant's work, in the loop or in the thread."""
        if is_large or self._moves(tenant):
            async with self._turns[tenant]:
                # Earlier large or slow work may have ended since.
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
