"""Which format a file is in, found by looking at its first bytes and never by its name alone."""

import json
import re
from typing import Any, Literal, cast

import msgspec
from msgspec import Raw, Struct

from bylaw.errors import FormatError
from bylaw.trace.document import Layout, Malformed, decode
from bylaw.trace.source import Source

Format = Literal["openai", "langchain", "tau1", "tau2", "otlp", "langfuse", "langsmith", "inspect", "agentdojo"]

ZIP = b"PK\x03\x04"
_HEAD = 1 << 20
_ANYTHING = msgspec.json.Decoder()
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+|"', re.DOTALL)
_CLOSER = {b"{": b"}", b"[": b"]"}
_DEEPEST = 100
"""No format tells itself apart below this; brackets without end must not cost time without end."""
_LANGCHAIN_TYPES = {"human", "ai", "tool", "system", "function", "developer", "chat", "generic", "remove"}


class Look(Struct, frozen=True):
    """What a file turned out to be."""

    format: Format
    layout: Layout
    single: bool = False
    """The document is one conversation, given as a list of messages."""


def look(source: Source) -> Look:
    """The format of a file, or `FormatError`."""
    head, whole, why = _head(source)
    if head.startswith(ZIP):
        return Look("inspect", "document")
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        raise FormatError(why or "the file is empty", place=str(source.path))
    found = _look_at_lines(text, whole) or _look_at_document(source, text, whole)
    if found is None:
        raise FormatError(
            "in no trace format we know", place=str(source.path), hint="docs/formats.md lists what can be read"
        )
    return found


def _head(source: Source) -> tuple[bytes, bool, str]:
    """The first bytes, up to the end of the first line where that is near; whether they are all; why no more come."""
    head = b""
    for chunk in source.chunks():
        if isinstance(chunk, str):
            return head, True, chunk
        head += chunk
        if len(head) >= _HEAD or b"\n" in head[:-1] or head.startswith(ZIP):
            return head, False, ""
    return head, True, ""


def _look_at_lines(text: bytes, whole: bool) -> Look | None:
    """Lines, each a record: recognised by the first line that is one, where there are several."""
    lines = text.split(b"\n", 40)
    if not whole or len(lines) > 40:
        lines.pop()
    lines = [line for line in lines if line and not line.isspace()]
    if len(lines) < 2 or lines[0].strip() in (b"[", b"{", b"[{", b"[["):
        if not whole and len(lines) == 1 and (format := _shape_of_line(lines[0])):
            return Look(format, "lines")
        return None
    for line in lines:
        if format := _shape_of_line(line):
            return Look(format, "lines")
    return None


def _shape_of_line(line: bytes) -> Format | None:
    try:
        return shape(decode(_ANYTHING, line))
    except Malformed:
        return None


def _look_at_document(source: Source, text: bytes, whole: bool) -> Look | None:
    value: Any = None
    format: Format | None = None
    # The first few keys are mostly enough. Plain messages are what is left when nothing more telling comes later.
    for size in (1 << 12, 1 << 16, len(text)):
        value = glimpse(text[:size])
        format = shape(value)
        if format not in {None, "openai"} or size >= len(text):
            break
    if format is None and not whole and text.startswith(b"{"):
        first = next(source.lines(), None)
        if b"\n" not in text and isinstance(first, tuple) and _goes_on(source) and (late := _shape_of_object(first[1])):
            return Look(late, "lines")
        format = _shape_of_object(source.document()[0])
    if format is None:
        return None
    if isinstance(value, list) and is_messages(value):  # pyright: ignore[reportUnknownArgumentType]
        # A first line longer than all we looked at: a file of such lines goes on after it, a document does not.
        if not whole and b"\n" not in text and _goes_on(source):
            return Look(format, "lines")
        return Look(format, "document", single=True)
    if isinstance(value, dict) and not whole and b"\n" not in text and format not in {"tau2", "inspect"}:
        return Look(format, "lines" if _goes_on(source) else "document")
    return Look(format, "document")


def _goes_on(source: Source) -> bool:
    lines = source.lines()
    next(lines, None)
    return isinstance(next(lines, None), tuple)


def _shape_of_object(data: bytes) -> Format | None:
    """For a document whose telling keys come late."""
    try:
        fields = msgspec.json.decode(data, type=dict[str, Raw])
    except (ValueError, RecursionError):
        return None
    return shape({name: glimpse(bytes(raw)[: 1 << 16]) for name, raw in fields.items()})


def shape(value: Any) -> Format | None:
    """The format of a record, or of a list of records, by the fields it has."""
    if isinstance(value, list):
        items = cast(list[Any], value)
        if is_messages(items):
            return _messages_shape(items)
        first = next((item for item in items if item), None)
        return shape(first) if first is not None else None
    if not isinstance(value, dict):
        return None
    record = cast(dict[str, Any], value)
    for format, keys in _TELLING:
        if keys <= record.keys():
            return format
    match record.get("info"):
        # The simulations come last, long after this.
        case {"agent_info": _} | {"user_info": _} | {"environment_info": _}:
            return "tau2"
        case _:
            pass
    if "type" in record and ("traceId" in record or "trace_id" in record):
        return "langfuse"
    if "observations" in record or "batch" in record or ("sessionId" in record and "input" in record):
        return "langfuse"
    if isinstance(record.get("data"), list):
        return shape(record["data"])
    messages = record.get("messages")
    if isinstance(messages, list):
        listed = cast(list[Any], messages)
        return _messages_shape(listed) if is_messages(listed) else "openai" if not listed else None
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
    """Whether a list is the messages of one conversation."""
    first = next(iter(value), None)
    if not isinstance(first, dict):
        return False
    message = cast(dict[str, Any], first)
    if "role" in message or "lc" in message:
        return True
    kind = str(message.get("type"))
    if kind in _LANGCHAIN_TYPES and ("data" in message or "content" in message):
        return True
    return kind in {"function_call", "function_call_output"} and "call_id" in message


def _messages_shape(messages: list[Any]) -> Format:
    first: dict[str, Any] = messages[0]
    if "role" in first and "lc" not in first:
        return "openai"
    if str(first.get("type")) in {"function_call", "function_call_output"}:
        return "openai"
    return "langchain"


def glimpse(head: bytes) -> Any:
    """As much as the beginning of a document shows of it; None where it shows nothing."""
    closers: list[bytes] = []
    before = b""
    cut, tail = 0, b""
    for token in _TOKEN.finditer(head):
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
        return json.loads(head[:cut] + tail)
    except (ValueError, RecursionError):
        return None
