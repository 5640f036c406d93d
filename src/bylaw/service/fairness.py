"""Tenants share one event loop: what is large, or has been slow, runs beside it, one tenant after the other."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

LARGE = 16 * 1024
"""Bytes of a request from which its tenant's requests run beside the loop while it is answered."""
SLOW = 0.01
"""Seconds in the loop after which a tenant's requests run beside it."""
SHARE = 20
"""For so many times what it used: a tenant that is always slow uses a twentieth of the loop at most."""

Found = TypeVar("Found")


class Scheduler:
    """Decides where the work of each tenant is done, and in which order."""

    def __init__(self) -> None:
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="bylaw-beside")
        self._is_free = asyncio.Lock()
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By tenant: only one request of each waits for the thread, so that tenants take turns."""
        self.is_working = False
        """Whether a tenant's work is done in the loop right now."""
        self._large: Counter[str] = Counter()
        """By tenant, its large requests that are being answered."""
        self._slow_until: dict[str, float] = {}

    @contextmanager
    def request(self, tenant: str, size: int) -> Generator[None]:
        """A request of this size is being answered."""
        is_large = size >= LARGE
        self._large[tenant] += is_large
        try:
            yield
        finally:
            self._large[tenant] -= is_large

    async def run(self, tenant: str, work: Callable[[], Found]) -> Found:
        """Do a piece of a tenant's work, in the loop or beside it."""
        begin = time.monotonic()
        if not self._large[tenant] and self._slow_until.get(tenant, 0.0) <= begin:
            self.is_working = True
            try:
                return work()
            finally:
                self.is_working = False
                self._note(tenant, begin)
        async with self._turns[tenant], self._is_free:
            begin = time.monotonic()
            try:
                return await asyncio.get_running_loop().run_in_executor(self._beside, work)
            finally:
                self._note(tenant, begin)

    def _note(self, tenant: str, begin: float) -> None:
        """Remember how long a piece of work took."""
        now = time.monotonic()
        if now - begin > SLOW:
            self._slow_until[tenant] = now + SHARE * (now - begin)
