"""Schedules cyclic garbage collection in a worker.

Sessions are long-lived and numerous, so a full collection takes longer than a decision may wait. While requests arrive,
only new objects are collected; the rest is collected when idle.
"""

import gc
import threading
import time
from collections.abc import Callable

NEW = 5_000
"""Number of new objects that triggers a collection of new objects, which takes a millisecond or two."""
NEVER = 1_000_000
IDLE = 1.0
"""Seconds without a request after which the worker counts as idle."""
SELDOM = 60.0
"""Minimum seconds between full collections."""
AT_LAST = 900.0
"""Seconds after which a full collection runs even under constant load."""


def look_when_idle(requests: Callable[[], int]) -> None:
    """Start collecting in a separate thread; `requests` returns the number of requests so far."""
    gc.collect()
    # The pack lives as long as the worker and need not be scanned.
    gc.freeze()
    gc.set_threshold(NEW, NEVER, NEVER)
    threading.Thread(target=_look, args=(requests,), name="bylaw-garbage", daemon=True).start()


def _look(requests: Callable[[], int]) -> None:
    last, before, looked = time.monotonic(), requests(), 0
    while True:
        time.sleep(IDLE)
        now, count = time.monotonic(), requests()
        is_quiet = count == before and count != looked and now - last >= SELDOM
        if is_quiet or now - last >= AT_LAST:
            gc.collect()
            last, looked = now, count
        before = count
