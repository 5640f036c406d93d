"""The declared effects of an accepted write on fields."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from msgspec import Struct, field

from bylaw.facts.entity import UNDECLARED, UNSEEN, Entity, Field, Key
from bylaw.facts.observation import NOTHING, Finder, Getter, PathScope
from bylaw.facts.value import amount_in, coerce, key_of, names_several, shared_currency

Expression = Callable[[Mapping[str, Any]], Any]
"""A compiled expression over `args`, `result`, `item` and `old`; NOTHING if a value it needs is unknown."""


class WorldChange(Struct, frozen=True):
    """How an accepted write changes one entity."""

    entity: str
    each: Callable[[PathScope], Sequence[tuple[Any, Any]]] | None
    key: tuple[tuple[Getter, ...], ...]
    set: dict[str, tuple[str, Getter]]
    """Field -> (`is`, `plus`, `minus`, `append`, `extend`, `remove` or `remove by field`, value)."""
    delete: bool = False
    when: Expression | None = None
    """Whether the entity changes at all."""
    to: dict[str, Expression] = field(default_factory=dict[str, Expression])
    """By field, the new value."""
    is_through: bool = False
    """Whether another entity names the one that changes; if that is unknown, it may be any."""

    def fields(self) -> frozenset[str]:
        """All fields it may set."""
        return frozenset((*self.set, *self.to))

    def applies(self, scope: PathScope, old: Mapping[str, Any]) -> bool | None:
        """Whether it changes an entity with the fields `old`; None if unknown."""
        if self.when is None:
            return True
        found = self.when(names_in(scope, old))
        return found if isinstance(found, bool) else None

    def scopes(self, args: Any, result: Any, find: Finder | None = None) -> list[PathScope]:
        """The start of its paths for each affected entity."""
        whole = PathScope(args, result, args)
        items = [(args, NOTHING)] if self.each is None else self.each(whole)
        return [PathScope(item, result, args, name, find) for item, name in items]

    def key_in(self, scope: PathScope) -> Key | None:
        """The key of the affected entity. A part is NOTHING if it is not given; the result is None if any entity may be
        affected.
        """
        parts = [
            next((part for place in places if (part := place(scope)) is not NOTHING), NOTHING) for places in self.key
        ]
        if any(map(names_several, parts)):
            return None
        return (NOTHING,) if NOTHING in parts else key_of(parts)


def names_in(scope: PathScope, old: Mapping[str, Any]) -> dict[str, Any]:
    """The names available to an effect's expression."""
    return {"args": scope.args, "result": scope.result, "item": scope.item, "old": old}


def typed(entity: Entity, record: Mapping[str, Any]) -> dict[str, Any]:
    """The typed fields of a record, without those that do not convert."""
    known: dict[str, Any] = {}
    for name, value in record.items():
        if name in entity.fields and value is not UNSEEN:
            with suppress(ValueError, TypeError, ArithmeticError):
                read = coerce(entity.fields[name], value)
                if read is not UNSEEN:
                    known[name] = read
    return known


def moved(field: Field, before: Any, how: str, value: Any) -> Any:
    """The value after an effect; NOTHING if the old value or the operand is unknown."""
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
    effects: Sequence[WorldChange],
    args: Any,
    entity: Entity,
    key: Key,
    field: Field,
    before: Any,
    result: Any = NOTHING,
    find: Finder | None = None,
) -> Any:
    """The value of a field after a write, from its arguments and, once known, its result; NOTHING if it cannot be
    determined.
    """
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
            if applies is None or effect.delete or field.name not in effect.fields():
                return NOTHING
            if field.name in effect.to:
                after = effect.to[field.name](names_in(scope, old))
            else:
                how, value = effect.set[field.name]
                # A world knows other entities' current values; an agent may have seen them at another time.
                after = moved(field, current, how, value(PathScope(scope.item, scope.result, scope.args, scope.key)))
            if after is NOTHING:
                return NOTHING
    return after
