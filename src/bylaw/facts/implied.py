"""What the records of a database hold beside themselves.

A record in the database is what the tool that reads such things returns. So the pack's observations of that tool tell
which other things stand inside it (the payment methods in a customer's record), and which fields lie deeper than their
names say.
"""

from collections.abc import Iterator

from msgspec import Struct

from bylaw.facts.entity import Entity, Key
from bylaw.facts.observation import Sighting, sightings
from bylaw.facts.path import NOTHING
from bylaw.facts.schema import Schema
from bylaw.facts.world import WorldRecord

Index = dict[str, dict[Key, WorldRecord]]


class Implied(Struct, frozen=True):
    """Things by kind and key, as the records of a database show them."""

    index: Index
    partial: frozenset[str]
    """Kinds of which there may be more than the records show: one that is not among them is not known."""


def implied(schema: Schema, tables: Index) -> Implied:
    """The tables, each record with what its own observation shows, and the things that stand inside records."""
    index: Index = {name: dict(records) for name, records in tables.items()}
    partial: set[str] = set()
    for name in tables:
        entity = schema.entities[name]
        for sighting, key in _seen(schema, entity, tables):
            found = sighting.observation.entity
            is_own = found.name == name and sighting.key == key
            if not is_own and (found.name in tables or found.name in schema.stored or found.origin != "system"):
                continue
            shown = {field: value for field in found.fields if (value := sighting.show(field)) is not NOTHING}
            things = index.setdefault(found.name, {})
            known = things.get(sighting.key) or dict(zip(found.key, sighting.key, strict=True))
            things[sighting.key] = {**known, **shown}
            if not is_own and (found.read is not None or sighting.observation.only):
                partial.add(found.name)
    return Implied(index, frozenset(partial))


def _seen(schema: Schema, entity: Entity, tables: Index) -> Iterator[tuple[Sighting, Key]]:
    """What the tool that reads an entity would show of each of its records, with the record's key."""
    if entity.read is None:
        return
    observations = [each for kinds in schema.shows.get(entity.read.tool, {}).values() for each in kinds]
    for key, record in tables[entity.name].items():
        parts = dict(zip(entity.key, key, strict=True))
        args = {argument: parts[part] for argument, part in entity.read.arguments.items() if part in parts}
        for observation in observations:
            if observation.text is None:
                yield from ((sighting, key) for sighting in sightings(observation, args, record, None, True))
