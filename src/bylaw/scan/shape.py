"""Records the fields and types of the arguments and results in logs."""

import keyword
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

from bylaw.facts.call_record import failed
from bylaw.facts.entity import FieldType
from bylaw.facts.value import amount_of
from bylaw.policy.verb import words_of
from bylaw.trace import Call, Result, Trajectory

_SAMPLES = 300
"""The maximum number of results to examine per tool. Further results seldom have a new shape."""
_WORDS = 8
_SEEN = 300
"""The maximum number of different values to keep for a field or argument, for comparison with other fields."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?")
_MONEY = re.compile(r"-?\d+\.\d\d")
_ENVELOPE = {"ok", "success", "status", "code", "message", "error", "errors"}
_ABSENT = re.compile(r"not found|no such|does not exist|doesn't exist|unknown|not exist", re.IGNORECASE)


class SeenValues:
    """The values of one field or argument: how often it is present, its types, and its strings."""

    def __init__(self) -> None:
        self.count = 0
        self.types: Counter[FieldType | str] = Counter()
        self.words: set[str] = set()
        self.seen: set[str] = set()
        self.currencies: set[str] = set()

    def add(self, value: Any) -> None:
        self.count += 1
        self.types[type_of(value)] += 1
        if isinstance(value, str) and (amount := amount_of(value)) is not None:
            self.currencies.add(amount.currency)
        if isinstance(value, str) and len(self.words) <= _WORDS:
            self.words.add(value[:40])
        if isinstance(value, str | int) and len(self.seen) < _SEEN:
            self.seen.add(str(value)[:80])

    def joined(self, other: "SeenValues") -> "SeenValues":
        """Return the values of a field in the results of two tools, merged."""
        if other is self:
            return self
        made = SeenValues()
        made.count = self.count + other.count
        made.types = self.types + other.types
        made.words = self.words | other.words
        made.seen = self.seen | other.seen
        made.currencies = self.currencies | other.currencies
        return made

    @property
    def type(self) -> FieldType:
        """The type that fits all values, or `string` if there is none."""
        seen = {kind for kind in self.types if kind != "null"}
        if seen == {"integer", "number"}:
            return "number"
        if seen == {"integer", "boolean"} and self.seen <= {"0", "1", "True", "False"}:
            return "boolean"  # SQLite has no booleans, so accept 0 and 1.
        if len(seen) == 1 and len(self.currencies) <= 1:
            return cast(FieldType, next(iter(seen)))
        return "object" if seen & {"object", "list"} else "string"

    @property
    def nullable(self) -> bool:
        return "null" in self.types

    @property
    def few(self) -> tuple[str, ...]:
        """The values, if there are few and most of them are repeated."""
        if self.type != "string" or len(self.words) > _WORDS or self.count < max(2, 2 * len(self.words) - 1):
            return ()
        return tuple(sorted(self.words)) if all(re.fullmatch(r"[\w '()/&-]{1,40}", word) for word in self.words) else ()


class RecordShape:
    """The records at one path in the results of a tool."""

    def __init__(self) -> None:
        self.count = 0
        self.asked: Counter[str] = Counter()
        """Arguments whose value is equal to the key of the record."""
        self.fields: dict[str, SeenValues] = {}
        self.repeated: set[str] = set()
        """Fields with values that are repeated within one result. They cannot be keys."""

    def add(self, records: list[dict[str, Any]]) -> None:
        for record in records:
            self.count += 1
            for name, value in record.items():
                self.fields.setdefault(name, SeenValues()).add(value)
        if len(records) > 1:
            for name in records[0]:
                if len({repr(record.get(name)) for record in records}) < len({repr(record) for record in records}):
                    self.repeated.add(name)


class Shape:
    """The arguments and results of a tool, as found in logs."""

    def __init__(self) -> None:
        self.calls = 0
        self.arguments: dict[str, SeenValues] = {}
        self.definition: dict[str, Any] = {}
        self.places: dict[str, RecordShape] = {}
        """The records in the results, keyed by their path in `each`. For the whole result, the path is empty."""
        self.shown: dict[tuple[str, str], RecordShape] = {}
        """The database rows that the results contain, keyed by path and entity."""
        self.promised: dict[str, SeenValues] = {}
        """The result fields that the tool's definition declares."""
        self.texts = SeenValues()
        self.absent: Counter[str] = Counter()
        self.sampled = 0

    @property
    def required(self) -> list[str]:
        """The arguments that every call has. If there are no calls, the arguments that the definition requires."""
        if not self.calls:
            return self.defined
        return [name for name, values in self.arguments.items() if values.count == self.calls]

    @property
    def defined(self) -> list[str]:
        """The arguments that the recorded definition requires."""
        schema: Any = self.definition.get("parameters")
        required: Any = cast("dict[str, Any]", schema).get("required") if isinstance(schema, dict) else None
        return [str(name) for name in cast("list[Any]", required)] if isinstance(required, list) else []


RowKind = Callable[[str, Mapping[str, Any], Mapping[str, Any]], "tuple[str, tuple[str, ...]]"]
"""A function that takes a tool, a record and arguments. It returns the row's entity and key. The entity is empty if
the record is not a row.
"""


class Shapes:
    """The shape of each tool's arguments and results, collected from conversations.

    `kind_of` recognises database rows.
    """

    def __init__(self, kind_of: RowKind | None = None) -> None:
        self.tools: dict[str, Shape] = {}
        self._kind_of = kind_of

    def define(self, definition: Mapping[str, Any]) -> None:
        """Add a tool that the catalogue defines."""
        shape = self.tools.setdefault(str(definition["name"]), Shape())
        shape.definition = dict(definition)
        shape.promised = _typed(definition.get("output"))
        for name, values in _typed(definition.get("parameters")).items():
            shape.arguments.setdefault(name, values)

    def add(self, trajectory: Trajectory) -> None:
        for definition in trajectory.tools:
            name = definition.get("name")
            if isinstance(name, str) and name:
                self.tools.setdefault(name, Shape()).definition = definition
        for event in trajectory.events:
            if isinstance(event, Call):
                if not event.fault:
                    self._call(event)
            elif isinstance(event, Result) and event.call is not None and event.captured:
                call = trajectory.events[event.call]
                if isinstance(call, Call):
                    self._result(self.tools.setdefault(call.tool, Shape()), event, call)

    def _call(self, call: Call) -> None:
        shape = self.tools.setdefault(call.tool, Shape())
        shape.calls += 1
        for name, value in call.arguments.items():
            shape.arguments.setdefault(name, SeenValues()).add(value)

    def _result(self, shape: Shape, result: Result, call: Call) -> None:
        if shape.sampled >= _SAMPLES:
            return
        shape.sampled += 1
        if failed(result):
            if match := _ABSENT.search(result.text[:300]):
                shape.absent[match[0].lower()] += 1
            return
        value = result.value()
        for place, records in records_in(value):
            unknown: list[dict[str, Any]] = []
            kinds: dict[str, list[dict[str, Any]]] = {}
            for record in records:
                kind, key = self._kind_of(call.tool, record, call.arguments) if self._kind_of else ("", ())
                kinds.setdefault(kind, unknown if not kind else []).append(record)
                if kind and len(key) == 1 and key[0] in record:
                    asked = shape.shown.setdefault((place, kind), RecordShape()).asked
                    asked.update(each for each, given in call.arguments.items() if str(given) == str(record[key[0]]))
            for kind, own in kinds.items():
                at = shape.shown.setdefault((place, kind), RecordShape()) if kind else None
                (at or shape.places.setdefault(place, RecordShape())).add(own)
        if isinstance(value, (str, int, float)):
            shape.texts.add(value)


def _typed(schema: Any) -> dict[str, SeenValues]:
    properties: Any = cast("dict[str, Any]", schema).get("properties") if isinstance(schema, dict) else None
    made: dict[str, SeenValues] = {}
    names = {"array": "list", "string": "string", "integer": "integer", "number": "number", "boolean": "boolean"}
    for name, body in cast("dict[str, Any]", properties).items() if isinstance(properties, dict) else ():
        kind: Any = cast("dict[str, Any]", body).get("type") if isinstance(body, dict) else body
        made[name] = SeenValues()
        made[name].types[names.get(str(kind).rstrip("?"), "object" if kind == "object" else "string")] += 1
    return made


def records_in(value: Any) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the records in a result, which is a record, a list of records, or an object that contains one of these."""
    match value:
        case dict():
            mapping = cast("dict[str, Any]", value)
            wrapped = [
                (f"$.{name}[*]", found)
                for name, part in mapping.items()
                if name.isidentifier() and name.isascii() and (found := _records(part))
            ]
            # A record may contain lists, but a wrapper contains almost nothing except lists or records.
            if wrapped and len(mapping) <= len(wrapped) + 1:
                return wrapped
            if inner := _wrapped(mapping):
                return [inner]
            return [("", [mapping])] if mapping else []
        case list():
            items = cast("list[Any]", value)
            if found := _records(items):
                return [("$[*]", found)]
            nested = [record for part in items for record in _records(part)]
            return [("$[*][*]", nested)] if nested else []
        case _:
            return []


def _wrapped(mapping: dict[str, Any]) -> tuple[str, list[dict[str, Any]]] | None:
    """Return the record in a wrapper that contains only one, such as `{"ok": true, "account": {...}}`."""
    rest = [name for name, part in mapping.items() if name not in _ENVELOPE or isinstance(part, dict)]
    if len(rest) != 1 or not isinstance(mapping[rest[0]], dict):
        return None
    name, inner = rest[0], cast("dict[str, Any]", mapping[rest[0]])
    # If every member is an object, treat the value as a mapping from names to records, not as one record.
    if not name.isidentifier() or not name.isascii() or all(isinstance(part, dict) for part in inner.values()):
        return None
    return f"$.{name}", [inner]


def _records(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    items = cast("list[Any]", value)
    return [cast("dict[str, Any]", item) for item in items] if all(isinstance(item, dict) for item in items) else []


def type_of(value: Any) -> FieldType | str:
    """Return the field type for a value. For None, it is `null`."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            if _DATE.fullmatch(value):
                return "date"
            if _TIME.fullmatch(value):
                return "datetime"
            return "money" if _MONEY.fullmatch(value) or amount_of(value) is not None else "string"
        case list():
            return "list"
        case _:
            return "object"


def parameters_of(shape: Shape) -> Mapping[str, Any]:
    """Return parameters for `tools.yaml`, from the recorded schema or from the calls.

    Optional parameters end in `?`.
    """
    schema = shape.definition.get("parameters")
    if isinstance(schema, dict) and isinstance(cast("dict[str, Any]", schema).get("properties"), dict):
        known = cast("dict[str, Any]", schema)
        return {"properties": known["properties"], "required": list(known.get("required") or [])}
    names: dict[FieldType, str] = {"list": "array", "date": "string", "datetime": "string", "money": "string"}
    return {
        name: names.get(values.type, values.type) + ("" if values.count == shape.calls else "?")
        for name, values in shape.arguments.items()
    }


TAILS = {"id", "ids", "number", "no", "nr", "code", "key", "ref", "uuid"}
_SHORT = 100


def bare(name: str) -> tuple[str, ...]:
    """Return a name without a word for "id" at its end: `reservation` for `reservationId`."""
    words = words_of(name)
    while words and words[-1] in TAILS:
        words.pop()
    return tuple(words)


def spelled_like(part: str, names: Collection[str], *, thing: str = "") -> str:
    """Return the name in `names` that means a part of a key. Case, separators and the word `id` are ignored."""
    if part in names:
        return part
    words = words_of(part)
    same = [name for name in names if words and words_of(name) == words]
    # A part that is named `id` is the id of its own entity.
    meant = bare(part) or tuple(words_of(thing))
    same = same or [name for name in names if meant and bare(name) == meant]
    return same[0] if same else ""


def singular(word: str) -> str:
    """Return the singular of a word: `story` for `stories`, `box` for `boxes`, `bill` for `bills`."""
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def is_name(text: str) -> bool:
    """Whether guards can use the text as the name of an attribute."""
    plain = text.isidentifier() and text.isascii() and len(text) < _SHORT
    return plain and not text.startswith("_") and not keyword.iskeyword(text)
