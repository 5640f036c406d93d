"""entities.yaml as a pack's author writes it; `schema` compiles it."""

from typing import Any, TypeVar, cast

from msgspec import UNSET, Struct, field

from bylaw.facts.entity import UNDECLARED
from bylaw.policy.reading import Scalar

WrittenKey = Scalar | dict[str, Scalar]
"""Where a key is found; by key field where there are several."""


class WrittenSaying(Struct, frozen=True, forbid_unknown_fields=True):
    """One way to what a user said."""

    argument: Scalar = ""
    says: Scalar = ""
    but_not: Scalar = ""
    value: Any = None
    about: Scalar = ""


class WrittenField(Struct, frozen=True, forbid_unknown_fields=True):
    """A field of an entity, in full."""

    type: Scalar | None = None
    origin: Scalar | None = None
    question: Scalar = ""
    description: Scalar = ""
    values: list[Scalar] | None = None
    from_: list[WrittenSaying] = field(name="from", default_factory=list[WrittenSaying])
    claims: dict[str, list[Scalar] | None] = {}
    default: Any = UNDECLARED
    private: bool = False
    currency: Scalar = ""


FieldBody = Scalar | list[Scalar] | WrittenField | None
"""A type, the words of an enumeration, or all of it."""


class WrittenRead(Struct, frozen=True, forbid_unknown_fields=True):
    """The tool that looks a thing up, and the key field that each argument takes."""

    tool: Scalar = ""
    arguments: dict[str, Scalar] = {}


class WrittenEntity(Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of thing."""

    key: Scalar | list[Scalar] = field(default_factory=list[Scalar])
    read: Scalar | WrittenRead | None = None
    fields: dict[str, FieldBody] = {}
    fresh_for: int | float | None = None
    origin: Scalar = "system"
    complete: bool = False
    description: Scalar = ""


class WrittenWhen(Struct, frozen=True, forbid_unknown_fields=True):
    """When something is shown."""

    path: Scalar = "$"
    is_: Any = field(name="is", default=UNSET)
    in_: list[Any] | None = field(name="in", default=None)
    exists: bool | None = None


class WrittenObservation(Struct, frozen=True, forbid_unknown_fields=True):
    """What a tool's result shows."""

    as_: Scalar | None = field(name="as", default=None)
    each: Scalar | None = None
    text: Scalar | None = None
    absent: Scalar | None = None
    key: WrittenKey | None = None
    fields: dict[str, Any] = {}
    only: bool = False
    when: WrittenWhen | None = None


class WrittenStored(Struct, frozen=True, forbid_unknown_fields=True):
    """Where things of a kind stand in a database."""

    table: Scalar = ""
    of: Scalar | None = None
    each: Scalar | None = None
    key: WrittenKey | None = None
    fields: dict[str, Any] = {}
    only: bool = False
    when: WrittenWhen | None = None
    list: Scalar = ""
    """The field that all items of one key are a list in."""


class EntitiesFile(Struct, frozen=True, forbid_unknown_fields=True):
    """entities.yaml."""

    entities: dict[str, WrittenEntity | None] = {}
    context: dict[str, FieldBody] = {}
    observations: dict[str, WrittenObservation | list[WrittenObservation] | None] = {}
    world: dict[str, WrittenStored | list[WrittenStored] | None] = {}


_Body = TypeVar("_Body")


def listed(bodies: _Body | list[_Body] | None) -> list[_Body]:
    """One or several, as a list."""
    if isinstance(bodies, list):
        return cast(list[_Body], bodies)
    return [] if bodies is None else [bodies]


def listed_names(value: Scalar | list[Scalar]) -> tuple[str, ...]:
    """One name or several."""
    return tuple(map(str, listed(value)))
