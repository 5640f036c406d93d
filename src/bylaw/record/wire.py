"""Many statements for PostgreSQL in one round trip, lists of any length among their values.

The driver's own way of turning values into what goes over the wire costs more than what the server does with them, so
arrays are put together here, in the server's binary form. Who runs an exchange says how to wait for the server: by
standing still, or by doing something else meanwhile.
"""

import struct
from collections.abc import Callable, Sequence
from importlib import import_module
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any

from bylaw.record.database import Steps

_TEXT, _BYTES, _INTEGER, _REAL = 25, 17, 20, 701
"""The server's numbers for types of elements."""
_empty = struct.Struct(">3i").pack
_head = struct.Struct(">5i").pack
_size = struct.Struct(">i").pack
_sized_integer = struct.Struct(">iq").pack
_sized_real = struct.Struct(">id").pack
_NOTHING = b"\xff\xff\xff\xff"
"""In the place of a size: no value."""


def texts(values: Sequence[str | None]) -> bytes:
    """An array of `text`."""
    return _sized(_TEXT, [None if value is None else value.encode() for value in values])


def blobs(values: Sequence[bytes | None]) -> bytes:
    """An array of `bytea`."""
    return _sized(_BYTES, values)


def integers(values: Sequence[int | None]) -> bytes:
    """An array of `bigint`."""
    return _array(_INTEGER, [_NOTHING if value is None else _sized_integer(8, value) for value in values])


def reals(values: Sequence[float]) -> bytes:
    """An array of `double precision`."""
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
    """A value of `bigint`."""
    return None if value is None else int.from_bytes(value, "big", signed=True)


def real(value: bytes | None) -> float | None:
    """A value of `double precision`."""
    return None if value is None else struct.unpack(">d", value)[0]


def blob(value: bytes | None) -> bytes | None:
    """A value of `bytea`."""
    return value


Values = Sequence[bytes]
Read = Callable[[bytes | None], Any]


class Wire:
    """The driver's connection, for statements that were prepared under their names."""

    def __init__(self, connection: Any, statements: dict[str, str]) -> None:
        self._libpq: Any = import_module("psycopg.pq")
        self._errors: Any = import_module("psycopg.errors")
        self._connection = connection.pgconn
        for name, statement in statements.items():
            result = self._connection.prepare(name.encode(), statement.encode())
            if result.status != self._libpq.ExecStatus.COMMAND_OK:
                raise self._errors.error_from_result(result)

    @property
    def is_amid(self) -> bool:
        """Whether an exchange has begun and not ended."""
        return self._connection.pipeline_status != self._libpq.PipelineStatus.OFF

    def exchange(self, statements: Sequence[tuple[str, Values]]) -> Steps[list[Any]]:
        """Send statements at once, each a name and its values; the result of each. After one that fails none is run."""
        connection, binary = self._connection, self._libpq.Format.BINARY
        connection.enter_pipeline_mode()
        for name, values in statements:
            connection.send_query_prepared(name.encode(), values, [binary] * len(values), result_format=binary)
        connection.pipeline_sync()
        results = yield from self._results()
        connection.exit_pipeline_mode()
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
