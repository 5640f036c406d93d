"""Selects the context for a question about policies: the tools that they bind, and the entities that these tools can
reach.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bylaw.compile.card import Card
from bylaw.compile.schema import Schema, listed, names_in, record, schema_text, section
from bylaw.compile.things import Place, Things, insides, keys_of, read_tool, shown_as

_LONGEST = 24_000
"""The maximum number of characters that one question spends on tools."""
_SEVERAL = 2
_MOST_OTHERS = 40
"""The maximum number of unbound tools that a question names."""
_ORDER = re.compile(
    r"\b(in (this|that|the following|the given) order|gives an order|first (look|check|see|make sure)"
    r"|looks? .{0,40} first)\b",
    re.IGNORECASE,
)
"""Phrases that state the order of several checks."""
_DAY = re.compile(r"(^|_)(date|day)$")
"""Matches the name of a key field that contains a day."""


def bound_tools_text(cards: Mapping[str, Card], tools: Iterable[str]) -> str:
    wanted = set(tools)
    return "\n".join(card.bound for name, card in cards.items() if name in wanted)


def code_notes(things: Things, cards: Mapping[str, Card], tools: Sequence[str], sentences: str) -> str:
    """Return notes on writing code for the entities that the tools can reach. Empty if no notes apply."""
    near = _near(things, cards, tools)
    notes = [*_lists_notes(cards, tools), *_day_notes(things, near if tools else set())]
    if len(near) >= _SEVERAL and not _ORDER.search(sentences):
        notes.append(
            "The document gives no order, so settle first what needs the fewest facts: what the arguments alone settle,"
            " then what the record that the call names settles, and only then look at records behind it. A call that"
            " one condition settles by itself needs no fact of another."
        )
    return "".join(f"\n{note}" for note in notes)


def _lists_notes(cards: Mapping[str, Card], tools: Iterable[str]) -> list[str]:
    """If a bound tool has several list arguments, advise how to loop over them together."""
    for tool in tools:
        parameters = cards[tool].parameters
        lists = [name for name, schema in parameters.items() if record(schema).get("type") == "array"]
        if len(lists) > 1:
            return [
                f"Two lists are walked side by side with `for a, b in zip(call.{lists[0]}, call.{lists[1]})`;"
                " `enumerate(list)` gives positions, `len(list)` the length."
            ]
    return []


def _day_notes(things: Things, near: set[str]) -> list[str]:
    """If an entity's key contains a day, point out that the result often depends on the calendar."""
    for name in (each for each in things.entities if each in near):
        if day := next(filter(_DAY.search, keys_of(things.entities[name])), None):
            return [
                f"What the calendar settles needs no record: a {name} of a day to come"
                f" (`date(x.{day}) > date(now())`) has neither begun nor ended, so a guard that asks whether one has"
                " looks at its record only where the day has come."
            ]
    return []


def other_tools_text(cards: Mapping[str, Card], tools: Iterable[str], sentences: str) -> str:
    """List the unbound tools with their arguments. If there are too many, list only those that the sentences name."""
    bound = set(tools)
    others = {name: card for name, card in cards.items() if name not in bound}
    if len(others) > _MOST_OTHERS:
        spoken = _words(sentences)
        others = {name: card for name, card in others.items() if _words(name) & spoken}
    return ", ".join(f"{name}({', '.join(card.parameters)})" for name, card in others.items()) or "none"


def catalogue_text(cards: Mapping[str, Card], policies: str) -> str:
    """List every tool, one per line. If there are too many, describe only the tools whose wording is closest to the
    policies, and name the rest.
    """
    return _nearest({name: card.short for name, card in cards.items()}, cards, policies, "\n")


def catalogue_with_results(cards: Mapping[str, Card], fields: str) -> str:
    """List every tool with its results. If there are too many, describe only the tools whose wording is closest to the
    fields, and name the rest.
    """
    return _nearest({name: card.whole for name, card in cards.items()}, cards, fields, "\n\n")


def _nearest(told: Mapping[str, str], cards: Mapping[str, Card], words: str, between: str) -> str:
    """Return the descriptions of all tools if they fit the limit. Otherwise, return those of the most similar tools."""
    if sum(map(len, told.values())) <= _LONGEST:
        return between.join(told.values())
    wanted = _words(words)
    near = sorted(told, key=lambda name: -len(wanted & _words(f"{name} {cards[name].description}")))
    shown: set[str] = set()
    size = 0
    for name in near:
        size += len(told[name])
        if size > _LONGEST:
            break
        shown.add(name)
    others = ", ".join(name for name in told if name not in shown)
    return between.join([*(text for name, text in told.items() if name in shown), f"- and, by name alone: {others}"])


def _words(text: str) -> set[str]:
    """Return the stems of words, so that `bookings`, `booked` and `book` compare equal."""
    return {word[:5] for word in re.findall(r"[a-z]{4,}", text.lower().replace("_", " "))}


def things_text(
    things: Things, cards: Mapping[str, Card], tools: Sequence[str], request: Mapping[str, Any], sentences: str = ""
) -> str:
    """Describe the entities that the sentences name, and the entities that the tools' arguments lead to, directly or
    through records.
    """
    near = _near(things, cards, tools) | _named(things, sentences)
    inside = insides(things, cards)
    lines = [
        _thing(name, body, cards, inside) + _made_by(name, body, things)
        for name, body in things.entities.items()
        if name in near
    ]
    if request:
        can_be_none = any(str(section(request, name).get("type")).endswith("?") for name in request)
        none = "; `None`: they have not" if can_be_none else ""
        lines.append(
            _thing("Request", {"key": [], "fields": request}, {}, {}) + f"  (what only the user can say{none})"
        )
    return "\n".join(lines) or "none"


def _made_by(name: str, body: Mapping[str, Any], things: Things) -> str:
    """Describe how the conversation creates an entity of origin `conversation`. Empty for any other entity."""
    if body.get("origin") != "conversation":
        return ""
    shown = ", ".join(tool for tool, seen in things.observations.items() if name in shown_as(seen))
    before = f"until then `facts.{name}.exists` is false, and so it is"
    if body.get("read"):
        before = f"whoever reads it asks for that look-up, and `facts.{name}.exists` is false where it found nobody,"
    return (
        f"  (made by the conversation, with {shown}: {before} in a case with `{name}: null`;"
        " only policies about who the user is, or whose record it is, look at it: for all others the customer is the"
        " one that the record names)"
    )


def _near(things: Things, cards: Mapping[str, Card], tools: Sequence[str]) -> set[str]:
    """Return the entities that the tools' arguments lead to, directly or through records. If there are none, return
    all.
    """
    inside = insides(things, cards)
    names = {name for tool in tools for name in names_in({"properties": cards[tool].parameters})}
    near: set[str] = set()
    while found := {
        name for name, body in things.entities.items() if name not in near and _is_reached(keys_of(body), names)
    }:
        near |= found
        for name in found:
            fields = section(things.entities[name], "fields").keys()
            names = names | fields | {inner for field in fields for inner in names_in(inside.get((name, field)))}
    return near or set(things.entities)


def _named(things: Things, sentences: str) -> set[str]:
    """Return the entities that the sentences mention by name, or by a multi-word field that no other entity has."""
    text = f" {' '.join(_singular(sentences))} "
    fields = {name: section(body, "fields") for name, body in things.entities.items()}
    owners = Counter(field for own in fields.values() for field in own)
    spoken = {field for field in owners if owners[field] == 1 and len(_singular(field)) > 1}
    return {
        name
        for name, own in fields.items()
        if any(f" {' '.join(_singular(each))} " in text for each in (name, *(spoken & own.keys())))
    }


def _singular(text: str) -> list[str]:
    """Split a name into lower-case singular words. `PlanOption` and `plan_options` yield the same words."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", text)
    return [re.sub(r"(?<=[^s])s$", "", re.sub(r"ies$", "y", word.lower())) for word in words]


def _is_reached(key: Sequence[str], names: set[str]) -> bool:
    """Whether a name leads to at least one part of the key. The remaining parts may be constants, such as a kind stated
    in a policy.
    """
    return not key or any(_leads(name, part) for part in key for name in names)


def _leads(name: str, key: str) -> bool:
    """Whether a field or argument can hold a key. `primary_order_id` and `orders` can hold an `order_id`."""
    return name == key or name.endswith(f"_{key}") or (key.endswith("_id") and name == f"{key.removesuffix('_id')}s")


def _thing(name: str, body: Mapping[str, Any], cards: Mapping[str, Card], inside: Mapping[Place, Schema]) -> str:
    """Describe an entity: its key, its fields, and the records inside its fields."""
    look_up = cards.get(read_tool(body))
    arguments = look_up.parameters if look_up is not None else {}
    words = {part: record(arguments.get(part)).get("enum") for part in keys_of(body)}
    key = ", ".join(f"{part}: {field_kind(values)}" if values else part for part, values in words.items())
    kinds = [
        f"{field} {field_kind(spec)}{_notes(record(spec))}"
        + (f" {schema_text(inside[name, field])}" if (name, field) in inside else "")
        for field, spec in section(body, "fields").items()
    ]
    return f"{name}[{key}]: {'; '.join(kinds)}"


def _notes(spec: Mapping[str, Any]) -> str:
    """Describe a field's default and, if the field contains keys, the entities that they refer to."""
    gathered = f" of every {str(spec['keys_of']).partition('.')[0]} with this key" if spec.get("keys_of") else ""
    return gathered + (f" ({json.dumps(spec['default'])} where it is not set)" if "default" in spec else "")


def field_kind(spec: Any) -> str:
    """Return a field's type in one word, or its possible values."""
    if isinstance(spec, list):
        return "|".join(map(str, listed(spec)))
    if not isinstance(spec, dict):
        return str(spec)
    kind = str(record(spec).get("type", "string"))
    values = record(spec).get("values")
    return field_kind(values) + ("|None" if kind.endswith("?") else "") if values else kind
