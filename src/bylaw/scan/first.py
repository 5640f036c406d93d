"""The first few of many, whatever the order they come in."""

from bisect import insort
from operator import itemgetter
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Firsts(Generic[T]):
    """Keeps the items whose order is lowest, at most `most` of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[tuple[Any, T]] = []

    def add(self, order: Any, item: T) -> None:
        """Keep `item` if it is among the first."""
        if len(self._kept) < self._most or order < self._kept[-1][0]:
            insort(self._kept, (order, item), key=itemgetter(0))
            del self._kept[self._most :]

    def items(self) -> tuple[T, ...]:
        return tuple(item for _, item in self._kept)
