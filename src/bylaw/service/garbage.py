"""When a worker looks for garbage that Python does not free by itself: objects that hold each other.

Sessions are none of it, and there are many: a look through all of them takes longer than anyone should wait for a
decision. So only what is new is looked through while requests come, and the rest when none does.
"""

import gc
import threading
import time
from collections.abc import Callable

NEW = 5_000
"""Objects made after which the new ones are looked through: a millisecond or two."""
NEVER = 1_000_000
IDLE = 1.0
"""Seconds without a request, after which nobody is taken to wait."""
SELDOM = 60.0
"""Seconds between two looks through all at least."""
AT_LAST = 900.0
"""Seconds after which all is looked through also where requests never end."""


def look_when_idle(requests: Callable[[], int]) -> None:
    """From here on, and in a thread of its own; `requests` says how many there were so far."""
    gc.collect()
    # The pack stays: nothing of it needs to be looked through.
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
