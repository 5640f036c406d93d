import re
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import quote, unquote

from msgspec import UNSET, Struct

FieldType = Literal["string", "integer", "number", "money", "boolean", "date", "datetime", "enum", "list", "object"]
Origin = Literal["system", "user", "context", "conversation"]
"""Where a fact comes from: tools (`system`), the user, the host (`context`), or the conversation that created the
entity.
"""

UNDECLARED: Any = UNSET
"""Used as `Field.default` if the field declares no default."""

Key = tuple[Any, ...]
"""The values of the key fields, in the declared order. Empty for an entity without a key."""


class Saying(Struct, frozen=True):
    """Where a fact that the user states is read: an argument of the call, or text in user messages that matches a
    pattern.
    """

    argument: str = ""
    says: str = ""
    value: Any = None
    but_not: str = ""
    """A pattern. User messages that match it are ignored."""
    about: str = ""
    """The name of an argument. Only statements about the entity that this argument names are used."""


class Field(Struct, frozen=True):
    name: str
    type: FieldType = "string"
    values: tuple[str, ...] = ()
    origin: Origin = "system"
    question: str = ""
    """The question to ask if only the user or another person knows the value of the field."""
    sayings: tuple[Saying, ...] = ()
    """If the user states the fact: where to read it, in this order."""
    claims: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """For each value of the field, the phrases with which a user claims that value."""
    default: Any = UNDECLARED
    """The value of the field if a complete record does not contain it."""
    private: bool = False
    """Whether findings, reports and messages must hide the field's values. The decision log still contains them."""
    nullable: bool = False
    """Whether `null` is a value, meaning that there is none. If False, `null` means that the value is unknown."""
    currency: str = ""
    """The currency of amounts that do not contain one."""
    keys_of: tuple[str, str] | None = None
    """For a list of keys: the entity that the keys name, and the field of that entity from which the list is built."""


class ReadTool(Struct, frozen=True):
    """The look-up of an entity. Each argument is a key field, or text that contains `{key field}`."""

    tool: str
    arguments: dict[str, str]

    def given(self, parts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with which to look up this key. An argument that the key does not determine is None."""
        return {
            argument: _filled(part, parts) if "{" in part else parts.get(part)
            for argument, part in self.arguments.items()
        }

    def parts(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parts of the key that can be read from the arguments of a look-up."""
        found: dict[str, Any] = {}
        for argument, part in self.arguments.items():
            value = arguments.get(argument)
            if "{" not in part:
                found[part] = value
            elif isinstance(value, str) and (told := _template(part).fullmatch(value)) is not None:
                found |= {name: unquote(each) for name, each in told.groupdict().items()}
        return found


def _filled(template: str, parts: Mapping[str, Any]) -> str | None:
    names = PLACE.findall(template)
    if any(parts.get(name) is None for name in names):
        return None
    return PLACE.sub(lambda place: quote(str(parts[place[1]]), safe=""), template)


@lru_cache(maxsize=256)
def _template(text: str) -> re.Pattern[str]:
    parts = PLACE.split(text)
    inside = (f"(?P<{each}>[^/?#&]+)" if at % 2 else re.escape(each) for at, each in enumerate(parts))
    return re.compile("".join(inside))


PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""Matches a key field in the template of a look-up's argument."""


SPOKEN: tuple[Origin, ...] = ("user", "context")
"""Origins of facts that no tool shows."""


class Entity(Struct, frozen=True):
    """An entity with a key and fields. Every entity also has the field `exists`."""

    name: str
    key: tuple[str, ...]
    fields: dict[str, Field]
    read: ReadTool | None = None
    fresh_for: float | None = None
    """For how many seconds a fact remains valid after it was seen. None means that it stays valid."""
    origin: Origin = "system"
    """`conversation` if the entity exists only in the conversation, otherwise `system`."""
    complete: bool = False
    """Whether an entity that no result mentions can be assumed not to exist, provided that every relevant result was
    readable.
    """

    @property
    def is_always_there(self) -> bool:
        """Whether the entity always exists, because it comes from statements rather than from tools."""
        return not self.key and bool(self.fields) and all(each.origin in SPOKEN for each in self.fields.values())

    def named(self, field: str) -> Field:
        return EXISTS if field == "exists" else self.fields[field]


EXISTS = Field("exists", type="boolean")


class Fact(NamedTuple):
    """A field of an entity, such as `Reservation["4WQ150"].cabin`."""

    entity: str
    key: Key | None
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
    """The source does not know the value of the fact."""
    ABSENT = "absent"
    """The source knows that the entity does not exist."""


UNSEEN = NoValue.UNSEEN
ABSENT = NoValue.ABSENT


class OneOf(Struct, frozen=True):
    """A value that writes in the same turn leave undetermined: either the old value or one of the new ones."""

    values: tuple[Any, ...]


class Between(Struct, frozen=True):
    """A count that is only known to lie between two bounds, because it is uncertain whether some calls took effect."""

    least: int
    most: int


NOT_KNOWN = frozenset((NoValue, OneOf))
"""The types of answers that are not values."""


def is_known(answer: Any) -> bool:
    """Whether an answer is definite: a value or ABSENT."""
    return answer is not UNSEEN and answer.__class__ is not OneOf


class FactSource(Protocol):
    """A source of facts for guards: what the agent has seen, or what is true.

    A source that knows the conversation has two more methods: `traced(value)` returns the origin of a value, and
    `requested()` returns whether the user's request covers the call. See `SeenFacts`.
    """

    def read(self, entity: Entity, key: Key, field: Field) -> Any:
        """Return the value, a `OneOf`, UNSEEN, or ABSENT if there is no entity. Raises ValueError for a value of the
        wrong type.
        """
        ...

    def members(self, entity: Entity, match: Mapping[str, Any]) -> tuple[Sequence[Key], bool]:
        """Return the keys of the entities whose fields equal `match`, and whether the list is certainly complete."""
        ...

    def done(self, tool: str, match: Mapping[str, Any]) -> "int | Between | NoValue":
        """Return how many earlier calls to `tool` with arguments equal to `match` took effect.

        Returns `Between` if some of them may have been refused, or if other calls may have matched too. Returns UNSEEN
        if nothing is known about such calls.
        """
        ...


_KINDS: dict[FieldType, str] = {
    "integer": "number", "number": "number", "money": "amount", "date": "date", "datetime": "date and time"
}  # fmt: skip
_STARTS = {"is": "Is", "was": "Was", "are": "Are", "can": "Can", "may": "May", "will": "Will", "must": "Must"}
"""First words of field names that can be turned into a question, such as `is` in `is_late`."""
_OF_HOST = {"now": "When is this call made?", "history": "What came before this call?"}
"""Facts that every host knows, whatever the pack declares."""
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def question_about(fact: Fact, entity: Entity | None) -> str:
    """Return the question to ask about a fact that only a person can supply."""
    field = entity.fields.get(fact.field) if entity is not None else None
    if field is not None and field.question:
        return field.question
    thing = "" if not fact.key and fact.key is not None else _thing(fact)
    if fact.entity == "context":
        asked = _OF_HOST.get(fact.field) or _asked(fact.field, field, "")
        return f"{asked} The host did not provide it: add it to the session's `context`."
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
        # Quote the field name, because it may be any part of speech.
        return f'Is "{words}" true{f" for {thing}" if thing else ""}? (yes or no)'
    if kind == "enum" and field is not None and field.values:
        return f'What is the "{words}"{of}: {listed(field.values, "or")}?'
    if kind in _KINDS:
        return f'What {_KINDS[kind]} is the "{words}"{of}?'
    return f'What is the "{words}"{of}?'


def _thing(fact: Fact) -> str:
    """Return the entity as text: `order 7`, or `the order` if the key is unknown."""
    kind = _CAPITAL.sub(" ", fact.entity).replace("_", " ").lower()
    return f"{kind} {', '.join(map(str, fact.key))}" if fact.key else f"the {kind}"


def listed(parts: Sequence[str], last: str = "and") -> str:
    """Return a list as text, such as `a, b and c`."""
    return f"{', '.join(parts[:-1])} {last} {parts[-1]}" if len(parts) > 1 else "".join(parts)
