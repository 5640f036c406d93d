"""Reads plain or compressed logs as bytes: by line, as a whole, or in part.

A damaged file is read as far as possible.
"""

import bz2
import importlib
import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import islice
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn, TypeVar

from msgspec import Struct

from bylaw.errors import FormatError, RecordError, UsageError
from bylaw.trace.event import agent_of_file


class RemoteFile(Struct, frozen=True):
    """A log at a URL."""

    url: str

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        return self.parts[-1]

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the path, without the protocol."""
        return PurePosixPath(self.url.partition("://")[2]).parts or (self.url,)

    def open(self, size: int) -> "io.BufferedReader[Any]":
        try:
            return io.BufferedReader(_Remote(_system(self.url).open(self.url, "rb")), size)
        except OSError:
            raise
        except Exception as error:
            _refuse(self.url, error)

    def info(self) -> dict[str, Any]:
        """Return the size and times that the storage reports."""
        try:
            return _system(self.url).info(self.url)
        except Exception as error:
            _refuse(self.url, error)


LogFile = Path | RemoteFile


class StreamOver(io.RawIOBase):
    """A stream that reads from another stream, and closes that stream too."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Remote(StreamOver):
    """An fsspec file as a Python stream. Storage errors are raised as OSError."""

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readinto(self, buffer: Any) -> int:
        try:
            data: bytes = self._stream.read(len(buffer))
        except OSError:
            raise
        except Exception as error:
            raise OSError(f"{type(error).__name__}: {error}") from error
        buffer[: len(data)] = data
        return len(data)


def log_file(given: "str | PathLike[str] | RemoteFile") -> LogFile:
    if isinstance(given, RemoteFile):
        return given
    return RemoteFile(given) if isinstance(given, str) and is_url(given) else Path(given)


def is_url(given: str) -> bool:
    """Whether this is a URL that fsspec can open."""
    protocol, mark, _ = given.partition("://")
    return bool(mark) and protocol.isalnum()


def find_remote(url: str, endings: Sequence[str]) -> list[RemoteFile]:
    """Return the files at a URL: a single file, the files in a folder that have these endings, or the files that match
    a pattern.
    """
    system = _system(url)
    try:
        if any(mark in url for mark in "*?["):
            found = system.glob(url)
        elif system.isdir(url):
            found = [path for path in system.find(url) if path.lower().endswith(tuple(endings))]
        else:
            system.info(url)
            return [RemoteFile(url)]
    except Exception as error:
        _refuse(url, error)
    return [RemoteFile(system.unstrip_protocol(path)) for path in sorted(found)]


def open_bytes(path: LogFile, size: int) -> "io.BufferedReader[Any]":
    """Open a log without decompressing it."""
    return path.open(size) if isinstance(path, RemoteFile) else io.BufferedReader(io.FileIO(path), size)


def size_of(path: LogFile) -> int:
    """Return the size in bytes, or 0 if it is unknown."""
    return int(path.info().get("size") or 0) if isinstance(path, RemoteFile) else path.stat().st_size


def stamp_of(path: LogFile) -> tuple[str, int, str]:
    """Return a stamp that changes if the log changes: its name, its size, and its modification time or storage tag."""
    if isinstance(path, RemoteFile):
        info = path.info()
        marks = (info.get(name) for name in ("ETag", "etag", "md5Hash", "mtime", "LastModified", "updated", "created"))
        return str(path), int(info.get("size") or 0), str(next((mark for mark in marks if mark), ""))
    found = path.stat()
    return str(path), found.st_size, str(found.st_mtime_ns)


def _system(url: str) -> Any:
    try:
        core: Any = importlib.import_module("fsspec.core")
    except ModuleNotFoundError:
        raise UsageError("URLs need fsspec", place=url, hint="install `bylaw[remote]`") from None
    try:
        return core.url_to_fs(url)[0]
    except (ImportError, ValueError) as error:
        raise UsageError(
            f"unsupported storage: {error}", place=url, hint="install the package that fsspec names"
        ) from None


def _refuse(url: str, error: Exception) -> NoReturn:
    """Raise UsageError for any storage error, because the log cannot be read."""
    why = (str(error) or type(error).__name__).splitlines()[0]
    raise UsageError(f"cannot read: {why.lower()}", place=url) from error


_ZSTD = b"\x28\xb5\x2f\xfd"
_PIECE = 1 << 11
"""The number of compressed bytes to read at a time. Even with zstd, they decompress to at most 64 MB."""


T = TypeVar("T")

CHUNK = 1 << 20
UNOPENED = "cannot read: "
"""The start of the error message for a log that could not be opened. Trying again may succeed."""
LONGEST_LINE = 128 << 20
"""The maximum size of a record in bytes. Larger records are reported and skipped."""
LARGEST_UNPACKED = 256 << 20
UNPACKED_RATIO = 100
"""The maximum size of a decompressed document, in bytes or as a multiple of the compressed size. JSON usually
compresses to between a tenth and a fiftieth of its size.
"""
_GZIP = b"\x1f\x8b"
_BZIP = b"BZh"
_BOM = b"\xef\xbb\xbf"


class Span(Struct, frozen=True):
    """A part of a file: whole lines, members of a JSON list, or row groups of a Parquet file."""

    start: int
    end: int
    """The position after the last byte or, for Parquet, after the last row group."""
    line: int = 1
    index: int = 0
    """The number of records in the file before this span."""


class Columns(Struct, frozen=True):
    """The names of a table's columns. If a name is empty, default names are tried."""

    messages: str = ""
    id: str = ""
    agent: str = ""


class Source(Struct, frozen=True, dict=True):
    """A file that contains conversations."""

    path: LogFile
    agent: str | None = None
    """Overrides the agent named in the file."""
    share: tuple[int, int] = (0, 1)
    """A pair `(k, n)`: read only every n-th record, starting with the k-th."""
    span: Span | None = None
    """The span of the file to read, or None for the whole file. A compressed file cannot be read in spans."""
    columns: Columns = Columns()
    called: str = ""
    """The name to use in ids. By default, it is the file's name."""

    def wanted(self, records: Iterable[T]) -> Iterator[T]:
        first, every = self.share
        return islice(records, first, None, every)

    @cached_property
    def name(self) -> str:
        return self.called or self.path.name

    @cached_property
    def agent_by_name(self) -> str:
        """The agent for records that do not name an agent."""
        return agent_of_file(self.path.name)

    def fault(self, index: int, why: str, line: int = 0) -> RecordError:
        """Return an error at a line (counted from 1) or at a record of a document (counted from 0)."""
        return RecordError(why, place=f"{self.path}:{line}" if line else f"{self.path}#{index}")

    @property
    def is_packed(self) -> bool:
        with self.open() as stream:
            return isinstance(stream.raw, _Unpacked)

    def open(self) -> "io.BufferedReader[Any]":
        """Open the content. Files in gzip, bzip2 and zstd are decompressed."""
        try:
            plain = open_bytes(self.path, CHUNK)
            if self.span is not None:
                plain.seek(self.span.start)
                return io.BufferedReader(_Slice(plain, self.span.end - self.span.start), CHUNK)
            start = plain.read(4)
            plain.seek(0)
        except OSError as error:
            why = error.strerror or str(error)
            raise FormatError(f"{UNOPENED}{why.lower()}", place=str(self.path)) from error
        if start.startswith(_GZIP):
            return io.BufferedReader(
                _Unpacked(plain, "gzip", partial(zlib.decompressobj, zlib.MAX_WBITS | 16), zlib.error), CHUNK
            )
        if start.startswith(_BZIP):
            return io.BufferedReader(_Unpacked(plain, "bzip2", bz2.BZ2Decompressor, OSError), CHUNK)
        if start == _ZSTD:
            return io.BufferedReader(_Unpacked(plain, "zstd", *_zstd(str(self.path))), CHUNK)
        return plain

    def chunks(self) -> Iterator[bytes | str]:
        """Yield the content in pieces. If the stream is damaged, the last piece is a `str` with the reason."""
        with self.open() as stream:
            # Start with small pieces, because format detection must not read the whole file.
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

    def lines(self, *, blank: bool = False) -> Iterator[tuple[int, bytes] | RecordError]:
        """Yield the lines, numbered from 1, and an error if the file ends early. Set `blank` to include blank lines."""
        first = self.span.line if self.span is not None else 1
        number = first - 1
        with self.open() as stream:
            try:
                for number, line in enumerate(iter(partial(stream.readline, LONGEST_LINE), b""), first):
                    if number == 1 and line.startswith(_BOM):
                        line = line.removeprefix(_BOM)
                    if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                        _skip_line(stream)
                        yield self.fault(0, f"longer than {_mebibytes(LONGEST_LINE)}", number)
                    elif blank or not line.isspace():
                        yield number, line
            except (EOFError, OSError, zlib.error) as error:
                yield self.fault(0, _broken(error), number + 1)

    def document(self) -> tuple[bytes, str]:
        """Return the whole content and, if the file ends early, the reason."""
        with self.open() as stream:
            if not isinstance(stream.raw, _Unpacked):
                return stream.read().removeprefix(_BOM), ""
        pieces: list[bytes] = []
        why = ""
        left = most = max(LARGEST_UNPACKED, UNPACKED_RATIO * size_of(self.path))
        for chunk in self.chunks():
            if isinstance(chunk, str):
                why = chunk
                break
            pieces.append(chunk[:left])
            left -= len(chunk)
            if left < 0:
                why = f"unpacks to more than {_mebibytes(most)}; if this is intended, unpack it first"
                break
        return b"".join(pieces).removeprefix(_BOM), why


class _Slice(StreamOver):
    def __init__(self, stream: "io.BufferedReader[Any]", size: int) -> None:
        super().__init__(stream)
        self._left = size

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(min(len(buffer), self._left))
        self._left -= len(data)
        buffer[: len(data)] = data
        return len(data)


class _Unpacked(StreamOver):
    """Decompresses a stream of one or more members.

    If the stream is damaged, the data before the damage is yielded first.
    """

    def __init__(
        self, packed: "io.BufferedReader[Any]", kind: str, new: Callable[[], Any], error: type[Exception]
    ) -> None:
        super().__init__(packed)
        self._kind, self._new, self._error = kind, new, error
        self._unpack: Any = None
        """The decompressor of the current member, or None between members."""
        self._fault: Exception | None = None
        self._ready = memoryview(b"")

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            if self._fault is not None:
                raise OSError(f"{self._kind}: {self._fault}") from self._fault
            given = self._stream.read(_PIECE)
            if not given:
                if self._unpack is not None:
                    raise EOFError(self._kind)
                return 0
            self._ready = memoryview(b"".join(self._unpacked(given)))
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _unpacked(self, given: bytes) -> Iterator[bytes]:
        # The last member may be padded with zeros.
        while given := given if self._unpack is not None else given.lstrip(b"\0"):
            self._unpack = self._unpack or self._new()
            # Only a gzip decompressor can be copied.
            before = self._unpack.copy() if hasattr(self._unpack, "copy") else None
            try:
                yield self._unpack.decompress(given)
            except self._error as error:
                self._fault = error
                # zlib returns no data from a piece with an error. If the checksum at the end is wrong, a small file
                # would be lost completely.
                if before is not None:
                    with suppress(zlib.error):
                        for at in range(len(given)):
                            yield before.decompress(given[at : at + 1])
                return
            given = b""
            if self._unpack.eof:
                given, self._unpack = self._unpack.unused_data, None


def _zstd(place: str) -> tuple[Callable[[], Any], type[Exception]]:
    try:
        module: Any = importlib.import_module("zstandard")
    except ModuleNotFoundError:
        raise FormatError("zstd files need zstandard", place=place, hint="install `bylaw[zstd]`") from None
    return module.ZstdDecompressor().decompressobj, module.ZstdError


def _skip_line(stream: "io.BufferedReader[Any]") -> None:
    while (piece := stream.readline(CHUNK)) and not piece.endswith(b"\n"):
        pass


def _mebibytes(size: int) -> str:
    return f"{size >> 20:,} MiB"


def _broken(error: Exception) -> str:
    if isinstance(error, EOFError):
        return f"truncated: the {error.args[0] if error.args else 'gzip'} stream ends before its end marker"
    return f"damaged: {str(error).lower()}"
