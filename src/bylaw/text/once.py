"""A property that is worked out once, where somebody asks."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class once(Generic[Value]):
    """As `functools.cached_property`, without the lock that costs more than most of what is worked out here."""

    def __init__(self, make: Callable[[Any], Value]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, owner: Any, _: type | None = None) -> Value:
        value = owner.__dict__[self._name] = self._make(owner)
        return value
