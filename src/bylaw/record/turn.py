"""A queue for those who write to one file of SQLite: who dies leaves it.

SQLite itself lets one in at a time, but has the others sleep and try again, for longer each time.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


class Turns:
    """One place in the queue of a log, for one thread at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: int | None = None
        """The file at which they stand in a queue."""

    @contextmanager
    def take(self) -> Generator[None]:
        """Wait until nobody else writes to this log."""
        if fcntl is None or self._path == ":memory:":
            yield
            return
        if self._file is None:
            name = f"{Path(self._path).expanduser()}-queue"
            self._file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
