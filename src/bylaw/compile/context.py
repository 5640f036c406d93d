"""What a question about policies shows beside them: the tools they bind and the things within reach, and no more."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from bylaw.compile.card import Card, told_schema
from bylaw.compile.inside import Schema, insides
from bylaw.compile.things import Things


def told_tools(cards: Mapping[str, Card], tools: Iterable[str]) -> str:
    """The bound tools, one a line."""
    wanted = set(tools)
    return "\n".join(card.short for name, card in cards.items() if name in wanted)


def told_things(things: Things, cards: Mapping[str, Card], tools: Sequence[str], request: Mapping[str, Any]) -> str:
    """The things that the tools' arguments lead to, directly or through records that point to others."""
    near = _near(things, cards, tools)
    bodies = {name: cast(dict[str, Any], body) for name, body in things.entities.items() if name in near}
    inside = insides(things, cards)
    lines = [_thing(name, body, _read_by(body, cards), inside) for name, body in bodies.items()]
    if request:
        lines.append(_thing("Request", {"key": [], "fields": request}, {}, {}) + "  (what only the user can say)")
    return "\n".join(lines) or "none"


def keys_of(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The key fields of an entity."""
    key = body.get("key", [])
    return tuple(map(str, cast(list[Any], key))) if isinstance(key, list) else (str(key),)


def _near(things: Things, cards: Mapping[str, Card], tools: Sequence[str]) -> set[str]:
    names = {name for tool in tools for name in cards[tool].parameters}
    near: set[str] = set()
    while True:
        found = {
            name for name, body in things.entities.items() if name not in near and _is_reached(keys_of(body), names)
        }
        if not found:
            return near or set(things.entities)
        near |= found
        for name in found:
            names |= cast(dict[str, Any], things.entities[name].get("fields") or {}).keys()


def _is_reached(key: Sequence[str], names: set[str]) -> bool:
    """Whether some part of a key is at hand; the others may be constants, such as a kind that a policy names."""
    return not key or any(_leads(name, part) for part in key for name in names)


def _leads(name: str, key: str) -> bool:
    """Whether a field or argument may hold the key of something: `primary_clinician_id` for `clinician_id`."""
    return name == key or name.endswith(f"_{key}")


def _read_by(body: Mapping[str, Any], cards: Mapping[str, Card]) -> Mapping[str, Any]:
    """The arguments of the tool that fetches a thing, which may list the words of its key."""
    read = body.get("read")
    tool = cast(dict[str, Any], read).get("tool") if isinstance(read, dict) else read
    return cards[str(tool)].parameters if str(tool) in cards else {}


def _thing(
    name: str, body: Mapping[str, Any], arguments: Mapping[str, Any], inside: Mapping[tuple[str, str], Schema]
) -> str:
    fields = cast(dict[str, Any], body.get("fields") or {})
    words = {part: cast(dict[str, Any], arguments.get(part) or {}).get("enum") for part in keys_of(body)}
    key = ", ".join(f"{part}: {_kind(listed)}" if listed else part for part, listed in words.items())
    kinds = {field: _kind(spec) for field, spec in fields.items()}
    kinds |= {
        field: f"{kinds[field]} {told_schema(inside[name, field])}" for field in fields if (name, field) in inside
    }
    return f"{name}[{key}]: {'; '.join(f'{field} {kind}' for field, kind in kinds.items())}"


def _kind(spec: Any) -> str:
    if isinstance(spec, list):
        return "|".join(map(str, cast(list[Any], spec)))
    if isinstance(spec, dict):
        record = cast(dict[str, Any], spec)
        return _kind(record["values"]) if record.get("values") else str(record.get("type", "string"))
    return str(spec)
