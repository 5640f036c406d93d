"""Values of fields that a pack marks `private`, found wherever a conversation shows them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from bylaw.engine.pack import Pack
from bylaw.facts.entity import Field, Key, Missing
from bylaw.facts.observation import sightings
from bylaw.facts.path import NOTHING
from bylaw.facts.world import Record, World
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
        self._said = [
            (f"{entity}.{field.name}", saying)
            for entity, marked in self.fields.items()
            for field in marked.values()
            for saying in field.sayings
        ]

        shows = {
            tool: [o for entity in self.fields for o in kinds.get(entity, ())]
            for tool, kinds in pack.schema.shows.items()
        }
        self._shown_by = {tool for tool, observations in shows.items() if observations}
        self.by_text = {tool for tool, observations in shows.items() if any(o.text is not None for o in observations)}
        """Tools whose results may tell them in a text."""

    def may_show(self, tool: str, text: str) -> bool:
        """Whether a result could show one: by what the tool is known to show, or by a field's name in it."""
        return tool in self._shown_by or any(name in text or not name.isascii() for name in self._names)

    def __bool__(self) -> bool:
        return bool(self.fields)

    def in_result(self, tool: str, arguments: Mapping[str, Any], value: Any, text: str | None) -> "Iterator[Found]":
        """What one result shows of them: by the pack's observations, refused or not, and by their names."""
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
        # Another kind of thing may have a field of the same name that is nobody's secret.
        open_names = {
            name for kind in shows.values() for o in kind for name, f in o.entity.fields.items() if not f.private
        }
        yield from self._by_name(value, open_names)

    def in_arguments(self, arguments: Mapping[str, Any]) -> "Iterator[Found]":
        """What the arguments of a call say of them, by their names."""
        yield from self._by_name(arguments, set())
        for label, saying in self._said:
            if saying.argument and saying.argument in arguments:
                yield label, arguments[saying.argument], saying.argument, False

    def in_words(self, text: str) -> "Iterator[Found]":
        """What the user says of them, by the pack's patterns."""
        for label, saying in self._said:
            if saying.says:
                for match in compile_pattern(saying.says).finditer(text):
                    yield label, match[match.lastindex or 0], "", False

    def in_record(self, entity: str, key: Key, record: Record) -> "Iterator[Found]":
        """What a record of the world says of them."""
        marked = self.fields.get(entity, {})
        for name in marked:
            yield f"{entity}.{name}", record.get(name, NOTHING), name, False
        for part, name in zip(key, self._schema.entities[entity].key, strict=False):
            if name in marked:
                yield f"{entity}.{name}", part, name, False

    def _by_name(self, value: Any, open_names: set[str]) -> "Iterator[Found]":
        waiting = [value]
        while waiting:
            here = waiting.pop()
            # Data out of JSON: asking for the abstract kinds would take longer than all the rest.
            if isinstance(here, dict):
                for name, item in cast("dict[Any, Any]", here).items():
                    if name in self._names and name not in open_names:
                        yield self._names[name], item, name, False
                    else:
                        waiting.append(item)
            elif isinstance(here, list):
                waiting.extend(cast("Sequence[Any]", here))


Found = tuple[str, Any, str, bool]
"""Which field, its value, the name it stands under, and whether it stands somewhere else than under its name."""


class Witness:
    """A world that remembers which records with private fields were read from it."""

    def __init__(self, world: World, private: Private) -> None:
        self._world = world
        self._private = private
        self.read: dict[tuple[str, Key], Record] = {}

    def fork(self) -> "Witness":
        """The same world for a new trajectory."""
        return Witness(self._world.fork(), self._private)

    def record(self, entity: str, key: Key) -> Record | Missing:
        """One thing as of now."""
        found = self._world.record(entity, key)
        if entity in self._private.fields and not isinstance(found, Missing):
            self.read[entity, key] = found
        return found

    def members(self, entity: str, match: Mapping[str, Any]) -> Sequence[Key] | None:
        """All things that match."""
        return self._world.members(entity, match)

    def apply(self, call: Call, result: Result | None) -> None:
        """Move."""
        self._world.apply(call, result)

    def __getattr__(self, name: str) -> Any:
        # A pack's own world has more to it, e.g. for its benchmark's tasks.
        return getattr(self._world, name)


def collect(
    private: Private, events: Sequence[Event], read: Mapping[tuple[str, Key], Record]
) -> Iterator[tuple[Found, int | None]]:
    """Every private value that a conversation shows or its judgement read, with the step of a result that shows it."""
    for step, event in enumerate(events):
        if isinstance(event, Call):
            yield from ((found, None) for found in private.in_arguments(event.arguments))
        elif isinstance(event, Message):
            if event.by == "user":
                yield from ((found, None) for found in private.in_words(event.text))
        elif event.captured:
            call = events[event.call] if event.call is not None else None
            tool, arguments = (call.tool, call.arguments) if isinstance(call, Call) else (event.tool, {})
            content = event.content
            text = content if isinstance(content, str) else bytes(content).decode("utf-8", "replace")
            if not private.may_show(tool, text):
                continue
            value = event.value()
            as_text = text if isinstance(value, str) else None
            yield from ((found, step) for found in private.in_result(tool, arguments, value, as_text))
            if as_text is None and tool in private.by_text:
                # Data may be read as a text too, an error's for one.
                yield from ((found, step) for found in private.in_result(tool, arguments, value, text))
    for (entity, key), record in read.items():
        yield from ((found, None) for found in private.in_record(entity, key, record))
