"""Splits a file into records. Each record becomes a conversation or an error, even if the file is damaged."""

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Literal, TypeVar, cast

import msgspec
from msgspec import Raw, Struct

from bylaw.errors import RecordError
from bylaw.trace.event import Trajectory
from bylaw.trace.recorded_value import repeated_key
from bylaw.trace.source import Source
from bylaw.trace.transcript import Transcript

Format = Literal[
    "openai",
    "langchain",
    "tau1",
    "tau2",
    "otlp",
    "langfuse",
    "langsmith",
    "inspect",
    "agentdojo",
    "pydantic-ai",
    "adk",
    "llama-index",
    "agent-framework",
    "claude",
    "claude-code",
    "parquet",
]

_BRACKET = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+|"', re.DOTALL)
_CLOSER = {b"{": b"}", b"[": b"]"}
_DEEPEST = 100
"""The maximum nesting depth. No format nests values more deeply. The limit avoids a long search in a run of opening
brackets.
"""
_CLAUDE_TYPES = {"UserMessage", "AssistantMessage", "SystemMessage", "ResultMessage", "StreamEvent"}
_LANGCHAIN_TYPES = {"human", "ai", "tool", "system", "function", "developer", "chat", "generic", "remove"}


def shape(value: Any) -> Format | None:
    """Detect the format of a record, or of a list of records, from the field names."""
    if isinstance(value, list):
        items = cast(list[Any], value)
        if is_messages(items):
            return _messages_shape(items)
        return next((format for item in items if item and (format := shape(item))), None)
    if not isinstance(value, dict):
        return None
    record = cast(dict[str, Any], value)
    for format, keys in _TELLING:
        if keys <= record.keys():
            return format
    match record.get("info"):
        # In this format, the simulations come last, after these bytes.
        case {"agent_info": _} | {"user_info": _} | {"environment_info": _}:
            return "tau2"
        case _:
            pass
    if "type" in record and ("traceId" in record or "trace_id" in record):
        return "langfuse"
    if isinstance(record.get("message"), dict) and ("sessionId" in record or "session_id" in record):
        return "claude-code"
    if record.get("type") in ("system", "summary") and ("sessionId" in record or "session_id" in record):
        return "claude-code"
    if isinstance(record.get("events"), list) and ("app_name" in record or "appName" in record):
        return "adk"
    if "observations" in record or "batch" in record or ("sessionId" in record and "input" in record):
        return "langfuse"
    if isinstance(record.get("data"), list):
        return shape(record["data"])
    if isinstance(values := record.get("values"), dict) and "messages" in values:
        # The state of a LangGraph thread.
        return shape(values)
    messages = record.get("messages")
    if isinstance(messages, list):
        listed = cast(list[Any], messages)
        return _messages_shape(listed) if is_messages(listed) else "openai" if not listed else None
    match record.get("contents"):
        case [{"parts": [*_]}, *_]:
            # A Gemini request is a chat with different field names.
            return "openai"
        case _:
            return None


_TELLING: tuple[tuple[Format, set[str]], ...] = (
    ("otlp", {"resourceSpans"}),
    ("otlp", {"resourceLogs"}),
    ("tau2", {"simulations"}),
    ("tau2", {"info", "tasks"}),
    ("tau2", {"messages", "reward_info", "task_id"}),
    ("tau1", {"traj"}),
    ("tau1", {"task_id", "reward", "info"}),
    ("agentdojo", {"suite_name", "user_task_id"}),
    ("inspect", {"eval", "status"}),
    ("inspect", {"eval", "version"}),
    ("langsmith", {"run_type"}),
    ("langsmith", {"post", "patch"}),
    ("langsmith", {"runs"}),
)


def is_messages(value: list[Any]) -> bool:
    first = next(iter(value), None)
    if not isinstance(first, dict):
        return False
    message = cast(dict[str, Any], first)
    if "role" in message or "lc" in message or _is_request(message):
        return True
    kind = str(message.get("type"))
    if kind in _CLAUDE_TYPES:
        return True
    if kind in _LANGCHAIN_TYPES and ("data" in message or "content" in message):
        return True
    return kind in {"function_call", "function_call_output"} and "call_id" in message


def _is_request(message: dict[str, Any]) -> bool:
    return message.get("kind") in ("request", "response") and isinstance(message.get("parts"), list)


def _messages_shape(messages: list[Any]) -> Format:
    first: dict[str, Any] = messages[0]
    if _is_request(first):
        return "pydantic-ai"
    if str(first.get("type")) in _CLAUDE_TYPES:
        return "claude"
    if "role" in first and isinstance(first.get("blocks"), list):
        return "llama-index"
    if "role" in first and isinstance(first.get("contents"), list):
        return "agent-framework"
    if "role" in first and "lc" not in first:
        return "openai"
    if str(first.get("type")) in {"function_call", "function_call_output"}:
        return "openai"
    return "langchain"


def glimpse(head: bytes, *, again: bool = True) -> Any:
    """Return the document up to the first damaged value, or None if nothing can be read."""
    closers: list[bytes] = []
    before = b""
    cut, tail = 0, b""
    for token in _BRACKET.finditer(head):
        mark = token[0]
        ended = True
        if mark == b'"':
            break
        if mark in _CLOSER:
            if len(closers) == _DEEPEST:
                break
            closers.append(_CLOSER[mark])
        elif mark in (b"}", b"]"):
            if not closers or closers[-1] != mark:
                break
            closers.pop()
        elif mark in (b",", b":"):
            ended = False
        else:
            is_key = bool(closers) and closers[-1] == b"}" and before in (b"{", b",")
            ended = not is_key and token.end() < len(head)
        before = mark
        if ended:
            cut, tail = token.end(), b"".join(reversed(closers))
        if not closers:
            break
    try:
        return json.loads((head[:cut] + tail).decode("utf-8", "replace"))
    except json.JSONDecodeError as error:
        before = head[:cut].decode("utf-8", "replace")[: error.pos].encode()
        return glimpse(before, again=False) if again and before else None
    except (ValueError, RecursionError):
        return None


Layout = Literal["lines", "document"]
BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Exceptions raised for bytes that are not JSON, or that do not have the expected structure."""
T = TypeVar("T")

# Possessive quantifiers prevent backtracking in an unterminated string.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]', re.DOTALL)
_SPACE = re.compile(rb"[\s,]*")
_REMAINS = re.compile(rb"[\s,}]*")
_list = msgspec.json.Decoder(list[Raw])
_raw = msgspec.json.Decoder(Raw)


class Record(Struct, frozen=True, gc=False):
    """The bytes of one record, and the location of the record in its file."""

    raw: Raw | bytes
    index: int
    """The index of the record."""
    line: int = 0
    """The line of the record, counted from 1. It is 0 if the file is a single document."""

    def fault(self, source: Source, why: str) -> RecordError:
        return source.fault(self.index, why, self.line)

    @property
    def position(self) -> int:
        return self.line or self.index


def records(source: Source, layout: Layout) -> Iterator[Record | RecordError]:
    """Yield the records of a file, which has one record per line or is a document with one or more records."""
    index = source.span.index if source.span is not None else 0
    if layout == "document":
        data, why = source.document()
        # A span of a list contains members but no brackets.
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
    """Count the lines of a file or span, and the records that `records` finds in it."""
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
    """Whether a line is exactly one record, which may be damaged. This is true of nearly every line."""
    if line[:1] == b"[" and not _is_talk(line):
        return False
    if line[:1] == b"{" and _is_json(line):
        return True
    return line.rstrip()[-1:] in (b"}", b"]") and not any(joint in line for joint in _JOINTS)


def _is_talk(data: bytes) -> bool:
    try:
        members = _list.decode(data)
    except BROKEN:
        return False
    return not members or is_messages([glimpse(bytes(members[0])[: 1 << 16])])


def elements(
    source: Source, data: bytes, why: str = "", *, line: int = 0, index: int = 0
) -> Iterator[Record | RecordError]:
    """Yield the members of a list, or `data` as the only record.

    `why` is an error that is already known. If `data` contains several documents, all of them are read. Any other text
    is yielded as an error.
    """
    try:
        if line and data.startswith(b"[") and _is_talk(data):
            whole = [_raw.decode(data)]
        else:
            whole = _list.decode(data) if data.lstrip().startswith(b"[") else [_raw.decode(data)]
    except BROKEN as error:
        yield from _scattered(source, data, why or not_json(error, data), line, index)
    else:
        for number, raw in enumerate(whole, index):
            yield Record(raw, number, line)
        if why:
            yield source.fault(index + len(whole), why)


def _scattered(source: Source, data: bytes, why: str, line: int, index: int) -> Iterator[Record | RecordError]:
    """Yield the records of all documents in `data`, and an error for each piece of other text."""
    at = 0
    # Read the members one by one, because this finds the end of their list even if a damaged member lacks brackets.
    while (piece := next(_cut(data, at), None)) is not None:
        kind, start, at = piece
        if kind == "stray":
            yield source.fault(index, _stray(data[start:at]), line)
        elif data[start] in b"[" and not (line and _is_talk(data[start:at])):
            at, index = yield from _members(source, data, start + 1, why, line, index)
        elif kind == "value":
            yield Record(data[start:at], index, line)
            index += 1
        else:
            yield source.fault(index, why, line)


def documents(source: Source, data: bytes) -> list[bytes | RecordError]:
    """Return the JSON values in `data`, and an error for each piece of text that is not JSON.

    The last value may be incomplete.
    """
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
    for kind, begin, end in _cut(data, start, inside=True):
        match kind:
            case "value":
                yield Record(data[begin:end], index, line)
                index += 1
            case "stray":
                yield source.fault(index, _stray(data[begin:end]), line)
            case "open":
                break
            case "end":
                return end, index
    yield source.fault(index, why, line)
    return len(data), index


_Kind = Literal["value", "stray", "open", "end"]


def _cut(data: bytes, start: int, *, inside: bool = False) -> Iterator[tuple[_Kind, int, int]]:
    """Yield the bracketed values from `start` on, and the text between them.

    If `inside` is set, stop at the end of the list and yield the end too. A value that is not closed has the kind
    `open`.
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
    """Whether the span contains more than white space and commas.

    In a list, brackets left by a damaged member do not count.
    """
    found = (_REMAINS if inside else _SPACE).match(data, start, end)
    return found is None or found.end() < end


def _stray(data: bytes) -> str:
    text = data.strip(b" \t\r\n,").decode("utf-8", "replace")
    return f"text outside any record: `{text if len(text) <= 40 else text[:37] + '...'}`"


class Malformed(Exception):
    """Raised if a record cannot be read. It becomes a RecordError when the record's location is known."""


def decode(decoder: "msgspec.json.Decoder[T]", raw: Raw | bytes) -> T:
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise Malformed(reason(error)) from error
    except (msgspec.DecodeError, RecursionError) as error:
        return _decode_leniently(decoder, bytes(raw), error)
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8: {error.reason} at byte {error.start}") from error


def _decode_leniently(decoder: "msgspec.json.Decoder[T]", raw: bytes, first: Exception) -> T:
    """Decode JSON with Python's extensions: NaN and infinities become null, and lone surrogates are kept."""
    try:
        loose = json.loads(raw.decode(), parse_constant=lambda _: None)
        return decoder.decode(json.dumps(loose, ensure_ascii=False).encode("utf-8", "replace"))
    except msgspec.ValidationError as error:
        raise Malformed(reason(error)) from error
    except (ValueError, RecursionError):
        raise Malformed(not_json(first, raw)) from first


def not_json(error: BaseException, raw: bytes) -> str:
    """Explain why bytes are not JSON. The usual reason is an incomplete record."""
    try:
        msgspec.json.decode(raw.rstrip())
    except (ValueError, RecursionError) as again:
        # Report the unclosed string. Otherwise, the line break after it would be reported as an invalid character.
        if "truncated" in str(again):
            return "not JSON: it seems to be cut off; export the conversation again"
    return f"not JSON: {reason(error)}"


def reason(error: BaseException) -> str:
    """Return an error's text on one line, in lower case."""
    text = str(error).split("\n")[0] or type(error).__name__
    text = text.removeprefix("JSON is malformed: ")
    return text[0].lower() + text[1:]


UNREADABLE = (
    *(Malformed, msgspec.MsgspecError, ArithmeticError, AttributeError, LookupError),
    *(RecursionError, TypeError, ValueError),
)
"""Exceptions raised for a record with an unknown structure. The record is reported as an error, and reading continues.
"""


def fault_of(error: Exception) -> str:
    return str(error) if isinstance(error, Malformed) else f"unknown record format: {reason(error)}"


def refuse_repeated_keys(raw: Raw | bytes) -> None:
    """Raise Malformed if an object has a repeated key, because it is unknown which value is intended."""
    if twice := repeated_key(raw):
        raise Malformed(f"`{twice}` appears twice in one object")


def read_each(
    source: Source, pieces: Iterable[Record | RecordError], conversation: Callable[[Record], Trajectory]
) -> Iterator[Trajectory | RecordError]:
    for record in pieces:
        if isinstance(record, RecordError):
            yield record
            continue
        try:
            read = conversation(record)
            refuse_repeated_keys(record.raw)
            yield read
        except UNREADABLE as error:
            yield record.fault(source, fault_of(error))


def take_each(source: Source, layout: Layout, take: Callable[[Record], None]) -> Iterator[RecordError]:
    """Call `take` with every record, and yield an error for each record that fails.

    A conversation may have several records.
    """
    for record in records(source, layout):
        if isinstance(record, RecordError):
            yield record
            continue
        try:
            refuse_repeated_keys(record.raw)
            take(record)
        except UNREADABLE as error:
            yield record.fault(source, fault_of(error))


def conversations_in(source: Source, layout: Layout, *, single: bool) -> Iterator[Record | RecordError]:
    """Yield the records in a file.

    If `single` is set, the file is one conversation: a list of messages that may be incomplete.
    """
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
    """Return the first object called `name` in a damaged document. Return `default` if the object cannot be read."""
    found = re.search(rb'"' + re.escape(name) + rb'"\s*:\s*(?=[\[{])', data)
    piece = next(_cut(data, found.end()), None) if found else None
    try:
        return default if piece is None else decoder.decode(data[piece[1] : piece[2]])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return default


def salvaged(source: Source, data: bytes, at: int, why: str) -> Iterator[Record | RecordError]:
    """Yield the members of a damaged list until its brackets no longer match.

    If no member has an error, yield the error `why`.
    """
    start = data.find(b"[", at) if at >= 0 else -1
    is_told = False
    for each in _members(source, data, start + 1, why, 0, 0) if start >= 0 else ():
        is_told = is_told or isinstance(each, RecordError) or not _is_json(bytes(each.raw))
        yield each
    if not is_told:
        yield source.fault(0, why)


def is_list(record: Record) -> bool:
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
    """Build the trajectory of a record. If the record has no id or agent, use the file's name."""
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
