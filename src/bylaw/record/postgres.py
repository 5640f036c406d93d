"""The log in PostgreSQL, for several machines. Requires the `postgres` extra.

Only one writer at a time writes a batch, in two round trips. A batch is committed before it is synced, so the next
writer does not wait for the disk. Writers and readers get their answers after the sync.
docs/decisions/0020-postgresql-commits-are-visible-before-they-are-synced.md explains why this is safe.
"""

import os
import re
import time
from collections.abc import Collection, Generator
from importlib import import_module
from pathlib import Path
from typing import Any

from bylaw.errors import MissingExtra, UsageError
from bylaw.record.database import COLUMNS, SCHEMA, Connection, Cursor, Known, News, Place, Row, entry_of

SETTINGS = {"synchronous_commit": "on"}
"""With the server's `fsync` setting, this makes commits durable. Batches do not use it, because `MARK` syncs them."""
MARK = "SELECT pg_logical_emit_message(true, 'bylaw', '')"
"""A transaction that changes nothing. Once it is on disk, all earlier commits are too, including those on synchronous
standbys.
"""
PLANS = "SET plan_cache_mode = force_generic_plan"
"""Plan each prepared statement only once, because new plans for specific values would not help."""
CALLS = 10
"""The time limit for connecting, in seconds."""
LOCK = 0x62796C6177
"""The number of the advisory lock that only one writer can hold."""

HANGS = 30.0
"""A server that does not respond for this many seconds counts as unresponsive."""

_WANTED = "unnest(%t::text[], %t::text[]) AS wanted (tenant, name)"
STATEMENTS = {
    "lock": f"SELECT pg_advisory_xact_lock({LOCK}), set_config('synchronous_commit', 'off', true)",
    "heads": "SELECT tenant, number, link FROM heads WHERE tenant = ANY(%t::text[])",
    # Look up each name separately. Without table statistics, a query for several names would scan all rows of a tenant.
    "lengths": f"""SELECT wanted.tenant, wanted.name, found.length FROM {_WANTED}, LATERAL (
        SELECT length FROM conversations WHERE tenant = wanted.tenant AND name = wanted.name LIMIT 1) AS found""",
    "named": f"""SELECT found.* FROM {_WANTED}, LATERAL (
        SELECT {COLUMNS} FROM entries WHERE tenant = wanted.tenant AND id = wanted.name LIMIT 1) AS found""",
    "rows": f"""INSERT INTO entries ({COLUMNS}) SELECT * FROM unnest(%t::text[], %t::bigint[],
        %t::double precision[], %t::text[], %t::text[], %t::bigint[], %t::text[], %t::bytea[], %t::bytea[],
        %t::bytea[], %t::bytea[])""",
    "new heads": """INSERT INTO heads (tenant, number, link)
        SELECT * FROM unnest(%t::text[], %t::bigint[], %t::bytea[])
        ON CONFLICT (tenant) DO UPDATE SET number = excluded.number, link = excluded.link""",
    "new lengths": """INSERT INTO conversations (tenant, name, length)
        SELECT * FROM unnest(%t::text[], %t::text[], %t::bigint[])
        ON CONFLICT (tenant, name) DO UPDATE SET length = excluded.length""",
    "mark": MARK,
}
"""The statements that write a batch. Lists are sent as text (`%t`), because the driver would otherwise choose a type
that depends on their size.
"""
_IDLE, _ACTIVE = 0, 1
"""The driver's status codes for an idle connection and for a running statement."""


class PostgresConnection(Connection):
    def __init__(self, address: str) -> None:
        self._address = address
        self.name = re.sub(r"(?i)(password=)[^&]*", r"\1...", address.rpartition("@")[2])
        """The address without its password."""
        self._is_closed = False
        self._connection = self._connect()
        with self._connection.transaction():
            # If two workers start at the same time, only one of them may create the tables.
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            for statement in SCHEMA:
                self._connection.execute(statement.format(bytes="BYTEA", real="DOUBLE PRECISION"))

    def _connect(self) -> Any:
        try:
            psycopg: Any = import_module("psycopg")
        except ImportError as error:
            raise MissingExtra("a PostgreSQL log needs the package `psycopg`", "postgres") from error
        try:
            connection = _bounded_connection(psycopg).connect(self._address, autocommit=True, connect_timeout=CALLS)
        except (psycopg.Error, TimeoutError) as error:
            said = " ".join(str(error).split())
            hint = _password_hint(psycopg, self._address) if "no password supplied" in said else ""
            raise UsageError(f"no database responds at `{self.name}`: {said}", hint=hint) from error
        for name, value in SETTINGS.items():
            connection.execute(f"SET {name} = {value}")
        connection.execute(PLANS)
        return connection

    @property
    def is_there(self) -> bool:
        return not (self._connection.closed or self._connection.broken)

    def rows(self, query: str, values: tuple[object, ...]) -> list[tuple[object, ...]]:
        self._call()
        return self._connection.execute(query.replace("?", "%s"), values).fetchall()

    def settle(self) -> None:
        """Sync, because rows are visible to readers as soon as they are committed."""
        self.rows(MARK, ())

    def _call(self) -> None:
        if self._is_closed:
            raise UsageError("the log is closed")
        if not self.is_there:
            self._connection = self._connect()

    def begin(self, *, writing: bool) -> Cursor:
        self._call()
        cursor = _Cursor(self._connection.cursor())
        cursor.execute("BEGIN" if writing else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if writing:
            cursor.execute("SELECT pg_advisory_xact_lock(?)", (LOCK,))
        return cursor

    def begin_batch(self, conversations: Collection[Place], ids: Collection[Place]) -> tuple[Cursor, Known]:
        self._call()
        with self._connection.pipeline():
            self._connection.execute("BEGIN")
            self._send("lock")
            heads = self._send("heads", [sorted({tenant for tenant, _ in conversations})])
            lengths = self._send("lengths", _columns(conversations))
            named = self._send("named", _columns(ids)) if ids else None
        entries = [entry_of(row) for row in named] if named is not None else []
        known = Known(
            {tenant: (number, link) for tenant, number, link in heads},
            {(tenant, name): length for tenant, name, length in lengths},
            {(entry.tenant, entry.id or ""): entry for entry in entries},
        )
        return _Cursor(self._connection.cursor()), known

    def commit_batch(self, news: News) -> None:
        """Commit the batch, then sync it. During the sync, others may write."""
        try:
            with self._connection.pipeline():
                if news.rows:
                    self._send("rows", _columns(news.rows))
                    self._send("new heads", _columns(news.heads))
                    self._send("new lengths", _columns(news.lengths))
                self._connection.execute("COMMIT")
                self._send("mark")
        except BaseException:
            if _is_idle(self._connection):
                # The batch is committed but may not be synced, so it must not be reported as unwritten.
                self._connection.close()
            raise

    def _send(self, name: str, values: Collection[list[Any]] = ()) -> Any:
        return self._connection.execute(STATEMENTS[name], values, prepare=True, binary=True)

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def rollback(self) -> None:
        if _is_amid(self._connection):
            # It is unknown how much of the request the server has executed.
            self._connection.close()
        if self.is_there:
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._is_closed = True
        self._connection.close()


class _Cursor:
    """A cursor that accepts `?` as the placeholder, as SQLite does."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def execute(self, query: str, params: Any = (), /) -> None:
        self._cursor.execute(query.replace("?", "%s"), params)

    def fetchone(self) -> Any:
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        return self._cursor.fetchall()


def _columns(rows: Collection[Row]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _is_amid(connection: Any) -> bool:
    """Whether a request was sent but its response has not arrived completely."""
    return bool(connection.pgconn.pipeline_status or connection.pgconn.transaction_status == _ACTIVE)


def _is_idle(connection: Any) -> bool:
    return connection.pgconn.transaction_status == _IDLE


def _bounded_connection(psycopg: Any) -> Any:
    """Return the driver's connection class with a time limit for each response.

    The driver limits only the time for connecting, and a server that has stopped cannot enforce a limit itself.
    """

    class Bounded(psycopg.Connection):
        def wait(self, gen: Generator[Any, Any, Any], *more: Any, **named: Any) -> Any:
            return psycopg.Connection.wait(self, self._bounded(gen), *more, **named)

        def _bounded(self, steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
            """Run the driver's steps. If no data arrives and `HANGS` seconds have passed, close the connection."""
            until, ready = time.monotonic() + HANGS, None
            while True:
                try:
                    what = steps.send(ready)
                except StopIteration as done:
                    return done.value
                ready = yield what
                if not ready and time.monotonic() > until:
                    self.close()
                    raise TimeoutError(f"the server has not answered for {HANGS:.0f} seconds")

    return Bounded


def _password_hint(psycopg: Any, address: str) -> str:
    """Return why libpq ignores the password file, because libpq itself does not report it."""
    named = psycopg.conninfo.conninfo_to_dict(address).get("passfile") or os.environ.get("PGPASSFILE")
    file = Path(named or "~/.pgpass").expanduser()
    try:
        is_open = bool(file.stat().st_mode & 0o077)
    except OSError:
        return f"`{file}` cannot be found" if named else "set PGPASSWORD or PGPASSFILE"
    if is_open or not os.access(file, os.R_OK):
        return f"`{file}` must belong to the user who runs Bylaw ({os.getuid()}), with mode 600"
    return f"`{file}` has no line for this database and user"
