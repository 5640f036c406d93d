"""The log in a file: SQLite with a write-ahead log, every commit synced to disk before it is answered."""

import os
import sqlite3
import threading
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from bylaw.errors import UsageError
from bylaw.record.checkpoint import TOO_LARGE, Checkpoints
from bylaw.record.database import COLUMNS, SCHEMA, Connection, Cursor, Known, News, Place, Row, Steps, entry_of
from bylaw.record.turn import Turns

SETTINGS = {"journal_mode": "wal", "synchronous": "FULL"}
"""What makes a commit durable; benchmarks print it."""
BUSY = 10.0
"""Seconds to wait for another process that is writing; a service answers nobody meanwhile."""
WIPE = 200
"""Milliseconds to wait for those who read before what was removed is wiped out."""
CACHE = 32_000
"""Kilobytes of the file that a connection keeps in memory."""
ROWS = 64
"""Rows in one statement at most. Every statement lets other threads run and then waits for its turn again, so a batch
of any size takes a few of them."""
STATEMENTS = 4 * ROWS
"""Statements that are kept ready: one for each number of rows."""
_making = threading.Lock()


class SqliteConnection(Connection):
    reads_at_once = True

    def __init__(self, path: str) -> None:
        """Open the file, or make it."""
        self.name = path
        self._turns = Turns(path)
        self._checkpoints = Checkpoints(path)
        if path != ":memory:" and not Path(path).expanduser().parent.is_dir():
            hint = "make the folder, or name another file"
            raise UsageError(f"`{path}` is in a folder that does not exist", hint=hint)
        try:
            if path != ":memory:":
                _make(Path(path).expanduser())
            self._connection = sqlite3.connect(
                str(Path(path).expanduser()),
                timeout=BUSY,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=STATEMENTS,
            )
            tables = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master")}
            if tables and "heads" not in tables:
                self._connection.close()
                raise UsageError(f"`{path}` is a database of something else, no decision log", hint="name another file")
            for name, value in SETTINGS.items():
                self._connection.execute(f"PRAGMA {name} = {value}")
            self._connection.execute("PRAGMA secure_delete = ON")
            self._connection.execute(f"PRAGMA cache_size = -{CACHE}")
            self._connection.execute(f"PRAGMA wal_autocheckpoint = {TOO_LARGE}")
            for statement in SCHEMA:
                self._connection.execute(statement.format(bytes="BLOB", real="REAL"))
        except sqlite3.DatabaseError as error:
            raise UsageError(f"`{path}` is not a decision log: {error}") from error
        self._path = str(Path(path).expanduser())
        self._file = _file_at(self._path)

    def rows(self, query: str, values: tuple[object, ...]) -> list[tuple[object, ...]]:
        return self._connection.execute(query, values).fetchall()

    def turn(self) -> AbstractContextManager[None]:
        return self._turns.take()

    def begin(self, *, writing: bool) -> Cursor:
        cursor = self._connection.cursor()
        cursor.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
        return cursor

    def begin_batch(self, conversations: Collection[Place], ids: Collection[Place]) -> Steps[tuple[Cursor, Known]]:
        yield from ()
        if _file_at(self._path) != self._file:
            # What is written to a file that nobody can open any more is lost.
            raise UsageError("the file was moved, removed or replaced while it was in use", hint="put it back")
        cursor = self.begin(writing=True)
        known = Known({}, {}, {})
        for tenant, names in _by_tenant(conversations).items():
            for name, number, link in _select_in(cursor, _HEAD_AND_LENGTHS, tenant, names):
                if name is None:
                    known.heads[tenant] = (number, link)
                else:
                    known.lengths[tenant, name] = number
        for tenant, names in _by_tenant(ids).items():
            entries = f"SELECT {COLUMNS} FROM entries WHERE tenant = ? AND id"
            for row in _select_in(cursor, entries, tenant, names):
                entry = entry_of(row)
                known.entries[tenant, entry.id or ""] = entry
        return cursor, known

    def commit_batch(self, news: News) -> Steps[None]:
        yield from ()
        if news.rows:
            cursor = self._connection.cursor()
            _insert(cursor, f"entries ({COLUMNS})", news.rows)
            heads = "ON CONFLICT (tenant) DO UPDATE SET number = excluded.number, link = excluded.link"
            _insert(cursor, "heads (tenant, number, link)", news.heads, heads)
            lengths = "ON CONFLICT (tenant, name) DO UPDATE SET length = excluded.length"
            _insert(cursor, "conversations (tenant, name, length)", news.lengths, lengths)
        self._connection.commit()
        self._checkpoints.wrote(len(news.rows))

    def commit(self) -> None:
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()

    def wipe(self) -> None:
        """What is removed from the file is overwritten; the write-ahead log still has it, until that is cut off."""
        # A writer waits for this, so it must not wait long for a reader.
        self._connection.execute(f"PRAGMA busy_timeout = {WIPE}")
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.execute(f"PRAGMA busy_timeout = {int(BUSY * 1000)}")

    def close(self) -> None:
        self._checkpoints.close()
        self._connection.close()
        self._turns.close()


_HEAD_AND_LENGTHS = """SELECT NULL, number, link FROM heads WHERE tenant = ?1 UNION ALL
    SELECT name, length, NULL FROM conversations WHERE tenant = ?1 AND name"""
"""In one statement: each costs more than what it finds."""


def _make(path: Path) -> None:
    """Make the file if it is missing, readable by its owner only.

    One that is there is never opened here. To close it would give up this process's locks on it, those of other
    connections too, and the next process to close the log would take the write-ahead log away from under them.
    """
    with _making, suppress(FileExistsError):
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except PermissionError as error:
            raise UsageError(f"`{path}` cannot be made: {error.strerror}", hint="name another file") from error


def _file_at(path: str) -> tuple[int, int] | None:
    """Which file is there; None where none is, as for a log in memory."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _by_tenant(places: Iterable[Place]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for tenant, name in places:
        found.setdefault(tenant, []).append(name)
    return found


def _select_in(cursor: Cursor, query: str, tenant: str, wanted: Sequence[str]) -> list[Any]:
    rows: list[Any] = []
    for start in range(0, len(wanted), ROWS):
        part = list(wanted[start : start + ROWS])
        # Few sizes, filled up with the last of them, so that SQLite has most statements ready.
        part += part[-1:] * ((1 << (len(part) - 1).bit_length()) - len(part))
        cursor.execute(f"{query} IN ({','.join('?' * len(part))})", (tenant, *part))
        rows += cursor.fetchall()
    return rows


def _insert(cursor: Cursor, into: str, rows: Sequence[Row], known: str = "") -> None:
    row = f"({','.join('?' * len(rows[0]))})"
    for start in range(0, len(rows), ROWS):
        part = rows[start : start + ROWS]
        values = [value for each in part for value in each]
        cursor.execute(f"INSERT INTO {into} VALUES {','.join([row] * len(part))} {known}", values)
