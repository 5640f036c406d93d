"""The log in a file: SQLite with a write-ahead log, every commit synced to disk before it is answered."""

import sqlite3
from pathlib import Path

from bylaw.errors import UsageError
from bylaw.record.database import SCHEMA, Cursor

SETTINGS = {"journal_mode": "wal", "synchronous": "FULL"}
"""What makes a commit durable; benchmarks print it."""
BUSY = 30.0
"""Seconds to wait for another process that is writing."""


class SqliteConnection:
    """One connection to a file."""

    def __init__(self, path: str) -> None:
        self.name = path
        if path != ":memory:" and not Path(path).expanduser().parent.is_dir():
            raise UsageError(f"`{path}` lies in no folder that exists", hint="make the folder, or name another file")
        try:
            self._connection = sqlite3.connect(
                str(Path(path).expanduser()), timeout=BUSY, isolation_level=None, check_same_thread=False
            )
            for name, value in SETTINGS.items():
                self._connection.execute(f"PRAGMA {name} = {value}")
            for statement in SCHEMA:
                self._connection.execute(statement.format(bytes="BLOB", real="REAL"))
        except sqlite3.DatabaseError as error:
            raise UsageError(f"`{path}` is not a decision log: {error}") from error

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


def connect(path: str) -> SqliteConnection:
    """Open the file, or make it."""
    return SqliteConnection(path)
