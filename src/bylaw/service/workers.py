"""Runs several processes behind one port: a worker that crashes is restarted, and none outlives its parent."""

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress

from bylaw.errors import BylawError
from bylaw.text.visible import visible

SOON = 5.0
"""A worker that crashes within this many seconds never started working."""
AGAIN = 2.0
"""Seconds after which a worker that has not ended gets the signal again."""
FALLS = 3
"""Consecutive early crashes after which the service gives up."""


def supervise(count: int, serve: Callable[[int], None]) -> int:
    """Run `serve` in each worker until stopped; returns the exit status."""
    return _Workers(count, serve).run()


class _Workers:
    def __init__(self, count: int, serve: Callable[[int], None]) -> None:
        self._serve = serve
        self._count = count
        self._running: dict[int, tuple[int, float]] = {}
        """Number and start time of each worker, by process id."""
        self._is_ending = False
        # Nothing is written to this pipe. Reading it ends when the last writer is gone.
        self._life, self._ours = os.pipe()

    def run(self) -> int:
        for sign in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sign, self._end)
        for worker in range(self._count):
            self._start(worker)
        falls, status = 0, 0
        while self._running:
            process, ended = os.wait()
            if process not in self._running:
                continue
            worker, since = self._running.pop(process)
            if self._is_ending:
                continue
            falls = falls + 1 if time.monotonic() - since < SOON else 0
            print(f"worker {worker + 1} ended ({os.waitstatus_to_exitcode(ended)})", file=sys.stderr, flush=True)
            if falls > FALLS:
                print("the workers keep crashing: the service stops", file=sys.stderr, flush=True)
                status = 1
                self._end()
            else:
                self._start(worker)
        return status

    def _start(self, worker: int) -> None:
        sys.stdout.flush()
        process = os.fork()
        if process:
            self._running[process] = (worker, time.monotonic())
            if self._is_ending:
                os.kill(process, signal.SIGTERM)
            return
        status = 1
        try:
            os.close(self._ours)
            for sign in (signal.SIGTERM, signal.SIGINT):
                signal.signal(sign, signal.SIG_DFL)
            threading.Thread(target=self._end_with_parent, daemon=True).start()
            self._serve(worker)
            status = 0
        except BylawError as error:
            print(visible(str(error)), file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            pass
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def _end_with_parent(self) -> None:
        os.read(self._life, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    def _end(self, *_: object) -> None:
        """Signal every worker to end, repeatedly, because a starting worker may miss the signal."""
        self._is_ending = True
        for process in tuple(self._running):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        signal.signal(signal.SIGALRM, self._end)
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
