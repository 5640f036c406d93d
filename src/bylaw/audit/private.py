"""Values of fields that a pack marks `private`, found wherever a conversation shows them.

Also as a person may write them: a number in other groups, a day in words.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from functools import lru_cache
from typing import Any, cast

from bylaw.facts.echoes import letters_of
from bylaw.facts.entity import UNDECLARED, UNSEEN, Field, Key, NoValue
from bylaw.facts.observation import Observation, sightings
from bylaw.facts.path import NOTHING
from bylaw.facts.world import World, WorldRecord
from bylaw.pack import Pack
from bylaw.policy.pattern import compile_pattern
from bylaw.text.day import days
from bylaw.trace.event import Call, Event, Message

_DIGITS = 5
"""Shorter numbers occur by chance."""
_NO_DIGITS = re.compile(r"\D+")
_ASCII_NO_DIGITS = bytes(code for code in range(128) if not chr(code).isdigit())
_LONGEST = 40
_CODE = 3
"""Digits of a country's code at most, which a number is often written without."""
_BETWEEN = r"[ \u00a0().,/\-]{0,3}"


class Private:
    """The private fields of one pack."""

    def __init__(self, pack: Pack) -> None:
        self._schema = pack.schema
        self.fields: dict[str, dict[str, Field]] = {
            entity.name: marked
            for entity in pack.schema.entities.values()
            if (marked := {name: field for name, field in entity.fields.items() if field.private})
        }
        self._names = {name: f"{entity}.{name}" for entity, marked in self.fields.items() for name in marked}
        said = [
            (f"{entity}.{field.name}", saying)
            for entity, marked in self.fields.items()
            for field in marked.values()
            for saying in field.sayings
        ]
        self._said = [(label, compile_pattern(saying.says)) for label, saying in said if saying.says]
        self._given = [(label, saying.argument) for label, saying in said if saying.argument]
        self._open_names = {
            tool: {
                name for kind in kinds.values() for o in kind for name, f in o.entity.fields.items() if not f.private
            }
            for tool, kinds in pack.schema.shows.items()
        }
        """By tool, names of public fields: another entity may have a public field of the same name."""
        self._shown_otherwise = {
            tool
            for tool, kinds in pack.schema.shows.items()
            if any(self._shows_otherwise(each) for entity in self.fields for each in kinds.get(entity, ()))
        }
        """Tools with results that may show private values under other names."""
        self.by_text = {
            tool
            for tool, kinds in pack.schema.shows.items()
            for o in kinds.values()
            if any(x.text is not None for x in o)
        }
        """Tools with results that may show private values in free text."""

    def _shows_otherwise(self, observation: Observation) -> bool:
        marked, entity = self.fields[observation.entity.name], observation.entity
        return (
            observation.text is not None
            or any(name in observation.fields or name in entity.key for name in marked)
            or any(field.default is not UNDECLARED for field in marked.values())
        )

    def may_be_in(self, tool: str, text: str) -> bool:
        """Whether a result may show a private value. Applying all observations to all results would double the cost."""
        return tool in self._shown_otherwise or "\\u" in text or any(name in text for name in self._names)

    def __bool__(self) -> bool:
        return bool(self.fields)

    def in_result(self, tool: str, arguments: Mapping[str, Any], value: Any, text: str | None) -> "Iterator[Found]":
        """The private values in one result, refused or not: by the pack's observations and by field name."""
        shows = self._schema.shows.get(tool, {})
        for entity, marked in self.fields.items():
            for observation in shows.get(entity, ()):
                for sighting in sightings(observation, arguments, value, text, True):
                    for name in marked:
                        mapped = name in observation.fields or observation.text is not None
                        yield f"{entity}.{name}", sighting.show(name), name, mapped
                    for part, name in zip(sighting.key, observation.entity.key, strict=False):
                        if name in marked:
                            yield f"{entity}.{name}", part, name, True
        yield from self._by_name(value, self._open_names.get(tool, _NO_NAMES))

    def in_arguments(self, arguments: Mapping[str, Any]) -> "Iterator[Found]":
        """The private values in the arguments of a call, by field name."""
        yield from self._by_name(arguments, _NO_NAMES)
        for label, argument in self._given:
            if argument in arguments:
                yield label, arguments[argument], argument, False

    def in_words(self, text: str) -> "Iterator[Found]":
        """The private values in a user's message, by the pack's patterns."""
        for label, pattern in self._said:
            for match in pattern.finditer(text):
                yield label, match[match.lastindex or 0], "", False

    def in_record(self, entity: str, key: Key, record: WorldRecord) -> "Iterator[Found]":
        """The private values in a record of the world."""
        marked = self.fields.get(entity, {})
        for name in marked:
            if (value := record.get(name, NOTHING)) is not UNSEEN:
                yield f"{entity}.{name}", value, name, False
        for part, name in zip(key, self._schema.entities[entity].key, strict=False):
            if name in marked:
                yield f"{entity}.{name}", part, name, False

    def _by_name(self, value: Any, open_names: AbstractSet[str]) -> "Iterator[Found]":
        waiting = [value]
        while waiting:
            here = waiting.pop()
            if isinstance(here, dict):
                for name, item in cast("dict[Any, Any]", here).items():
                    if name in self._names and name not in open_names:
                        yield self._names[name], item, name, False
                    else:
                        waiting.append(item)
            elif isinstance(here, list):
                waiting.extend(cast("Sequence[Any]", here))


_NO_NAMES: frozenset[str] = frozenset()

Found = tuple[str, Any, str, bool]
"""The field, its value, the name that the value appears under, and whether that is another name than the field's."""


class WatchedWorld:
    """A world that records which entities with private fields were read from it."""

    def __init__(self, world: World, private: Private) -> None:
        self._world = world
        self._private = private
        self.read: dict[tuple[str, Key], WorldRecord] = {}

    def fork(self) -> "WatchedWorld":
        """Returns the same world for a new conversation."""
        return WatchedWorld(self._world.fork(), self._private)

    def record(self, entity: str, key: Key) -> WorldRecord | NoValue:
        """One thing as of now."""
        found = self._world.record(entity, key)
        if entity in self._private.fields and not isinstance(found, NoValue):
            self.read[entity, key] = found
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)


def collect(
    private: Private, events: Sequence[Event], read: Mapping[tuple[str, Key], WorldRecord]
) -> list[tuple[Found, int | None]]:
    """Every private value that a conversation shows or its judgement read, with the step of a result that shows it."""
    found: list[tuple[Found, int | None]] = []
    for step, event in enumerate(events):
        if isinstance(event, Call):
            found += [(each, None) for each in private.in_arguments(event.arguments)]
        elif isinstance(event, Message):
            found += [(each, None) for each in private.in_words(event.text) if event.by == "user"]
        elif event.captured:
            text = event.text
            call = events[event.call] if event.call is not None else None
            tool, arguments = (call.tool, call.arguments) if isinstance(call, Call) else (event.tool, {})
            if not private.may_be_in(tool, text):
                continue
            value = event.value()
            as_text = text if isinstance(value, str) else None
            found += [(each, step) for each in private.in_result(tool, arguments, value, as_text)]
            if as_text is None and tool in private.by_text:
                # Data may be read as a text too, an error's for one.
                found += [(each, step) for each in private.in_result(tool, arguments, value, text)]
    for (entity, key), record in read.items():
        found += [(each, None) for each in private.in_record(entity, key, record)]
    return found


def leaves(value: Any, name: str) -> Iterator[tuple[Any, str]]:
    """The texts, numbers and booleans in a value, each with its field name."""
    if value is NOTHING or value is None:
        return
    if value.__class__ is str:
        yield value, name
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[Any, Any]", value).items():
            yield from leaves(item, str(key))
    elif isinstance(value, list | tuple):
        for item in cast("Sequence[Any]", value):
            yield from leaves(item, name)
    else:
        yield value, name


def respelled(found: Iterable[tuple[Found, int | None]], events: Sequence[Event]) -> Iterator[tuple[Found, int | None]]:
    """Other spellings, in the texts of a conversation, of private values that were found."""
    numbers: dict[str, str] = {}
    dates: dict[date, str] = {}
    rounded: set[str] = set()
    for (label, value, name, _), _ in found:
        for leaf, _ in leaves(value, name):
            text = str(int(leaf)) if isinstance(leaf, float) and leaf.is_integer() else str(leaf).strip()
            if len(text) > _LONGEST or sum(map(str.isdigit, text)) < _DIGITS:
                continue
            numbers.setdefault(text, label)
            if isinstance(leaf, float):
                rounded.add(text)
            if (day := _day(text[:10])) is not None:
                dates.setdefault(day, label)
    if not numbers:
        return
    # A line break separates the texts: it is not allowed between the digits of a number, so no match spans two texts.
    texts = [*_texts(events)]
    whole = "\n".join(texts)
    digits = _digits_of(whole)
    for number, label in numbers.items():
        # Most numbers occur in their original spelling only, and compiling a pattern takes longer than everything else.
        as_found = 0 if number in rounded else whole.count(number)
        if digits.count(_digits_of(number)[-_DIGITS:]) > as_found:
            yield from (((label, each[0], "", False), None) for each in _grouped(number).finditer(whole))
    years = {str(day.year) for day in dates}
    for text in texts:
        lower = text.lower()
        if len(lower) == len(text) and any(year in text for year in years):
            for each in days(lower):
                for day, label in dates.items():
                    if (each.year, each.month, each.day) == (day.year, day.month, day.day):
                        yield (label, text[each.start : each.end], "", False), None


def _digits_of(text: str) -> str:
    if text.isascii():
        return text.encode().translate(None, _ASCII_NO_DIGITS).decode()
    return _NO_DIGITS.sub("", text)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _texts(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        if isinstance(event, Call):
            yield from (leaf for leaf, _ in leaves(event.arguments, "") if isinstance(leaf, str))
        elif event.captured:
            yield event.text


@lru_cache(maxsize=1024)
def _grouped(number: str) -> re.Pattern[str]:
    letters = [re.escape(letter) for letter in letters_of(number)]
    size = _CODE if number.startswith("+") else 0
    code = "".join(f"(?:{letter}{_BETWEEN})?" for letter in letters[:size])
    return re.compile(rf"(?<![^\W_])\+?{code}{_BETWEEN.join(letters[size:])}(?![^\W_])", re.IGNORECASE)
