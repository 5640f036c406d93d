"""Reads arguments, contents and times in the forms that logs use: JSON, and data printed by Python.

If a JSON object has a key twice, or a result comes in two versions that differ, both values are kept and neither counts
as known. Parsers choose different values, so an attacker could show one value to the tool and another to Bylaw.

Frameworks pass a tool's result through `str`, which gives `{'status': 'out', 'returned_on': None}` or
`Loan(status='out', returned_on=None)` instead of JSON. Nothing is evaluated. A text is read in one pass, completely or
not at all, and becomes the data that a JSON log would have.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any, Final, cast

import msgspec
from msgspec import Raw, Struct

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Contradicted(Struct, frozen=True):
    """Several contradictory values for one field."""

    values: tuple[Any, ...]


def decode_json(text: str | Raw) -> Any:
    """Decode JSON. A key that occurs twice in an object has the value `Contradicted`, unless both values are equal."""
    value: Any = _decode(text)
    if (value.__class__ is not dict and value.__class__ is not list) or names_stand_once(text, value):
        return value
    plain = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    try:
        return json.loads(plain, object_pairs_hook=record_of, strict=False)
    except ValueError as error:
        # Python, unlike msgspec, cannot read a number of thousands of digits.
        raise msgspec.DecodeError(str(error)) from None


def names_stand_once(text: str | bytes | Raw, value: Any) -> bool:
    """Whether no object in `text`, decoded to `value`, has a key twice. False if uncertain."""
    if isinstance(text, str):
        count, has_escaped = text.count(":"), "\\u003" in text
    else:
        plain = bytes(text)
        count, has_escaped = plain.count(b":"), b"\\u003" in plain
    # A colon follows every key, and the encoded value has each key once.
    if value.__class__ is dict and count == len(value):
        return True
    # An escaped colon could replace a missing one.
    return not has_escaped and count == _encode(value).count(b":")


def record_of(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object from pairs. A key may occur twice."""
    record: dict[str, Any] = {}
    for name, value in pairs:
        record[name] = either(record[name], value) if name in record else value
    return record


def either(one: Any, other: Any) -> Any:
    """Combine two values for one field: the value if they are equal, or else both."""
    told = [*one.values] if isinstance(one, Contradicted) else [one]
    # Only Python considers True and 1 equal.
    if not any(value == other and isinstance(value, bool) is isinstance(other, bool) for value in told):
        told.append(other)
    return Contradicted(tuple(told)) if len(told) > 1 else one


def merged(one: Any, other: Any) -> Any:
    """Merge two accounts of one thing, and keep both values where they differ."""
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


def holds_contradiction(value: Any) -> bool:
    """Whether a list or record contains contradictory values."""
    parts: list[Any] = [value]
    for part in parts:
        if part.__class__ is dict:
            parts += part.values()
        elif part.__class__ is list or part.__class__ is tuple:
            parts += part
        elif part.__class__ is Contradicted:
            return True
    return False


NOT_CAPTURED = "arguments were not captured"
EARLIEST = datetime(1, 1, 2, tzinfo=UTC).timestamp()
LATEST = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""Numbers outside this range are not seconds: milliseconds, nanoseconds, or invalid."""
RECENT = datetime(1990, 1, 1, tzinfo=UTC).timestamp(), datetime(2100, 1, 1, tzinfo=UTC).timestamp()
"""A number that is in this range as milliseconds or microseconds is read as such."""
_FIGURES = 16
"""The number of digits of a time in microseconds."""
TEXTS = frozenset(("text", "input_text", "output_text", "refusal"))
"""Types of the parts with the speaker's own words."""
decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def read_arguments(recorded: Any) -> tuple[dict[str, Any], str]:
    """Return arguments that did not come as an object, and their fault, if any."""
    if type(recorded) is not str:
        if recorded is None:
            return {}, NOT_CAPTURED
        if not isinstance(recorded, (str, Raw)):
            return {}, f"arguments are not an object but `{type(recorded).__name__}`"
    try:
        given = decode_object(recorded)
        # A colon follows every key. With as many colons as keys, none is repeated.
        if type(recorded) is str and recorded.count(":") == len(given):
            return given, ""
        twice = repeated_key(recorded, given)
        return (given, f"argument `{twice}` is given twice") if twice else (given, "")
    except msgspec.ValidationError:
        return {}, "arguments are not an object"
    except (msgspec.DecodeError, RecursionError):
        # Several models write an empty text for a call without arguments.
        if not isinstance(recorded, Raw) and not recorded.strip():
            return {}, ""
        return {}, "arguments are not JSON"


def repeated_key(text: str | bytes | Raw, decoded: dict[str, Any] | None = None) -> str:
    """Return a key that occurs twice in one object of a JSON text, or an empty text. Pass the decoded text if
    available.

    Parsers read such an object differently.
    """
    with suppress(msgspec.MsgspecError, UnicodeError, RecursionError):
        if names_stand_once(text, msgspec.json.decode(text) if decoded is None else decoded):
            return ""
    plain = bytes(text).decode("utf-8", "replace") if not isinstance(text, str) else text
    found: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        if len(pairs) > len(dict(pairs)):
            counts = Counter(name for name, _ in pairs)
            found.append(counts.most_common(1)[0][0])

    # Numbers are not decoded, because one may have more digits than Python reads.
    json.loads(plain, object_pairs_hook=note, parse_int=len, parse_float=len, strict=False)
    return found[0] if found else ""


def read_content(recorded: Any) -> str | Raw:
    """Return a tool result that did not come as text. Parts are joined to text, anything else stays JSON."""
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
    """Return the text of a result's part, including files and pages that a tool returned."""
    match part:
        case {"type": str(kind), "content": str(text)} if kind not in TEXTS:
            return text
        case _:
            return part_text(part)


def part_text(part: Any) -> str | None:
    """Return the text of a content part; empty for an image and similar, None for an unknown part."""
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
    """Return the words of a text part, under any of their keys; None if they cannot be read."""
    words = next((part[name] for name in ("text", "refusal", "content") if part.get(name) is not None), "")
    match words:
        case str(text) | {"value": str(text)}:
            return text
        case list():
            return plain_text(words)
        case _:
            return None


def plain_text(content: Any) -> str:
    """Return the text of a message with any form of content."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, (part_text(part) for part in cast("list[Any]", content))))
    if isinstance(content, dict):
        return part_text(content) or ""
    return ""


def utc(time: float | None) -> datetime | None:
    """A time in seconds since the epoch as a date and time; None if there is none, or if it is out of range."""
    try:
        return datetime.fromtimestamp(time, UTC) if time is not None else None
    except (ValueError, OverflowError, OSError):
        return None


def seconds(recorded: Any) -> float | None:
    """A time as seconds since the epoch, in UTC if it names no zone; None if it cannot be read.

    Reads ISO 8601, e-mail dates, and seconds, milliseconds or microseconds as a number or text.
    """
    if isinstance(recorded, str) and len(recorded) > len("20260101") and recorded.isdecimal():
        recorded = int(recorded) if len(recorded) <= _FIGURES else None
    if isinstance(recorded, int | float):
        if EARLIEST <= recorded <= LATEST:
            return float(recorded)
        # Multiply, because a whole number of any length can be compared but not divided.
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
"""The maximum length. A longer text stays text."""
DEEPEST = 60

_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_FIELD = re.compile(r"([A-Za-z_]\w*)=")
_NUMBER = re.compile(r"-?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?![\w.])")
_TEXT = re.compile(r"""(b?)('[^'\\\n]*(?:\\.[^'\\\n]*)*'|"[^"\\\n]*(?:\\.[^"\\\n]*)*")""")
_PLAIN = re.compile(r"""'[^'\\\n]*(?:\\.[^'\\\n]*)*'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|\b(?:None|True|False)\b""")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_MEMBER = re.compile(r"<[A-Za-z_][\w.]*: ")
_CLASS = re.compile(r"<class '[\w.]+'>")
_CONSTANTS: Final[dict[str, Any]] = {"None": None, "True": True, "False": False, "nan": None, "inf": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "0": "\0", "a": "\a", "b": "\b"}
_CLOCKS = {"datetime.datetime": datetime, "datetime.date": date, "datetime.time": time}
_LISTS = {"set", "frozenset", "tuple", "list", "deque", "array"}
_ZONES = {"datetime.timezone.utc", "UTC"}


class NotPython(Exception):
    """The text is no printed value."""


def read_python(text: str) -> Any:
    """Return the value that Python printed as `text`. Raises `NotPython` if it is not a printed value or not data."""
    if len(text) > LONGEST:
        raise NotPython
    try:
        # Plain literals are quickly translated to JSON. Anything else fails here and is read below.
        return decode_json(_PLAIN.sub(_as_json, text))
    except (msgspec.DecodeError, RecursionError):
        pass
    reading = _Reading(text)
    value = reading.fields(0, "") if _FIELD.match(text, reading.at) else reading.value(0)
    reading.skip()
    if reading.at != len(text):
        raise NotPython
    return value


class _Reading:
    """A text with the position reached."""

    __slots__ = ("at", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.skip()

    def skip(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def meets(self, mark: str) -> bool:
        """Whether `mark` comes next. If so, it is consumed."""
        self.skip()
        if not self.text.startswith(mark, self.at):
            return False
        self.at += len(mark)
        return True

    def expect(self, mark: str) -> None:
        if not self.meets(mark):
            raise NotPython

    def value(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise NotPython
        self.skip()
        first = self.text[self.at : self.at + 1]
        match first:
            case "{":
                return self._braces(depth)
            case "[":
                self.at += 1
                return self._items("]", depth)
            case "(":
                self.at += 1
                return self._items(")", depth)
            case "<":
                return self._member(depth)
            case _:
                pass
        if found := _TEXT.match(self.text, self.at):
            return self._string(found)
        if found := _NUMBER.match(self.text, self.at):
            self.at = found.end()
            return _number(found[0])
        if self.meets("-inf"):
            return None
        return self._named(depth)

    def _string(self, found: "re.Match[str]") -> str:
        self.at = found.end()
        return _ESCAPE.sub(_unescaped, found[2][1:-1]) if "\\" in found[2] else found[2][1:-1]

    def _items(self, end: str, depth: int) -> list[Any]:
        items: list[Any] = []
        while not self.meets(end):
            items.append(self.value(depth + 1))
            if not self.meets(","):
                self.expect(end)
                break
        return items

    def _braces(self, depth: int) -> Any:
        """Read a dict, or a set, which becomes a list in JSON."""
        self.at += 1
        if self.meets("}"):
            return {}
        first = self.value(depth + 1)
        if not self.meets(":"):
            if self.meets(","):
                return [first, *self._items("}", depth)]
            self.expect("}")
            return [first]
        pairs = [(_key(first), self.value(depth + 1))]
        while not self.meets("}"):
            self.expect(",")
            if self.meets("}"):
                break
            name = self.value(depth + 1)
            self.expect(":")
            pairs.append((_key(name), self.value(depth + 1)))
        return record_of(pairs)

    def _member(self, depth: int) -> Any:
        """Read the value of an enumeration's member. Other objects in angle brackets are not data."""
        found = _MEMBER.match(self.text, self.at)
        if not found:
            raise NotPython
        self.at = found.end()
        value = self.value(depth + 1)
        self.expect(">")
        return value

    def _named(self, depth: int) -> Any:
        """Read a constant, or the repr of an object."""
        found = _NAME.match(self.text, self.at)
        if not found:
            raise NotPython
        name = found[0]
        self.at = found.end()
        if not self.text.startswith("(", self.at):
            if name not in _CONSTANTS:
                raise NotPython
            return _CONSTANTS[name]
        self.at += 1
        if name.rpartition(".")[2] in {"datetime", "date", "time", "timedelta"}:
            return self._moment(name, depth)
        if found := _CLASS.match(self.text, self.at):
            # A defaultdict shows its factory first.
            self.at = found.end()
            self.expect(",")
        self.skip()
        if _FIELD.match(self.text, self.at):
            return self.fields(depth, ")")
        items = self._items(")", depth)
        match name.rpartition(".")[2], items:
            case ("OrderedDict", [list()]):
                return _paired(cast("list[Any]", items[0]))
            case (_, [only]):
                return only
            case (short, []) if short not in _LISTS:
                return {}
            case _:
                return items

    def fields(self, depth: int, end: str) -> dict[str, Any]:
        """Read pairs `name=value`, with commas up to `end`, or with spaces to the end of the text (pydantic's
        `str`).
        """
        if depth > DEEPEST:
            raise NotPython
        pairs: list[tuple[str, Any]] = []
        while found := _FIELD.match(self.text, self.at):
            self.at = found.end()
            pairs.append((found[1], self.value(depth + 1)))
            if end and not self.meets(","):
                break
            self.skip()
        if end:
            self.expect(end)
        return record_of(pairs)

    def _moment(self, name: str, depth: int) -> Any:
        """Read a date, a time or a duration in ISO 8601, a duration in seconds."""
        numbers: list[Any] = []
        named: dict[str, Any] = {}
        while not self.meets(")"):
            self.skip()
            if found := _FIELD.match(self.text, self.at):
                self.at = found.end()
                named[found[1]] = self._zone(depth) if found[1] == "tzinfo" else self.value(depth + 1)
            else:
                numbers.append(self.value(depth + 1))
            if not self.meets(","):
                self.expect(")")
                break
        try:
            kind = name if name.startswith("datetime.") else f"datetime.{name}"
            if kind == "datetime.timedelta":
                return timedelta(*numbers, **named).total_seconds()
            clock: Any = _CLOCKS[kind]
            return clock(*numbers, **named).isoformat()
        except (TypeError, ValueError, OverflowError) as error:
            raise NotPython from error

    def _zone(self, depth: int) -> timezone | None:
        """Read the zone of a time: UTC or an offset in seconds. Other names give no offset."""
        self.skip()
        found = _NAME.match(self.text, self.at)
        name = found[0] if found else ""
        if found and name in _ZONES:
            self.at = found.end()
            return UTC
        if name == "None":
            self.at += len(name)
            return None
        if found and name.rpartition(".")[2] in {"TzInfo", "timezone", "tzutc", "ZoneInfo"}:
            self.at = found.end()
            self.expect("(")
            inner = self.text[self.at : self.text.find(")", self.at)]
            if inner in {"UTC", "0", "", "key='UTC'", "'UTC'", "datetime.timedelta(0"}:
                self.at += len(inner)
                self.expect(")")
                if inner.startswith("datetime"):
                    self.expect(")")
                return UTC
            offset = self.value(depth + 1)
            self.expect(")")
            if isinstance(offset, int | float) and abs(offset) < 86_400:
                return timezone(timedelta(seconds=offset))
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
            text = _ESCAPE.sub(_unescaped, quoted[1:-1]) if "\\" in quoted else quoted[1:-1]
            return msgspec.json.encode(text.encode("utf-8", "replace").decode()).decode()


def _number(written: str) -> int | float:
    # Python refuses to read longer numbers, and no tool returns them.
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
    """Return a dict's key as `json.dumps` writes it."""
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


def _paired(pairs: list[Any]) -> dict[str, Any]:
    named: list[tuple[str, Any]] = []
    for pair in pairs:
        match pair:
            case [name, value]:
                named.append((_key(name), value))
            case _:
                raise NotPython
    return record_of(named)
