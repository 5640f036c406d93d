"""What stands inside the fields that are lists or objects, as results show it: for whoever reads such a field."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from bylaw.compile.card import DEEPEST, Card
from bylaw.compile.fit import shown_as
from bylaw.compile.things import Things

Schema = Mapping[str, Any]


def insides(things: Things, cards: Mapping[str, Card]) -> dict[tuple[str, str], Schema]:
    """By entity and field the JSON schema of records inside it; only fields that hold records are listed."""
    return {field: schema for field, schema in held(things, cards).items() if holds_records(schema)}


def held(things: Things, cards: Mapping[str, Card]) -> dict[tuple[str, str], Schema]:
    """By entity and field the JSON schema of a list or an object; of records, where some tool shows records there."""
    shown_by = _shown_by(things)
    found: dict[tuple[str, str], Schema] = {}
    for entity, body in things.entities.items():
        for field, spec in cast(dict[str, Any], cast(dict[str, Any], body).get("fields") or {}).items():
            kind = cast(dict[str, Any], spec).get("type") if isinstance(spec, dict) else spec
            if kind not in ("list", "object"):
                continue
            schemas = (cards[tool].output for tool in shown_by.get(entity, ()) if tool in cards)
            shown = [inner for schema in schemas for inner in _named(schema, field)]
            if shown:
                found[entity, field] = next(filter(holds_records, shown), shown[0])
    return found


def is_shorter(value: Any, schema: Any) -> bool:
    """Whether some list in a value has fewer items than any that was recorded."""
    record = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
    if isinstance(value, list):
        items = cast(list[Any], value)
        return len(items) < record.get("minItems", 0) or any(is_shorter(each, record.get("items")) for each in items)
    if isinstance(value, dict):
        parts = cast(dict[str, Any], record.get("properties") or {})
        inner = record.get("additionalProperties")
        return any(is_shorter(part, parts.get(name, inner)) for name, part in cast(dict[str, Any], value).items())
    return False


def holds_records(schema: Any) -> bool:
    """Whether records with names of their own stand in it."""
    record = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
    if record.get("type") == "array":
        return holds_records(record.get("items"))
    return bool(record.get("properties")) or isinstance(record.get("additionalProperties"), dict)


def _shown_by(things: Things) -> dict[str, list[str]]:
    """The tools that show each entity, the one that reads it first."""
    found: dict[str, list[str]] = {}
    for entity, body in things.entities.items():
        read = cast(dict[str, Any], body).get("read")
        if read:
            found[entity] = [str(cast(dict[str, Any], read).get("tool") if isinstance(read, dict) else read)]
    for tool, told in things.observations.items():
        for name in shown_as(told):
            found.setdefault(name, []).append(tool)
    return found


def _named(schema: Any, name: str, depth: int = 0) -> Iterator[Schema]:
    """The schemas of properties of that name, the outermost first."""
    if not isinstance(schema, dict) or depth > DEEPEST:
        return
    record = cast(dict[str, Any], schema)
    properties = cast(dict[str, Any], record.get("properties") or {})
    if name in properties:
        yield properties[name]
    for part in (*properties.values(), record.get("items"), record.get("additionalProperties")):
        yield from _named(part, name, depth + 1)
