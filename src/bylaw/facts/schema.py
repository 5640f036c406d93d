"""A pack's compiled entities, observations, card facts and changes. `schema_reader` compiles them from YAML."""

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
    """The unknown facts that would be needed for the value."""
    fault: str = ""
    """Why the expression failed although all its facts are known. Empty if it did not fail."""


class CardFact(Struct, frozen=True):
    """A computed value, such as the price, that is shown on a tool's cards and in its sentences."""

    name: str
    code: str
    place: str
    schema: Mapping[str, Any]
    """How to show the value, with the keys `title`, `currency` and `unit`."""
    compute: Callable[[Mapping[str, Any], FactSource], Computed]
    reads: frozenset[str] = frozenset()
    """The fields that the expression reads, as `Entity.field`. If the entity is uncertain, all possible ones are
    listed.
    """
    unnamed: frozenset[str] = frozenset()
    """Entities that the expression looks up by a key that is not an argument of the call."""


Expression = Callable[[Mapping[str, Any]], Any]
"""A compiled expression over `args`, `result`, `item` and `old`. It returns NOTHING if a value that it needs is
unknown.
"""


class Change(Struct, frozen=True):
    """A change that a write makes to entities of one kind: the fields that become stale, and their new values."""

    entity: str
    each: ItemPath | None = None
    key: tuple[tuple[Getter, ...], ...] | None = None
    """The key of the changed entity. None if the arguments name none, so that any entity of that kind may change."""
    fields: frozenset[str] | None = None
    """The changed fields. None means all fields and whether the entity exists."""
    by_result: bool = False
    """Whether the result names the changed entities. Until it arrives, any entity of that kind may change."""
    is_through: bool = False
    """Whether a field of another entity identifies the entity. If that field is unknown, any entity may change."""
    when: Expression | None = None
    """The condition under which the entity changes. None means always."""
    set: dict[str, tuple[str, Getter]] = {}
    """For each field, an operation (`is`, `plus`, `minus`, `append`, `extend`, `remove`, `remove by`) and a value."""
    to: dict[str, Expression] = {}
    delete: bool = False

    def may_happen(self, args: Mapping[str, Any], result: Any = NOTHING) -> bool:
        item = args if self.each is None else NOTHING
        return self.applies(PathScope(item, result, args)) is not False

    def applies(self, scope: PathScope, old: Mapping[str, Any] = {}) -> bool | None:
        """Whether an entity with the field values `old` changes. None if this is unknown."""
        if self.when is None:
            return True
        found = self.when(names_in(scope, old))
        return found if isinstance(found, bool) else None

    def scopes(self, args: Any, result: Any, find: Finder | None = None) -> list[PathScope]:
        """Return, for each entity that changes, the scope in which its paths start."""
        items = [(args, NOTHING)] if self.each is None else self.each(PathScope(args, result, args))
        return [PathScope(item, result, args, name, find) for item, name in items]

    def key_in(self, scope: PathScope) -> Key | None:
        """Return the key of the changed entity, or None if any entity may be affected.

        If part of the key is missing, the key is `(NOTHING,)`.
        """
        if self.key is None:
            return None
        parts: list[Any] = []
        for places in self.key:
            found = (part for place in places if (part := place(scope)) is not NOTHING and part is not None)
            part = next(found, NOTHING)
            if names_several(part):
                return None
            # `{"id": false}` means that there is no entity.
            parts.append(part if can_be_key(part) and part is not False else NOTHING)
        return (NOTHING,) if NOTHING in parts else key_of(parts)

    def touched(
        self, args: Mapping[str, Any], result: Any = NOTHING, find: Finder | None = None
    ) -> Iterator[Key | None]:
        """Yield the keys of the changed entities. None means that any entity of that kind may change."""
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
    """Return the fields of a record, converted to their types. Fields that cannot be converted are left out."""
    known: dict[str, Any] = {}
    for name, value in record.items():
        if name in entity.fields and value is not UNSEEN:
            with suppress(ValueError, TypeError, ArithmeticError):
                read = coerce(entity.fields[name], value)
                if read is not UNSEEN:
                    known[name] = read
    return known


def moved(field: Field, before: Any, how: str, value: Any) -> Any:
    """Return the value of a field after a change. NOTHING if the old value or the operand is unknown."""
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
    """Return the value of a field after a write with these arguments and this result. NOTHING if unknown."""
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
                # A ground-truth database contains the current values of other entities. The agent may have seen them at
                # another time.
                after = moved(field, current, how, value(PathScope(scope.item, scope.result, scope.args, scope.key)))
            if after is NOTHING:
                return NOTHING
    return after


class Stored(Struct, frozen=True):
    """Where a ground-truth database stores an entity's records: a table or a path in a document, and a path in each
    item.
    """

    observation: Observation
    table: str = ""
    of: str = ""
    """The path to what contains the items. Set if the items need a value from it."""
    each: str = ""
    list: str = ""
    """The entity's field that collects, as a list, all items with the entity's key. Set if items are no entities
    themselves.
    """

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
        """Return `{arguments, value, step}` for each call with arguments equal to `match`, oldest first."""
        ...


FieldSearch = Callable[[Key, ShownResults], Any]
"""Finds the value of a field in the results that were shown. Returns UNSEEN if it is not found."""


class Schema(Struct, frozen=True):
    """The facts that a pack's tools show or change."""

    entities: dict[str, Entity]
    tools: dict[str, Tool]
    shows: dict[str, dict[str, tuple[Observation, ...]]]
    """How results show an entity, keyed by tool and entity."""
    changes: dict[str, tuple[Change, ...]]
    effects: dict[str, tuple[Change, ...]]
    searches: dict[tuple[str, str], FieldSearch] = field(default_factory=dict[tuple[str, str], FieldSearch])
    """Look-up functions by entity and field, used if no observation shows the field."""
    stored: dict[str, tuple[Stored, ...]] = field(default_factory=dict[str, tuple[Stored, ...]])
    """Where a ground-truth database with a different structure stores an entity's records."""
    called: Mapping[str, Tool] = {}
    """The tools to which a call can be made, without the actions."""
    takes_actions: bool = False
    """Whether actions may appear as calls, as in a pack's test cases."""
    writing: frozenset[str] = frozenset()
    ways: Mapping[tuple[str, str], Sequence[ReadTool]] = {}
    """For each entity and field, the look-ups by key that may show it. The entity's own `read` comes first."""
    is_told: bool = False
    """Whether any fact is stated by the user."""
    zone: tzinfo | None = None
    """The time zone of all times. None means UTC."""
    card_facts: Mapping[str, Sequence[CardFact]] = {}
    """For each tool, the computed facts on its cards and in its sentences."""
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
                declared = self.tools.get(tool)  # None in a pack with errors, which is still read
                if declared and declared.effect == "read" and set(declared.parameters) == set(entity.key):
                    ways.append(ReadTool(tool, {part: part for part in entity.key}))
        return ways

    def may_write(self, name: str) -> bool:
        """Whether calls to the tool may change something, as the pack declares. False for an action, which cannot be
        called.
        """
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
        """Return the names of arguments that are declared as text by every tool that has them."""
        declared = [(name, spec) for tool in self.tools.values() for name, spec in tool.parameters.items()]
        others = {
            name for name, spec in declared if not isinstance(spec, dict) or cast(Any, spec).get("type") != "string"
        }
        return frozenset(name for name, _ in declared) - others

    def has_expiring(self) -> bool:
        """Whether any facts expire. If they do, the times of events matter."""
        return any(entity.fresh_for is not None for entity in self.entities.values())

    def declared(self) -> dict[str, frozenset[str]]:
        return {name: frozenset(tool.parameters) for name, tool in self.tools.items()}
