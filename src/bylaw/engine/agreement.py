"""Whether what was seen is what is true, fact by fact.

A guard sees nothing but the facts it reads. Where all of them were known to the agent and the world gives the same
values, running it over the world takes the same path to the same end, so it need not be run.
"""

from typing import Any

import msgspec

from bylaw.facts.entity import ABSENT, EXISTS, Entity, Fact, FactSource, is_known
from bylaw.guard import Completion

_encode = msgspec.json.encode


class Agreement:
    """What one call's evidence and its world have in common; several guards of a call ask for the same facts."""

    def __init__(self, entities: dict[str, Entity], seen: FactSource, truth: FactSource) -> None:
        self._entities = entities
        self._seen = seen
        self._truth = truth
        self._agrees: dict[Fact, bool] = {}

    def is_same(self, completion: Completion) -> bool:
        """Whether the guard would go the same way over the world."""
        if not completion.whole:
            return False
        agrees = self._agrees
        for fact in completion.reads:
            known = agrees.get(fact)
            if known is None:
                known = agrees[fact] = self._agree(fact)
            if not known:
                return False
        return True

    def _agree(self, fact: Fact) -> bool:
        entity = self._entities[fact.entity]
        field = EXISTS if fact.field == "exists" else entity.fields[fact.field]
        if fact.key is None:
            return False
        try:
            return is_equal(self._seen.read(entity, fact.key, field), self._truth.read(entity, fact.key, field))
        except ValueError:
            return False


def is_equal(one: Any, other: Any) -> bool:
    """Whether no guard can tell the two values apart: `1`, `1.0` and `True` are three values, at any depth."""
    if not is_known(one) or not is_known(other):
        return False
    kind = one.__class__
    if kind is not other.__class__:
        return False
    if kind is list or kind is dict or kind is tuple:
        return one is other or (one == other and _encode(one) == _encode(other))
    return one is ABSENT or one == other
