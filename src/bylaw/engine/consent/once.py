"""An attribute that is found where it is first asked for."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class once(Generic[T]):
    """As `functools.cached_property`, without its lock: up to Python 3.11 that costs more than most of what is found.

    One conversation is read by one thread.
    """

    def __init__(self, find: Callable[[Any], T]) -> None:
        self._find = find
        self._name = find.__name__
        self.__doc__ = find.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> "once[T]": ...
    @overload
    def __get__(self, owner: object, kind: type) -> T: ...
    def __get__(self, owner: object | None, kind: type) -> "once[T] | T":
        if owner is None:
            return self
        found = owner.__dict__[self._name] = self._find(owner)
        return found
