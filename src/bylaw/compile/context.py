"""What a question about policies shows beside them: the tools they bind and the things within reach, and no more."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from bylaw.compile.things import Things
from bylaw.compile.tools import Card


def told_tools(cards: Mapping[str, Card], tools: Iterable[str]) -> str:
    """The bound tools, one a line."""
    wanted = set(tools)
    return "\n".join(card.short for name, card in cards.items() if name in wanted)


def told_things(things: Things, cards: Mapping[str, Card], tools: Sequence[str], request: Mapping[str, Any]) -> str:
    """The things that the tools' arguments lead to, directly or through records that point to others."""
    near = _near(things, cards, tools)
    lines = [_thing(name, cast(dict[str, Any], body)) for name, body in things.entities.items() if name in near]
    if request:
        lines.append(_thing("Request", {"key": [], "fields": request}) + "  (what only the user can say)")
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
            name
            for name, body in things.entities.items()
            if name not in near and all(any(_leads(each, part) for each in names) for part in keys_of(body))
        }
        if not found:
            return near or set(things.entities)
        near |= found
        for name in found:
            names |= cast(dict[str, Any], things.entities[name].get("fields") or {}).keys()


def _leads(name: str, key: str) -> bool:
    """Whether a field or argument may hold the key of something: `primary_clinician_id` for `clinician_id`."""
    return name == key or name.endswith(f"_{key}")


def _thing(name: str, body: Mapping[str, Any]) -> str:
    fields = cast(dict[str, Any], body.get("fields") or {})
    key = ", ".join(keys_of(body))
    return f"{name}[{key}]: {'; '.join(f'{field} {_kind(spec)}' for field, spec in fields.items())}"


def _kind(spec: Any) -> str:
    if isinstance(spec, list):
        return "|".join(map(str, cast(list[Any], spec)))
    if isinstance(spec, dict):
        record = cast(dict[str, Any], spec)
        return _kind(record["values"]) if record.get("values") else str(record.get("type", "string"))
    return str(spec)
