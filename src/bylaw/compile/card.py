"""What is known of one tool before anybody has said what it does, and how schemas read in words."""

from collections.abc import Iterator
from typing import Any, cast

from msgspec import Struct, field

from bylaw.policy.tool import Effect

_LONGEST = 1_200
DEEPEST = 6
"""How far down a schema is followed."""
_WORDS = 300
"""Letters on one argument."""


class Card(Struct, frozen=True):
    """What is known of one tool before anybody has said what it does."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    """Argument -> JSON schema."""
    required: tuple[str, ...] = ()
    effect: Effect | None = None
    """As a hint in the catalogue says."""
    results: str = ""
    """The form of its results and errors, in words."""
    output: dict[str, Any] = field(default_factory=dict[str, Any])
    """JSON schema of its results, where it is known."""

    @property
    def signature(self) -> str:
        """Name and arguments on one line."""
        given = (
            f"{name}{'' if name in self.required else '?'}: {kind_of(schema)}"
            for name, schema in self.parameters.items()
        )
        return f"{self.name}({', '.join(given)})"

    @property
    def short(self) -> str:
        """For whoever has to choose among tools."""
        hint = f" [{self.effect}]" if self.effect else ""
        return f"- {self.signature}{hint}: {_first(self.description)}"

    @property
    def bound(self) -> str:
        """For whoever has to write what its calls are held to."""
        return "\n".join([self.short, *(f"    {line}" for line in self._arguments)])

    @property
    def _arguments(self) -> list[str]:
        """What the catalogue says of arguments; nothing where it says nothing."""
        said = {name: cast(dict[str, Any], schema or {}).get("description") for name, schema in self.parameters.items()}
        return [f"{name}: {' '.join(str(words).split())[:_WORDS]}" for name, words in said.items() if words]

    @property
    def whole(self) -> str:
        """For whoever has to know what it reads and changes."""
        hint = f"The catalogue says: {self.effect}." if self.effect else ""
        lines = [" ".join(self.description.split())[:_LONGEST], *self._arguments, hint, self.results]
        return "\n  ".join([self.signature, *(part for line in lines if line for part in line.splitlines())])


def kind_of(schema: Any) -> str:
    """An argument's type in a few words."""
    record = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
    if isinstance(words := record.get("enum"), list):
        return "|".join(map(str, cast(list[Any], words)))
    if record.get("type") == "array":
        return f"list of {kind_of(record.get('items'))}"
    if isinstance(parts := record.get("properties"), dict) and parts:
        return told_schema(record)
    return str(record.get("format") or record.get("type") or "any")


def told_schema(schema: Any) -> str:
    """A result's JSON schema, in the words of `result.Form`."""
    record = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
    properties = record.get("properties")
    if isinstance(properties, dict):
        always = record.get("required", properties)
        parts = (
            f"{name}: {told_schema(one)}" + ("" if name in always else " (not always)")
            for name, one in cast(dict[str, Any], properties).items()
        )
        return "{" + ", ".join(parts) + "}"
    if isinstance(inner := record.get("additionalProperties"), dict):
        return f"{{NAME: {told_schema(inner)}, ...}}"
    if record.get("type") == "array":
        return f"[{told_schema(record.get('items'))}, ...]"
    return kind_of(record)


def _first(text: str) -> str:
    """The first sentence of a description."""
    line = " ".join(text.split())
    end = line.find(". ")
    return line if end < 0 else line[: end + 1]


def names_in(schema: Any, depth: int = 0) -> Iterator[str]:
    """Every name of a part, however deep it stands."""
    if not isinstance(schema, dict) or depth > DEEPEST:
        return
    record = cast(dict[str, Any], schema)
    properties = cast(dict[str, Any], record.get("properties") or {})
    yield from properties
    for part in (*properties.values(), record.get("items"), record.get("additionalProperties")):
        yield from names_in(part, depth + 1)
