"""The names of things among what was read on a path: what a record refers to exists."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, cast

from bylaw.facts.entity import Fact, Key

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
        for value in islice(read.values(), self._looked_through, None):
            if value.__class__ is str:
                self._names.add(value)
            elif value.__class__ is list or value.__class__ is tuple:
                self._names.update(name for name in cast("Sequence[Any]", value) if isinstance(name, str))
        self._looked_through = len(read)
        return key[0] in self._names
