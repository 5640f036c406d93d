"""The log in PostgreSQL, for several machines at once. Needs the extra `postgres`.

A batch of any size takes two round trips, since all other writers wait until it ends: one in which the transaction
begins and all is read, and one in which all is written and committed. They do not wait for the disk: a batch is
committed before it is synced, and whose it was are told after the sync, as is whoever reads it meanwhile. Why nothing
is lost by that: docs/decisions/0020-postgresql-commits-are-visible-before-they-are-synced.md.
"""

import re
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from importlib import import_module
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Any

from bylaw.errors import UsageError
from bylaw.record.database import (
    COLUMNS,
    HANGS,
    SCHEMA,
    Connection,
    Cursor,
    Known,
    News,
    Place,
    Row,
    Steps,
    entry_of,
    hung,
)

SETTINGS = {"synchronous_commit": "on"}
"""What makes a commit durable, beside the server's own `fsync`: all commits but those that `MARK` follows."""
MARK = "SELECT pg_logical_emit_message(true, 'bylaw', '')"
"""A transaction that writes no more than its own end. When that is on disk, and with the standbys that the server waits
for, so is all that was committed before it: what any of it was read from, too."""
PLANS = "SET plan_cache_mode = force_generic_plan"
"""A statement that was prepared is planned once: of those of a batch none does better with a plan for its values."""
CALLS = 10
"""Seconds after which a server that does not take a call is given up."""
LOCK = 0x62796C6177
"""The advisory lock that lets one writer at a time extend the chains."""

_WANTED = "unnest($1::text[], $2::text[]) AS wanted (tenant, name)"
STATEMENTS = {
    "begin": "BEGIN",
    "lock": f"SELECT pg_advisory_xact_lock({LOCK}), set_config('synchronous_commit', 'off', true)",
    "heads": "SELECT tenant, number, link FROM heads WHERE tenant = ANY($1::text[])",
    # Each name is looked for by itself: of a list of names, a server that has not counted a table's rows yet would go
    # through all that a tenant has.
    "lengths": f"""SELECT wanted.tenant, wanted.name, found.length FROM {_WANTED}, LATERAL (
        SELECT length FROM conversations WHERE tenant = wanted.tenant AND name = wanted.name LIMIT 1) AS found""",
    "named": f"""SELECT found.* FROM {_WANTED}, LATERAL (
        SELECT {COLUMNS} FROM entries WHERE tenant = wanted.tenant AND id = wanted.name LIMIT 1) AS found""",
    "rows": f"""INSERT INTO entries ({COLUMNS}) SELECT * FROM unnest($1::text[], $2::bigint[],
        $3::double precision[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::bytea[], $9::bytea[],
        $10::bytea[], $11::bytea[])""",
    "new heads": """INSERT INTO heads (tenant, number, link)
        SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[])
        ON CONFLICT (tenant) DO UPDATE SET number = excluded.number, link = excluded.link""",
    "new lengths": """INSERT INTO conversations (tenant, name, length)
        SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])
        ON CONFLICT (tenant, name) DO UPDATE SET length = excluded.length""",
    "commit": "COMMIT",
    "mark": MARK,
}
"""What a batch is written with."""
_IDLE, _ACTIVE = 0, 1
"""The driver's transaction status without a transaction, and while a statement runs."""


class PostgresConnection(Connection):
    def __init__(self, address: str) -> None:
        """Connect, and make the tables where there are none."""
        self._address = address
        self.name = re.sub(r"(?i)(password=)[^&]*", r"\1...", address.rpartition("@")[2])
        """Without the password."""
        self._is_closed = False
        self._wire: Wire | None = None
        """Where anything was written since the server was called."""
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
            hint = "in your clone of Bylaw: pip install '.[postgres]'"
            raise UsageError("PostgreSQL needs psycopg", hint=hint) from error
        try:
            connection = _bounded_connection(psycopg).connect(self._address, autocommit=True, connect_timeout=CALLS)
        except (psycopg.Error, TimeoutError) as error:
            said = " ".join(str(error).split())
            raise UsageError(f"no database answers at `{self.name}`: {said}") from error
        for name, value in SETTINGS.items():
            connection.execute(f"SET {name} = {value}")
        connection.execute(PLANS)
        return connection

    @property
    def is_there(self) -> bool:
        return not (self._connection.closed or self._connection.broken)

    def rows(self, query: str, values: tuple[object, ...]) -> list[tuple[object, ...]]:
        self._call()
        try:
            return self._connection.execute(query.replace("?", "%s"), values).fetchall()
        except TimeoutError:
            self._connection.close()
            raise

    def settle(self) -> None:
        """Rows are seen as soon as they are committed."""
        self.rows(MARK, ())

    def _call(self) -> None:
        """A server that went away and came back is called again."""
        if self._is_closed:
            raise UsageError("the log is closed")
        if not self.is_there:
            self._connection, self._wire = self._connect(), None

    def begin(self, *, writing: bool) -> Cursor:
        self._call()
        cursor = _Cursor(self._connection.cursor())
        cursor.execute("BEGIN" if writing else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if writing:
            cursor.execute("SELECT pg_advisory_xact_lock(?)", (LOCK,))
        return cursor

    def begin_batch(self, conversations: Collection[Place], ids: Collection[Place]) -> Steps[tuple[Cursor, Known]]:
        self._call()
        if self._wire is None:
            # The driver prepares statements of its own, and where something is rolled back has the server forget all.
            self._connection.prepare_threshold = None
            wire = Wire(self._connection)
            yield from wire.prepare(STATEMENTS)
            self._wire = wire
        tenants = sorted({tenant for tenant, _ in conversations})
        sent: list[tuple[str, list[list[Any]]]] = [("begin", []), ("lock", []), ("heads", [tenants])]
        sent.append(("lengths", _columns(conversations)))
        if ids:
            sent.append(("named", _columns(ids)))
        _, _, heads, lengths, *named = yield from self._wire.exchange(sent)
        entries = [entry_of(row) for found in named for row in found]
        known = Known(
            {tenant: (number, link) for tenant, number, link in heads},
            {(tenant, name): length for tenant, name, length in lengths},
            {(entry.tenant, entry.id or ""): entry for entry in entries},
        )
        return _Cursor(self._connection.cursor()), known

    def commit_batch(self, news: News) -> Steps[None]:
        """Written; then, while others may write, synced."""
        assert self._wire is not None
        sent: list[tuple[str, list[list[Any]]]] = []
        if news.rows:
            sent.append(("rows", _columns(news.rows)))
            sent.append(("new heads", _columns(news.heads)))
            sent.append(("new lengths", _columns(news.lengths)))
        try:
            yield from self._wire.exchange([*sent, ("commit", []), ("mark", [])])
        except BaseException:
            if _is_idle(self._connection):
                # Committed, and not known to be synced: it must not be taken for what was not written.
                self._connection.close()
            raise

    def fileno(self) -> int:
        return self._connection.fileno()

    def wait(self, what: int) -> None:
        with DefaultSelector() as selector:
            selector.register(self.fileno(), what)
            if not selector.select(HANGS):
                raise hung()

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def rollback(self) -> None:
        if _is_amid(self._connection):
            # What the server has taken of it, nobody knows.
            self._connection.close()
        if self.is_there:
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._is_closed = True
        self._connection.close()


class _Cursor:
    """A cursor that takes `?` for a value, as SQLite's does."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def execute(self, query: str, params: Any = (), /) -> None:
        self._cursor.execute(query.replace("?", "%s"), params)

    def fetchone(self) -> Any:
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        return self._cursor.fetchall()


def _columns(rows: Collection[Row]) -> list[list[Any]]:
    """Rows, column by column."""
    return [list(column) for column in zip(*rows, strict=True)]


class Wire:
    """Sends many prepared statements in one round trip.

    The caller runs the steps and says how to wait for the server: by blocking, or by doing something else meanwhile.
    """

    def __init__(self, connection: Any) -> None:
        self._libpq: Any = import_module("psycopg.pq")
        self._adapt: Any = import_module("psycopg.adapt")
        self._values: Any = self._adapt.Transformer(connection)
        self._errors: Any = import_module("psycopg.errors")
        self._connection = connection.pgconn

    def prepare(self, statements: Mapping[str, str]) -> Steps[None]:
        """Have the server know statements by their names."""
        self._connection.enter_pipeline_mode()
        for name, statement in statements.items():
            self._connection.send_prepare(name.encode(), statement.encode())
        yield from self._finish()

    def exchange(self, statements: Sequence[tuple[str, Sequence[list[Any]]]]) -> Steps[list[list[Row]]]:
        """Send statements together, each a name and its lists of values; the rows of each. A failure skips the rest."""
        text, binary = self._adapt.PyFormat.TEXT, self._libpq.Format.BINARY
        # As text: in binary form the driver picks the type of a list's elements by their size.
        sent = [(name.encode(), self._values.dump_sequence(each, [text] * len(each))) for name, each in statements]
        self._connection.enter_pipeline_mode()
        for name, values in sent:
            self._connection.send_query_prepared(name, values, result_format=binary)
        results = yield from self._finish()
        return [self._rows(result) for result in results]

    def _rows(self, result: Any) -> list[Row]:
        self._values.set_pgresult(result, format=self._libpq.Format.BINARY)
        return self._values.load_rows(0, result.ntuples, tuple)

    def _finish(self) -> Steps[list[Any]]:
        self._connection.pipeline_sync()
        results = yield from self._results()
        self._connection.exit_pipeline_mode()
        for result in results:
            if result.status == self._libpq.ExecStatus.FATAL_ERROR:
                raise self._errors.error_from_result(result)
        return results

    def _results(self) -> Steps[list[Any]]:
        connection, synced = self._connection, self._libpq.ExecStatus.PIPELINE_SYNC
        results: list[Any] = []
        while True:
            yield EVENT_READ | EVENT_WRITE if connection.flush() else EVENT_READ
            connection.consume_input()
            while not connection.is_busy():
                result = connection.get_result()
                if result is None:
                    continue
                if result.status == synced:
                    return results
                results.append(result)


def _is_amid(connection: Any) -> bool:
    """Whether something was sent over the driver's connection, and not all that it leads to has come back."""
    return bool(connection.pgconn.pipeline_status or connection.pgconn.transaction_status == _ACTIVE)


def _is_idle(connection: Any) -> bool:
    """Whether the driver's connection is in no transaction."""
    return connection.pgconn.transaction_status == _IDLE


def _bounded_connection(psycopg: Any) -> Any:
    """The driver's own kind of connection, which waits for a server no longer than anyone should."""

    class Bounded(psycopg.Connection):
        def wait(self, gen: Generator[Any, Any, Any], *more: Any, **named: Any) -> Any:
            return psycopg.Connection.wait(self, _bounded(gen), *more, **named)

    return Bounded


def _bounded(steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """The driver's steps. It is told now and then that nothing has come."""
    until, what = time.monotonic() + HANGS, next(steps)
    while True:
        ready = yield what
        if not ready and time.monotonic() > until:
            raise hung()
        try:
            what = steps.send(ready)
        except StopIteration as done:
            return done.value
