"""The things a policy speaks of, and single facts about them."""

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Literal, NamedTuple, Protocol

from msgspec import UNSET, Struct

FieldType = Literal["string", "integer", "number", "money", "boolean", "date", "datetime", "enum", "list", "object"]
Origin = Literal["system", "user", "context", "conversation"]
"""Who knows a fact: the tools, only the user, the host, or nobody but the conversation that made it."""

UNDECLARED: Any = UNSET
"""A field's default where the pack declares none."""

Key = tuple[Any, ...]
"""One value per key field of the entity, in the declared order; empty for a keyless entity."""


class Saying(Struct, frozen=True):
    """One way a user fact gets its value: from an argument of the call, or from a pattern on user messages."""

    argument: str = ""
    says: str = ""
    value: Any = None
    but_not: str = ""
    """A message with this in it says nothing of the kind."""
    about: str = ""
    """An argument of the call: only what a message says of the thing named there counts."""


class Field(Struct, frozen=True):
    """One field of an entity."""

    name: str
    type: FieldType = "string"
    values: tuple[str, ...] = ()
    """The words an `enum` may take."""
    origin: Origin = "system"
    question: str = ""
    """What to ask the user or a person where only they can say."""
    sayings: tuple[Saying, ...] = ()
    """How a user fact gets its value, tried in order."""
    claims: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Value -> phrases of a user message that claim it, beyond the value itself."""
    default: Any = UNDECLARED
    """What a record that lacks the field shows."""
    private: bool = False
    """Its values stay out of findings, reports and messages; a decision log keeps what was said."""
    nullable: bool = False
    """`null` says that there is none. Of any other field it says only that whoever was asked does not know."""
    currency: str = ""
    """The currency of amounts that are written without one."""


class ReadTool(Struct, frozen=True):
    """The read tool that fetches an entity: argument name -> key field."""

    tool: str
    arguments: dict[str, str]


SPOKEN: tuple[Origin, ...] = ("user", "context")
"""Origins of facts that no tool shows."""


class Entity(Struct, frozen=True):
    """A kind of thing in the world, with a key and fields. Every entity also has the field `exists`."""

    name: str
    key: tuple[str, ...]
    fields: dict[str, Field]
    read: ReadTool | None = None
    fresh_for: float | None = None
    """Seconds a seen fact stays known; None: it never expires."""
    origin: Origin = "system"
    """`conversation` where only a conversation makes such things: what it showed is what is true."""
    complete: bool = False
    """What was not shown is surely not there, as long as every result that may show it was read."""

    @property
    def is_always_there(self) -> bool:
        """Whether it is what somebody says and no tool shows: there is one, though nothing may have been said yet."""
        return not self.key and bool(self.fields) and all(each.origin in SPOKEN for each in self.fields.values())

    def named(self, field: str) -> Field:
        """The field of a name."""
        return EXISTS if field == "exists" else self.fields[field]


EXISTS = Field("exists", type="boolean")


class Fact(NamedTuple):
    """One field of one thing, e.g. `Reservation["4WQ150"].cabin`."""

    entity: str
    key: Key | None
    """None where the key itself is not known."""
    field: str

    def __str__(self) -> str:
        entity, key, field = self
        if key == ():
            return f"{entity}.{field}"
        named = "?" if key is None else str(key[0]) if len(key) == 1 else ", ".join(map(str, key))
        return f"{entity}[{named}].{field}"


class NoValue(Enum):
    """Why a source has no value for a fact."""

    UNSEEN = "unseen"
    """The source does not know."""
    ABSENT = "absent"
    """The source knows that there is no such thing."""


UNSEEN = NoValue.UNSEEN
ABSENT = NoValue.ABSENT


class OneOf(Struct, frozen=True):
    """A value that writes of the same turn leave open: the old one, or what they make of it."""

    values: tuple[Any, ...]


class Between(Struct, frozen=True):
    """A count of which the bounds are known: of some calls nobody can tell whether they took effect."""

    least: int
    most: int


NOT_KNOWN = frozenset((NoValue, OneOf))
"""Classes of answers that are no value."""


def is_known(answer: Any) -> bool:
    """Whether a source has the fact: a value, or that there is no such thing."""
    return answer is not UNSEEN and answer.__class__ is not OneOf


class FactSource(Protocol):
    """Where a guard's facts come from: what the agent has seen, or what is really true.

    One that knows the conversation also has `traced(value)`, the origin of a value, and `requested()`, whether the call
    keeps to what the user asked for; both as in `SeenFacts`.
    """

    def read(self, entity: Entity, key: Key, field: Field) -> Any:
        """The value, already of the field's type; `UNSEEN`; `OneOf` some; or `ABSENT` where no such thing exists.

        For `EXISTS` the answer is True, False or UNSEEN. A value that is not of its type raises ValueError.
        """
        ...

    def members(self, entity: Entity, match: Mapping[str, Any]) -> tuple[Sequence[Key], bool]:
        """Keys of the things whose fields equal `match`, and whether these are surely all there are."""
        ...

    def done(self, tool: str, match: Mapping[str, Any]) -> "int | Between | NoValue":
        """How many earlier calls of `tool` in this conversation were accepted with arguments equal to `match`.

        `Between` where one may have been refused since, or may have had such arguments; UNSEEN where nothing tells.
        """
        ...


_KINDS: dict[FieldType, str] = {
    "integer": "number", "number": "number", "money": "amount", "date": "date", "datetime": "date and time"
}  # fmt: skip
_STARTS = {"is": "Is", "was": "Was", "are": "Are", "can": "Can", "may": "May", "will": "Will", "must": "Must"}
"""How a name may begin that turns into a question when its thing comes second: `is_late`."""
_OF_HOST = {"now": "When is this call made?", "history": "What came before this call?"}
"""What every host knows, whatever a pack declares."""
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def question_about(fact: Fact, entity: Entity | None) -> str:
    """What to ask where only somebody's word can tell it."""
    field = entity.fields.get(fact.field) if entity is not None else None
    if field is not None and field.question:
        return field.question
    thing = "" if not fact.key and fact.key is not None else _thing(fact)
    if fact.entity == "context":
        asked = _OF_HOST.get(fact.field) or _asked(fact.field, field, "")
        return f"{asked} The host did not say: it belongs in the `context` of the session."
    return _asked(fact.field, field, thing)


def _asked(name: str, field: Field | None, thing: str) -> str:
    words, of = name.replace("_", " ").strip(), f" of {thing}" if thing else ""
    kind = field.type if field is not None else "string"
    first, _, rest = words.partition(" ")
    if name == "exists":
        return f"Is there {thing}?" if thing else "Does it exist?"
    if kind == "boolean" and thing and rest and first in _STARTS:
        return f"{_STARTS[first]} {thing} {rest}? (yes or no)"
    if kind == "boolean" and thing and rest and first == "has":
        return f"Does {thing} have {rest}? (yes or no)"
    if kind == "boolean":
        # A name may be any part of speech; quoted, it reads as what it is.
        return f'Is this so{of}: "{words}"? (yes or no)'
    if kind == "enum" and field is not None and field.values:
        return f'Which one is the "{words}"{of}: {_either(field.values)}?'
    if kind in _KINDS:
        return f'What {_KINDS[kind]} is the "{words}"{of}?'
    return f'What is the "{words}"{of}?'


def _thing(fact: Fact) -> str:
    """The thing in words: `order 7`; `the order`, where nobody knows which."""
    kind = _CAPITAL.sub(" ", fact.entity).replace("_", " ").lower()
    return f"{kind} {', '.join(map(str, fact.key))}" if fact.key else f"the {kind}"


def _either(values: tuple[str, ...]) -> str:
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} or {values[-1]}"
