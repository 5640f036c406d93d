"""A log: a local file, or a URL that fsspec opens, such as `s3://bucket/day.jsonl`."""

import importlib
import io
from collections.abc import Sequence
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from msgspec import Struct

from bylaw.errors import UsageError


class RemoteFile(Struct, frozen=True):
    """A log behind a URL."""

    url: str

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.parts[-1]

    @property
    def parts(self) -> tuple[str, ...]:
        """Its path, without the protocol."""
        return PurePosixPath(self.url.partition("://")[2]).parts or (self.url,)

    def open(self, size: int) -> "io.BufferedReader[Any]":
        """A seekable stream of its bytes."""
        try:
            return io.BufferedReader(_Remote(_system(self.url).open(self.url, "rb")), size)
        except OSError:
            raise
        except Exception as error:
            _refuse(self.url, error)

    def info(self) -> dict[str, Any]:
        """Its size and times, as far as the storage reports them."""
        try:
            return _system(self.url).info(self.url)
        except Exception as error:
            _refuse(self.url, error)


LogFile = Path | RemoteFile


class StreamOver(io.RawIOBase):
    """A stream that reads from another one and closes it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Remote(StreamOver):
    """A file of fsspec as a Python stream; errors of the storage become `OSError`."""

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
    """The log that a path or URL names."""
    if isinstance(given, RemoteFile):
        return given
    return RemoteFile(given) if isinstance(given, str) and is_url(given) else Path(given)


def is_url(given: str) -> bool:
    """Whether it is a URL, which fsspec opens."""
    protocol, mark, _ = given.partition("://")
    return bool(mark) and protocol.isalnum()


def find_remote(url: str, endings: Sequence[str]) -> list[RemoteFile]:
    """The files that a URL names: one file, those in a folder with these endings, or those that match a pattern."""
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
    """The bytes of a log, still packed."""
    return path.open(size) if isinstance(path, RemoteFile) else io.BufferedReader(io.FileIO(path), size)


def size_of(path: LogFile) -> int:
    """Its size in bytes; 0 if the storage does not report it."""
    return int(path.info().get("size") or 0) if isinstance(path, RemoteFile) else path.stat().st_size


def stamp_of(path: LogFile) -> tuple[str, int, str]:
    """Changes if the log does: its name, size, and modification time or storage tag."""
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
        raise UsageError(f"no storage of that kind: {error}", place=url, hint="install what fsspec names") from None


def _refuse(url: str, error: Exception) -> NoReturn:
    """Raise `UsageError`: every error of a storage means that the log cannot be read."""
    why = (str(error) or type(error).__name__).splitlines()[0]
    raise UsageError(f"cannot read: {why.lower()}", place=url) from error
