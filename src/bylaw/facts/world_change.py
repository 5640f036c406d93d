"""What an accepted write makes of a field, by the effects that its pack declares."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from bylaw.facts.entity import UNDECLARED, Entity, Field, Key
from bylaw.facts.path import NOTHING, Getter, PathScope
from bylaw.facts.value import coerce, key_of, names_several


class WorldChange(Struct, frozen=True):
    """How an accepted write moves one thing."""

    entity: str
    each: Callable[[PathScope], Sequence[tuple[Any, Any]]] | None
    key: tuple[tuple[Getter, ...], ...]
    set: dict[str, tuple[str, Getter]]
    """Field -> (`is`, `plus`, `minus`, `append` or `of Entity.field`, value or key)."""
    delete: bool = False

    def scopes(self, args: Any, result: Any) -> list[PathScope]:
        """Where its paths start, for each thing that it moves."""
        whole = PathScope(args, result, args)
        items = [(args, NOTHING)] if self.each is None else self.each(whole)
        return [PathScope(item, result, args, name) for item, name in items]

    def key_in(self, scope: PathScope) -> Key | None:
        """Which thing moves: NOTHING among the parts where nothing says so, None where any of the kind may."""
        parts = [
            next((part for place in places if (part := place(scope)) is not NOTHING), NOTHING) for places in self.key
        ]
        if any(map(names_several, parts)):
            return None
        return (NOTHING,) if NOTHING in parts else key_of(parts)


def moved(field: Field, before: Any, how: str, value: Any) -> Any:
    """The value after an effect; NOTHING where what it was, or what moves it, is not known."""
    if how == "is":
        return value
    if before is NOTHING and field.default is not UNDECLARED:
        before = field.default
    if before is NOTHING or value is NOTHING:
        return NOTHING
    try:
        match how:
            case "plus":
                return coerce(field, before or 0) + coerce(field, value)
            case "minus":
                return coerce(field, before or 0) - coerce(field, value)
            case "append":
                return [*coerce(field, before or []), value]
            case _:
                return NOTHING
    except (ValueError, TypeError, ArithmeticError):
        return NOTHING


def effect_on(effects: Sequence[WorldChange], args: Any, entity: Entity, key: Key, field: Field, before: Any) -> Any:
    """What a write with these arguments makes of a field, before its result is there; NOTHING where nobody can say."""
    after: Any = NOTHING
    for effect in effects:
        if effect.entity != entity.name:
            continue
        for scope in effect.scopes(args, NOTHING):
            named = effect.key_in(scope)
            if named is None or NOTHING in named:
                return NOTHING
            if named != key:
                continue
            if effect.delete or field.name not in effect.set:
                return NOTHING
            how, value = effect.set[field.name]
            after = moved(field, before if after is NOTHING else after, how, value(scope))
    return after
