"""What a pack's entities, observations and changes come to; `schema_reader` makes it of their YAML."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any, Protocol, cast

from msgspec import Struct, field
from msgspec.structs import force_setattr

from bylaw.facts.card_fact import CardFact
from bylaw.facts.entity import Entity, Key, ReadTool
from bylaw.facts.observation import Change, Observation, PathScope, compile_each
from bylaw.facts.world_change import WorldChange
from bylaw.policy.tool import Tool


class Stored(Struct, frozen=True):
    """One place where things of a kind stand: a table, or a path in a document; and in each item there."""

    observation: Observation
    table: str = ""
    of: str = ""
    """The path to what holds the items, where each item needs something of it."""
    each: str = ""
    list: str = ""
    """The field that the items of one key are a list in, where they are no things themselves."""

    def scopes(self, data: Any) -> Iterator[PathScope]:
        """Every item, `$of` being what holds it."""
        whole = PathScope(data, data, {})
        if not self.of:
            yield from (PathScope(item, data, {}, name) for item, name in _items(self.each, whole))
            return
        for outer, above in compile_each(self.of)(whole):
            inside = PathScope(outer, data, {}, above)
            yield from (PathScope(item, data, outer, name) for item, name in _items(self.each, inside))


def _items(each: str, scope: PathScope) -> Sequence[tuple[Any, Any]]:
    return compile_each(each)(scope) if each else [(scope.item, scope.key)]


class ShownResults(Protocol):
    """The results an agent had been shown."""

    def results(self, tool: str, match: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """Records `{arguments, value, step}` of the calls of `tool` whose arguments equal `match`, oldest first."""
        ...


FieldSearch = Callable[[Key, ShownResults], Any]
"""Finds a field's value in what was shown, or answers UNSEEN."""


class Schema(Struct, frozen=True):
    """What the tools of a pack show and change."""

    entities: dict[str, Entity]
    tools: dict[str, Tool]
    shows: dict[str, dict[str, tuple[Observation, ...]]]
    """Tool -> kind of thing -> how its results show it."""
    changes: dict[str, tuple[Change, ...]]
    effects: dict[str, tuple[WorldChange, ...]]
    searches: dict[tuple[str, str], FieldSearch] = field(default_factory=dict[tuple[str, str], FieldSearch])
    """Look-up functions by entity and field: asked where no observation shows the field."""
    stored: dict[str, tuple[Stored, ...]] = field(default_factory=dict[str, tuple[Stored, ...]])
    """Where things of a kind stand in a database of another shape."""
    writing: frozenset[str] = frozenset()
    """The tools that change something."""
    ways: Mapping[tuple[str, str], Sequence[ReadTool]] = {}
    """By entity and field, the read calls keyed by the entity's own key that may show it, its declared `read` first."""
    is_told: bool = False
    """Whether any fact is what the user says in words."""
    zone: tzinfo | None = None
    """Whose clocks times are read from; None for UTC."""
    card_facts: Mapping[str, Sequence[CardFact]] = {}
    """By tool, what its cards and sentences show beside the arguments."""

    def __post_init__(self) -> None:
        force_setattr(self, "writing", frozenset(name for name, tool in self.tools.items() if tool.effect == "write"))
        entities = self.entities.values()
        fields = (each for entity in entities for each in entity.fields.values())
        force_setattr(self, "is_told", any(saying.says for each in fields for saying in each.sayings))
        named = [(each, field) for each in entities for field in (*each.fields, *each.key, "exists")]
        force_setattr(self, "ways", {(entity.name, field): self._ways_to(entity, field) for entity, field in named})

    def _ways_to(self, entity: Entity, field: str) -> list[ReadTool]:
        ways = [entity.read] if entity.read is not None else []
        for tool, kinds in self.shows.items():
            shown = kinds.get(entity.name) if entity.key else None
            if shown and any(not each.only or field in each.fields for each in shown):
                declared = self.tools.get(tool)  # none in a pack with that fault, of which the rest is read too
                if declared and declared.effect == "read" and set(declared.parameters) == set(entity.key):
                    ways.append(ReadTool(tool, {part: part for part in entity.key}))
        return ways

    def arguments(self, tools: Sequence[str]) -> frozenset[str]:
        """Declared argument names of the given tools."""
        return frozenset(name for tool in tools if tool in self.tools for name in self.tools[tool].parameters)

    def texts(self) -> frozenset[str]:
        """Arguments that every tool that takes them declares as text."""
        declared = [(name, spec) for tool in self.tools.values() for name, spec in tool.parameters.items()]
        others = {
            name for name, spec in declared if not isinstance(spec, dict) or cast(Any, spec).get("type") != "string"
        }
        return frozenset(name for name, _ in declared) - others

    def has_expiring(self) -> bool:
        """Whether anything grows old: then it matters when things happened."""
        return any(entity.fresh_for is not None for entity in self.entities.values())

    def declared(self) -> dict[str, frozenset[str]]:
        """The declared arguments of each tool."""
        return {name: frozenset(tool.parameters) for name, tool in self.tools.items()}
