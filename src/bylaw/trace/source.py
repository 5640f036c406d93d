"""A trace file as bytes: plain or gzip, by line or whole, with what can be saved of a broken one."""

import io
import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from bylaw.errors import FormatError, RecordError
from bylaw.trace.identity import agent_of_file

T = TypeVar("T")

CHUNK = 1 << 20
LONGEST_LINE = 128 << 20
"""Bytes of one record; a longer one is named and left out, and what follows it is read."""
LARGEST_UNPACKED = 256 << 20
UNPACKED_RATIO = 100
"""A packed document is read up to these bytes, or so many times its packed size: JSON packs 10 to 50 times smaller."""
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"


class Source(Struct, frozen=True, dict=True):
    """A file to read conversations from."""

    path: Path
    agent: str | None = None
    """Overrides whatever the file says."""
    share: tuple[int, int] = (0, 1)
    """`(k, n)`: only every n-th record is wanted, from the k-th on."""

    def wanted(self, records: Iterable[T]) -> Iterator[T]:
        """The records that are wanted, in order; the others need not be decoded."""
        first, every = self.share
        return islice(records, first, None, every)

    @cached_property
    def name(self) -> str:
        return self.path.name

    @cached_property
    def agent_by_name(self) -> str:
        """The agent where the records do not name one."""
        return agent_of_file(self.path.name)

    def fault(self, position: int, why: str, *, line: bool = False) -> RecordError:
        """What is wrong with the record on a line (counted from 1) or at a position (from 0)."""
        place = f"{self.path}:{position}" if line else f"{self.path}#{position}"
        return RecordError(why, place=place)

    def open(self) -> "io.BufferedReader[Any]":
        """The content, decompressed where it is gzip."""
        try:
            plain = io.BufferedReader(io.FileIO(self.path), CHUNK)
            start = plain.read(2)
            plain.seek(0)
        except OSError as error:
            why = error.strerror or str(error)
            raise FormatError(f"cannot read: {why.lower()}", place=str(self.path)) from error
        if start != _GZIP:
            return plain
        return io.BufferedReader(_Gunzip(plain), CHUNK)

    def chunks(self) -> Iterator[bytes | str]:
        """The content in pieces; a broken stream ends with the reason, as text."""
        with self.open() as stream:
            # Small first: looking at a file must not cost reading it.
            size = 1 << 16
            while True:
                try:
                    chunk = stream.read1(size)
                except (EOFError, OSError, zlib.error) as error:
                    yield _broken(error)
                    return
                if not chunk:
                    return
                yield chunk
                size = CHUNK

    def lines(self) -> Iterator[tuple[int, bytes] | RecordError]:
        """Every line that is not blank, numbered from 1; then the reason why the file ends early, if it does."""
        number = 0
        with self.open() as stream:
            try:
                for number, line in enumerate(iter(partial(stream.readline, LONGEST_LINE), b""), 1):
                    if number == 1 and line.startswith(_BOM):
                        line = line.removeprefix(_BOM)
                    if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                        _skip_line(stream)
                        yield self.fault(number, f"longer than {_mebibytes(LONGEST_LINE)}", line=True)
                    elif not line.isspace():
                        yield number, line
            except (EOFError, OSError, zlib.error) as error:
                yield self.fault(number + 1, _broken(error), line=True)

    def document(self) -> tuple[bytes, str]:
        """The whole content, and why it ends early if it does."""
        with self.open() as stream:
            if not isinstance(stream.raw, _Gunzip):
                return stream.read().removeprefix(_BOM), ""
        pieces: list[bytes] = []
        why = ""
        left = most = max(LARGEST_UNPACKED, UNPACKED_RATIO * self.path.stat().st_size)
        for chunk in self.chunks():
            if isinstance(chunk, str):
                why = chunk
                break
            pieces.append(chunk[:left])
            left -= len(chunk)
            if left < 0:
                why = f"unpacks to more than {_mebibytes(most)}: if that is meant, unpack it first"
                break
        return b"".join(pieces).removeprefix(_BOM), why


class _Gunzip(io.RawIOBase):
    """A gzip stream that gives all it holds before it fails; `gzip` drops what it had when the end is missing."""

    def __init__(self, packed: "io.BufferedReader[Any]") -> None:
        self._packed = packed
        self._unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._rest = b""
        self._fault: zlib.error | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self._packed.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        while True:
            if self._unpack.eof:
                # Another member may follow, or zeros that pad the last one.
                self._rest = (self._unpack.unused_data or self._packed.read(CHUNK)).lstrip(b"\0")
                if not self._rest:
                    return 0
                self._unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
            if self._fault is not None:
                raise self._fault
            given = self._rest or self._packed.read(CHUNK >> 2)
            data = self._decompress(given, len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)
            if not given and self._fault is None and not self._unpack.eof:
                raise EOFError

    def _decompress(self, given: bytes, most: int) -> bytes:
        """What `given` unpacks to; where it is damaged, what stands before the damage, and the fault is kept."""
        before = self._unpack.copy()
        try:
            data = self._unpack.decompress(given, most)
            self._rest = self._unpack.unconsumed_tail
            return data
        except zlib.error as error:
            self._fault = error
        # zlib gives nothing at all of the piece it fails in: a wrong checksum at the end would cost a whole small file.
        data = b""
        try:
            for at in range(len(given)):
                if len(data) >= most:
                    self._unpack, self._rest, self._fault = before, before.unconsumed_tail + given[at:], None
                    return data
                data += before.decompress(given[at : at + 1], most - len(data))
        except zlib.error:
            pass
        return data


def _skip_line(stream: "io.BufferedReader[Any]") -> None:
    while (piece := stream.readline(CHUNK)) and not piece.endswith(b"\n"):
        pass


def _mebibytes(size: int) -> str:
    return f"{size >> 20:,} MiB"


def _broken(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "truncated: the gzip stream ends before its end marker"
    return f"damaged: {str(error).lower()}"
