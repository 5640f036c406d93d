"""Logs packed with zstd, for those who have `zstandard`."""

import importlib
import io
from typing import Any

from bylaw.errors import FormatError
from bylaw.trace.log_file import StreamOver

MAGIC = b"\x28\xb5\x2f\xfd"
_PIECE = 1 << 11
"""Packed bytes taken at a time: even where they unpack as far as zstd can, to 64 MB, memory stays small."""


class Unzstd(StreamOver):
    """A zstd stream, frame after frame, that gives all it holds before it fails."""

    def __init__(self, packed: "io.BufferedReader[Any]", place: str) -> None:
        super().__init__(packed)
        try:
            module: Any = importlib.import_module("zstandard")
        except ModuleNotFoundError:
            packed.close()
            raise FormatError("zstd files need zstandard", place=place, hint="install `bylaw[zstd]`") from None
        self._error: type[Exception] = module.ZstdError
        self._fault: Exception | None = None
        self._new: Any = module.ZstdDecompressor().decompressobj
        self._unpack: Any = None
        self._ready = memoryview(b"")

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            if self._fault is not None:
                raise OSError(f"zstd: {self._fault}") from self._fault
            given = self._stream.read(_PIECE)
            if not given:
                if self._unpack is not None:
                    raise EOFError("zstd")
                return 0
            self._ready = memoryview(self._unpacked(given))
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _unpacked(self, given: bytes) -> bytes:
        data: list[bytes] = []
        while given:
            self._unpack = self._unpack or self._new()
            try:
                data.append(self._unpack.decompress(given))
            except self._error as error:
                self._fault = error
                break
            given = b""
            if self._unpack.eof:
                given, self._unpack = self._unpack.unused_data, None
        return b"".join(data)
