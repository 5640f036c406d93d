"""Reads arguments, contents and times in common log formats: JSON and printed Python values.

If a JSON object has a repeated key, or two versions of a result differ, both values are kept. Neither value is
trusted, because an attacker could show one to the tool and the other to Bylaw. Many frameworks convert a tool's result
with `str`, so the text is `{'status': 'out', 'returned_on': None}` or `Loan(status='out', returned_on=None)` instead
of JSON. Such text is parsed but never evaluated.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any, Final, cast

import msgspec
from msgspec import Raw, Struct

from bylaw.text.python import parse_python

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Contradicted(Struct, frozen=True):
    """Several values of one field that contradict each other."""

    values: tuple[Any, ...]


def decode_json(text: str | Raw) -> Any:
    """Decode JSON. If a key is repeated with different values, its value becomes `Contradicted`."""
    value: Any = _decode(text)
    if (value.__class__ is not dict and value.__class__ is not list) or names_stand_once(text, value):
        return value
    plain = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    try:
        return json.loads(plain, object_pairs_hook=record_of, strict=False)
    except ValueError as error:
        # Unlike msgspec, Python cannot read a number with thousands of digits.
        raise msgspec.DecodeError(str(error)) from None


def names_stand_once(text: str | bytes | Raw, value: Any) -> bool:
    """Whether no object in `text` has a repeated key.

    Returns False if this is uncertain. `value` is the decoded text.
    """
    if isinstance(text, str):
        count, has_escaped = text.count(":"), "\\u003" in text
    else:
        plain = bytes(text)
        count, has_escaped = plain.count(b":"), b"\\u003" in plain
    # Every key is followed by a colon, and the encoded value contains each key once.
    if value.__class__ is dict and count == len(value):
        return True
    # An escaped colon could hide that another colon is missing.
    return not has_escaped and count == _encode(value).count(b":")


def record_of(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from pairs in which a key may be repeated."""
    record: dict[str, Any] = {}
    for name, value in pairs:
        record[name] = either(record[name], value) if name in record else value
    return record


def either(one: Any, other: Any) -> Any:
    """Combine two values of one field. If the values differ, return a `Contradicted` with both."""
    told = [*one.values] if isinstance(one, Contradicted) else [one]
    # Python considers True and 1 equal.
    if not any(value == other and isinstance(value, bool) is isinstance(other, bool) for value in told):
        told.append(other)
    return Contradicted(tuple(told)) if len(told) > 1 else one


def merged(one: Any, other: Any) -> Any:
    """Merge two records of one object. If two values of a field differ, keep both."""
    if isinstance(one, dict) and isinstance(other, dict):
        ours, theirs = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        shared = {name: merged(value, theirs[name]) for name, value in ours.items() if name in theirs}
        return {**ours, **shared}
    if (
        isinstance(one, list)
        and isinstance(other, list)
        and len(cast("list[Any]", one)) == len(cast("list[Any]", other))
    ):
        return [merged(*both) for both in zip(cast("list[Any]", one), cast("list[Any]", other), strict=True)]
    return either(one, other)


def values_inside(value: Any) -> list[Any]:
    """Return a value and all values nested in it. Field names are left out."""
    parts: list[Any] = [value]
    for part in parts:
        if isinstance(part, Mapping):
            parts += cast("Mapping[str, Any]", part).values()
        elif isinstance(part, list | tuple):
            parts += cast("Sequence[Any]", part)
    return parts


def holds_contradiction(value: Any) -> bool:
    return any(part.__class__ is Contradicted for part in values_inside(value))


def read_json(recorded: Any) -> Any:
    """Decode the value if it is JSON text. Return any other value unchanged."""
    try:
        return msgspec.json.decode(recorded) if isinstance(recorded, str) else recorded
    except (msgspec.DecodeError, RecursionError):
        return recorded


NOT_CAPTURED = "arguments were not captured"
EARLIEST = datetime(1, 1, 2, tzinfo=UTC).timestamp()
LATEST = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""Numbers outside the range from `EARLIEST` to this value cannot be seconds, but may be a smaller unit."""
RECENT = datetime(1990, 1, 1, tzinfo=UTC).timestamp(), datetime(2100, 1, 1, tzinfo=UTC).timestamp()
"""The range of plausible seconds. A larger number is read as milliseconds or microseconds in this range."""
_FIGURES = 16
"""The number of digits of a time in microseconds."""
TEXTS = frozenset(("text", "input_text", "output_text", "refusal"))
"""Types of parts that contain the speaker's own text."""
decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def read_arguments(recorded: Any) -> tuple[dict[str, Any], str]:
    """Convert arguments that are not an object. Return the arguments and any error."""
    if type(recorded) is not str:
        if recorded is None:
            return {}, NOT_CAPTURED
        if not isinstance(recorded, (str, Raw)):
            return {}, f"arguments are not an object but `{type(recorded).__name__}`"
    try:
        given = decode_object(recorded)
        # Every key is followed by a colon. If there are as many colons as keys, no key is repeated.
        if type(recorded) is str and recorded.count(":") == len(given):
            return given, ""
        twice = repeated_key(recorded, given)
        return (given, f"argument `{twice}` is given twice") if twice else (given, "")
    except msgspec.ValidationError:
        return {}, "arguments are not an object"
    except (msgspec.DecodeError, RecursionError):
        # Several models write an empty string for a call without arguments.
        if not isinstance(recorded, Raw) and not recorded.strip():
            return {}, ""
        return {}, "arguments are not JSON"


def repeated_key(text: str | bytes | Raw, decoded: dict[str, Any] | None = None) -> str:
    """Return a key that occurs twice in one JSON object, or an empty string.

    Parsers differ in how they read a repeated key. Pass the decoded JSON if you have it, to save time.
    """
    try:
        is_once = names_stand_once(text, msgspec.json.decode(text) if decoded is None else decoded)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        is_once = False
    if is_once:
        return ""
    plain = bytes(text).decode("utf-8", "replace") if not isinstance(text, str) else text
    found: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        if len(pairs) > len(dict(pairs)):
            counts = Counter(name for name, _ in pairs)
            found.append(counts.most_common(1)[0][0])

    # Numbers are not decoded, because Python cannot read very long ones.
    json.loads(plain, object_pairs_hook=note, parse_int=len, parse_float=len, strict=False)
    return found[0] if found else ""


def text_id(id: Any) -> str:
    """Return an id as text, or an empty string if there is no id."""
    return "" if id is None else str(id)


def read_content(recorded: Any) -> str | Raw:
    """Convert a tool result that is not text. Parts are joined into one string. Any other value becomes JSON."""
    if recorded is None:
        return ""
    if isinstance(recorded, str | Raw):
        return recorded
    if isinstance(recorded, list):
        texts = [shown(part) for part in cast("list[Any]", recorded)]
        if texts and all(text is not None for text in texts):
            return "\n".join(text for text in texts if text)
    return Raw(msgspec.json.encode(recorded))


def shown(part: Any) -> str | None:
    """Return the text of a part of a result, including files and pages."""
    match part:
        case {"type": str(kind), "content": str(text)} if kind not in TEXTS:
            return text
        case _:
            return part_text(part)


def part_text(part: Any) -> str | None:
    """Return the text of a part. Return an empty string for images and the like, and None for an unknown part."""
    match part:
        case str():
            return part
        case {"type": str(kind), **rest} if kind in TEXTS:
            return _said(rest)
        case {"type": "image" | "image_url" | "input_image" | "audio" | "input_audio" | "file" | "resource" | "blob"}:
            return ""
        case {"type": "thinking" | "reasoning" | "redacted_thinking"}:
            return ""
        case {"text": str(text)} if len(part) == 1:  # pyright: ignore[reportUnknownArgumentType]
            return text
        case _:
            return None


def _said(part: dict[str, Any]) -> str | None:
    words = next((part[name] for name in ("text", "refusal", "content") if part.get(name) is not None), "")
    match words:
        case str(text) | {"value": str(text)}:
            return text
        case list():
            return plain_text(words)
        case _:
            return None


def plain_text(content: Any) -> str:
    """Return the text of a message, whose content may be text, a part or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, (part_text(part) for part in cast("list[Any]", content))))
    if isinstance(content, dict):
        return part_text(content) or ""
    return ""


def utc(time: float | None) -> datetime | None:
    """Convert seconds since the epoch to a date and time in UTC. Return None if they are missing or out of range."""
    try:
        return datetime.fromtimestamp(time, UTC) if time is not None else None
    except (ValueError, OverflowError, OSError):
        return None


def seconds(recorded: Any) -> float | None:
    """Convert a time to seconds since the epoch, or return None if it cannot be read.

    Accepts ISO 8601, e-mail dates, and numbers of seconds, milliseconds or microseconds. Times without a zone are
    taken as UTC.
    """
    if isinstance(recorded, str) and len(recorded) > len("20260101") and recorded.isdecimal():
        recorded = int(recorded) if len(recorded) <= _FIGURES else None
    if isinstance(recorded, int | float):
        if EARLIEST <= recorded <= LATEST:
            return float(recorded)
        # Multiply instead of dividing: Python can compare integers of any size, but cannot divide very large integers.
        parts = (1e3, 1e6)
        return next((recorded / part for part in parts if RECENT[0] * part <= recorded <= RECENT[1] * part), None)
    if not isinstance(recorded, str):
        return None
    try:
        time = datetime.fromisoformat(recorded)
    except ValueError:
        if not recorded[:1].isalpha():
            return None
        from email.utils import parsedate_to_datetime

        try:
            time = parsedate_to_datetime(recorded)
        except ValueError:
            return None
    moment = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    return moment if EARLIEST <= moment <= LATEST else None


LONGEST = 1 << 20
"""The maximum length of a text to parse, in characters. Longer text is left unchanged."""

_FIELD = re.compile(r"\s*[A-Za-z_]\w*=")
_NEXT_FIELD = re.compile(r"(?<=[^\s,(])\s+(?=[A-Za-z_]\w*=)")
_TOKEN = re.compile(
    r"""(b?)('[^'\\\n]*(?:\\.[^'\\\n]*)*'|"[^"\\\n]*(?:\\.[^"\\\n]*)*")"""
    r"""|(-?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?![\w.]))|(<class '[\w.]+'>,)|(<[A-Za-z_][\w.]*: |>)"""
    r"""|-inf\b|[A-Za-z_][\w.]*|[\s()\[\]{},:=]"""
)
_PLAIN = re.compile(r"""'[^'\\\n]*(?:\\.[^'\\\n]*)*'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|\b(?:None|True|False)\b""")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_CONSTANTS: Final[dict[str, Any]] = {"None": None, "True": True, "False": False, "nan": None, "inf": None, "-inf": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "0": "\0", "a": "\a", "b": "\b"}
_CLOCKS: dict[str, Any] = {"datetime": datetime, "date": date, "time": time, "timedelta": timedelta}
_LISTS = {"set", "frozenset", "tuple", "list", "deque", "array"}
_ZONES = {"TzInfo", "timezone", "tzutc", "ZoneInfo"}


class NotPython(Exception):
    """Raised if the text is not a printed Python value."""


def read_python(text: str) -> Any:
    """Return the value that Python printed as `text`. Raise NotPython if `text` is not a printed value."""
    if len(text) > LONGEST:
        raise NotPython
    try:
        # Try to translate the text to JSON, which is fast for plain literals. Other values fail here and are parsed
        # below.
        return decode_json(_PLAIN.sub(_as_json, text))
    except (msgspec.DecodeError, RecursionError):
        pass
    literals: list[Any] = []
    source = "".join(_tokens(text, literals))
    if _FIELD.match(text):
        # Pydantic's `str` separates fields with spaces.
        source = f"fields({_NEXT_FIELD.sub(', ', source)})"
    try:
        # The brackets are required, because several values with commas between them are not a single value.
        (value,) = _read(parse_python(f"[{source}]", mode="eval").body, literals)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise NotPython from None
    return value


def _tokens(text: str, literals: list[Any]) -> Iterator[str]:
    """Yield the text as Python code.

    `_[N]` replaces each string or number, and `_(` replaces each enumeration member.
    """
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found[0] == "_":
            raise NotPython
        at = found.end()
        _, quoted, number, factory, member = found.groups()
        if quoted or number:
            literals.append(_unquoted(quoted) if quoted else _number(number))
            yield f" _[{len(literals) - 1}] "
        elif member:
            yield ")" if member == ">" else " _("
        elif not factory:  # The repr of a defaultdict starts with its factory.
            yield "inf" if found[0] == "-inf" else found[0]


def _read(node: ast.expr, literals: list[Any]) -> Any:
    match node:
        case ast.Subscript(ast.Name("_"), ast.Constant(int(place))):
            return literals[place]
        case ast.Constant(value) if value in (None, True, False):
            return value
        case ast.Name(name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.List(items) | ast.Tuple(items) | ast.Set(items):
            return [_read(item, literals) for item in items]
        case ast.Dict(keys, values) if None not in keys:
            pairs = zip(cast("list[ast.expr]", keys), values, strict=True)
            return record_of((_key(_read(name, literals)), _read(value, literals)) for name, value in pairs)
        case ast.Call(function, items, named):
            return _object(_name(function), items, [(str(each.arg), each.value) for each in named], literals)
        case _:
            raise NotPython


def _object(name: str, items: list[ast.expr], named: list[tuple[str, ast.expr]], literals: list[Any]) -> Any:
    """Return the data in an object's repr: the object's fields or contents."""
    short = name.rpartition(".")[2]
    if short in _CLOCKS:
        zoned = {field: _zone(each, literals) if field == "tzinfo" else _read(each, literals) for field, each in named}
        try:
            moment = _CLOCKS[short](*(_read(each, literals) for each in items), **zoned)
        except (TypeError, OverflowError):
            raise NotPython from None
        return moment.total_seconds() if isinstance(moment, timedelta) else moment.isoformat()
    if named and items:
        raise NotPython
    if named:
        return record_of((field, _read(each, literals)) for field, each in named)
    held = [_read(each, literals) for each in items]
    match short, held:
        case "OrderedDict", [list()]:
            return record_of((_key(name), value) for name, value in map(_pair, cast("list[Any]", held[0])))
        case _, [only]:
            return only
        case _:
            return held if held or short in _LISTS else {}


def _pair(pair: Any) -> list[Any]:
    if not isinstance(pair, list) or len(cast("list[Any]", pair)) != 2:
        raise NotPython
    return cast("list[Any]", pair)


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(inner, name):
            return f"{_name(inner)}.{name}"
        case _:
            raise NotPython


def _zone(node: ast.expr, literals: list[Any]) -> timezone | None:
    """Return a time zone, which is UTC or an offset in seconds. The offset of other names is unknown."""
    match node:
        case ast.Constant(None):
            return None
        case ast.Call(function, items, named) if _name(function).rpartition(".")[2] in _ZONES:
            inner = [*items, *(each.value for each in named)]
            if not inner or isinstance(inner[0], ast.Name):
                return _zone(inner[0], literals) if inner else UTC
            if (offset := _read(inner[0], literals)) == "UTC":
                return UTC
            if isinstance(offset, int | float) and abs(offset) < 86_400:
                return timezone(timedelta(seconds=offset))
            raise NotPython
        case _ if _name(node) in ("UTC", "datetime.timezone.utc"):
            return UTC
        case _:
            raise NotPython


def _as_json(found: "re.Match[str]") -> str:
    match found[0]:
        case "None":
            return "null"
        case "True":
            return "true"
        case "False":
            return "false"
        case quoted:
            return msgspec.json.encode(_unquoted(quoted).encode("utf-8", "replace").decode()).decode()


def _unquoted(quoted: str) -> str:
    return _ESCAPE.sub(_unescaped, quoted[1:-1]) if "\\" in quoted else quoted[1:-1]


def _number(written: str) -> int | float:
    # Python does not parse longer numbers, and no tool returns them.
    if len(written) > 4000:
        raise NotPython
    return int(written) if written.lstrip("-").isdigit() else float(written)


def _unescaped(found: "re.Match[str]") -> str:
    mark = found[1]
    if mark[0] in "xuU" and len(mark) > 1:
        code = int(mark[1:], 16)
        if code > 0x10FFFF:
            raise NotPython
        return chr(code)
    if mark not in _ESCAPES:
        return "\\" + mark
    return _ESCAPES[mark]


def _key(name: Any) -> str:
    match name:
        case str():
            return name
        case bool():
            return "true" if name else "false"
        case None:
            return "null"
        case int() | float():
            return repr(name)
        case _:
            raise NotPython
