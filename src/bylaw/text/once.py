"""A property computed on first access."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class once(Generic[Value]):
    """Like `functools.cached_property`, without its lock, which costs more than most of the properties."""

    def __init__(self, make: Callable[[Any], Value]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, owner: Any, _: type | None = None) -> Value:
        value = owner.__dict__[self._name] = self._make(owner)
        return value
