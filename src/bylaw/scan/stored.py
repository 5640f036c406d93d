"""Where the things of a drafted pack stand in a database that is given beside the logs."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from bylaw.errors import BylawError
from bylaw.facts.database import open_snapshot
from bylaw.facts.entity import Entity
from bylaw.facts.schema import Schema

_DEPTH = 3
_LOOKED_AT = 50
_MOST = 0.6
"""So many of a thing's fields the records of a place must have for it to be proposed."""


class Holding(Struct, frozen=True):
    """What a database holds of the things of a pack."""

    found: dict[str, int]
    """How many of each kind."""
    missing: tuple[str, ...]
    """Kinds of which nothing is known."""


def stored_in(path: Path, schema: Schema) -> Holding:
    """What a database holds of each kind of thing that look-ups show."""
    try:
        snapshot = open_snapshot(path, schema)
    except BylawError:
        return Holding({}, tuple(schema.entities))
    found: dict[str, int] = {}
    for entity in schema.entities.values():
        if entity.key and (keys := snapshot.members(entity.name, {})) is not None:
            found[entity.name] = len(keys)
    return Holding(found, tuple(entity.name for entity in schema.entities.values() if entity.name not in found))


def world_lines(path: Path, schema: Schema, missing: tuple[str, ...]) -> str:
    """`world:` for entities.yaml: where in a JSON document kinds stand that are not found by their names."""
    try:
        data: Any = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return ""
    lines: list[str] = []
    for name in missing:
        entity = schema.entities[name]
        ranked = sorted(_fitting(data, entity), key=lambda each: (-each[0], len(each[1])))
        if ranked and (len(ranked) == 1 or ranked[0][0] > ranked[1][0]):
            lines.append(f"  {name}: {ranked[0][1]}")
    return "\n".join(["world:", *lines]) + "\n" if lines else ""


def _fitting(data: Any, entity: Entity) -> Iterator[tuple[float, str]]:
    """The places whose records have most of a thing's fields and its key, with the share that they have."""
    if len(entity.key) != 1:
        return
    wanted = {name for name in entity.fields if name not in entity.key}
    for path, body in _places(data, "$", _DEPTH):
        is_keyed = isinstance(body, dict)
        items = list(cast(dict[str, Any], body).values() if is_keyed else cast(list[Any], body))[:_LOOKED_AT]
        if not items or not all(isinstance(each, dict) for each in items):
            continue
        records = cast(list[Mapping[str, Any]], items)
        is_named = is_keyed or all(entity.key[0] in each for each in records)
        share = sum(len(wanted & each.keys()) for each in records) / (len(records) * len(wanted)) if wanted else 0
        if is_named and share >= _MOST:
            key = ", key: $key" if not all(entity.key[0] in each for each in records) else ""
            yield share, f"{{each: {f'{path}.*' if is_keyed else f'{chr(34)}{path}[*]{chr(34)}'}{key}}}"


def _places(data: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    if not isinstance(data, dict) or not depth:
        return
    for name, body in cast(dict[str, Any], data).items():
        if isinstance(body, dict | list) and name.isidentifier():
            yield f"{path}.{name}", body
            yield from _places(body, f"{path}.{name}", depth - 1)
