"""Facts that the user is shown with a call, on its card or in its sentence, beside the call's arguments."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from bylaw.facts.entity import Fact, FactSource


class Computed(Struct, frozen=True):
    """The value of an expression, or why it has none."""

    value: Any = None
    lacking: tuple[Fact, ...] = ()
    """Unknown facts that the value depends on."""
    fault: str = ""
    """Why the expression failed on facts that are known."""


class CardFact(Struct, frozen=True):
    """A value that a tool's cards and sentences show, such as the price."""

    name: str
    code: str
    """The expression as the pack has it."""
    place: str
    schema: Mapping[str, Any]
    """How to write the value: `title`, `currency`, `unit`."""
    compute: Callable[[Mapping[str, Any], FactSource], Computed]
    reads: frozenset[str] = frozenset()
    """The fields it reads, as `Entity.field`; with several entities, each name after a dot under each of them."""
    unnamed: frozenset[str] = frozenset()
    """The entities it reads whose keys are not arguments of the call."""
