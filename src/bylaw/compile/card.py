"""Collects what is known about a tool, so that its effect can be described. Also describes schemas in words."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

from msgspec import Struct, field

from bylaw.facts.call_record import failed
from bylaw.policy.tool import Effect
from bylaw.scan.shape import SeenValues
from bylaw.trace import Call, Result, Trajectory

_LONGEST = 1_200
_DOCUMENTED = re.compile(
    r"\b(?:Args|Arguments|Parameters|Returns|Raises):|:param\b|(?<=\.)\s+(?:Returns|Raises|Errors)\b"
)
"""Matches the start of a docstring section about arguments or results."""
DEEPEST = 6
"""The maximum depth to which a schema is followed."""
_WORDS = 300
"""The maximum number of characters in the text about one argument or one bound tool."""


class Card(Struct, frozen=True):
    """What is known about one tool."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    """JSON schemas by argument."""
    required: tuple[str, ...] = ()
    effect: Effect | None = None
    """The effect according to a hint in the catalogue."""
    results: str = ""
    """A description of the tool's results and errors in words."""
    output: dict[str, Any] = field(default_factory=dict[str, Any])
    """The JSON schema of the tool's results, if known."""

    @property
    def signature(self) -> str:
        given = (
            f"{name}{'' if name in self.required else '?'}: {kind_of(schema)}"
            for name, schema in self.parameters.items()
        )
        return f"{self.name}({', '.join(given)})"

    @property
    def short(self) -> str:
        return self._line(_first(self.description))

    def _line(self, described: str) -> str:
        hint = f" [{self.effect}]" if self.effect else ""
        return f"- {self.signature}{hint}: {described}"

    @property
    def bound(self) -> str:
        """A description of the tool for use when writing checks on its calls."""
        described = " ".join(_DOCUMENTED.split(self.description)[0].split())[:_WORDS]
        return "\n".join([self._line(described), *(f"    {line}" for line in self._arguments)])

    @property
    def _arguments(self) -> list[str]:
        said = {name: cast(dict[str, Any], schema or {}).get("description") for name, schema in self.parameters.items()}
        return [f"{name}: {' '.join(str(words).split())[:_WORDS]}" for name, words in said.items() if words]

    @property
    def whole(self) -> str:
        """A complete description of the tool, for questions about what it reads and changes."""
        hint = f"The catalogue says: {self.effect}." if self.effect else ""
        lines = [" ".join(self.description.split())[:_LONGEST], *self._arguments, hint, self.results]
        return "\n  ".join([self.signature, *(part for line in lines if line for part in line.splitlines())])


def _first(text: str) -> str:
    line = " ".join(text.split())
    end = line.find(". ")
    return line if end < 0 else line[: end + 1]


def kind_of(schema: Any) -> str:
    record = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
    if isinstance(words := record.get("enum"), list):
        return "|".join(map(str, cast(list[Any], words)))
    if record.get("type") == "array":
        return f"list of {kind_of(record.get('items'))}"
    if isinstance(parts := record.get("properties"), dict) and parts:
        return schema_text(record)
    return str(record.get("format") or record.get("type") or "any")


def schema_text(schema: Any) -> str:
    """Describe the JSON schema of a result in words, in the notation of `result.Form`."""
    record = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
    properties = record.get("properties")
    if isinstance(properties, dict):
        always = record.get("required", properties)
        parts = (
            f"{name}: {schema_text(one)}" + ("" if name in always else " (not always)")
            for name, one in cast(dict[str, Any], properties).items()
        )
        return "{" + ", ".join(parts) + "}"
    if isinstance(inner := record.get("additionalProperties"), dict):
        return f"{{NAME: {schema_text(inner)}, ...}}"
    if record.get("type") == "array":
        return f"[{schema_text(record.get('items'))}, ...]"
    return kind_of(record)


def names_in(schema: Any, depth: int = 0) -> Iterator[str]:
    """Yield every property name of a schema, including nested ones."""
    if not isinstance(schema, dict) or depth > DEEPEST:
        return
    record = cast(dict[str, Any], schema)
    properties = cast(dict[str, Any], record.get("properties") or {})
    yield from properties
    for part in (*properties.values(), record.get("items"), record.get("additionalProperties")):
        yield from names_in(part, depth + 1)


_SAMPLES = 200
_ERRORS = 4
_NAMES_OF_A_TABLE = 12
_PARTS_OF_A_LISTING = 2
_LISTS = 20
"""A list in one place is assumed never to be empty if this many lists were recorded there and none was empty."""
_WITH_A_DIGIT = re.compile(r"[^\s\"'{}\[\]:,]*\d[^\s\"'{}\[\]:,]*")


class Form:
    """The form that is common to all values recorded in one place."""

    def __init__(self) -> None:
        self.values = SeenValues()
        self.fields: dict[str, Form] = {}
        self.seen = 0
        """The number of objects."""
        self.items: Form | None = None
        self.lists = self.shortest = 0
        """The number of lists, and the length of the shortest list."""

    def add(self, value: Any) -> None:
        self.values.add(value)
        if isinstance(value, dict):
            self.seen += 1
            for name, part in cast(dict[str, Any], value).items():
                self.fields.setdefault(str(name), Form()).add(part)
        elif isinstance(value, list):
            self.items = self.items or Form()
            items = cast(list[Any], value)
            self._note_lists(1, len(items))
            for part in items:
                self.items.add(part)

    def _note_lists(self, lists: int, shortest: int) -> None:
        if lists:
            self.shortest = min(shortest, self.shortest) if self.lists else shortest
            self.lists += lists

    def __str__(self) -> str:
        if self.items is not None:
            return f"[{self.items}, ...]" if self.items.values.count else "[]"
        if self._is_table:
            return f"{{NAME: {self._inner}, ...}}"
        if self.fields:
            parts = (
                f"{name}: {form.named(name)}" + ("" if form.values.count == self.seen else " (not always)")
                for name, form in self.fields.items()
            )
            return "{" + ", ".join(parts) + "}"
        return self._kind(self._words)

    def named(self, name: str) -> str:
        """Describe the field `name`. An id is never listed as an enumeration, even if only a few values occur."""
        is_id = name == "id" or name.endswith(("_id", "Id"))
        return str(self) if self.fields or self.items is not None or not is_id else self._kind(())

    def _kind(self, words: tuple[str, ...]) -> str:
        kind = "|".join(words) if words else self.values.type
        return f"{kind} or null" if self.values.nullable else kind

    def schema(self) -> dict[str, Any]:
        if self.items is not None:
            listed = {"type": "array", "items": self.items.schema()}
            return listed | {"minItems": 1} if self.shortest and self.lists >= _LISTS else listed
        if self._is_table:
            return {"type": "object", "additionalProperties": self._inner.schema()}
        if self.fields:
            always = [name for name, form in self.fields.items() if form.values.count == self.seen]
            parts = {name: form.schema() for name, form in self.fields.items()}
            return {"type": "object", "properties": parts, "required": always}
        kind = self.values.type
        if kind in ("date", "datetime", "money"):
            return {"type": "string", "format": kind}
        return {"type": kind, "enum": list(self._words)} if self._words else {"type": kind}

    @property
    def _words(self) -> tuple[str, ...]:
        """Return the recorded words if there are only a few. Return nothing if any word contains a digit, as ids do."""
        return () if any(re.search(r"\d", word) for word in self.values.few) else self.values.few

    @property
    def _inner(self) -> "Form":
        inner = Form()
        for form in self.fields.values():
            inner.merge(form)
        return inner

    @property
    def _is_table(self) -> bool:
        named_by_data = sum(bool(re.search(r"\d", name)) for name in self.fields) * 2 > len(self.fields)
        return len(self.fields) > 1 and (named_by_data or len(self.fields) > _NAMES_OF_A_TABLE * 3)

    def merge(self, other: "Form") -> None:
        self.values = self.values.joined(other.values)
        self.seen += other.seen
        for name, form in other.fields.items():
            self.fields.setdefault(name, Form()).merge(form)
        self._note_lists(other.lists, other.shortest)
        if other.items is not None:
            self.items = self.items or Form()
            self.items.merge(other.items)


class Results:
    """Each tool's result forms and error messages, from all conversations."""

    def __init__(self) -> None:
        self._forms: dict[str, Form] = {}
        self._errors: dict[str, Counter[str]] = {}

    def add(self, trajectory: Trajectory) -> None:
        for event in trajectory.events:
            if not isinstance(event, Result) or event.call is None or not event.captured:
                continue
            call = trajectory.events[event.call]
            if not isinstance(call, Call):
                continue
            if failed(event):
                text = _WITH_A_DIGIT.sub("...", " ".join(event.text.split())[:200])
                self._errors.setdefault(call.tool, Counter())[text] += 1
                continue
            form = self._forms.setdefault(call.tool, Form())
            if form.values.count < _SAMPLES:
                form.add(event.value())

    def schema(self, tool: str) -> dict[str, Any]:
        """Return the schema of a tool's results. Empty if no result was recorded."""
        return self._forms[tool].schema() if tool in self._forms else {}

    def text(self, tool: str) -> str:
        """Describe a tool's results and errors in words. Empty if neither was recorded."""
        lines: list[str] = []
        if tool in self._forms:
            lines.append(f"results: {self._forms[tool]}")
        if errors := self._errors.get(tool):
            lines.append(f"errors: {'; '.join(text for text, _ in sorted(errors.most_common(_ERRORS)))}")
        return "\n".join(lines)


def has_table(schema: Any) -> bool:
    """Whether a record contains a table of records, rather than just an id and a list."""
    if not isinstance(schema, dict):
        return False
    record = cast(dict[str, Any], schema)
    parts = cast(dict[str, Any], record.get("properties") or {})
    inner = (record.get("items"), record.get("additionalProperties"), *parts.values())
    return (len(parts) > _PARTS_OF_A_LISTING and any(map(_is_table, parts.values()))) or any(map(has_table, inner))


def _is_table(schema: Any) -> bool:
    held = cast(dict[str, Any], schema).get("additionalProperties") if isinstance(schema, dict) else None
    return isinstance(held, dict) and bool(cast(dict[str, Any], held).get("properties"))
