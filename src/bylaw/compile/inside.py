"""What stands inside the fields that are lists or objects, as results show it: for whoever reads such a field."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from bylaw.compile.card import Card
from bylaw.compile.things import Things

Schema = Mapping[str, Any]
_DEEPEST = 6


def insides(things: Things, cards: Mapping[str, Card]) -> dict[tuple[str, str], Schema]:
    """By entity and field the JSON schema of records inside it; only fields that hold records are listed."""
    shown_by = _shown_by(things)
    found: dict[tuple[str, str], Schema] = {}
    for entity, body in things.entities.items():
        for field, spec in cast(dict[str, Any], cast(dict[str, Any], body).get("fields") or {}).items():
            kind = cast(dict[str, Any], spec).get("type") if isinstance(spec, dict) else spec
            if kind not in ("list", "object"):
                continue
            schemas = (cards[tool].output for tool in shown_by.get(entity, ()) if tool in cards)
            held = (inner for schema in schemas for inner in _named(schema, field) if holds_records(inner))
            if (first := next(held, None)) is not None:
                found[entity, field] = first
    return found


def holds_records(schema: Any) -> bool:
    """Whether records with names of their own stand in it."""
    record = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
    if record.get("type") == "array":
        return holds_records(record.get("items"))
    return bool(record.get("properties")) or isinstance(record.get("additionalProperties"), dict)


def names_in(schema: Any, depth: int = 0) -> Iterator[str]:
    """Every name of a part, however deep it stands."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return
    record = cast(dict[str, Any], schema)
    properties = cast(dict[str, Any], record.get("properties") or {})
    yield from properties
    for part in (*properties.values(), record.get("items"), record.get("additionalProperties")):
        yield from names_in(part, depth + 1)


def _shown_by(things: Things) -> dict[str, list[str]]:
    """The tools that show each entity, the one that reads it first."""
    found: dict[str, list[str]] = {}
    for entity, body in things.entities.items():
        read = cast(dict[str, Any], body).get("read")
        if read:
            found[entity] = [str(cast(dict[str, Any], read).get("tool") if isinstance(read, dict) else read)]
    for tool, told in things.observations.items():
        for each in cast(list[Any], told) if isinstance(told, list) else [told]:
            if isinstance(each, dict):
                found.setdefault(str(cast(dict[str, Any], each).get("as")), []).append(tool)
    return found


def _named(schema: Any, name: str, depth: int = 0) -> Iterator[Schema]:
    """The schemas of properties of that name, the outermost first."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return
    record = cast(dict[str, Any], schema)
    properties = cast(dict[str, Any], record.get("properties") or {})
    if name in properties:
        yield properties[name]
    for part in (*properties.values(), record.get("items"), record.get("additionalProperties")):
        yield from _named(part, name, depth + 1)
