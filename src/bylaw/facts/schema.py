"""A pack's compiled entities, observations, card facts and changes. `schema_reader` builds them from YAML."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, Protocol, cast

from msgspec import Struct, field
from msgspec.structs import force_setattr

from bylaw.facts.entity import UNDECLARED, UNSEEN, Entity, Fact, FactSource, Field, Key, ReadTool
from bylaw.facts.observation import NOTHING, Finder, Getter, ItemPath, Observation, PathScope, can_be_key
from bylaw.facts.value import amount_in, coerce, key_of, names_several, shared_currency
from bylaw.policy.tool import Tool

if TYPE_CHECKING:
    from bylaw.actions.action import Actions


class Computed(Struct, frozen=True):
    """The value of an expression, or the reason why it has none."""

    value: Any = None
    lacking: tuple[Fact, ...] = ()
    """The unknown facts on which the value depends."""
    fault: str = ""
    """Why the expression failed even though its facts are known."""


class CardFact(Struct, frozen=True):
    """A value, such as the price, that is shown on a tool's cards and in its sentences."""

    name: str
    code: str
    place: str
    schema: Mapping[str, Any]
    """How to format the value, with the keys `title`, `currency` and `unit`."""
    compute: Callable[[Mapping[str, Any], FactSource], Computed]
    reads: frozenset[str] = frozenset()
    """The fields that the expression reads, as `Entity.field`. If unsure of the entity, each one is listed."""
    unnamed: frozenset[str] = frozenset()
    """Entities that the expression looks up by keys that are not arguments of the call."""


Expression = Callable[[Mapping[str, Any]], Any]
"""A compiled expression over `args`, `result`, `item` and `old`. It returns NOTHING if a required value is unknown."""


class Change(Struct, frozen=True):
    """A change that a write makes to one kind of entity: the fields that become stale, and their values in a world."""

    entity: str
    each: ItemPath | None = None
    key: tuple[tuple[Getter, ...], ...] | None = None
    """The key of the changed entity. None means all entities of that kind, because the arguments do not name one."""
    fields: frozenset[str] | None = None
    """The changed fields. None means all fields, including whether the entity exists."""
    by_result: bool = False
    """Whether the result names the entities. Until it arrives, the change applies to all entities of that kind."""
    is_through: bool = False
    """Whether another entity's field identifies the entity. If that field is unknown, any entity may change."""
    when: Expression | None = None
    """The condition under which the write changes the entity."""
    set: dict[str, tuple[str, Getter]] = {}
    """For each field, an operation (`is`, `plus`, `minus`, `append`, `extend`, `remove`, `remove by`) and a value."""
    to: dict[str, Expression] = {}
    delete: bool = False

    def may_happen(self, args: Mapping[str, Any], result: Any = NOTHING) -> bool:
        return self.applies(PathScope(args, result, args)) is not False

    def applies(self, scope: PathScope, old: Mapping[str, Any] = {}) -> bool | None:
        """Whether an entity with the fields `old` changes. None if unknown."""
        if self.when is None:
            return True
        found = self.when(names_in(scope, old))
        return found if isinstance(found, bool) else None

    def scopes(self, args: Any, result: Any, find: Finder | None = None) -> list[PathScope]:
        """Return, for each affected entity, the scope from which paths start."""
        items = [(args, NOTHING)] if self.each is None else self.each(PathScope(args, result, args))
        return [PathScope(item, result, args, name, find) for item, name in items]

    def key_in(self, scope: PathScope) -> Key | None:
        """Return the key of the affected entity. Missing parts are NOTHING. None means any entity."""
        if self.key is None:
            return None
        parts: list[Any] = []
        for places in self.key:
            found = (part for place in places if (part := place(scope)) is not NOTHING and part is not None)
            part = next(found, NOTHING)
            if names_several(part):
                return None
            # `{"id": false}` means that the entity does not exist.
            parts.append(part if can_be_key(part) and part is not False else NOTHING)
        return (NOTHING,) if NOTHING in parts else key_of(parts)

    def touched(
        self, args: Mapping[str, Any], result: Any = NOTHING, find: Finder | None = None
    ) -> Iterator[Key | None]:
        """Yield the keys of the changed entities. A key of None means all entities of that kind."""
        if self.key is None or (self.each is not None and self.each.is_misfit(PathScope(args, result, args))):
            yield None
            return
        for scope in self.scopes(args, result, find):
            if self.applies(scope) is not False:
                key = self.key_in(scope)
                yield None if key is None or NOTHING in key else key


def names_in(scope: PathScope, old: Mapping[str, Any]) -> dict[str, Any]:
    return {"args": scope.args, "result": scope.result, "item": scope.item, "old": old}


def typed(entity: Entity, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the typed fields of a record. Fields that cannot be converted are left out."""
    known: dict[str, Any] = {}
    for name, value in record.items():
        if name in entity.fields and value is not UNSEEN:
            with suppress(ValueError, TypeError, ArithmeticError):
                read = coerce(entity.fields[name], value)
                if read is not UNSEEN:
                    known[name] = read
    return known


def moved(field: Field, before: Any, how: str, value: Any) -> Any:
    """Return the value of a field after an effect. NOTHING if the old value or the operand is unknown."""
    if how == "is":
        return value
    if before is NOTHING and field.default is not UNDECLARED:
        before = field.default
    if before is NOTHING or before is UNSEEN or value is NOTHING:
        return NOTHING
    try:
        match how:
            case "plus":
                held, more = coerce(field, before or 0), coerce(field, value)
                return amount_in(held + more, shared_currency(held, more))
            case "minus":
                held, less = coerce(field, before or 0), coerce(field, value)
                return amount_in(held - less, shared_currency(held, less))
            case "append":
                return [*coerce(field, before or []), value]
            case "extend":
                return [*coerce(field, before or []), *_listed(value)]
            case "remove":
                gone = _listed(value)
                return [item for item in coerce(field, before or []) if item not in gone]
            case _ if how.startswith("remove by "):
                gone, part = _listed(value), how.removeprefix("remove by ")
                items: list[Any] = coerce(field, before or [])
                return [item for item in items if not (isinstance(item, dict) and cast(Any, item).get(part) in gone)]
            case _:
                return NOTHING
    except (ValueError, TypeError, ArithmeticError):
        return NOTHING


def _listed(value: Any) -> list[Any]:
    return list(cast("list[Any]", value)) if isinstance(value, list | tuple) else [value]


def effect_on(
    effects: Sequence[Change],
    args: Any,
    entity: Entity,
    key: Key,
    field: Field,
    before: Any,
    result: Any = NOTHING,
    find: Finder | None = None,
) -> Any:
    """Return a field's value after a write with these arguments and this result. NOTHING if unknown."""
    after: Any = NOTHING
    for effect in effects:
        if effect.entity != entity.name:
            continue
        for scope in effect.scopes(args, result, find):
            named = effect.key_in(scope)
            if named is None or NOTHING in named:
                return NOTHING
            if named != key:
                continue
            current = before if after is NOTHING else after
            old = typed(entity, {field.name: current})
            applies = effect.applies(scope, old)
            if applies is False:
                after = current
                continue
            if applies is None or effect.fields is None or field.name not in effect.fields:
                return NOTHING
            if field.name in effect.to:
                after = effect.to[field.name](names_in(scope, old))
            else:
                how, value = effect.set[field.name]
                # A world contains the current values of other entities. An agent may have seen those values at a
                # different time.
                after = moved(field, current, how, value(PathScope(scope.item, scope.result, scope.args, scope.key)))
            if after is NOTHING:
                return NOTHING
    return after


class Stored(Struct, frozen=True):
    """The location of an entity's records: a table or a path in a document, followed by a path within each item."""

    observation: Observation
    table: str = ""
    of: str = ""
    """The path to the container of the items, if they need a value from it."""
    each: str = ""
    list: str = ""
    """The field that collects all items with the same key in a list. Used if the items are not entities themselves."""

    def scopes(self, data: Any) -> Iterator[PathScope]:
        """Yield every item, with `$of` set to the item's container."""
        whole = PathScope(data, data, {})
        if not self.of:
            yield from (PathScope(item, data, {}, name) for item, name in _items(self.each, whole))
            return
        for outer, above in ItemPath(self.of)(whole):
            inside = PathScope(outer, data, {}, above)
            yield from (PathScope(item, data, outer, name) for item, name in _items(self.each, inside))


def _items(each: str, scope: PathScope) -> Sequence[tuple[Any, Any]]:
    return ItemPath(each)(scope) if each else [(scope.item, scope.key)]


class ShownResults(Protocol):
    def results(self, tool: str, match: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """Return `{arguments, value, step}` for each call whose arguments equal `match`, oldest first."""
        ...


FieldSearch = Callable[[Key, ShownResults], Any]
"""Finds a field's value in the results that were shown, or returns UNSEEN."""


class Schema(Struct, frozen=True):
    """The facts that a pack's tools show or change."""

    entities: dict[str, Entity]
    tools: dict[str, Tool]
    shows: dict[str, dict[str, tuple[Observation, ...]]]
    """The ways in which results show an entity, keyed by tool and entity."""
    changes: dict[str, tuple[Change, ...]]
    effects: dict[str, tuple[Change, ...]]
    searches: dict[tuple[str, str], FieldSearch] = field(default_factory=dict[tuple[str, str], FieldSearch])
    """Look-up functions, keyed by entity and field. They are used if no observation shows the field."""
    stored: dict[str, tuple[Stored, ...]] = field(default_factory=dict[str, tuple[Stored, ...]])
    """The places where a database with a different structure keeps an entity's records."""
    called: Mapping[str, Tool] = {}
    """The tools that a call can name, without the actions."""
    takes_actions: bool = False
    """Whether actions may appear as calls, as they do in a pack's cases."""
    writing: frozenset[str] = frozenset()
    ways: Mapping[tuple[str, str], Sequence[ReadTool]] = {}
    """For each entity and field: the look-ups by key that may show it, starting with the entity's `read`."""
    is_told: bool = False
    """Whether any facts come from the user's words."""
    zone: tzinfo | None = None
    """The time zone for all times. None means UTC."""
    card_facts: Mapping[str, Sequence[CardFact]] = {}
    """Additional facts that appear on each tool's cards and in its sentences."""
    actions: "Actions | None" = None

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
        """Whether a tool's calls may change something, as declared in the pack. An action cannot be called."""
        tool = self.called.get(name)
        has_actions = self.actions is not None and name in self.actions.by_tool
        return tool is None or tool.effect == "write" or has_actions

    @property
    def deeds(self) -> Mapping[str, Tool]:
        actions = self.actions
        return self.tools if actions is None else {k: v for k, v in self.tools.items() if k not in actions.by_tool}

    def arguments(self, tools: Sequence[str]) -> frozenset[str]:
        return frozenset(name for tool in tools if tool in self.tools for name in self.tools[tool].parameters)

    def texts(self) -> frozenset[str]:
        """Return the arguments that are declared as text by every tool that has them."""
        declared = [(name, spec) for tool in self.tools.values() for name, spec in tool.parameters.items()]
        others = {
            name for name, spec in declared if not isinstance(spec, dict) or cast(Any, spec).get("type") != "string"
        }
        return frozenset(name for name, _ in declared) - others

    def has_expiring(self) -> bool:
        """Whether any facts expire. If so, the times of events matter."""
        return any(entity.fresh_for is not None for entity in self.entities.values())

    def declared(self) -> dict[str, frozenset[str]]:
        return {name: frozenset(tool.parameters) for name, tool in self.tools.items()}
