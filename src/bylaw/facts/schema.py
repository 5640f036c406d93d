"""The compiled form of a pack's entities, observations and changes; `schema_reader` builds it from YAML."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, Protocol, cast

from msgspec import Struct, field
from msgspec.structs import force_setattr

from bylaw.facts.card_fact import CardFact
from bylaw.facts.entity import Entity, Key, ReadTool
from bylaw.facts.observation import Change, Observation, PathScope, compile_each
from bylaw.facts.world_change import WorldChange
from bylaw.policy.tool import Tool

if TYPE_CHECKING:
    from bylaw.actions.action import Actions


class Stored(Struct, frozen=True):
    """One location of an entity's records: a table, or a path in a document, and a path within each item."""

    observation: Observation
    table: str = ""
    of: str = ""
    """The path to the item's container, if items need a value from it."""
    each: str = ""
    list: str = ""
    """The field under which items with the same key form a list, if they are not entities themselves."""

    def scopes(self, data: Any) -> Iterator[PathScope]:
        """Every item, with `$of` set to its container."""
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
    """The results that an agent has been shown."""

    def results(self, tool: str, match: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """Records `{arguments, value, step}` of the calls of `tool` with arguments equal to `match`, oldest first."""
        ...


FieldSearch = Callable[[Key, ShownResults], Any]
"""Finds a field's value in the results shown, or returns UNSEEN."""


class Schema(Struct, frozen=True):
    """The facts that a pack's tools show and change."""

    entities: dict[str, Entity]
    tools: dict[str, Tool]
    shows: dict[str, dict[str, tuple[Observation, ...]]]
    """By tool and entity, how its results show the entity."""
    changes: dict[str, tuple[Change, ...]]
    effects: dict[str, tuple[WorldChange, ...]]
    searches: dict[tuple[str, str], FieldSearch] = field(default_factory=dict[tuple[str, str], FieldSearch])
    """Look-up functions by entity and field, used if no observation shows the field."""
    stored: dict[str, tuple[Stored, ...]] = field(default_factory=dict[str, tuple[Stored, ...]])
    """Where an entity's records are in a database with a different structure."""
    called: Mapping[str, Tool] = {}
    """The tools without the actions: what a call can be of."""
    takes_actions: bool = False
    """Whether an action may be told as if it were a call, as a case of a pack does."""
    writing: frozenset[str] = frozenset()
    """The write tools."""
    ways: Mapping[tuple[str, str], Sequence[ReadTool]] = {}
    """By entity and field, the look-ups by the entity's own key that may show it, its declared `read` first."""
    is_told: bool = False
    """Whether any fact comes from the user's words."""
    zone: tzinfo | None = None
    """The time zone of all times; None for UTC."""
    card_facts: Mapping[str, Sequence[CardFact]] = {}
    """By tool, the facts its cards and sentences show besides the arguments."""
    actions: "Actions | None" = None
    """What calls of generic tools perform, if the pack has actions."""

    def __post_init__(self) -> None:
        force_setattr(self, "writing", frozenset(name for name, tool in self.tools.items() if tool.effect == "write"))
        called = {name: tool for name, tool in self.tools.items() if self.takes_actions or not tool.of}
        force_setattr(self, "called", called if len(called) < len(self.tools) else self.tools)
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
                declared = self.tools.get(tool)  # None in a faulty pack, the rest of which is read too.
                if declared and declared.effect == "read" and set(declared.parameters) == set(entity.key):
                    ways.append(ReadTool(tool, {part: part for part in entity.key}))
        return ways

    def may_write(self, name: str) -> bool:
        """Whether calls of a tool may change something, for all that is declared: an action is no tool to call."""
        tool = self.called.get(name)
        return tool is None or tool.effect == "write" or self.has_actions(name)

    @property
    def deeds(self) -> Mapping[str, Tool]:
        """What calls come to: the actions, and the tools that have none."""
        actions = self.actions
        return self.tools if actions is None else {k: v for k, v in self.tools.items() if k not in actions.by_tool}

    def has_actions(self, tool: str) -> bool:
        """Whether calls of a tool are judged as the actions they perform."""
        return self.actions is not None and tool in self.actions.by_tool

    def arguments(self, tools: Sequence[str]) -> frozenset[str]:
        """Declared argument names of the given tools."""
        return frozenset(name for tool in tools if tool in self.tools for name in self.tools[tool].parameters)

    def texts(self) -> frozenset[str]:
        """Arguments declared as text in every tool that has them."""
        declared = [(name, spec) for tool in self.tools.values() for name, spec in tool.parameters.items()]
        others = {
            name for name, spec in declared if not isinstance(spec, dict) or cast(Any, spec).get("type") != "string"
        }
        return frozenset(name for name, _ in declared) - others

    def has_expiring(self) -> bool:
        """Whether any fact expires, so that the times of events matter."""
        return any(entity.fresh_for is not None for entity in self.entities.values())

    def declared(self) -> dict[str, frozenset[str]]:
        """The declared arguments of each tool."""
        return {name: frozenset(tool.parameters) for name, tool in self.tools.items()}
