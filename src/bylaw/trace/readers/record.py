"""What readers do with the records of a file: make a conversation of each, or say what is wrong with it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from bylaw.errors import RecordError
from bylaw.trace.document import Layout, Malformed, Record, elements, find_value, objects, records, salvage, tell
from bylaw.trace.source import Source
from bylaw.trace.trajectory import Trajectory
from bylaw.trace.transcript import Transcript

T = TypeVar("T")
ODD = (
    *(Malformed, msgspec.MsgspecError, ArithmeticError, AttributeError, LookupError),
    *(RecursionError, TypeError, ValueError),
)
"""What reading a record of an unforeseen shape ends in: it is reported, and the others are read."""


def oddity(error: Exception) -> str:
    return str(error) if isinstance(error, Malformed) else f"not in a shape we know: {tell(error)}"


def read_each(
    source: Source, pieces: Iterable[Record | RecordError], conversation: Callable[[Record], Trajectory]
) -> Iterator[Trajectory | RecordError]:
    """The conversation that each record is, in order."""
    for record in pieces:
        if isinstance(record, RecordError):
            yield record
            continue
        try:
            yield conversation(record)
        except ODD as error:
            yield record.fault(source, oddity(error))


def take_each(source: Source, layout: Layout, take: Callable[[Record], None]) -> Iterator[RecordError]:
    """Let every record be taken in, where conversations are put together of many; gives those that cannot be."""
    for record in records(source, layout):
        if isinstance(record, RecordError):
            yield record
            continue
        try:
            take(record)
        except ODD as error:
            yield record.fault(source, oddity(error))


def conversations_in(source: Source, layout: Layout, *, single: bool) -> Iterator[Record | RecordError]:
    """The records of a file; `single` where the whole document is one list of messages, perhaps cut short."""
    if not single:
        yield from records(source, layout)
        return
    parts = list(objects(source, elements(source, *source.document())))
    whole = b",".join(bytes(part.raw) for part in parts if isinstance(part, Record))
    yield Record(b"[" + whole + b"]", 0)
    yield from (part for part in parts if isinstance(part, RecordError))


def head_in(data: bytes, name: bytes, decoder: msgspec.json.Decoder[T], default: T) -> T:
    """What a document that is cut short or damaged says under a name, where that can still be read."""
    head = find_value(data, name)
    try:
        return decoder.decode(head) if head is not None else default
    except (msgspec.DecodeError, UnicodeDecodeError):
        return default


def salvaged(source: Source, data: bytes, at: int, why: str) -> Iterator[Record | RecordError]:
    """What is left of the list that begins after a place in such a document; nothing where there is no such place."""
    start = data.find(b"[", at) if at >= 0 else -1
    return salvage(source, data, start + 1, why) if start >= 0 else iter([source.fault(0, why)])


def is_list(record: Record) -> bool:
    """Whether a record is a bare list of messages."""
    return bytes(memoryview(record.raw)[:64]).lstrip().startswith(b"[")


def trajectory_of(
    source: Source,
    record: Record,
    transcript: Transcript,
    format: str,
    *,
    id: str = "",
    agent: str = "",
    instructions: str | None = None,
    **more: Any,
) -> Trajectory:
    """The conversation that was read from a record; without an id or an agent of its own it goes by its file."""
    return Trajectory(
        id=id or f"{source.name}#{record.index}",
        events=transcript.events,
        agent=source.agent or agent or source.agent_by_name,
        instructions=instructions or "\n\n".join(transcript.instructions),
        file=source.name,
        position=record.position,
        format=format,
        **more,
    )
