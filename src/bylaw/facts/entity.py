"""Entities, their fields, and single facts about them."""

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import quote, unquote

from msgspec import UNSET, Struct

FieldType = Literal["string", "integer", "number", "money", "boolean", "date", "datetime", "enum", "list", "object"]
Origin = Literal["system", "user", "context", "conversation"]
"""The source of a fact: the tools, the user, the host, or the conversation that created it."""

UNDECLARED: Any = UNSET
"""The default of a field without a declared default."""

Key = tuple[Any, ...]
"""One value per key field of the entity, in the declared order; empty for a keyless entity."""


class Saying(Struct, frozen=True):
    """One source of a user fact: an argument of the call, or a pattern on user messages."""

    argument: str = ""
    says: str = ""
    value: Any = None
    but_not: str = ""
    """A message that matches this does not count."""
    about: str = ""
    """An argument of the call: only statements about the entity it names count."""


class Field(Struct, frozen=True):
    """One field of an entity."""

    name: str
    type: FieldType = "string"
    values: tuple[str, ...] = ()
    """The values of an `enum`."""
    origin: Origin = "system"
    question: str = ""
    """The question for the user or a person if only they know."""
    sayings: tuple[Saying, ...] = ()
    """The sources of a user fact, tried in order."""
    claims: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """By value, phrases of a user message that claim it, besides the value itself."""
    default: Any = UNDECLARED
    """The value of the field in a record that lacks it."""
    private: bool = False
    """Its values stay out of findings, reports and messages; the decision log keeps them."""
    nullable: bool = False
    """`null` means none. For any other field it means only that the value is not known."""
    currency: str = ""
    """The currency of amounts written without one."""
    keys_of: tuple[str, str] | None = None
    """For a list of keys: the kind of thing, and its field that names this one. A world gathers the list from it."""


class ReadTool(Struct, frozen=True):
    """The tool that looks up an entity, with the key field for each argument, or a text with `{key field}` in it."""

    tool: str
    arguments: dict[str, str]

    def given(self, parts: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of the look-up of the entity with this key; None for one that the key does not give."""
        return {
            argument: _filled(part, parts) if "{" in part else parts.get(part)
            for argument, part in self.arguments.items()
        }

    def parts(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The key that a look-up with these arguments names, as far as they tell."""
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
"""A key field in the text of a look-up's argument."""


SPOKEN: tuple[Origin, ...] = ("user", "context")
"""Origins of facts that no tool shows."""


class Entity(Struct, frozen=True):
    """An entity with a key and fields. Every entity also has the field `exists`."""

    name: str
    key: tuple[str, ...]
    fields: dict[str, Field]
    read: ReadTool | None = None
    fresh_for: float | None = None
    """Seconds a seen fact stays valid; None if it never expires."""
    origin: Origin = "system"
    """`conversation` if the entity exists only in the conversation, which is then also the truth."""
    complete: bool = False
    """Whether anything not shown certainly does not exist, provided that every result that may show it was readable."""

    @property
    def is_always_there(self) -> bool:
        """Whether it comes from statements rather than tools, and therefore always exists."""
        return not self.key and bool(self.fields) and all(each.origin in SPOKEN for each in self.fields.values())

    def named(self, field: str) -> Field:
        """The field with this name."""
        return EXISTS if field == "exists" else self.fields[field]


EXISTS = Field("exists", type="boolean")


class Fact(NamedTuple):
    """One field of one entity, for example `Reservation["4WQ150"].cabin`."""

    entity: str
    key: Key | None
    """None if the key itself is unknown."""
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
    """The source knows that the entity does not exist."""


UNSEEN = NoValue.UNSEEN
ABSENT = NoValue.ABSENT


class OneOf(Struct, frozen=True):
    """A value left open by writes of the same turn: the old one, or their result."""

    values: tuple[Any, ...]


class Between(Struct, frozen=True):
    """A count with known bounds, because some calls may or may not have taken effect."""

    least: int
    most: int


NOT_KNOWN = frozenset((NoValue, OneOf))
"""Types of answers that are not a value."""


def is_known(answer: Any) -> bool:
    """Whether an answer is definite: a value, or that the entity does not exist."""
    return answer is not UNSEEN and answer.__class__ is not OneOf


class FactSource(Protocol):
    """A source of facts for guards: what the agent has seen, or what is true.

    A source that knows the conversation also has `traced(value)`, the origin of a value, and `requested()`, whether the
    call stays within the user's request; see `SeenFacts`.
    """

    def read(self, entity: Entity, key: Key, field: Field) -> Any:
        """The value in the field's type; `UNSEEN`; a `OneOf`; or `ABSENT` if the entity does not exist.

        For `EXISTS` the answer is True, False or UNSEEN. A value of the wrong type raises ValueError.
        """
        ...

    def members(self, entity: Entity, match: Mapping[str, Any]) -> tuple[Sequence[Key], bool]:
        """The keys of the entities whose fields equal `match`, and whether these are certainly all."""
        ...

    def done(self, tool: str, match: Mapping[str, Any]) -> "int | Between | NoValue":
        """The number of earlier accepted calls of `tool` in this conversation with arguments equal to `match`.

        `Between` if some may have been refused since or may have had such arguments; UNSEEN if nothing is known.
        """
        ...


_KINDS: dict[FieldType, str] = {
    "integer": "number", "number": "number", "money": "amount", "date": "date", "datetime": "date and time"
}  # fmt: skip
_STARTS = {"is": "Is", "was": "Was", "are": "Are", "can": "Can", "may": "May", "will": "Will", "must": "Must"}
"""Prefixes of field names such as `is_late` that form a question when the entity follows."""
_OF_HOST = {"now": "When is this call made?", "history": "What came before this call?"}
"""Facts every host knows, regardless of the pack."""
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def question_about(fact: Fact, entity: Entity | None) -> str:
    """The question to ask if a fact can only come from a person."""
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
        # A field name may be any part of speech, so it is quoted.
        return f'Is this so{of}: "{words}"? (yes or no)'
    if kind == "enum" and field is not None and field.values:
        return f'Which one is the "{words}"{of}: {_either(field.values)}?'
    if kind in _KINDS:
        return f'What {_KINDS[kind]} is the "{words}"{of}?'
    return f'What is the "{words}"{of}?'


def _thing(fact: Fact) -> str:
    """The entity in words: `order 7`, or `the order` if the key is unknown."""
    kind = _CAPITAL.sub(" ", fact.entity).replace("_", " ").lower()
    return f"{kind} {', '.join(map(str, fact.key))}" if fact.key else f"the {kind}"


def _either(values: tuple[str, ...]) -> str:
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} or {values[-1]}"
