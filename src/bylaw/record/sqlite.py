"""The log in a file: SQLite with a write-ahead log, every commit synced to disk before it is answered."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bylaw.errors import UsageError
from bylaw.record.database import SCHEMA, Cursor

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

SETTINGS = {"journal_mode": "wal", "synchronous": "FULL"}
"""What makes a commit durable; benchmarks print it."""
BUSY = 30.0
"""Seconds to wait for another process that is writing."""
CACHE = 32_000
"""Kilobytes of the file that a connection keeps in memory."""


class SqliteConnection:
    """One connection to a file."""

    reads_at_once = True
    """A few rows are there sooner than another thread could have fetched them."""

    def __init__(self, path: str) -> None:
        self.name = path
        self._queue: int | None = None
        """The file at which those who write to this log stand in a queue."""
        if path != ":memory:" and not Path(path).expanduser().parent.is_dir():
            raise UsageError(
                f"`{path}` is in a folder that does not exist", hint="make the folder, or name another file"
            )
        try:
            self._connection = sqlite3.connect(
                str(Path(path).expanduser()), timeout=BUSY, isolation_level=None, check_same_thread=False
            )
            for name, value in SETTINGS.items():
                self._connection.execute(f"PRAGMA {name} = {value}")
            self._connection.execute(f"PRAGMA cache_size = -{CACHE}")
            for statement in SCHEMA:
                self._connection.execute(statement.format(bytes="BLOB", real="REAL"))
        except sqlite3.DatabaseError as error:
            raise UsageError(f"`{path}` is not a decision log: {error}") from error

    def rows(self, query: str, values: tuple[object, ...]) -> list[tuple[object, ...]]:
        """What one statement finds; it is a transaction of its own."""
        return self._connection.execute(query, values).fetchall()

    @contextmanager
    def turn(self) -> Generator[None]:
        """Wait until no other process writes to this log; a process that dies leaves the queue.

        SQLite itself lets one in at a time, but has the others sleep and try again, for longer each time.
        """
        if fcntl is None or self.name == ":memory:":
            yield
            return
        if self._queue is None:
            self._queue = os.open(f"{Path(self.name).expanduser()}-queue", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._queue, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._queue, fcntl.LOCK_UN)

    def begin(self, *, writing: bool) -> Cursor:
        """A cursor within a new transaction."""
        cursor = self._connection.cursor()
        cursor.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
        return cursor

    def commit(self) -> None:
        """Written and synced."""
        self._connection.commit()

    def rollback(self) -> None:
        """Nothing happened."""
        self._connection.rollback()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
        if self._queue is not None:
            os.close(self._queue)
            self._queue = None


def connect(path: str) -> SqliteConnection:
    """Open the file, or make it."""
    return SqliteConnection(path)
