"""Records cut out of a file, one at a time, without decoding the rest, also out of a broken one; and a conversation or
an error made of each."""

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Raw, Struct

from bylaw.errors import RecordError
from bylaw.trace.shape import glimpse, is_messages
from bylaw.trace.source import Source
from bylaw.trace.trajectory import Trajectory
from bylaw.trace.transcript import Transcript

Layout = Literal["lines", "document"]
T = TypeVar("T")

# Possessive: a text that never ends is not gone through backwards.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]', re.DOTALL)
_SPACE = re.compile(rb"[\s,]*")
_REMAINS = re.compile(rb"[\s,}]*")
_list = msgspec.json.Decoder(list[Raw])
_raw = msgspec.json.Decoder(Raw)


class Record(Struct, frozen=True, gc=False):
    """The bytes of one record and where they stood."""

    raw: Raw | bytes
    index: int
    """Counted from 0."""
    line: int = 0
    """Counted from 1; 0 in a file that is one document."""

    def fault(self, source: Source, why: str) -> RecordError:
        """What is wrong with it."""
        return _fault(source, self.line, self.index, why)

    @property
    def position(self) -> int:
        return self.line or self.index


def records(source: Source, layout: Layout) -> Iterator[Record | RecordError]:
    """The records of a file of lines, or of a document that is a list or a single record."""
    index = source.span.index if source.span is not None else 0
    if layout == "document":
        data, why = source.document()
        # A part of a list holds its members, and not its brackets.
        yield from elements(source, data if source.span is None else b"[" + data + b"]", why, index=index)
        return
    for line in source.lines():
        if isinstance(line, RecordError):
            yield line
        elif _is_one_record(line[1]):
            yield Record(line[1], index, line[0])
            index += 1
        else:
            for each in elements(source, line[1], line=line[0], index=index):
                yield each
                index += isinstance(each, Record)


def count_records(source: Source) -> tuple[int, int]:
    """How many lines a file of lines, or a part of one, has, and how many records `records` finds on them."""
    lines = found = 0
    for line in source.lines(blank=True):
        lines += 1
        if isinstance(line, RecordError) or line[1].isspace():
            continue
        if _is_one_record(line[1]):
            found += 1
        else:
            found += sum(isinstance(each, Record) for each in elements(source, line[1], line=line[0]))
    return lines, found


_JOINTS = (b"}{", b"} {", b"][", b"] [", b"}[", b"]{")


def _is_one_record(line: bytes) -> bool:
    """Whether a line is, as nearly all are, one record and nothing else, damaged or not."""
    if line[:1] == b"[" and not _is_talk(line):
        return False
    if line[:1] == b"{" and _is_json(line):
        return True
    return line.rstrip()[-1:] in (b"}", b"]") and not any(joint in line for joint in _JOINTS)


def _is_talk(data: bytes) -> bool:
    """Whether a list is one conversation, and not a list of them."""
    try:
        members = _list.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return not members or is_messages([glimpse(bytes(members[0])[: 1 << 16])])


def elements(
    source: Source, data: bytes, why: str = "", *, line: int = 0, index: int = 0
) -> Iterator[Record | RecordError]:
    """The members of a list, or the one record that `data` is; `why` says what is known to be wrong with it.

    Where something else stands there too, other documents or what is no record, it is read, or named.
    """
    try:
        if line and data.startswith(b"[") and _is_talk(data):
            whole = [_raw.decode(data)]
        else:
            whole = _list.decode(data) if data.lstrip().startswith(b"[") else [_raw.decode(data)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        yield from _scattered(source, data, why or not_json(error, data), line, index)
    else:
        for number, raw in enumerate(whole, index):
            yield Record(raw, number, line)
        if why:
            yield source.fault(index + len(whole), why)


def _scattered(source: Source, data: bytes, why: str, line: int, index: int) -> Iterator[Record | RecordError]:
    """The records of all documents in `data`, one after the other, and the place of what is in none of them."""
    at = 0
    # One at a time: where a list ends is said by its members, whatever brackets a damaged one lacks.
    while (piece := next(_cut(data, at), None)) is not None:
        kind, start, at = piece
        if kind == "stray":
            yield _fault(source, line, index, _stray(data[start:at]))
        elif data[start] in b"[" and not (line and _is_talk(data[start:at])):
            at, index = yield from _members(source, data, start + 1, why, line, index)
        elif kind == "value":
            yield Record(data[start:at], index, line)
            index += 1
        else:
            yield _fault(source, line, index, why)


def documents(source: Source, data: bytes) -> list[bytes | RecordError]:
    """The values that stand one after the other in `data`, with what stands between them named; the last may be cut."""
    return [
        source.fault(0, _stray(data[start:end])) if kind == "stray" else data[start:end]
        for kind, start, end in _cut(data, 0)
    ]


def _is_json(data: bytes) -> bool:
    try:
        _raw.decode(data)
    except (ValueError, RecursionError):
        return False
    return True


def _members(
    source: Source, data: bytes, start: int, why: str, line: int, index: int
) -> Generator[Record | RecordError, None, tuple[int, int]]:
    """The members of a list; gives back where it ends, and the index of the next record."""
    for kind, begin, end in _cut(data, start, inside=True):
        match kind:
            case "value":
                yield Record(data[begin:end], index, line)
                index += 1
            case "stray":
                yield _fault(source, line, index, _stray(data[begin:end]))
            case "open":
                break
            case "end":
                return end, index
    yield _fault(source, line, index, why)
    return len(data), index


_Kind = Literal["value", "stray", "open", "end"]


def _cut(data: bytes, start: int, *, inside: bool = False) -> Iterator[tuple[_Kind, int, int]]:
    """The bracketed values from `start` on, and what stands between them; `inside` a list it ends where that does.

    A value that is never closed is `open`, and the last; the end of the list is told too.
    """
    depth, begin, free = 0, -1, start
    for token in _TOKEN.finditer(data, start):
        mark = token[0][0]
        if mark in b"{[":
            if depth == 0:
                begin = token.start()
                if _between(data, free, begin, inside):
                    yield "stray", free, begin
            depth += 1
        elif mark in b"}]" and depth:
            depth -= 1
            if depth == 0:
                yield "value", begin, token.end()
                free = token.end()
        elif mark in b"]" and inside:
            if _between(data, free, token.start(), inside):
                yield "stray", free, token.start()
            yield "end", token.start(), token.end()
            return
    if depth:
        yield "open", begin, len(data)
    elif _between(data, free, len(data), inside):
        yield "stray", free, len(data)


def _between(data: bytes, start: int, end: int, inside: bool) -> bool:
    """Whether anything but white space and commas stands there; inside a list a damaged member may leave brackets."""
    found = (_REMAINS if inside else _SPACE).match(data, start, end)
    return found is None or found.end() < end


def _stray(data: bytes) -> str:
    text = data.strip(b" \t\r\n,").decode("utf-8", "replace")
    return f"in no record: `{text if len(text) <= 40 else text[:37] + '...'}`"


def _fault(source: Source, line: int, index: int, why: str) -> RecordError:
    return source.fault(line, why, line=True) if line else source.fault(index, why)


class Malformed(Exception):
    """Why a record cannot be read; becomes a `RecordError` where its place is known."""


def decode(decoder: "msgspec.json.Decoder[T]", raw: Raw | bytes) -> T:
    """`raw` as the decoder's type, or `Malformed`."""
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise Malformed(tell(error)) from error
    except (msgspec.DecodeError, RecursionError) as error:
        return _decode_leniently(decoder, bytes(raw), error)
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8: {error.reason} at byte {error.start}") from error


def _decode_leniently(decoder: "msgspec.json.Decoder[T]", raw: bytes, first: Exception) -> T:
    """What Python's own `json` writes beyond JSON: NaN and infinities (read as null), halves of surrogate pairs."""
    try:
        loose = json.loads(raw.decode(), parse_constant=lambda _: None)
        return decoder.decode(json.dumps(loose, ensure_ascii=False).encode("utf-8", "replace"))
    except msgspec.ValidationError as error:
        raise Malformed(tell(error)) from error
    except (ValueError, RecursionError):
        raise Malformed(not_json(first, raw)) from first


def not_json(error: BaseException, raw: bytes) -> str:
    """Why bytes are not JSON; a writer that was stopped in the middle of a record is the usual reason."""
    try:
        msgspec.json.decode(raw.rstrip())
    except (ValueError, RecursionError) as again:
        # The line's end, inside a string that is not closed, would be told as an invalid character.
        if "truncated" in str(again):
            return "not JSON: it looks cut off before its end; write that conversation out again"
    return f"not JSON: {tell(error)}"


def tell(error: BaseException) -> str:
    """An error's text in our tone: lower case, one line."""
    text = str(error).split("\n")[0] or type(error).__name__
    text = text.removeprefix("JSON is malformed: ")
    return text[0].lower() + text[1:]


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
    parts = list(elements(source, *source.document()))
    raw = [bytes(part.raw) for part in parts if isinstance(part, Record)]
    yield Record(b"[" + b",".join(each for each in raw if each.startswith(b"{")) + b"]", 0)
    for part in parts:
        if isinstance(part, RecordError):
            yield part
        elif not bytes(part.raw).startswith(b"{"):
            yield part.fault(source, _stray(bytes(part.raw)))


def head_in(data: bytes, name: bytes, decoder: "msgspec.json.Decoder[T]", default: T) -> T:
    """The object under the first `name` of a document that is cut short or damaged, if it can still be read."""
    found = re.search(rb'"' + re.escape(name) + rb'"\s*:\s*(?=[\[{])', data)
    piece = next(_cut(data, found.end()), None) if found else None
    try:
        return default if piece is None else decoder.decode(data[piece[1] : piece[2]])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return default


def salvaged(source: Source, data: bytes, at: int, why: str) -> Iterator[Record | RecordError]:
    """The members of the list that begins after a place in a damaged document, as far as brackets match; then `why`, if
    no member shows it."""
    start = data.find(b"[", at) if at >= 0 else -1
    is_told = False
    for each in _members(source, data, start + 1, why, 0, 0) if start >= 0 else ():
        is_told = is_told or isinstance(each, RecordError) or not _is_json(bytes(each.raw))
        yield each
    if not is_told:
        yield source.fault(0, why)


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
