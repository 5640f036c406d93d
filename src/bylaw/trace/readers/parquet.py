"""Reads Parquet files in which each row is a conversation in OpenAI's format. Requires the `parquet` extra."""

import importlib
from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec
from msgspec import Raw

from bylaw.errors import FormatError, RecordError, UsageError
from bylaw.trace.document import Malformed, Record, read_each, reason
from bylaw.trace.event import Trajectory
from bylaw.trace.reader import Look
from bylaw.trace.readers.openai import conversation
from bylaw.trace.source import CHUNK, Source, open_bytes

NAMES = ("messages", "conversation", "conversations", "traj", "transcript", "dialog")
"""The names to try for the messages column if none is given."""
ROWS = 256
"""The number of rows to hold in memory at a time."""
_ABOUT = ("agent", "outcome", "success", "reward", "model", "metadata", "context", "tools", "functions", "instructions")
_USED = frozenset((*_ABOUT, "id", "conversation_id", "session_id", "thread_id", "custom_id"))
_RECORDS = ("context", "metadata")
"""Columns that contain objects, possibly as JSON text."""
_encode = msgspec.json.Encoder(enc_hook=str, decimal_format="number").encode


def read(source: Source, found: Look) -> Iterator[Trajectory | RecordError]:
    file, stream = _opened(source)
    with stream:
        messages = messages_column(source, file.schema_arrow.names)
        renamed = {messages: "messages"}
        for own, given in (("id", source.columns.id), ("agent", source.columns.agent)):
            if given:
                _check(source, given, file.schema_arrow.names)
                renamed[given] = own
        kept = [name for name in file.schema_arrow.names if name in renamed or name in _USED]
        groups = range(source.span.start, source.span.end) if source.span is not None else None
        first = source.span.index if source.span is not None else 0
        pieces = source.wanted(_rows(source, file, kept, renamed, groups, first))
        yield from read_each(source, pieces, lambda record: conversation(source, record))


def row_groups(source: Source) -> list[tuple[int, int]]:
    file, stream = _opened(source)
    with stream:
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        return [
            (group.num_rows, sum(group.column(each).total_compressed_size for each in range(group.num_columns)))
            for group in groups
        ]


def messages_column(source: Source, names: Sequence[str]) -> str:
    """Return the name of the messages column: the given name, or the first default name that is a column."""
    if given := source.columns.messages:
        _check(source, given, names)
        return given
    found = next((name for each in NAMES for name in names if name.lower() == each), None)
    if found is None:
        shown = ", ".join(f"`{name}`" for name in names)
        hint = f"name it with --messages-column: there are {shown}"
        raise FormatError("no column of messages", place=str(source.path), hint=hint)
    return found


def _check(source: Source, name: str, names: Sequence[str]) -> None:
    if name not in names:
        shown = ", ".join(f"`{each}`" for each in names)
        raise FormatError(f"no column `{name}`", place=str(source.path), hint=f"there are {shown}")


def _opened(source: Source) -> tuple[Any, Any]:
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise UsageError("Parquet needs pyarrow", place=str(source.path), hint="install `bylaw[parquet]`") from None
    try:
        stream = open_bytes(source.path, CHUNK)
        return parquet.ParquetFile(stream), stream
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot read the Parquet file: {reason(error)}", place=str(source.path)) from error


def _rows(
    source: Source, file: Any, kept: list[str], renamed: dict[str, str], groups: Sequence[int] | None, index: int
) -> Iterator[Record | RecordError]:
    try:
        for batch in file.iter_batches(ROWS, row_groups=groups, columns=kept):
            for row in cast("list[dict[str, Any]]", batch.to_pylist()):
                record = {renamed.get(name, name): _given(value) for name, value in row.items() if value is not None}
                try:
                    yield Record(_encode(_with_messages(record)), index)
                except (Malformed, TypeError, ValueError) as error:
                    yield source.fault(index, str(error))
                index += 1
    except (OSError, ValueError) as error:
        yield source.fault(index, f"damaged: {reason(error)}")


def _with_messages(record: dict[str, Any]) -> dict[str, Any]:
    for name in _RECORDS:
        text = record.get(name)
        if isinstance(text, str) and text.startswith("{"):
            record = record | {name: Raw(text.encode())}
    messages = record.get("messages")
    if isinstance(messages, str | bytes):
        return record | {"messages": Raw(messages.encode() if isinstance(messages, str) else messages)}
    if not isinstance(messages, list):
        raise Malformed("no messages in this row")
    return record


def _given(value: Any) -> Any:
    """Remove null fields. Arrow adds every field of the type to every struct, so absent fields are null."""
    if isinstance(value, dict):
        return {name: _given(each) for name, each in cast("dict[str, Any]", value).items() if each is not None}
    return [_given(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value
