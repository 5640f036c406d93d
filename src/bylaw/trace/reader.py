"""Reads trajectories from a file in any supported format. The format is detected from the first bytes."""

import importlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from bylaw.errors import FormatError, RecordError
from bylaw.trace.document import Format, Layout, Malformed, decode, glimpse, is_messages, shape
from bylaw.trace.event import Trajectory
from bylaw.trace.source import Columns, RemoteFile, Source, log_file

BY_RECORD = frozenset(("openai", "tau1", "tau2"))
"""Formats with one conversation per record. Records that are not needed are not decoded."""
READERS: dict[Format, str] = {
    "openai": "openai",
    "tau1": "tau",
    "tau2": "tau",
    "agentdojo": "agentdojo",
    "langchain": "frameworks",
    "pydantic-ai": "frameworks",
    "adk": "frameworks",
    "llama-index": "frameworks",
    "agent-framework": "frameworks",
    "claude": "frameworks",
    "claude-code": "transcripts",
    "otlp": "otel",
    "langfuse": "tracers",
    "langsmith": "tracers",
    "inspect": "inspect",
    "parquet": "parquet",
}
"""The module in `readers` for each format."""


ZIP = b"PK\x03\x04"
PARQUET = b"PAR1"
_HEAD = 1 << 20
_ANYTHING = msgspec.json.Decoder()


class Look(Struct, frozen=True):
    format: Format
    layout: Layout
    single: bool = False
    """Whether the document is a single conversation, given as a list of messages."""


def read(
    path: str | PathLike[str] | RemoteFile,
    *,
    agent: str | None = None,
    share: tuple[int, int] = (0, 1),
    columns: Columns | None = None,
) -> Iterator[Trajectory | RecordError]:
    """Yield the trajectories of a file in order, and an error for each unreadable record.

    Raise FormatError if nothing can be read. `agent` overrides the agent named in the file. An id is the source's own
    id or `file#position`. Use `Identities` to make ids unique across files. `share` is a pair `(k, n)`: yield only
    every n-th trajectory, starting with the k-th.
    """
    return read_source(Source(log_file(path), agent, share, columns=columns or Columns()))


def read_source(source: Source, found: Look | None = None) -> Iterator[Trajectory | RecordError]:
    """Yield the trajectories of a file or part of a file.

    For a part, pass the format as `found`, because it may be impossible to detect there.
    """
    found = found or look(source)
    # Import each reader only when it is needed.
    reader: Any = importlib.import_module(f"bylaw.trace.readers.{READERS[found.format]}")
    every: Iterator[Trajectory | RecordError] = reader.read(source, found)
    return every if found.format in BY_RECORD and not found.single else source.wanted(every)


def sniff(path: str | PathLike[str]) -> Format:
    return look(Source(Path(path))).format


def look(source: Source) -> Look:
    head, whole, why = _head(source)
    if head.startswith(ZIP):
        return Look("inspect", "document")
    if head.startswith(PARQUET):
        return Look("parquet", "document")
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        raise FormatError(why or "the file is empty", place=str(source.path))
    found = _look_at_lines(text, whole) or _look_at_document(source, text, whole)
    if found is None:
        raise FormatError(
            "not in a trace format that Bylaw reads", place=str(source.path), hint="docs/formats.md lists them"
        )
    return found


def _head(source: Source) -> tuple[bytes, bool, str]:
    """Return the start of a file, and whether this is the whole file. If the file is damaged there, also return why."""
    head = b""
    for chunk in source.chunks():
        if isinstance(chunk, str):
            return head, True, chunk
        head += chunk
        if len(head) >= _HEAD or b"\n" in head[:-1] or head.startswith((ZIP, PARQUET)):
            return head, False, ""
    return head, True, ""


def _look_at_lines(text: bytes, whole: bool) -> Look | None:
    """Return the format of a file with one record per line. The first line whose format is recognisable decides."""
    lines = text.split(b"\n", 40)
    if not whole or len(lines) > 40:
        lines.pop()
    lines = [line for line in lines if line and not line.isspace()]
    if len(lines) < (2 if whole else 1) or (len(lines) > 1 and lines[0].strip() in (b"[", b"{", b"[{", b"[[")):
        return None
    return next((Look(format, "lines") for line in lines if (format := _shape_of_line(line))), None)


def _shape_of_line(line: bytes) -> Format | None:
    try:
        return shape(decode(_ANYTHING, line))
    except Malformed:
        return None


def _look_at_document(source: Source, text: bytes, whole: bool) -> Look | None:
    value: Any = None
    format: Format | None = None
    # The first few keys usually suffice. If none of the keys identifies the format, assume plain messages.
    for size in (1 << 12, 1 << 16, len(text)):
        value = glimpse(text[:size])
        format = shape(value)
        if format not in {None, "openai"} or size >= len(text):
            break
    # The first line may be longer than the bytes read. In that case, read on: if another line follows, the file has
    # one record per line.
    first, goes_on = _first_line(source) if not whole and b"\n" not in text else (b"", False)
    if format is None and not whole and text.startswith(b"{"):
        format = _shape_of_object(first) if goes_on else None
        format, goes_on = (format, True) if format else (_shape_of_object(source.document()[0]), False)
    if format is None:
        return None
    is_single = isinstance(value, list) and is_messages(cast("list[Any]", value))
    if goes_on and (is_single or (isinstance(value, dict) and format not in {"tau2", "inspect"})):
        return Look(format, "lines")
    return Look(format, "document", single=is_single)


def _first_line(source: Source) -> tuple[bytes, bool]:
    """Return the first line of a file, and whether the file has another line."""
    lines = source.lines()
    first, second = next(lines, None), next(lines, None)
    return first[1] if isinstance(first, tuple) else b"", isinstance(second, tuple)


def _shape_of_object(data: bytes) -> Format | None:
    """Return the format of a document if the keys that identify it are near the end."""
    try:
        fields = msgspec.json.decode(data, type=dict[str, Raw])
    except (ValueError, RecursionError):
        return None
    return shape({name: glimpse(bytes(raw)[: 1 << 16]) for name, raw in fields.items()})
