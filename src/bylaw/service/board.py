"""Where the workers of one service put up their counts: whoever is asked for them tells those of all.

A place in memory for each worker, which outlives it: a worker that is started again in its place counts on from there.
"""

import mmap
import time
import zlib
from struct import Struct as Layout

import msgspec

from bylaw.service.metrics import Metrics

SIZE = 1 << 20
"""Bytes for one worker."""
_HEAD = Layout(">II")
_TIME = Layout("d")
_decode = msgspec.msgpack.Decoder(Metrics).decode
_encode = msgspec.msgpack.Encoder().encode
TRIES = 100
"""How often counts are read that are just being written."""


class Board:
    """To be made before the workers are."""

    def __init__(self, workers: int) -> None:
        self._memory = mmap.mmap(-1, workers * SIZE)
        self._workers = workers

    def put(self, worker: int, counts: Metrics) -> None:
        """Put up one worker's counts in place of those before."""
        body = _encode(counts)
        if len(body) + _HEAD.size > SIZE:
            return
        start = worker * SIZE
        self._memory[start + _HEAD.size : start + _HEAD.size + len(body)] = body
        self._memory[start : start + _HEAD.size] = _HEAD.pack(len(body), zlib.crc32(body))

    def read(self, worker: int) -> Metrics | None:
        """One worker's counts; None where it has put up none."""
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
    """Since when something fails, as one worker notes it and all of them see it. To be made before the workers are."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _TIME.size)

    def note(self, is_failing: bool) -> None:
        """Note whether it fails now."""
        if not is_failing or not self._since:
            self._memory[:] = _TIME.pack(time.time() if is_failing else 0.0)

    @property
    def seconds(self) -> float:
        """For how many seconds it has failed; 0 where it does not."""
        return max(time.time() - self._since, 0.001) if self._since else 0.0

    @property
    def _since(self) -> float:
        return _TIME.unpack(self._memory[:])[0]
