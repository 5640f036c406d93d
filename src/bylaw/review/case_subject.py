"""Finds the entity that a case describes without giving its key.

`facts: {Order: {status: sent}, Customer: {gold: true}}` needs no ids: the order is the one the call's `order_id` names,
and the customer is that order's customer, unless the case says otherwise.
"""

from collections.abc import Mapping
from typing import Any, cast

from bylaw.facts.entity import Entity, Key
from bylaw.facts.value import key_of
from bylaw.policy.case import WrittenCase


class Subjects:
    """The entities a case declares without a key, and the call's arguments completed with their keys."""

    def __init__(
        self,
        body: WrittenCase,
        arguments: Mapping[str, Any],
        parameters: Mapping[str, Any],
        entities: Mapping[str, Entity],
    ) -> None:
        named = [entities[name] for name in (*body.facts, *(body.world or {})) if name in entities]
        parts = dict.fromkeys(part for entity in named for part in entity.key)
        told = _told(body)
        self._keys = {part: arguments.get(part, told.get(part, _key_for(parameters.get(part), part))) for part in parts}
        filled = {part: value for part, value in self._keys.items() if part in parameters}
        self.arguments: dict[str, Any] = {**filled, **arguments}

    def key_of(self, entity: Entity) -> Key:
        """The key of an entity declared without one."""
        return key_of([self._keys[part] for part in entity.key])

    def spoken_of_by(self, entity: Entity) -> dict[str, Any]:
        """The fields of an entity that refer to other entities of the case, unless the case sets them."""
        return {part: value for part, value in self._keys.items() if part in entity.fields and part not in entity.key}


def _told(body: WrittenCase) -> dict[str, Any]:
    """Values in the case that may be keys: `Caller: {customer_id: C1}` refers to customer C1. Conflicting values are
    ignored.
    """
    found: dict[str, set[Any]] = {}
    for things in (body.facts, body.world or {}):
        for fields in things.values():
            for name, value in (fields or {}).items():
                if isinstance(value, str | int):
                    found.setdefault(name, set()).add(value)
    return {name: values.pop() for name, values in found.items() if len(values) == 1}


def _key_for(schema: Any, name: str) -> str | int:
    """A key that cannot be mistaken for a real value: the entity's name, or a number if the tool takes numbers."""
    kind = cast(dict[str, Any], schema).get("type") if isinstance(schema, dict) else None
    return 1 if kind in ("integer", "number") else name
