"""Shared memory in which the workers publish their counts, so that any worker can report the totals.

Each worker has a slot that outlives it: a restarted worker continues from the counts in its slot.
"""

import mmap
import time
import zlib
from struct import Struct as Layout

import msgspec

from bylaw.service.metrics import Metrics

SIZE = 1 << 20
"""Bytes per worker."""
_HEAD = Layout(">II")
_TIME = Layout("d")
_decode = msgspec.msgpack.Decoder(Metrics).decode
_encode = msgspec.msgpack.Encoder().encode
TRIES = 100
"""Read attempts while counts are being written."""


class Board:
    """Shared counts. Create it before starting workers."""

    def __init__(self, workers: int) -> None:
        self._memory = mmap.mmap(-1, workers * SIZE)
        self._workers = workers

    def put(self, worker: int, counts: Metrics) -> None:
        """Replace one worker's published counts."""
        body = _encode(counts)
        if len(body) + _HEAD.size > SIZE:
            return
        start = worker * SIZE
        self._memory[start + _HEAD.size : start + _HEAD.size + len(body)] = body
        self._memory[start : start + _HEAD.size] = _HEAD.pack(len(body), zlib.crc32(body))

    def read(self, worker: int) -> Metrics | None:
        """One worker's counts; None if it has published none."""
        start = worker * SIZE
        for _ in range(TRIES):
            size, check = _HEAD.unpack(self._memory[start : start + _HEAD.size])
            if size == 0:
                return None
            body = self._memory[start + _HEAD.size : start + _HEAD.size + size]
            if zlib.crc32(body) == check:
                return _decode(body)
        return None

    def all(self) -> list[Metrics]:
        return [counts for worker in range(self._workers) if (counts := self.read(worker)) is not None]


class Failing:
    """Records since when something has been failing, shared by all workers. Create it before starting workers."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _TIME.size)

    def note(self, is_failing: bool) -> None:
        """Record whether it is failing now."""
        if not is_failing or not self._since:
            self._memory[:] = _TIME.pack(time.time() if is_failing else 0.0)

    @property
    def seconds(self) -> float:
        """How long it has been failing, in seconds; 0 if it is not."""
        return max(time.time() - self._since, 0.001) if self._since else 0.0

    @property
    def _since(self) -> float:
        return _TIME.unpack(self._memory[:])[0]
