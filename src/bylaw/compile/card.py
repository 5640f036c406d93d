"""Collects what is known about a tool: its definition, and the form of its recorded results and errors."""

import re
from collections import Counter
from typing import Any, cast

from msgspec import Struct, field

from bylaw.compile.schema import kind_of, record
from bylaw.facts.call_record import failed
from bylaw.policy.tool import Effect
from bylaw.scan.shape import SeenValues
from bylaw.trace import Call, Result, Trajectory

_LONGEST = 1_200
_DOCUMENTED = re.compile(
    r"\b(?:Args|Arguments|Parameters|Returns|Raises):|:param\b|(?<=\.)\s+(?:Returns|Raises|Errors)\b"
)
"""Matches the start of a docstring section about arguments or results."""
_WORDS = 300
"""The maximum number of characters in the description of one argument or one bound tool."""


class Card(Struct, frozen=True):
    """Everything known about one tool."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    """JSON schemas by argument."""
    required: tuple[str, ...] = ()
    effect: Effect | None = None
    """The tool's effect, according to a hint in the catalogue."""
    results: str = ""
    """A description of the tool's results and errors in English."""
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
        """The signature and the first sentence of the description, on one line."""
        first, end, _ = " ".join(self.description.split()).partition(". ")
        return self._line(first + end.rstrip())

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
        said = {name: record(schema).get("description") for name, schema in self.parameters.items()}
        return [f"{name}: {' '.join(str(words).split())[:_WORDS]}" for name, words in said.items() if words]

    @property
    def whole(self) -> str:
        """A complete description of the tool, for questions about what it reads and changes."""
        hint = f"The catalogue says: {self.effect}." if self.effect else ""
        lines = [" ".join(self.description.split())[:_LONGEST], *self._arguments, hint, self.results]
        return "\n  ".join([self.signature, *(part for line in lines if line for part in line.splitlines())])


_SAMPLES = 200
_ERRORS = 4
_NAMES_OF_A_RECORD = 36
"""A record with more names than this is treated as a mapping with data as its keys."""
_LISTS = 20
"""The minimum number of recorded lists at one path, none of them empty, before that list is assumed never to be empty.
"""
_WITH_A_DIGIT = re.compile(r"[^\s\"'{}\[\]:,]*\d[^\s\"'{}\[\]:,]*")


class Form:
    """The form shared by all values recorded at one path."""

    def __init__(self) -> None:
        self.values = SeenValues()
        self.fields: dict[str, Form] = {}
        self.records = 0
        self.items: Form | None = None
        self.lengths: list[int] = []

    def add(self, value: Any) -> None:
        self.values.add(value)
        if isinstance(value, dict):
            self.records += 1
            for name, part in cast(dict[str, Any], value).items():
                self.fields.setdefault(str(name), Form()).add(part)
        elif isinstance(value, list):
            self.items = self.items or Form()
            items = cast(list[Any], value)
            self.lengths.append(len(items))
            for part in items:
                self.items.add(part)

    def merge(self, other: "Form") -> None:
        self.values = self.values.joined(other.values)
        self.records += other.records
        self.lengths += other.lengths
        for name, form in other.fields.items():
            self.fields.setdefault(name, Form()).merge(form)
        if other.items is not None:
            self.items = self.items or Form()
            self.items.merge(other.items)

    def __str__(self) -> str:
        """Return the form in the notation of `schema_text`, with a note for each value that may be null."""
        if self.items is not None:
            return f"[{self.items}, ...]" if self.items.values.count else "[]"
        if self._is_table:
            return f"{{NAME: {self._inner}, ...}}"
        if self.fields:
            parts = (f"{name}: {form.named(name)}{self._note(form)}" for name, form in self.fields.items())
            return "{" + ", ".join(parts) + "}"
        return self._kind("|".join(self._words))

    def named(self, name: str) -> str:
        """Describe the field `name`. An id is never listed as an enumeration, even if only a few values occur."""
        is_id = name == "id" or name.endswith(("_id", "Id"))
        return str(self) if self.fields or self.items is not None or not is_id else self._kind("")

    def _note(self, form: "Form") -> str:
        return "" if form.values.count == self.records else " (not always)"

    def _kind(self, words: str) -> str:
        return f"{words or self.values.type}{' or null' if self.values.nullable else ''}"

    def schema(self) -> dict[str, Any]:
        if self.items is not None:
            listed = {"type": "array", "items": self.items.schema()}
            return listed | {"minItems": 1} if len(self.lengths) >= _LISTS and min(self.lengths) else listed
        if self._is_table:
            return {"type": "object", "additionalProperties": self._inner.schema()}
        if self.fields:
            always = [name for name, form in self.fields.items() if not self._note(form)]
            parts = {name: form.schema() for name, form in self.fields.items()}
            return {"type": "object", "properties": parts, "required": always}
        kind = self.values.type
        if kind in ("date", "datetime", "money"):
            return {"type": "string", "format": kind}
        return {"type": kind, "enum": list(self._words)} if self._words else {"type": kind}

    @property
    def _words(self) -> tuple[str, ...]:
        """Return the recorded strings if there are only a few. Return none of them if any string contains a digit, as
        ids do.
        """
        return () if any(re.search(r"\d", word) for word in self.values.few) else self.values.few

    @property
    def _is_table(self) -> bool:
        named_by_data = sum(bool(re.search(r"\d", name)) for name in self.fields) * 2 > len(self.fields)
        return len(self.fields) > 1 and (named_by_data or len(self.fields) > _NAMES_OF_A_RECORD)

    @property
    def _inner(self) -> "Form":
        inner = Form()
        for form in self.fields.values():
            inner.merge(form)
        return inner


class Results:
    """The forms of each tool's results, and its error messages, from all conversations."""

    def __init__(self) -> None:
        self._forms: dict[str, Form] = {}
        self._errors: dict[str, Counter[str]] = {}

    def add(self, trajectory: Trajectory) -> None:
        for event in trajectory.events:
            call = trajectory.events[event.call] if isinstance(event, Result) and event.call is not None else None
            if not isinstance(event, Result) or not isinstance(call, Call) or not event.captured:
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
        """Describe a tool's results and errors in English. Empty if neither was recorded."""
        lines = [f"results: {self._forms[tool]}"] if tool in self._forms else []
        if errors := self._errors.get(tool):
            lines.append(f"errors: {'; '.join(sorted(text for text, _ in errors.most_common(_ERRORS)))}")
        return "\n".join(lines)
