"""Values of fields that a pack marks `private`, found wherever a conversation shows them."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, cast

from bylaw.facts.entity import UNDECLARED, Field, Key, NoValue
from bylaw.facts.observation import Observation, sightings
from bylaw.facts.path import NOTHING
from bylaw.facts.world import World, WorldRecord
from bylaw.pack import Pack
from bylaw.policy.pattern import compile_pattern
from bylaw.trace.event import Call, Event, Message, Result


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
        self.is_said = bool(self._said)
        """Whether users say them by patterns of the pack."""
        self._given = [(label, saying.argument) for label, saying in said if saying.argument]
        self._open_names = {
            tool: {
                name for kind in kinds.values() for o in kind for name, f in o.entity.fields.items() if not f.private
            }
            for tool, kinds in pack.schema.shows.items()
        }
        """Another kind of thing may have a field of the same name that is nobody's secret."""
        self._has_odd_names = not all(map(str.isascii, self._names))
        self.marks = tuple(
            dict.fromkeys(
                [f'"field":"{name}"'.encode() for name in self._names]
                + [
                    f'"entity":"{kind}"'.encode()
                    for kind, marked in self.fields.items()
                    if marked.keys() & set(pack.schema.entities[kind].key)
                ]
            )
        )
        """What stands in a record of an audit that speaks of such a field, or of a thing with such a key."""

        shows = {
            tool: [o for entity in self.fields for o in kinds.get(entity, ())]
            for tool, kinds in pack.schema.shows.items()
        }
        self.shown_by = {tool for tool, seen in shows.items() if any(map(self._shows_otherwise, seen))}
        """Tools whose results may show them otherwise than under their names."""
        is_one_each = len(self._names) == sum(map(len, self.fields.values()))
        self._told_by_name = {
            tool
            for tool in shows
            if is_one_each and tool not in self.shown_by and not self._open_names[tool] & self._names.keys()
        }
        """Tools whose results are only to be searched for names: what the observations show is found by that too."""
        self.by_text = {tool for tool, observations in shows.items() if any(o.text is not None for o in observations)}
        """Tools whose results may tell them in a text."""

    def _shows_otherwise(self, observation: Observation) -> bool:
        marked, entity = self.fields[observation.entity.name], observation.entity
        return (
            observation.text is not None
            or any(name in observation.fields or name in entity.key for name in marked)
            or any(field.default is not UNDECLARED for field in marked.values())
        )

    def may_name(self, text: str) -> bool:
        """Whether a result has the name of one in it."""
        if self._has_odd_names or "\\u" in text:
            return True
        for name in self._names:  # noqa: SIM110 - asked of every result, and any() is slower
            if name in text:
                return True
        return False

    def __bool__(self) -> bool:
        return bool(self.fields)

    def in_result(self, tool: str, arguments: Mapping[str, Any], value: Any, text: str | None) -> "Iterator[Found]":
        """What one result shows of them: by the pack's observations, refused or not, and by their names."""
        if tool in self._told_by_name:
            yield from self._by_name(value, _NO_NAMES)
            return
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
        """What the arguments of a call say of them, by their names."""
        yield from self._by_name(arguments, _NO_NAMES)
        for label, argument in self._given:
            if argument in arguments:
                yield label, arguments[argument], argument, False

    def may_be_given(self, arguments: Mapping[str, Any]) -> bool:
        """Whether arguments could say one: most are a few texts under other names."""
        for name, item in arguments.items():
            kind = item.__class__
            if name in self._names or kind is dict or kind is list:
                return True
        return bool(self._given)

    def in_words(self, text: str) -> "Iterator[Found]":
        """What the user says of them, by the pack's patterns."""
        for label, pattern in self._said:
            for match in pattern.finditer(text):
                yield label, match[match.lastindex or 0], "", False

    def in_record(self, entity: str, key: Key, record: WorldRecord) -> "Iterator[Found]":
        """What a record of the world says of them."""
        marked = self.fields.get(entity, {})
        for name in marked:
            yield f"{entity}.{name}", record.get(name, NOTHING), name, False
        for part, name in zip(key, self._schema.entities[entity].key, strict=False):
            if name in marked:
                yield f"{entity}.{name}", part, name, False

    def _by_name(self, value: Any, open_names: AbstractSet[str]) -> "list[Found]":
        found: list[Found] = []
        waiting = [value]
        names = self._names
        while waiting:
            here = waiting.pop()
            # Data out of JSON: asking for the abstract kinds would take longer than all the rest.
            if isinstance(here, dict):
                for name, item in cast("dict[Any, Any]", here).items():
                    if name in names and name not in open_names:
                        found.append((names[name], item, name, False))
                    elif item.__class__ is dict or item.__class__ is list:
                        waiting.append(item)
            elif isinstance(here, list):
                waiting.extend(cast("Sequence[Any]", here))
        return found


_NO_NAMES: frozenset[str] = frozenset()

Found = tuple[str, Any, str, bool]
"""Which field, its value, the name it stands under, and whether it stands somewhere else than under its name."""


class WatchedWorld:
    """A world that remembers which records with private fields were read from it."""

    def __init__(self, world: World, private: Private) -> None:
        self._world = world
        self._private = private
        self.read: dict[tuple[str, Key], WorldRecord] = {}

    def fork(self) -> "WatchedWorld":
        """The same world for a new conversation."""
        return WatchedWorld(self._world.fork(), self._private)

    def record(self, entity: str, key: Key) -> WorldRecord | NoValue:
        """One thing as of now."""
        found = self._world.record(entity, key)
        if entity in self._private.fields and not isinstance(found, NoValue):
            self.read[entity, key] = found
        return found

    def members(self, entity: str, match: Mapping[str, Any]) -> Sequence[Key] | None:
        """All things that match."""
        return self._world.members(entity, match)

    def apply(self, call: Call, result: Result | None) -> None:
        """Move."""
        self._world.apply(call, result)

    def unsettle(self, call: Call) -> None:
        """Nobody knows whether a write was done."""
        self._world.unsettle(call)

    def __getattr__(self, name: str) -> Any:
        # A pack's own world has more to it, e.g. for its benchmark's tasks.
        return getattr(self._world, name)


def collect(
    private: Private, events: Sequence[Event], read: Mapping[tuple[str, Key], WorldRecord]
) -> list[tuple[Found, int | None]]:
    """Every private value that a conversation shows or its judgement read, with the step of a result that shows it."""
    found: list[tuple[Found, int | None]] = []
    for step, event in enumerate(events):
        if type(event) is Call:
            if private.may_be_given(event.arguments):
                found += [(each, None) for each in private.in_arguments(event.arguments)]
        elif type(event) is Message:
            if private.is_said and event.by == "user":
                found += [(each, None) for each in private.in_words(event.text)]
        elif event.captured:
            text = event.text
            is_named = private.may_name(text)
            if not is_named and not private.shown_by:
                continue
            call = events[event.call] if event.call is not None else None
            tool, arguments = (call.tool, call.arguments) if isinstance(call, Call) else (event.tool, {})
            if not is_named and tool not in private.shown_by:
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
