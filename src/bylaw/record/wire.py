"""Many statements for PostgreSQL in one round trip, lists of any length among their values.

The driver's own way of turning values into what goes over the wire costs more than what the server does with them, so
arrays are put together here, in the server's binary form. Who runs an exchange says how to wait for the server: by
standing still, or by doing something else meanwhile.
"""

import struct
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from importlib import import_module
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any

from bylaw.record.database import HANGS, Steps, hung

_TEXT, _BYTES, _INTEGER, _REAL = 25, 17, 20, 701
"""The server's numbers for types of elements."""
_empty = struct.Struct(">3i").pack
_head = struct.Struct(">5i").pack
_size = struct.Struct(">i").pack
_sized_integer = struct.Struct(">iq").pack
_sized_real = struct.Struct(">id").pack
_IDLE, _ACTIVE = 0, 1
"""What the driver says where no transaction was begun, and while a statement runs."""
_NOTHING = b"\xff\xff\xff\xff"
"""In the place of a size: no value."""


def texts(values: Sequence[str | None]) -> bytes:
    return _sized(_TEXT, [None if value is None else value.encode() for value in values])


def blobs(values: Sequence[bytes | None]) -> bytes:
    return _sized(_BYTES, values)


def integers(values: Sequence[int | None]) -> bytes:
    return _array(_INTEGER, [_NOTHING if value is None else _sized_integer(8, value) for value in values])


def reals(values: Sequence[float]) -> bytes:
    return _array(_REAL, [_sized_real(8, value) for value in values])


def _sized(kind: int, values: Sequence[bytes | None]) -> bytes:
    return _array(kind, [_NOTHING if value is None else _size(len(value)) + value for value in values])


def _array(kind: int, elements: Sequence[bytes]) -> bytes:
    if not elements:
        return _empty(0, 0, kind)
    return _head(1, 1, kind, len(elements), 1) + b"".join(elements)


def text(value: bytes | None) -> str | None:
    """A value of `text`, as the server sends it."""
    return None if value is None else value.decode()


def integer(value: bytes | None) -> int | None:
    return None if value is None else int.from_bytes(value, "big", signed=True)


def real(value: bytes | None) -> float | None:
    return None if value is None else struct.unpack(">d", value)[0]


def blob(value: bytes | None) -> bytes | None:
    return value


Values = Sequence[bytes]
Read = Callable[[bytes | None], Any]


class Wire:
    """The driver's connection, for statements that were prepared under their names."""

    def __init__(self, connection: Any) -> None:
        self._libpq: Any = import_module("psycopg.pq")
        self._errors: Any = import_module("psycopg.errors")
        self._connection = connection.pgconn

    def prepare(self, statements: Mapping[str, str]) -> Steps[None]:
        """Have the server know statements by their names."""
        self._connection.enter_pipeline_mode()
        for name, statement in statements.items():
            self._connection.send_prepare(name.encode(), statement.encode())
        yield from self._finish()

    def exchange(self, statements: Sequence[tuple[str, Values]]) -> Steps[list[Any]]:
        """Send statements at once, each a name and its values; the result of each. After one that fails none is run."""
        connection, binary = self._connection, self._libpq.Format.BINARY
        connection.enter_pipeline_mode()
        for name, values in statements:
            connection.send_query_prepared(name.encode(), values, [binary] * len(values), result_format=binary)
        return (yield from self._finish())

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


def rows(result: Any, reads: Sequence[Read]) -> list[list[Any]]:
    """The rows of a result, each column as it is to be read."""
    value = result.get_value
    return [[read(value(row, column)) for column, read in enumerate(reads)] for row in range(result.ntuples)]


def is_amid(connection: Any) -> bool:
    """Whether something was sent over the driver's connection, and not all that it leads to has come back."""
    return bool(connection.pgconn.pipeline_status or connection.pgconn.transaction_status == _ACTIVE)


def is_idle(connection: Any) -> bool:
    """Whether the driver's connection is in no transaction."""
    return connection.pgconn.transaction_status == _IDLE


def bounded(psycopg: Any) -> Any:
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
