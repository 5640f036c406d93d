"""The log in an SQLite file with a write-ahead log. Every commit is synced to disk before it is reported."""

import json
import os
import sqlite3
import threading
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bylaw.errors import UsageError
from bylaw.record.database import COLUMNS, SCHEMA, Connection, Cursor, Known, News, Place, Row, entry_of

try:
    import fcntl
except ImportError:  # Windows does not have this kind of file lock.
    fcntl = None

SETTINGS = {"journal_mode": "wal", "synchronous": "FULL"}
"""Settings that make commits durable. Benchmarks print them."""
BUSY = 10.0
"""How long to wait for another process that is writing, in seconds. Meanwhile, the service is blocked."""
WIPE = 200
"""How long to wait, in milliseconds, for readers to finish before removed data is wiped."""
CACHE = 32_000
"""The size of a connection's cache in kilobytes."""
ROWS = 64
"""The maximum number of rows per statement. A batch should need few statements, because other threads may run in
between.
"""
STATEMENTS = 4 * ROWS
"""The number of prepared statements to cache. Each number of rows needs its own statement."""
_making = threading.Lock()


class SqliteConnection(Connection):
    reads_at_once = True

    def __init__(self, path: str) -> None:
        self.name = path
        self._queue: int | None = None
        """The lock file by which processes queue for writing."""
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
            for statement in SCHEMA:
                self._connection.execute(statement.format(bytes="BLOB", real="REAL"))
        except sqlite3.DatabaseError as error:
            raise UsageError(f"`{path}` is not a decision log: {error}") from error
        self._path = str(Path(path).expanduser())
        self._file = _file_at(self._path)

    def rows(self, query: str, values: tuple[object, ...]) -> list[tuple[object, ...]]:
        return self._connection.execute(query, values).fetchall()

    @contextmanager
    def turn(self) -> Generator[None]:
        """Wait until no other process is writing.

        Without this queue, SQLite would let waiting writers sleep for longer and longer intervals. A process that dies
        leaves the queue.
        """
        if fcntl is None or self.name == ":memory:":
            yield
            return
        if self._queue is None:
            self._queue = os.open(f"{self._path}-queue", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._queue, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._queue, fcntl.LOCK_UN)

    def begin(self, *, writing: bool) -> Cursor:
        cursor = self._connection.cursor()
        cursor.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
        return cursor

    def begin_batch(self, conversations: Collection[Place], ids: Collection[Place]) -> tuple[Cursor, Known]:
        if _file_at(self._path) != self._file:
            # The open file is no longer at this path, so data written to it would be lost.
            raise UsageError("the file was moved, removed or replaced while it was in use", hint="restore the file")
        cursor = self.begin(writing=True)
        known = Known({}, {}, {})
        for tenant, names in _by_tenant(conversations).items():
            for name, number, link in cursor.execute(_HEAD_AND_LENGTHS, (tenant, names)):
                if name is None:
                    known.heads[tenant] = (number, link)
                else:
                    known.lengths[tenant, name] = number
        for tenant, names in _by_tenant(ids).items():
            for row in cursor.execute(_NAMED, (tenant, names)):
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

    def commit(self) -> None:
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()

    def wipe(self) -> None:
        """Truncate the write-ahead log, because it still contains removed data. The database file itself no longer
        does.
        """
        # Wait only briefly for readers, because a writer is waiting.
        self._connection.execute(f"PRAGMA busy_timeout = {WIPE}")
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.execute(f"PRAGMA busy_timeout = {int(BUSY * 1000)}")

    def close(self) -> None:
        self._connection.close()
        if self._queue is not None:
            os.close(self._queue)
            self._queue = None


_HEAD_AND_LENGTHS = """SELECT NULL, number, link FROM heads WHERE tenant = ?1 UNION ALL
    SELECT name, length, NULL FROM conversations WHERE tenant = ?1 AND name IN (SELECT value FROM json_each(?2))"""
_NAMED = f"SELECT {COLUMNS} FROM entries WHERE tenant = ?1 AND id IN (SELECT value FROM json_each(?2))"


def _make(path: Path) -> None:
    """Create the file if it is missing, readable only by its owner.

    An existing file is never opened here, because closing it would release this process's locks on it. Another process
    could then delete the write-ahead log.
    """
    with _making, suppress(FileExistsError):
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except PermissionError as error:
            raise UsageError(f"`{path}` cannot be created: {error.strerror}", hint="name another file") from error


def _file_at(path: str) -> tuple[int, int] | None:
    """Return a value that identifies the file at a path, or None if there is no file."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _by_tenant(places: Iterable[Place]) -> dict[str, str]:
    """Return each tenant's names as a JSON list, so that one statement can take any number of them."""
    found: dict[str, list[str]] = {}
    for tenant, name in places:
        found.setdefault(tenant, []).append(name)
    return {tenant: json.dumps(names) for tenant, names in found.items()}


def _insert(cursor: Cursor, into: str, rows: Sequence[Row], known: str = "") -> None:
    row = f"({','.join('?' * len(rows[0]))})"
    for start in range(0, len(rows), ROWS):
        part = rows[start : start + ROWS]
        values = [value for each in part for value in each]
        cursor.execute(f"INSERT INTO {into} VALUES {','.join([row] * len(part))} {known}", values)
