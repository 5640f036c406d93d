"""Where the things of a pack stand in a database of another shape, in the language of observations."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from bylaw.facts.observation import Observation
from bylaw.facts.path import PathScope, compile_each


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
