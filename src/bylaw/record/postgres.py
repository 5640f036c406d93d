"""The log in PostgreSQL, for several machines at once. Needs the extra `postgres`.

A batch of any size takes few round trips, since all other writers wait until it ends: one in which the transaction
begins and all is read, the rows, and one for the rest and the commit.
"""

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

import msgspec

from bylaw.errors import UsageError
from bylaw.record.database import COLUMNS, SCHEMA, Cursor, Known, News, Place, entry_of

SETTINGS = {"synchronous_commit": "on"}
"""What makes a commit durable, beside the server's own `fsync`; benchmarks print both."""
LOCK = 0x62796C6177
"""The advisory lock that lets one writer at a time extend the chains."""

# Each name is looked for by itself: of a list of names, a server that has not counted a table's rows yet would go
# through all that a tenant has. Lists go over as JSON, which is made of them in a fraction of the time.
_LENGTHS = """SELECT wanted->>0, wanted->>1, found.length FROM json_array_elements(%s::json) AS wanted, LATERAL (
    SELECT length FROM conversations WHERE tenant = wanted->>0 AND name = wanted->>1 LIMIT 1) AS found"""
_NAMED = f"""SELECT found.* FROM json_array_elements(%s::json) AS wanted, LATERAL (
    SELECT {COLUMNS} FROM entries WHERE tenant = wanted->>0 AND id = wanted->>1 LIMIT 1) AS found"""
_ROWS = f"COPY entries ({COLUMNS}) FROM STDIN (FORMAT BINARY)"
_TYPES = ("text", "int8", "float8", "text", "text", "int8", "text", "bytea", "bytea", "bytea", "bytea")
_HEAD = """INSERT INTO heads (tenant, number, link) VALUES (%s, %s, %s)
    ON CONFLICT (tenant) DO UPDATE SET number = excluded.number, link = excluded.link"""
_NEW_LENGTHS = """INSERT INTO conversations (tenant, name, length)
    SELECT new->>0, new->>1, (new->>2)::bigint FROM json_array_elements(%s::json) AS new
    ON CONFLICT (tenant, name) DO UPDATE SET length = excluded.length"""


class PostgresConnection:
    """One connection to a server."""

    reads_at_once = False

    def __init__(self, address: str) -> None:
        self._address = address
        self.name = address.rpartition("@")[2]
        """Without the password."""
        self._is_closed = False
        self._connection = self._connect()
        with self._connection.transaction():
            # Two workers that start together must not both make the tables.
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            for statement in SCHEMA:
                self._connection.execute(statement.format(bytes="BYTEA", real="DOUBLE PRECISION"))

    def _connect(self) -> Any:
        try:
            psycopg: Any = import_module("psycopg")
        except ImportError as error:
            raise UsageError(
                "PostgreSQL needs psycopg", hint="in your clone of Bylaw: pip install '.[postgres]'"
            ) from error
        try:
            connection = psycopg.connect(self._address, autocommit=True)
        except psycopg.Error as error:
            said = " ".join(str(error).split())
            raise UsageError(f"no database answers at `{self.name}`: {said}") from error
        for name, value in SETTINGS.items():
            connection.execute(f"SET {name} = {value}")
        return connection

    @property
    def is_there(self) -> bool:
        """Whether the server has not hung up."""
        return not (self._connection.closed or self._connection.broken)

    def rows(self, query: str, values: tuple[object, ...]) -> list[tuple[object, ...]]:
        """What one statement finds; it is a transaction of its own."""
        self._call()
        return self._connection.execute(query.replace("?", "%s"), values).fetchall()

    def turn(self) -> AbstractContextManager[None]:
        """The server has a queue of its own."""
        return nullcontext()

    def _call(self) -> None:
        """A server that went away and came back is called again."""
        if self._is_closed:
            raise UsageError("the log is closed")
        if not self.is_there:
            self._connection = self._connect()

    def begin(self, *, writing: bool) -> Cursor:
        """A cursor within a new transaction."""
        self._call()
        cursor = _Cursor(self._connection.cursor())
        cursor.execute("BEGIN" if writing else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if writing:
            cursor.execute("SELECT pg_advisory_xact_lock(?)", (LOCK,))
        return cursor

    def begin_batch(self, conversations: Collection[Place], ids: Collection[Place]) -> tuple[Cursor, Known]:
        """Begin, and read what is there once it is our turn."""
        self._call()
        execute = self._connection.execute
        with self._connection.pipeline():
            execute("BEGIN")
            execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            tenants = sorted({tenant for tenant, _ in conversations})
            heads = execute("SELECT tenant, number, link FROM heads WHERE tenant = ANY(%s)", (tenants,))
            lengths = execute(_LENGTHS, (_json(conversations),))
            named = execute(_NAMED, (_json(ids),)) if ids else None
        entries = map(entry_of, named.fetchall()) if named is not None else ()
        known = Known(
            {tenant: (number, bytes(link)) for tenant, number, link in heads.fetchall()},
            {(tenant, name): length for tenant, name, length in lengths.fetchall()},
            {(entry.tenant, entry.id or ""): entry for entry in entries},
        )
        return _Cursor(self._connection.cursor()), known

    def commit(self, news: News | None = None) -> None:
        """Written and synced."""
        connection = self._connection
        if news is None or not news.rows:
            connection.execute("COMMIT")
            return
        with connection.cursor().copy(_ROWS) as rows:
            rows.set_types(_TYPES)
            for row in news.rows:
                rows.write_row(row)
        with connection.pipeline():
            for head in news.heads:
                connection.execute(_HEAD, head)
            connection.execute(_NEW_LENGTHS, (_json(news.lengths),))
            connection.execute("COMMIT")

    def rollback(self) -> None:
        """Nothing happened."""
        if self.is_there:
            self._connection.execute("ROLLBACK")

    def wipe(self) -> None:
        """The server's own vacuum sees to it."""

    def close(self) -> None:
        """Hang up."""
        self._is_closed = True
        self._connection.close()


class _Cursor:
    """A cursor that takes `?` for a value, as SQLite's does."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    @property
    def rowcount(self) -> int:
        """Rows the last statement touched."""
        return self._cursor.rowcount

    def execute(self, query: str, params: Any = (), /) -> None:
        """Run one statement."""
        self._cursor.execute(query.replace("?", "%s"), params)

    def executemany(self, query: str, params: Any, /) -> None:
        """Run one statement for each row."""
        self._cursor.executemany(query.replace("?", "%s"), params)

    def fetchone(self) -> Any:
        """The next row, or None."""
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        """All rows that are left."""
        return self._cursor.fetchall()


def _json(rows: Collection[tuple[Any, ...]]) -> str:
    return msgspec.json.encode(list(rows)).decode()


def connect(address: str) -> PostgresConnection:
    """Connect, and make the tables where there are none."""
    return PostgresConnection(address)
