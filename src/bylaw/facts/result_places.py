"""The text of a conversation's events, and where values occur in results: as a whole field, in a labelled line, or in
running text.

JSON, YAML, printed Python values and plain text can be read. Text inside a record is also read line by line, because a
bill or letter often has `IBAN: ...` on a line of its own.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
import yaml
from msgspec import Struct
from msgspec.structs import replace

from bylaw.facts.value import amount_of, leaves
from bylaw.policy.tool import Tool
from bylaw.text.folding import fold, fold_said
from bylaw.text.identifier import identifiers, is_prose, without_joined
from bylaw.text.number import canonical
from bylaw.text.spelling import Spelling
from bylaw.trace.event import Call, Event, Message, Result

_PARSED = 200_000
_PROSE_WORDS = 10
_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


_MARK = re.compile(r"\*{3,}|[\[<{*]+ ?[A-Za-z_][A-Za-z_ ]*[\]>}*]+")


def number_forms(text: str) -> tuple[str, ...]:
    """Return other spellings of a number in a field such as `£96.00`: without trailing zeros or its currency."""
    try:
        return (canonical(float(text)),) if len(text) < 20 else ()
    except ValueError:
        amount = amount_of(text)
    return () if amount is None else (canonical(float(amount)), str(amount))


def is_cut(text: str) -> bool:
    """Whether a result is incomplete, because its data is truncated or contains a placeholder such as `[REDACTED]`."""
    bare = text.strip()
    if bare[:1] not in ("{", "["):
        return _MARK.fullmatch(bare) is not None
    if _decoded(bare) is not None:
        return False
    return _MARK.fullmatch(bare) is not None or isinstance(parse_result(bare), str)


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def parse_result(text: str) -> Any:
    """Decode the text of a result as JSON. If that fails, decode it as YAML, which covers printed Python values."""
    data = _decoded(text)
    if data is not None or len(text) > _PARSED or not (":" in text or text.lstrip()[:1] in ("-", "[", "{")):
        return text if data is None else data
    try:
        data = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return text
    return cast("Any", data) if isinstance(data, dict | list) else text


_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ]\d\d:\d\d[\d:.]*(?:Z|[+-]\d\d:?\d\d)?")
_WHOLE = 200
"""The maximum length of a single value. A longer value is running text."""
_LEAVES = 20_000
_LINES = 5_000
_LABELLED = re.compile(r"^[\s>*#-]*([^:\n]{1,40}?)\s*:(?!//)\s+(\S.*?)\s*$")
_BULLET = re.compile(r"^\s*(?:[-*>#]+|\d{1,3}[.)])\s+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_LABEL_WORDS = 4
_LABEL = re.compile(r", (?=[A-Z][\w ]{0,30}: )")
_LABELS = 3
"""The minimum number of labels in a line for the line to be a row."""
_LINE_WORDS = 8


class Place(Struct, frozen=True, gc=False):
    field: str
    """The name of the field or the label of the line. Empty for a list item or a line without a label."""
    top: str
    """The record's field that contains the value. It determines whether the value is trusted. Empty in text without
    fields.
    """
    record: int
    """The index of the record. -1 if the place is outside any record."""
    is_whole: bool
    within: tuple[str, ...] = ()
    """In nested records: the names of the fields from the record's own field down to the value."""
    is_line: bool = False
    """Whether the value is a line or an item in the text of a field, or follows a label in that text."""


class ResultPlaces:
    def __init__(self, content: Any) -> None:
        """`content` is the text of a result or its decoded data."""
        self.records: list[dict[str, str]] = []
        """The short fields of each record, normalised."""
        self._mappings: list[Mapping[Any, Any]] = []
        self._fields: dict[int, Mapping[str, str]] = {}
        self._whole: dict[str, list[Place]] = {}
        self._texts: list[tuple[Place, str]] = []
        data = parse_result(content) if isinstance(content, str) else content
        self.is_listing = False
        """Whether the result consists of short lines and contains no prose."""
        if isinstance(data, str):
            self.is_listing = "\n" in data and all(line.count(" ") < _PROSE_WORDS for line in data.splitlines())
            data = _rows(data) or data
        self.members = len(cast("list[Any]", data)) if isinstance(data, list) else 1
        """The length of the list. 1 if the data is not a list."""
        self._having: Counter[str] = Counter()
        left = _LEAVES
        pending: list[tuple[Any, str, str, int, tuple[str, ...]]] = [(data, "", "", -1, ())]
        while pending and left:
            left -= 1
            value, field, top, record, within = pending.pop()
            if isinstance(value, dict):
                mapping = cast("dict[Any, Any]", value)
                number = len(self.records)
                self._mappings.append(mapping)
                self.records.append({str(name): _folded(part) for name, part in mapping.items() if _is_short(part)})
                self._having.update(str(name) for name in mapping)
                for name, part in reversed(mapping.items()):
                    self._add(str(name), Place("", top, number, True, within))
                    inner = (*within, str(name)) if top else ()
                    pending.append((part, str(name), top or str(name), number, inner))
            elif isinstance(value, list):
                pending.extend((part, field, top, record, within) for part in reversed(cast("list[Any]", value)))
            elif isinstance(value, str):
                self._read(value, Place(field, top, record, True, within), is_all=value is content)
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                self._whole.setdefault(canonical(value), []).append(Place(field, top, record, True, within))

    def find(self, value: str | float, spelling: Spelling) -> Iterator[Place]:
        """Yield the places of a value, the places of whole values first."""
        yield from self._whole.get(_folded(value), ())
        for place, words in self._texts:
            if spelling.said_in(words):
                yield replace(place, is_whole=False)

    def beside(self, place: Place) -> Mapping[str, str]:
        return self.records[place.record] if 0 <= place.record < len(self.records) else {}

    def fields(self, number: int) -> Mapping[str, str]:
        """Return all fields of a record, including texts and lists, normalised. Empty if there is no such record."""
        if number < 0:
            return {}
        if number not in self._fields:
            self._fields[number] = {fold(str(n)): _folded_all(part) for n, part in self._mappings[number].items()}
        return self._fields[number]

    def names(self, number: int) -> list[str]:
        """Return the names of a record's fields as written. Empty if there is no such record."""
        return [str(name) for name in self._mappings[number]] if 0 <= number < len(self._mappings) else []

    def told(self, number: int) -> Iterator[str]:
        """Yield the values of a record's fields as written. Each item of a list is yielded separately."""
        for name, part in self._mappings[number].items():
            yield part if isinstance(part, str) else self.fields(number)[fold(str(name))]

    def written(self, number: int, field: str) -> str:
        """Return a field of a record as written, with line breaks. Empty if there is no such field."""
        part = self._mappings[number].get(field) if 0 <= number < len(self._mappings) else None
        return part if isinstance(part, str) else ""

    def values(self, field: str | None = None) -> Iterator[str]:
        """Yield the whole values of one field (None: all fields), normalised. An empty field name means list items."""
        for value, places in self._whole.items():
            if field is None or any(place.field == field for place in places):
                yield value

    def in_every_record(self, value: str, field: str) -> bool:
        """Whether several records have this field, and each has this value in it, alone or in a list."""
        records = {place.record for place in self._whole.get(_folded(value), ()) if place.top == field}
        return len(records) > 1 and len(records) == self._having[field]

    def _add(self, text: str, place: Place) -> None:
        folded = fold(text)
        if folded:
            self._whole.setdefault(folded, []).append(place)
            for other in (found[1],) if (found := _TIME.fullmatch(text)) else number_forms(text):
                if other != folded:
                    self._whole.setdefault(other, []).append(place)

    def _read(self, text: str, place: Place, *, is_all: bool) -> None:
        if len(text) <= _WHOLE and "\n" not in text.strip():
            self._add(text, place)
        self._texts.append((place, fold(text)))
        lines = text.splitlines() if "\n" in text or is_all else [text]
        for line in lines[:_LINES]:
            for label, part in _parts(line):
                if part != text and len(part) <= _WHOLE:
                    self._add(part, replace(place, field=label or place.field, is_line=True))


def _rows(text: str) -> list[dict[str, str]]:
    """Return one row per line, if all lines have the same labels in the same order, as in `Flight: A, Price: 9`."""
    lines = [line for line in text.splitlines() if line.strip()][:_LINES]
    found = [[part.split(": ", 1) for part in _LABEL.split(line.strip())] for line in lines]
    labels = {tuple(part[0] for part in row) for row in found}
    is_row = len(lines) > 1 and len(labels) == 1 and all(len(part) > 1 for row in found for part in row)
    return [{part[0]: part[1] for part in row} for row in found] if is_row and len(found[0]) >= _LABELS else []


def _parts(line: str) -> Iterator[tuple[str, str]]:
    """Yield the values in a line, with their labels if they have any: `IBAN: X`, `- X`, `Hotels: A, B`."""
    bare = _BULLET.sub("", line).strip()
    if not bare:
        return
    yield "", bare
    if bare.count(",") and bare.count(" ") < _LINE_WORDS and not bare.endswith("."):
        yield from (("", part.strip()) for part in bare.split(","))
    sentences = _SENTENCE.split(bare)
    for said in sentences if len(sentences) < 2 else (bare, *sentences):
        if (found := _LABELLED.match(said)) and found[1].count(" ") < _LABEL_WORDS:
            yield fold(found[1]), found[2]
            if found[2].count(",") and not _SENTENCE.search(found[2]):
                yield from ((fold(found[1]), part.strip()) for part in found[2].split(","))


def _is_short(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and len(str(value)) <= _WHOLE


def _folded(value: Any) -> str:
    return fold(value) if isinstance(value, str) else canonical(value)


def _folded_all(value: Any) -> str:
    if isinstance(value, list):
        return " \n ".join(_folded(part) for part in cast("list[Any]", value) if not isinstance(part, (dict, list)))
    return "" if value is None or isinstance(value, (dict, bool)) else _folded(value)


_ESCAPED = re.compile(r"(?<!\\)((?:\\\\)*)((?:\\u[0-9a-f]{4})+)", re.IGNORECASE)


class EventTexts:
    """The texts of messages, results and call arguments. Events may be added to `events` later."""

    def __init__(self, events: Sequence[Event], tools: Mapping[str, Tool]) -> None:
        self._events, self._tools = events, tools
        self._texts: dict[int, str] = {}
        self._folded: dict[int, str] = {}
        self._bare: dict[int, str] = {}
        self._places: dict[int, ResultPlaces] = {}
        self._data: dict[int, ResultPlaces] = {}

    def text(self, step: int) -> str:
        text = self._texts.get(step)
        if text is None:
            text = self._result(step).text
            # JSON may escape characters that are not ASCII, and 96 must be found in `\u00a396.00` too.
            text = self._texts[step] = _ESCAPED.sub(_unescaped, text) if "\\u" in text else text
        return text

    def places(self, step: int) -> ResultPlaces:
        if step not in self._places:
            self._places[step] = ResultPlaces(self.text(step))
        return self._places[step]

    def data(self, step: int) -> ResultPlaces:
        """Return the places of values in the data that a message contains."""
        if step not in self._data:
            self._data[step] = ResultPlaces(self._result(step).value())
        return self._data[step]

    def value(self, step: int) -> Any:
        """Return the result at `step` as data or, if it is not data, as text."""
        return self._result(step).value()

    def results(self, *, before: int) -> Iterator[tuple[int, Call, str]]:
        for step in range(min(before, len(self._events))):
            if isinstance(event := self._events[step], Result) and event.captured and (call := self.called(step)[0]):
                yield step, call, self.text(step)

    def called(self, step: int) -> tuple[Call | None, int]:
        result = self._result(step)
        call = None if result.call is None else self._events[result.call]
        return (call, result.call or 0) if isinstance(call, Call) else (None, -1)

    def tool(self, step: int) -> str:
        call = self.called(step)[0]
        return self._result(step).tool or ("" if call is None else call.tool)

    def message(self, step: int) -> str:
        event = self._events[step]
        assert isinstance(event, Message)
        return event.text

    def said(self, step: int) -> str:
        """Return the message at `step`, normalised. Names keep their underscores."""
        if step not in self._folded:
            self._folded[step] = fold_said(self.message(step))
        return self._folded[step]

    def said_bare(self, step: int) -> str:
        """Return the message at `step`, normalised, without addresses, links, paths and ids."""
        if step not in self._bare:
            self._bare[step] = fold_said(without_joined(self.message(step)))
        return self._bare[step]

    def is_users(self, step: int) -> bool:
        event = self._events[step]
        return isinstance(event, Message) and event.by == "user"

    def given(self, step: int) -> str:
        if step not in self._folded:
            self._folded[step] = fold(" \n ".join(self.leaves(step)))
        return self._folded[step]

    def leaves(self, step: int) -> list[str]:
        call = self._events[step]
        assert isinstance(call, Call)
        tool = self._tools.get(call.tool)
        names = (*call.arguments, *(tool.names if tool is not None else ()))
        return [str(leaf) for leaf in leaves(with_keys(call.arguments, names))]

    def writes(self, step: int) -> bool:
        call = self._events[step]
        tool = self._tools.get(call.tool) if isinstance(call, Call) else None
        return tool is None or tool.effect == "write"

    def _result(self, step: int) -> Result:
        event = self._events[step]
        assert isinstance(event, Result)
        return event


def _unescaped(found: re.Match[str]) -> str:
    signs: str = json.loads(f'"{found[2]}"')
    is_plain = all(sign >= "\u00a0" and not "\ud800" <= sign <= "\udfff" for sign in signs)
    return found[1] + signs if is_plain else found[0]


def with_keys(value: Any, names: Collection[str]) -> Any:
    """Return data in which every object key not in `names` counts as a value, as in `{"jo@x.com": "editor"}`."""
    if isinstance(value, dict):
        record = cast("dict[str, Any]", value)
        keys = [key for key in record if key not in names]
        parts = {key: with_keys(part, names) for key, part in record.items()}
        return [*keys, *parts.values()] if keys else parts
    if isinstance(value, list):
        return [with_keys(part, names) for part in cast("list[Any]", value)]
    return value


def leaf_values(arguments: Any) -> Iterator[tuple[str, str | int | float]]:
    """Yield the values in a call's arguments with their paths, such as `flights[].date`. Of prose, yield only
    identifiers.
    """
    pending: list[tuple[str, Any]] = [("", arguments)]
    left = _LEAVES
    while pending and left:
        path, value = pending.pop()
        left -= 1
        if isinstance(value, dict):
            items = cast("dict[Any, Any]", value).items()
            pending.extend((f"{path}.{name}" if path else str(name), part) for name, part in items)
        elif isinstance(value, list):
            pending.extend((f"{path}[]", part) for part in cast("list[Any]", value))
        elif isinstance(value, str) and is_prose(value):
            yield from ((path, token) for token in identifiers(value))
        elif isinstance(value, (str, int, float)) and not isinstance(value, bool) and value != "":
            yield path, value
