"""The first few of many, whatever the order they come in."""

import heapq
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Firsts(Generic[T]):
    """Keeps the items whose order is lowest, at most `most` of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._heap: list[_Last[T]] = []

    def add(self, order: Any, item: T) -> None:
        """Keep `item` if it is among the first."""
        if len(self._heap) < self._most:
            heapq.heappush(self._heap, _Last(order, item))
        elif order < self._heap[0].order:
            heapq.heapreplace(self._heap, _Last(order, item))

    def items(self) -> tuple[T, ...]:
        """The first ones, in order."""
        return tuple(last.item for last in sorted(self._heap, reverse=True))


class _Last(Generic[T]):
    """An item ordered backwards, so that a heap gives up the last one first."""

    __slots__ = ("item", "order")

    def __init__(self, order: Any, item: T) -> None:
        self.order = order
        self.item = item

    def __lt__(self, other: "_Last[T]") -> bool:
        return self.order > other.order
