"""Reads data printed by Python: literals, and the reprs of dataclasses, pydantic models and enumerations.

Frameworks pass a tool's result through `str`, which gives `{'status': 'out', 'returned_on': None}` or
`Loan(status='out', returned_on=None)` in place of JSON. Nothing is evaluated: a text is read in one pass, whole or not
at all, and becomes the data that a JSON log would have.
"""

import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any, Final, cast

import msgspec

from bylaw.trace.recorded_value import decode_json, record_of

LONGEST = 1 << 20
"""Characters at most; a longer text stays text."""
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
    """The value that Python printed as `text`; raises `NotPython` if it is not a printed value, or not data."""
    if len(text) > LONGEST:
        raise NotPython
    try:
        # Plain literals are quickly translated to JSON; anything else fails here and is read below.
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
    """A text and the position reached in it."""

    __slots__ = ("at", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.skip()

    def skip(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def meets(self, mark: str) -> bool:
        """Whether `mark` comes next; it is read if so."""
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
        """A dict, or a set, which JSON can only list."""
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
        """The value of a member of an enumeration; other objects in angle brackets are not data."""
        found = _MEMBER.match(self.text, self.at)
        if not found:
            raise NotPython
        self.at = found.end()
        value = self.value(depth + 1)
        self.expect(">")
        return value

    def _named(self, depth: int) -> Any:
        """A constant, or the repr of an object."""
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
        """Pairs of `name=value`, with commas up to `end`, or with spaces to the end of the text (pydantic's `str`)."""
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
        """A date, a time or a span of time, as ISO 8601 writes it; a span in seconds."""
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
        """The zone of a time: UTC or an offset in seconds; other names give no offset."""
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
    """A dict's key, as `json.dumps` writes it."""
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
