"""Records cut out of a file, one at a time, without decoding the rest; also out of a file that is broken."""

import json
import re
from collections.abc import Iterator
from typing import Literal, TypeVar

import msgspec
from msgspec import Raw, Struct

from bylaw.errors import RecordError
from bylaw.trace.source import Source

Layout = Literal["lines", "document"]
T = TypeVar("T")

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_SPACE = re.compile(rb"[\s,]*")
_list = msgspec.json.Decoder(list[Raw])


class Record(Struct, frozen=True, gc=False):
    """The bytes of one record and where they stood."""

    raw: Raw | bytes
    index: int
    """Counted from 0."""
    line: int = 0
    """Counted from 1; 0 in a file that is one document."""

    def fault(self, source: Source, why: str) -> RecordError:
        """What is wrong with it."""
        return source.fault(self.line, why, line=True) if self.line else source.fault(self.index, why)

    @property
    def position(self) -> int:
        return self.line or self.index


def records(source: Source, layout: Layout) -> Iterator[Record | RecordError]:
    """The records of a file of lines, or of a document that is a list or a single record."""
    if layout == "lines":
        index = 0
        for line in source.lines():
            if isinstance(line, RecordError):
                yield line
            else:
                yield Record(line[1], index, line[0])
                index += 1
        return
    data, why = source.document()
    yield from elements(source, data, why)


def elements(source: Source, data: bytes, why: str = "") -> Iterator[Record | RecordError]:
    """The members of a list, or the one record that `data` is; `why` says what is known to be wrong with it."""
    if not data.lstrip().startswith(b"["):
        if not why or _is_json(data):
            yield Record(data, 0)
        if why:
            yield source.fault(0, why)
        return
    try:
        whole = _list.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        yield from salvage(source, data, data.index(b"[") + 1, why or not_json(error, data))
    else:
        yield from (Record(raw, index) for index, raw in enumerate(whole))
        if why:
            yield source.fault(len(whole), why)


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return False
    return True


def salvage(source: Source, data: bytes, start: int, why: str) -> Iterator[Record | RecordError]:
    """The members of the list that begins before `start`, as far as brackets match; then `why` if it never closes."""
    depth = index = 0
    begin = -1
    for token in _TOKEN.finditer(data, start):
        mark = token[0][0]
        if mark in b"{[":
            if depth == 0:
                begin = token.start()
            depth += 1
        elif mark in b"}]":
            if depth == 0:
                if mark in b"]":
                    return
                continue
            depth -= 1
            if depth == 0:
                yield Record(data[begin : token.end()], index)
                index += 1
    yield source.fault(index, why)


def find_value(data: bytes, key: bytes) -> bytes | None:
    """The object or list that stands under the first `key` of a document, cut out without decoding the rest."""
    found = re.search(rb'"' + re.escape(key) + rb'"\s*:\s*([\[{])', data)
    if not found:
        return None
    depth = 0
    for token in _TOKEN.finditer(data, found.start(1)):
        mark = token[0][0]
        depth += (mark in b"{[") - (mark in b"}]")
        if depth == 0:
            return data[found.start(1) : token.end()]
    return None


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
            return "not JSON: it looks cut off before its end"
    return f"not JSON: {tell(error)}"


def tell(error: BaseException) -> str:
    """An error's text in our tone: lower case, one line."""
    text = str(error).split("\n")[0] or type(error).__name__
    text = text.removeprefix("JSON is malformed: ")
    return text[0].lower() + text[1:]
