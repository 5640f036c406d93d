"""The structure of entities.yaml as written. `schema_reader` compiles it."""

from typing import Any, TypeVar, cast

from msgspec import UNSET, Struct, field

from bylaw.facts.entity import UNDECLARED
from bylaw.policy.tool import WrittenElement
from bylaw.policy.yaml import Scalar

WrittenKey = Scalar | dict[str, Scalar]
"""A path to the key, or one path for each key field."""


class WrittenSaying(Struct, frozen=True, forbid_unknown_fields=True):
    argument: Scalar = ""
    says: Scalar = ""
    but_not: Scalar = ""
    value: Any = None
    about: Scalar = ""


class WrittenField(Struct, frozen=True, forbid_unknown_fields=True):
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
    keys_of: Scalar = ""


FieldBody = Scalar | list[Scalar] | WrittenField | None
"""The declaration of a field: a type, a list of enum values, or an object with options."""


class WrittenRead(Struct, frozen=True, forbid_unknown_fields=True):
    """The look-up of an entity. Each argument is filled from a key field."""

    tool: Scalar = ""
    arguments: dict[str, Scalar] = {}


class WrittenEntity(Struct, frozen=True, forbid_unknown_fields=True):
    key: Scalar | list[Scalar] = field(default_factory=list[Scalar])
    read: Scalar | WrittenRead | None = None
    fields: dict[str, FieldBody] = {}
    fresh_for: int | float | None = None
    origin: Scalar = "system"
    complete: bool = False
    description: Scalar = ""


class WrittenWhen(Struct, frozen=True, forbid_unknown_fields=True):
    """A condition under which an entity is shown."""

    path: Scalar = "$"
    is_: Any = field(name="is", default=UNSET)
    in_: list[Any] | None = field(name="in", default=None)
    exists: bool | None = None


class WrittenObservation(Struct, frozen=True, forbid_unknown_fields=True):
    as_: Scalar | None = field(name="as", default=None)
    each: Scalar | None = None
    text: Scalar | None = None
    absent: Scalar | None = None
    key: WrittenKey | None = None
    fields: dict[str, Any] = {}
    only: bool = False
    when: WrittenWhen | None = None


class WrittenStored(Struct, frozen=True, forbid_unknown_fields=True):
    table: Scalar = ""
    of: Scalar | None = None
    each: Scalar | None = None
    key: WrittenKey | None = None
    fields: dict[str, Any] = {}
    only: bool = False
    when: WrittenWhen | None = None
    list: Scalar = ""
    """The field that collects, as a list, all items with the entity's key. Set if items are no entities themselves."""


class WrittenPage(Struct, frozen=True, forbid_unknown_fields=True):
    url: Scalar = ""
    """A pattern for the address of the page, without the query."""
    as_: Scalar = field(name="as", default="")
    each: Scalar = ""
    """The role of the elements, each of which shows one entity. Empty if the whole page shows a single entity."""
    within: WrittenElement | None = None
    key: dict[str, Scalar] = {}
    fields: dict[str, Scalar] = {}


class EntitiesFile(Struct, frozen=True, forbid_unknown_fields=True):
    entities: dict[str, WrittenEntity | None] = {}
    context: dict[str, FieldBody] = {}
    observations: dict[str, WrittenObservation | list[WrittenObservation] | None] = {}
    world: dict[str, WrittenStored | list[WrittenStored] | None] = {}
    pages: list[WrittenPage] = []


_Body = TypeVar("_Body")


def listed(bodies: _Body | list[_Body] | None) -> list[_Body]:
    if isinstance(bodies, list):
        return cast(list[_Body], bodies)
    return [] if bodies is None else [bodies]


def listed_names(value: Scalar | list[Scalar]) -> tuple[str, ...]:
    return tuple(map(str, listed(value)))
