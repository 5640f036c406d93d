"""Facts shown to the user with a call, on its card or in its sentence, in addition to its arguments."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from bylaw.facts.entity import Fact, FactSource


class Computed(Struct, frozen=True):
    """The value of an expression, or why it has none."""

    value: Any = None
    lacking: tuple[Fact, ...] = ()
    """Unknown facts the value depends on."""
    fault: str = ""
    """Why the expression failed on facts that are known."""


class CardFact(Struct, frozen=True):
    """A value that a tool's cards and sentences show, such as the price."""

    name: str
    code: str
    """The expression as written in the pack."""
    place: str
    schema: Mapping[str, Any]
    """How to format the value: `title`, `currency`, `unit`."""
    compute: Callable[[Mapping[str, Any], FactSource], Computed]
    reads: frozenset[str] = frozenset()
    """The fields it reads, as `Entity.field`. With several entities, each attribute name is listed
    under each of them.
    """
    unnamed: frozenset[str] = frozenset()
    """The entities it reads whose keys are not arguments of the call."""
