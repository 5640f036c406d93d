"""Links writes to earlier look-ups that share a value with them.

A look-up is *keyed* by a value of the write if the value was its argument. It *shows* a value that is a field or key of
a record in its result. It *mentions* a value in a list of names or in running text. It is *chained* if its argument
came from a keyed or showing look-up.
"""

import re
from bisect import insort
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from bylaw.facts.result_places import leaf_values
from bylaw.text.folding import occurs
from bylaw.text.identifier import is_identifier, is_prose

T = TypeVar("T")


class Firsts(Generic[T]):
    """Keeps the `most` items that come first in order."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[tuple[Any, T]] = []

    def add(self, order: Any, item: T) -> None:
        if len(self._kept) < self._most or order < self._kept[-1][0]:
            insort(self._kept, (order, item), key=itemgetter(0))
            del self._kept[self._most :]

    def items(self) -> tuple[T, ...]:
        return tuple(item for _, item in self._kept)


Bond = Literal["keyed", "shows", "mentions"]
ValueCover = frozenset[tuple[str, Bond]]
"""The tools linked to one value, each with its strongest link."""

_OCCURRENCES = 20
_IS_KEY = re.compile(r"[\"'\\]{0,3}\s{0,2}:(?!//)")
# A time of day is not a field: `10:13` does not show 13.
_IS_FIELD = re.compile(r"(?:[^\d\s]\s?:|\d:\s)\s{0,2}[\"'\\]{0,3}$")
_RANK: dict[Bond, int] = {"mentions": 0, "shows": 1, "keyed": 2}


class Preparedness(Struct, frozen=True):
    """How a write was prepared. Writes prepared in the same way are equal."""

    covers: frozenset[tuple[str, ValueCover]]
    """For each argument path, the links of each of its values."""
    chained: frozenset[str]


class EarlierCall:
    """An earlier call with its result."""

    __slots__ = ("_keys", "arguments", "text", "tool")

    def __init__(self, tool: str, arguments: dict[str, object], text: str) -> None:
        self.tool = tool
        self.arguments = arguments
        self.text = text
        self._keys: frozenset[str] | None = None

    @property
    def keys(self) -> frozenset[str]:
        """Return the arguments that may be identifiers."""
        if self._keys is None:
            self._keys = _keys(self.arguments)
        return self._keys


def names(arguments: dict[str, object]) -> Iterable[tuple[str, str]]:
    """Yield the arguments that may be identifiers, with their paths. Dates, amounts and flags are left out."""
    for path, value in leaf_values(arguments):
        if (name := _name(path, value)) is not None:
            yield path, name


def _name(path: str, value: object) -> str | None:
    if isinstance(value, str):
        is_word = len(value) >= 2 and not value[0].isdigit() and value.lower() not in _WORDS
        return value if is_word or is_identifier(value) or (value.isdigit() and is_id(path)) else None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and is_id(path) else None


def _keys(arguments: dict[str, object]) -> frozenset[str]:
    """Return the identifiers among a look-up's arguments. Nearly all look-ups have few and flat arguments."""
    if any(
        isinstance(value, (dict, list)) or (isinstance(value, str) and is_prose(value)) for value in arguments.values()
    ):
        return frozenset(value for _, value in names(arguments))
    found = (_name(path, value) for path, value in arguments.items())
    return frozenset(name for name in found if name is not None)


_WORDS = {"yes", "no", "true", "false", "none", "null", "all", "any", "asc", "desc"}


def is_id(path: str) -> bool:
    """Whether an argument's name says that it is an id, a number or a code."""
    last = path.rpartition(".")[2].rstrip("[]").lower().rstrip("_s")
    return last == "id" or last.endswith(("_id", "number", "_no", "code"))


def link(arguments: dict[str, object], lookups: Sequence[EarlierCall]) -> Preparedness:
    """Return how the look-ups so far are linked to a call with these arguments."""
    covers: set[tuple[str, ValueCover]] = set()
    near: dict[int, EarlierCall] = {}
    for path, value in dict.fromkeys(names(arguments)):
        strongest: dict[str, Bond] = {}
        for position, lookup in enumerate(lookups):
            bond = _bond(path, value, lookup)
            if bond is None:
                continue
            if bond != "mentions":
                near[position] = lookup
            if _RANK[bond] > _RANK.get(strongest.get(lookup.tool, "mentions"), 0) or lookup.tool not in strongest:
                strongest[lookup.tool] = bond
        covers.add((path, frozenset(strongest.items())))
    return Preparedness(frozenset(covers), _chained(near, lookups))


def _bond(path: str, value: str, lookup: EarlierCall) -> Bond | None:
    if value in lookup.keys:
        return "keyed"
    if not is_identifier(value) and not (value.isdigit() and is_id(path)):
        return None
    return stance(value, lookup.text)


def stance(value: str, text: str) -> Bond | None:
    """Return how `value` occurs in a result: as a field or key of a record, in a list or running text, or not at all.

    Only neighbouring characters are examined, so that results need not be decoded. This serves guesses, never verdicts.
    """
    here = occurs(value, text)
    if here < 0:
        return None
    for _ in range(_OCCURRENCES):
        end = here + len(value)
        if _IS_KEY.match(text, end) or _IS_FIELD.search(text, max(0, here - 8), here):
            return "shows"
        here = occurs(value, text, end)
        if here < 0:
            break
    return "mentions"


def _chained(near: dict[int, EarlierCall], lookups: Sequence[EarlierCall]) -> frozenset[str]:
    """Return tools whose calls used a value from a linked look-up's result."""
    found: set[str] = set()
    for position, lookup in enumerate(lookups):
        if position in near or lookup.tool in found:
            continue
        if any(occurs(key, other.text) >= 0 for key in lookup.keys for other in near.values()):
            found.add(lookup.tool)
    return frozenset(found)
