"""The data behind the tools: entities, what each result shows of them, what each write changes.

The answer is YAML as a pack has it. The loader of packs reads it, and recorded results are held against it; what either
finds is sent back.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.card import Card, names_in
from bylaw.compile.desk import Desk, prompt_text, render, stage
from bylaw.compile.fit import misfits, section, shown_as, widened, with_defaults
from bylaw.compile.naming import digest_of
from bylaw.compile.result import has_table
from bylaw.errors import BylawError, PackError
from bylaw.llm.chat import unfenced
from bylaw.pack import Pack
from bylaw.policy.document import Document
from bylaw.policy.yaml import YamlError, read_yaml
from bylaw.scan.written import dump, packed
from bylaw.trace import Trajectory

LONGEST = 30_000
"""Letters of tools in one question."""
_ANSWER = 16_384
_ROUNDS = 3
_EMPTY_DOCUMENT = "# Policy\n\nNothing yet.\n"


class Things(Struct, frozen=True):
    """Entities and observations as `entities.yaml` has them, and per tool its effect, changes and effects."""

    entities: dict[str, Any]
    observations: dict[str, Any]
    tools: dict[str, dict[str, Any]]
    complaints: tuple[str, ...] = ()
    """What was still wrong when asking ended, so that no pack can stand on it."""
    misfits: tuple[str, ...] = ()
    """What does not fit recorded results; a pack can stand on it, and a reviewer should know."""
    shown: str = ""
    """Digest of the tools as they were shown."""


@stage
def describe(
    desk: Desk,
    cards: Mapping[str, Card],
    trajectories: Sequence[Trajectory],
    earlier: Things | None = None,
    *,
    asks_who: bool = False,
) -> Things:
    """The data behind the tools, part by part where there are many.

    With `asks_who` the document has the assistant establish who the user is, which is then one of the things.
    """
    who = f"\n\n{prompt_text('things_who')}" if asks_who else ""
    tables, reads = _told_tables(cards), _told_reads(cards, cards)
    shown = digest_of(*(card.whole for card in cards.values()), *(each for each in (who, tables, reads) if each))
    if earlier is not None and earlier.shown == shown:
        return earlier
    made = Things({}, {}, {})
    complaints: list[str] = []
    known: dict[str, Card] = {}
    for part in _parts(cards):
        told = "\n\n".join(card.whole for card in part.values())
        more = f"{_told_tables(part)}{_told_reads(part, cards)}{who}"
        if known:
            described = dump(_named_and_keyed(made.entities))
            request = render("things_more", {"tools": told, "entities": described, "more": more}, max_tokens=_ANSWER)
        else:
            request = render("things", {"tools": told, "more": more}, max_tokens=_ANSWER)
        known |= part
        outcome = desk.converse(
            request,
            lambda text, part=part, known=dict(known), made=made: _judged(text, part, known, made, trajectories),
            rounds=_ROUNDS,
        )
        made = outcome.made
        complaints += [each for each in outcome.complaints if each not in made.misfits]
    entities = _made_by_tools(made)
    if not complaints and trajectories:
        pack = Pack.from_files(schema_files(cards, replace(made, entities=entities)))
        entities = with_defaults(entities, made.tools, pack, trajectories)
    return replace(made, entities=entities, complaints=tuple(complaints), shown=shown)


def _told_tables(cards: Mapping[str, Card]) -> str:
    """How tables inside records are described, where some result has one; else nothing."""
    return f"\n\n{prompt_text('things_tables')}" if any(has_table(card.output) for card in cards.values()) else ""


def _told_reads(part: Mapping[str, Card], cards: Mapping[str, Card]) -> str:
    """How to say which argument holds a key, where a look-up calls an id otherwise than all results; else nothing."""
    shown = {name for card in cards.values() for name in names_in(card.output)}
    unlike = [
        f"{card.name}({name})"
        for card in part.values()
        if card.output and card.effect != "write" and card.required == tuple(card.parameters)
        for name in card.required
        if name not in shown and _ID.search(name)
    ]
    return f"\n\n{prompt_text('things_read').replace('{{arguments}}', ', '.join(unlike[:6]))}" if unlike else ""


_ID = re.compile(r"(^|_)(id|number|code|key|ref|reference)$", re.IGNORECASE)


def _made_by_tools(things: Things) -> dict[str, Any]:
    """The entities without those that a conversation should make and no tool ever shows: they would never be there."""
    shown = {name for observed in things.observations.values() for name in shown_as(observed)}
    return {
        name: body
        for name, body in things.entities.items()
        if name in shown or section({"": body}, "").get("origin") != "conversation"
    }


def _parts(cards: Mapping[str, Card]) -> Iterator[dict[str, Card]]:
    """The tools in the order given, as many at once as one question holds."""
    part: dict[str, Card] = {}
    size = 0
    for name, card in cards.items():
        if part and size + len(card.whole) > LONGEST:
            yield part
            part, size = {}, 0
        part[name] = card
        size += len(card.whole)
    yield part


def _named_and_keyed(entities: Mapping[str, Any]) -> dict[str, Any]:
    """Entities as a later part needs them: key, read and the fields' types."""
    return {
        name: {part: body[part] for part in ("key", "read", "fields") if part in body}
        for name, body in cast(Mapping[str, dict[str, Any]], entities).items()
    }


def tools_file(cards: Mapping[str, Card], things: Things, *, write: Callable[[Any], str] = packed) -> str:
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
    return write({"tools": tools})


def entities_file(
    things: Things, request: Mapping[str, Any] | None = None, *, write: Callable[[Any], str] = packed
) -> str:
    """`entities.yaml`, with the facts that only the user can state."""
    entities = dict(things.entities)
    if request:
        entities["Request"] = {"key": [], "fields": dict(request)}
    return write({"entities": entities, "observations": things.observations})


def schema_files(cards: Mapping[str, Card], things: Things) -> dict[str, str]:
    """The files of a pack that holds nothing but the schema."""
    return {
        "pack.yaml": dump({"format": 1, "name": "trial", "document": "policy.md"}),
        "policy.md": _EMPTY_DOCUMENT,
        # Nobody reads these: laying them out for people would take most of the time of a compile.
        "tools.yaml": tools_file(cards, things, write=dump),
        "entities.yaml": entities_file(things, write=dump),
    }


def _judged(
    text: str, part: Mapping[str, Card], known: Mapping[str, Card], before: Things, trajectories: Sequence[Trajectory]
) -> tuple[Things, list[str]]:
    """What an answer about the tools of one part adds to what earlier parts told, and what is wrong with it."""
    try:
        data = read_yaml(unfenced(text), file="answer").data
    except YamlError as error:
        return before, [f"not YAML as asked for: {error}"]
    complaints = [f"`{name}` is not a tool" for name in section(data, "tools") if name not in part]
    complaints += [f"`tools` says nothing of `{name}`" for name in part if name not in section(data, "tools")]
    observed = section(data, "observations")
    things = Things(
        _joined(before.entities, section(data, "entities")),
        {**before.observations, **{name: body for name, body in observed.items() if name in part}},
        {**before.tools, **{name: body or {} for name, body in section(data, "tools").items() if name in part}},
    )
    if "Request" in things.entities:
        complaints.append("`Request` is kept for what users say; leave it out")
    try:
        pack = Pack.from_files(schema_files(known, things))
    except PackError as error:
        return things, complaints + [_told(fault) for fault in error.faults]
    wrong, odd = misfits(pack, trajectories, part)
    if odd:
        things = replace(things, entities=widened(things.entities, odd))
        wrong, _ = misfits(Pack.from_files(schema_files(known, things)), trajectories, part)
    return replace(things, misfits=(*before.misfits, *wrong)), complaints + wrong


def _joined(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Entities of earlier parts with what a later one adds to them; what was said before stays."""
    joined = dict(before)
    for name, body in more.items():
        old = joined.get(name)
        if isinstance(old, dict) and isinstance(body, dict):
            fields = {**section(cast(dict[str, Any], body), "fields"), **section(cast(dict[str, Any], old), "fields")}
            joined[name] = {**cast(dict[str, Any], body), **cast(dict[str, Any], old), "fields": fields}
        else:
            joined[name] = body
    return joined


def _told(fault: BylawError) -> str:
    """A fault of the loader, without lines of files that whoever answers has not seen."""
    return f"{fault.message}; {fault.hint}" if fault.hint else fault.message


_PERSON = r"(?:user|customer|caller|client|member|guest|patient|person|traveller|passenger)s?"
_WORDS = r"(?:[\w'’]+\s+)"
_ESTABLISHES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bauthenticat",
        rf"\b(?:verif|establish|confirm|check)\w*\s+{_WORDS}{{0,4}}?identity\b",
        rf"\b(?:(?:verif|establish|confirm|check)\w*|find\w*\s+out)\s+who\s+{_WORDS}{{0,3}}?(?:is|are)\b",
        rf"\bidentif(?:y|ies|ying)\s+{_WORDS}{{0,3}}?{_PERSON}\b",
        rf"\b{_PERSON}\s+{_WORDS}{{0,4}}?(?:identified|verified)\b",
        rf"\b(?:locat|find)\w*\s+{_WORDS}{{0,2}}?(?:user|customer|account)\s+(?:id|number|profile)\b",
    )
)


def asks_who_it_is(document: Document) -> bool:
    """Whether some sentence speaks of authenticating or identifying users."""
    return any(pattern.search(sentence.text) for sentence in document.sentences for pattern in _ESTABLISHES)
