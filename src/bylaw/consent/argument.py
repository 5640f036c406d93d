"""What matters in a call, read off its arguments: the values that a user must have been told before they can agree."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, cast

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from bylaw.facts.value import alike, loose
from bylaw.policy.tool import Tool
from bylaw.policy.verb import words_of
from bylaw.text.identifier import is_identifier, is_prose
from bylaw.text.number import figure

Kind = Literal["id", "sum", "day", "time", "count", "choice", "flag", "name"]

MOST = 200
"""Of more values than that, some are not read."""
_MONEY = frozenset(words_of("amount price cost fee fare sum copay charge refund deposit payment"))
_MEANS = frozenset(words_of("payment pay card wallet funding tender method"))
_PERSONS = frozenset(
    words_of("user customer patient member client guest student caller account subscriber holder tenant")
)
_THING = frozenset(words_of("id ids number code key no ref reference sku account iban"))
_REMARKS = frozenset(words_of("reason reasons note notes comment comments remark summary description"))
"""Arguments for the record: what is said there changes nothing that a user would agree to."""
_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?")
_TIMES = re.compile(r"(\d{1,2})(?::(\d\d))?(?::00)?(?:\s?[-\u2013]\s?(\d{1,2})(?::(\d\d))?(?::00)?)?")
_CENTS = re.compile(r"[\d,]+\.\d\d?")
"""Figures that are a sum whatever they are called: nobody has 7.20 of a thing."""
_UNCLEAR = re.compile(r"\d{1,3}\.\d{3}|.*[eE].*")
"""Figures that tools may read in two ways: `250.000`, `25e1`."""
_FIELD = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
"""How the names of fields are written, which things and people are not."""
_SHORT_ID = re.compile(r"[A-Za-z]+-?\d+")
_SHOWN = frozenset(("person", "user", "means"))
_FLAGS = {"true": True, "yes": True, "on": True, "y": True, "false": False, "no": False, "off": False, "n": False}

_SAID = frozenset(said for word in ("true", "false", "yes", "no") for said in (word, word.title()))


class Terms(Struct, frozen=True):
    """What a pack says of its arguments: which need not be told, and which must be, whatever they look like; and how
    long a yes in words counts."""

    spared: frozenset[str] = frozenset()
    wanted: frozenset[str] = frozenset()
    lifetime: float = 86_400.0
    """Seconds; as long as a person's yes."""


class Argument(Struct, frozen=True):
    """One value in a call's arguments."""

    kind: Kind
    name: str
    """The field's own name, `flight_number`."""
    top: str
    """The argument it stands in, `flights`."""
    value: str
    """As the call gives it."""
    key: str
    """The same for every spelling that tools may take for one."""
    number: Decimal | None = None
    day: date | None = None
    at: tuple[tuple[int, int], ...] = ()
    """The time of day, or from when to when."""
    others: tuple[str, ...] = ()
    """The other words that it was chosen from."""
    is_on: bool = True
    """For a flag, what it says."""
    item: int = 0
    """In which of several objects of one list, or under which key of a map, it stands; 0 for none."""

    is_person: bool = False
    """Whether it names for whom something is done, who is mostly the one that asks for it."""
    is_user: bool = False
    """Whether it names a person, and no account that a person may have several of."""
    is_means: bool = False
    """Whether it says what something is paid with, so that money moves."""

    def __post_init__(self) -> None:
        traits = _traits(self.name, self.top)
        for trait in traits & _SHOWN:
            force_setattr(self, f"is_{trait}", True)


def arguments(tool: Tool | None, given: Mapping[str, Any], terms: Terms) -> list[Argument]:
    """What matters in a call, in the order of its arguments, each value once."""
    parameters = tool.parameters if tool is not None else {}
    found: list[Argument] = []
    for top, value in given.items():
        if top in terms.spared or len(found) > MOST:
            continue
        schema = parameters.get(top)
        if type(value) is not str:
            within: dict[Argument, None] = {}
            _add(within, top, top, value, schema, terms)
            found += within
        else:
            listed = _listed(schema) if isinstance(schema, dict) and "enum" in schema else None
            if each := _text(top, top, value, listed, top in terms.wanted):
                found.append(each)
    return found[: MOST + 1]


def target_of(given: Sequence[Argument], tool: str) -> Argument | None:
    """The id of the thing that a call acts on: the one that the tool is named by, or else one that is no person's."""
    things = [each for each in given if each.kind == "id" and each.name == each.top and not each.is_means]
    named = _words(tool)
    target = next((each for each in things if named & _words(each.name) - {"id"}), None)
    return target or next((each for each in things if not each.is_person), None)


def _add(
    found: dict[Argument, None], top: str, name: str, value: Any, schema: Any, terms: Terms, item: int = 0
) -> None:
    if len(found) > MOST:
        return
    if isinstance(value, dict):
        fields: Any = _of(schema, "properties") or {}
        for place, (key, part) in enumerate(cast("dict[Any, Any]", value).items(), 1):
            if str(key) in terms.spared:
                continue
            if not fields and not _FIELD.fullmatch(str(key)):
                # A map: what it gives something to is a value as well.
                found[Argument("name", top, top, str(key), loose(str(key)), item=place)] = None
                _add(found, top, name, part, None, terms, place)
            else:
                _add(found, top, str(key), part, _of(fields, str(key)), terms, item)
    elif isinstance(value, list):
        parts = cast("list[Any]", value)
        for place, part in enumerate(parts, 1):
            _add(found, top, name, part, _of(schema, "items"), terms, place if isinstance(part, dict) else item)
        if not parts and "remark" not in _traits(name, top):
            # None at all is something, too.
            found[Argument("name", name, top, "", "")] = None
        for count in set(Counter(repr(alike(part)) for part in parts).values()) - {1}:
            # One thing several times is more than the thing.
            found[Argument("count", name, top, str(count), str(count), Decimal(count))] = None
    else:
        argument = _argument(top, name, value, schema, is_wanted=not terms.wanted.isdisjoint((top, name)))
        if argument is not None:
            found[replace(argument, item=item) if item else argument] = None


def _argument(top: str, name: str, value: Any, schema: Any, *, is_wanted: bool) -> Argument | None:
    """None for what says nothing: no value, and remarks that nobody wants to hear."""
    if value is None:
        return None
    if not isinstance(value, int | float):
        return _text(top, name, str(value), _listed(schema), is_wanted)
    traits = _traits(name, top)
    if "remark" in traits and not is_wanted:
        return None
    if isinstance(value, bool):
        return Argument("flag", name, top, str(value).lower(), "", is_on=value)
    number = figure(str(value))
    is_sum = "money" in traits or _CENTS.fullmatch(str(value)) is not None
    return Argument("sum" if is_sum else "count", name, top, str(value), loose(str(value)), number)


def _listed(schema: Any) -> tuple[str, ...] | None:
    """The words that a value is chosen from; None where it may be any."""
    listed = _of(schema, "enum")
    return tuple(map(str, cast("list[Any]", listed))) if isinstance(listed, list) else None


@lru_cache(maxsize=4096)
def _text(top: str, name: str, given: str, listed: tuple[str, ...] | None, is_wanted: bool, /) -> Argument | None:
    value, traits = given.strip(), _traits(name, top)
    if "remark" in traits and not is_wanted:
        return None
    key = loose(value)
    if _is_flag(value, listed):
        return Argument("flag", name, top, value, key, is_on=_FLAGS[key])
    if listed is not None:
        return Argument("choice", name, top, value, key, others=tuple(word for word in listed if word != value))
    if found := _DAY.fullmatch(value):
        try:
            day = date(int(found[1]), int(found[2]), int(found[3]))
        except ValueError:
            return Argument("name", name, top, value, key)
        hour = (int(found[4]), int(found[5])) if found[4] else (0, 0)
        return Argument("day", name, top, value, key, day=day, at=() if hour == (0, 0) else (hour,))
    if "thing" not in traits and (found := _TIMES.fullmatch(value)) and (found[2] or found[3]):
        first, last = (int(found[1]), int(found[2] or 0)), (int(found[3] or 0), int(found[4] or 0))
        return Argument("time", name, top, value, key, at=(first, last) if found[3] else (first,))
    is_figure = traits.isdisjoint(("thing", "means")) and not _UNCLEAR.fullmatch(value)
    if is_figure and (number := figure(value)) is not None:
        is_sum = "money" in traits or _CENTS.fullmatch(value) is not None
        return Argument("sum" if is_sum else "count", name, top, value, key, number)
    is_id = bool(traits & {"thing", "means"}) or is_identifier(value) or _SHORT_ID.fullmatch(value) is not None
    return Argument("id" if is_id and not is_prose(value) else "name", name, top, value, key)


def _is_flag(value: str, listed: tuple[str, ...] | None) -> bool:
    """Whether a text is a yes or a no: by the words it was chosen from, or else as people write it. `NO` is Norway."""
    if listed is not None:
        return loose(value) in _FLAGS and all(loose(word) in _FLAGS for word in listed)
    return value in _SAID


def _of(schema: Any, name: str) -> Any:
    """What a schema says under a name; None where it says nothing."""
    return cast("dict[str, Any]", schema).get(name) if isinstance(schema, dict) else None


@lru_cache(maxsize=4096)
def _words(name: str) -> frozenset[str]:
    return frozenset(words_of(name))


@lru_cache(maxsize=4096)
def _traits(name: str, top: str) -> frozenset[str]:
    words, around = _words(name), _words(top)
    traits = {"remark"} if words & _REMARKS or around & _REMARKS else set[str]()
    is_thing = bool(words & _THING)
    if (words & _MONEY or words == frozenset(("total",))) and not is_thing:
        traits.add("money")
    if (words | around) & _MEANS and "money" not in traits:
        traits.add("means")
    if is_thing:
        traits.add("thing")
    if words & _PERSONS:
        traits |= {"person"} if "account" in words else {"person", "user"}
    return frozenset(traits)
