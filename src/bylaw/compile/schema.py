"""Reads and describes JSON schemas. Any part of a schema, or of a model's answer, may be missing or malformed."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

Schema = Mapping[str, Any]
DEEPEST = 6
"""The maximum depth to which a schema is followed."""
_PARTS_OF_A_LISTING = 2


def record(value: Any) -> dict[str, Any]:
    """Return the value if it is an object, otherwise an empty object."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    """Return the value if it is a list, otherwise an empty list."""
    return cast(list[Any], value) if isinstance(value, list) else []


def section(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a section of an answer. Empty if the section is missing or is not an object."""
    return record(data.get(name))


def nested(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each schema inside a schema, level by level, with its property name. The name is empty for list items."""
    level = [record(schema)]
    for _ in range(DEEPEST + 1):
        parts = [
            pair
            for each in level
            for pair in (
                *section(each, "properties").items(),
                ("", each.get("items")),
                ("", each.get("additionalProperties")),
            )
        ]
        found = [(name, record(part)) for name, part in parts if name or isinstance(part, dict)]
        yield from found
        level = [part for _, part in found]


def names_in(schema: Any) -> set[str]:
    """Return every property name of a schema, including nested ones."""
    return {name for name, _ in nested(schema) if name}


def words_in(schema: Any) -> set[str]:
    """Return every enumeration value of a schema, including nested ones."""
    schemas = (record(schema), *(part for _, part in nested(schema)))
    return {str(word) for each in schemas for word in listed(each.get("enum")) if word}


def holds_records(schema: Any) -> bool:
    """Whether a value is a record, a mapping from names to records, or a list of either."""
    found = record(schema)
    if found.get("type") == "array":
        return holds_records(found.get("items"))
    return bool(found.get("properties")) or isinstance(found.get("additionalProperties"), dict)


def has_table(schema: Any) -> bool:
    """Whether a record contains a mapping from names to records, not just an id and a list."""
    inner = (section(record(each), "properties") for each in (schema, *(part for _, part in nested(schema))))
    return any(len(parts) > _PARTS_OF_A_LISTING and any(map(_is_table, parts.values())) for parts in inner)


def _is_table(schema: Any) -> bool:
    return bool(section(section(record(schema), "additionalProperties"), "properties"))


def kind_of(schema: Any) -> str:
    """Describe the schema of an argument in a few words."""
    found = record(schema)
    if isinstance(words := found.get("enum"), list):
        return "|".join(map(str, cast(list[Any], words)))
    if found.get("type") == "array":
        return f"list of {kind_of(found.get('items'))}"
    if section(found, "properties"):
        return schema_text(found)
    return str(found.get("format") or found.get("type") or "any")


def schema_text(schema: Any) -> str:
    """Describe the schema of a result: `{order_id: string, lines: [{sku: string}, ...], note: string (not always)}`."""
    found = record(schema)
    if isinstance(properties := found.get("properties"), dict):
        always = found.get("required", properties)
        parts = (
            f"{name}: {schema_text(one)}" + ("" if name in always else " (not always)")
            for name, one in cast(dict[str, Any], properties).items()
        )
        return "{" + ", ".join(parts) + "}"
    if isinstance(inner := found.get("additionalProperties"), dict):
        return f"{{NAME: {schema_text(inner)}, ...}}"
    if found.get("type") == "array":
        return f"[{schema_text(found.get('items'))}, ...]"
    return kind_of(found)
