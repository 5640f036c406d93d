"""What stands in a guard for a field whose value is not known: an Unknown that knows what values the field may have.

Its thing exists where something that was read on the path names it.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, cast

from bylaw.facts.entity import Fact, Field, Key, Origin
from bylaw.facts.unknown import BranchDecider, Unknown, UnknownBool
from bylaw.facts.variable import DAY, EITHER, TRUE, Variable, words_of


def unknown_fact(
    decider: BranchDecider, field: Field, name: str, needs: Mapping[Fact, Origin], thing: Any = None
) -> Unknown:
    """The Unknown that stands for a field whose value is not known."""
    match field.type:
        case "boolean":
            whose = (thing[0], thing[1]) if field.name == "exists" and thing is not None else None
            return UnknownBool(decider, Variable(name, EITHER, None, needs, "boolean", whose), TRUE)
        case "enum":
            return Unknown(decider, name, needs, "text", words=words_of(field.values))
        case "string":
            return Unknown(decider, name, needs, "text")
        case "integer":
            return Unknown(decider, name, needs, "number", step=1)
        case "number":
            return Unknown(decider, name, needs, "number", exact=False)
        case "money":
            return Unknown(decider, name, needs, "number")
        case "date":
            return Unknown(decider, name, needs, "time", step=DAY)
        case "datetime":
            return Unknown(decider, name, needs, "time", step=1)
        case "list":
            return Unknown(decider, name, needs, "list")
        case "object":
            return Unknown(decider, name, needs, "record")


DIGITS = frozenset("123456789")


class References:
    """What one path has read, looked through for names as it grows."""

    __slots__ = ("_looked_through", "_names", "_read")

    def __init__(self) -> None:
        self._read: Mapping[Fact, Any] = {}
        self._names: set[str] = set()
        self._looked_through = 0

    def name(self, key: Key, read: Mapping[Fact, Any]) -> bool:
        """Whether something `read` on this path names the thing.

        A word without a digit, or a 0, may say that there is none (`none`, `n/a`), so it names nothing here.
        """
        if len(key) != 1 or DIGITS.isdisjoint(str(key[0])):
            return False
        if self._read is not read:
            self._read, self._names, self._looked_through = read, set(), 0
        for value in islice(read.values(), self._looked_through, None) if self._looked_through < len(read) else ():
            if value.__class__ is str:
                self._names.add(value)
            elif value.__class__ is list or value.__class__ is tuple:
                self._names.update(name for name in cast("Sequence[Any]", value) if isinstance(name, str))
        self._looked_through = len(read)
        return key[0] in self._names
