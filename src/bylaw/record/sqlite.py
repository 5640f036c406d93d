"""The log in an SQLite file with a write-ahead log. Every commit is synced to disk before it is reported."""

import os
import sqlite3
import threading
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from bylaw.errors import UsageError
from bylaw.record.database import COLUMNS, SCHEMA, Connection, Cursor, Known, News, Place, Row, entry_of

try:
    import fcntl
except ImportError:  # Windows has no file locks of this kind.
    fcntl = None

SETTINGS = {"journal_mode": "wal", "synchronous": "FULL"}
"""Settings for durable commits. Benchmarks print them."""
BUSY = 10.0
"""How long to wait for another process that is writing, in seconds. The service is blocked meanwhile."""
WIPE = 200
"""How long to wait for earlier readers before wiping removed data, in milliseconds."""
CACHE = 32_000
"""A connection's cache size, in kilobytes."""
ROWS = 64
"""The maximum number of rows per statement. Other threads may run between statements, so a batch should need few
statements.
"""
STATEMENTS = 4 * ROWS
"""The number of cached prepared statements, one for each number of rows."""
CHECKPOINT = 1_000
"""The number of rows written between checkpoints."""
LARGE = 8_000
"""At this many pages, writers pause briefly so that the write-ahead log can restart."""
TOO_LARGE = 40_000
"""At this many pages in the write-ahead log, SQLite makes a checkpoint during a commit."""
_making = threading.Lock()


class SqliteConnection(Connection):
    reads_at_once = True

    def __init__(self, path: str) -> None:
        self.name = path
        self._turns = Turns(path)
        self._checkpoints = Checkpoints(path)
        if path != ":memory:" and not Path(path).expanduser().parent.is_dir():
            hint = "create the folder, or choose another file"
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
                raise UsageError(
                    f"`{path}` is another program's database, not a decision log", hint="name another file"
                )
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

    def begin_batch(self, conversations: Collection[Place], ids: Collection[Place]) -> tuple[Cursor, Known]:
        if _file_at(self._path) != self._file:
            # Data written to a file that nobody can open would be lost.
            raise UsageError("the file was moved, removed or replaced while it was in use", hint="restore the file")
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

    def commit_batch(self, news: News) -> None:
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
        """Truncate the write-ahead log, because it still contains removed data. The file itself no longer contains this
        data.
        """
        # A writer is waiting, so the wait for a reader must be short.
        self._connection.execute(f"PRAGMA busy_timeout = {WIPE}")
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.execute(f"PRAGMA busy_timeout = {int(BUSY * 1000)}")

    def close(self) -> None:
        self._checkpoints.close()
        self._connection.close()
        self._turns.close()


_HEAD_AND_LENGTHS = """SELECT NULL, number, link FROM heads WHERE tenant = ?1 UNION ALL
    SELECT name, length, NULL FROM conversations WHERE tenant = ?1 AND name"""
"""Use a single statement, because a statement costs more than the rows it returns."""


def _make(path: Path) -> None:
    """Create the file if it is missing. Only its owner can read it.

    An existing file is never opened, because closing it would release this process's locks on it. Another process could
    then delete the write-ahead log.
    """
    with _making, suppress(FileExistsError):
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except PermissionError as error:
            raise UsageError(f"`{path}` cannot be created: {error.strerror}", hint="name another file") from error


def _file_at(path: str) -> tuple[int, int] | None:
    """Return the identity of the file at a path, or None if there is no file."""
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
        # Pad batches to a few sizes by repeating the last row. Most statements are then already prepared.
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


class Turns:
    """A queue of the processes that write to one file. A process that dies leaves the queue.

    Without the queue, SQLite makes waiting writers sleep for longer and longer intervals.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: int | None = None
        """The lock file of the queue."""

    @contextmanager
    def take(self) -> Generator[None]:
        """Wait until no other process is writing to this log."""
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


class Checkpoints:
    """Moves commits from the write-ahead log to the file, in a thread with its own connection.

    Otherwise, SQLite would move them during a commit, which would then wait for two more syncs and a thousand pages.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._rows = 0
        self._is_due = threading.Event()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def wrote(self, rows: int) -> None:
        self._rows += rows
        if self._rows < CHECKPOINT or self._path == ":memory:":
            return
        self._rows = 0
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="bylaw-checkpoints", daemon=True)
            self._thread.start()
        self._is_due.set()

    def close(self) -> None:
        """Stop the thread. The last process to close the file moves the remaining commits."""
        self._is_closed = True
        self._is_due.set()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        # If this fails, SQLite will move the commits later.
        with suppress(sqlite3.Error):
            connection = sqlite3.connect(str(Path(self._path).expanduser()), isolation_level=None)
            connection.execute("PRAGMA synchronous = FULL")
            turns = Turns(self._path)
            try:
                while self._is_due.wait() and not self._is_closed:
                    self._is_due.clear()
                    self._move(connection, turns)
            finally:
                connection.close()
                turns.close()

    def _move(self, connection: sqlite3.Connection, turns: Turns) -> None:
        with suppress(sqlite3.OperationalError):
            if _pages(connection) >= LARGE:
                with turns.take():
                    # Move the few new commits too. Once all commits are in the file, the next writer restarts the
                    # write-ahead log.
                    _pages(connection)


def _pages(connection: sqlite3.Connection) -> int:
    """Move commits without waiting. Return the number of pages in the write-ahead log."""
    _, pages, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return pages
