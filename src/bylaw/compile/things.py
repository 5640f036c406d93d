"""The data behind the tools: entities, what each result shows of them, what each write changes.

The answer is YAML as a pack has it. The loader of packs reads it, and recorded results are held against it; what either
finds is sent back.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from bylaw.compile.card import Card
from bylaw.compile.desk import Desk
from bylaw.compile.prompt import render
from bylaw.engine.pack import Pack
from bylaw.errors import BylawError, PackError
from bylaw.facts.acceptance import accepted
from bylaw.facts.observation import unreadable
from bylaw.llm.chat import bare_json
from bylaw.policy.yaml import YamlError, read_yaml
from bylaw.scan.written import dump
from bylaw.trace import Call, Result, Trajectory

_ROUNDS = 3
_EMPTY_DOCUMENT = "# Policy\n\nNothing yet.\n"


class Things(Struct, frozen=True):
    """Entities and observations as `entities.yaml` has them, and per tool its effect, changes and effects."""

    entities: dict[str, Any]
    observations: dict[str, Any]
    tools: dict[str, dict[str, Any]]
    complaints: tuple[str, ...] = ()
    """What was still wrong when asking ended; the parts concerned are left out."""


def describe(desk: Desk, cards: Mapping[str, Card], trajectories: Sequence[Trajectory]) -> Things | None:
    """The data behind the tools; None while an answer is missing."""
    told = "\n\n".join(card.whole for card in cards.values())
    request = render("things", {"tools": told}, max_tokens=16_384)
    outcome = desk.converse(request, lambda text: _judged(text, cards, trajectories), rounds=_ROUNDS)
    if outcome is None:
        return None
    made = outcome.made
    return Things(made.entities, made.observations, made.tools, outcome.complaints)


def tools_file(cards: Mapping[str, Card], things: Things) -> str:
    """`tools.yaml`: what the catalogue knows of each tool, and what each does."""
    tools: dict[str, Any] = {}
    for name, card in cards.items():
        body: dict[str, Any] = {"effect": "write", **things.tools.get(name, {})}
        if card.effect is not None:
            body["effect"] = card.effect
        if card.description:
            body["description"] = " ".join(card.description.split())
        if card.parameters:
            body["parameters"] = {
                "type": "object",
                "properties": card.parameters,
                "required": list(card.required),
            }
        tools[name] = body
    return dump({"tools": tools})


def entities_file(things: Things, request: Mapping[str, Any] | None = None) -> str:
    """`entities.yaml`, with the facts that only the user can state."""
    entities = dict(things.entities)
    if request:
        entities["Request"] = {"key": [], "fields": dict(request)}
    return dump({"entities": entities, "observations": things.observations})


def schema_files(cards: Mapping[str, Card], things: Things) -> dict[str, str]:
    """The files of a pack that holds nothing but the schema."""
    return {
        "pack.yaml": dump({"format": 1, "name": "trial", "document": "policy.md"}),
        "policy.md": _EMPTY_DOCUMENT,
        "tools.yaml": tools_file(cards, things),
        "entities.yaml": entities_file(things),
    }


def _judged(text: str, cards: Mapping[str, Card], trajectories: Sequence[Trajectory]) -> tuple[Things, list[str]]:
    nothing = Things({}, {}, {})
    try:
        data = read_yaml(bare_json(text), file="answer").data
    except YamlError as error:
        return nothing, [f"not YAML as asked for: {error}"]
    complaints = [f"`{name}` is not a tool" for name in _section(data, "tools") if name not in cards]
    complaints += [f"`tools` says nothing of `{name}`" for name in cards if name not in _section(data, "tools")]
    observed = _section(data, "observations")
    things = Things(
        _section(data, "entities"),
        {name: body for name, body in observed.items() if name in cards},
        {name: body or {} for name, body in _section(data, "tools").items() if name in cards},
    )
    if "Request" in things.entities:
        complaints.append("`Request` is kept for what users say; leave it out")
    try:
        pack = Pack.from_files(schema_files(cards, things))
    except PackError as error:
        return things, complaints + [_told(fault) for fault in error.faults]
    return things, complaints + _unread(pack, trajectories)


def _section(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = data.get(name)
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def _told(fault: BylawError) -> str:
    """A fault of the loader, without lines of files that whoever answers has not seen."""
    return f"{fault.message}; {fault.hint}" if fault.hint else fault.message


def _unread(pack: Pack, trajectories: Sequence[Trajectory]) -> list[str]:
    """Tools with observations that do not fit what was recorded, and reads that show nothing at all."""
    wrong: dict[tuple[str, str], int] = {}
    count: dict[str, int] = {}
    for trajectory in trajectories:
        for result in trajectory.events:
            call = trajectory.events[result.call] if isinstance(result, Result) and result.call is not None else None
            if not isinstance(result, Result) or not isinstance(call, Call) or not result.captured:
                continue
            tool = pack.schema.tools.get(call.tool)
            if tool is None or not accepted(tool, result):
                continue
            count[call.tool] = count.get(call.tool, 0) + 1
            for kind, observations in pack.schema.shows.get(call.tool, {}).items():
                if unreadable(observations, call.arguments, result.value()) is not None:
                    wrong[call.tool, kind] = wrong.get((call.tool, kind), 0) + 1
    complaints = [
        f"`{tool}`: {number} of {count[tool]} recorded results show no `{kind}` by its observations; look at the"
        " paths and the key"
        for (tool, kind), number in wrong.items()
        if number * 2 > count[tool]
    ]
    silent = [name for name in count if pack.schema.tools[name].effect == "read" and name not in pack.schema.shows]
    return complaints + [f"`{name}` reads, and `observations` says nothing of its results" for name in silent]
