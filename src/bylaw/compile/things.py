"""Describes the data behind the tools: the entities, the fields that each result shows, and the changes that each write
makes.

The model answers in YAML, in the format of a pack. The answer is loaded as a pack and compared with recorded results.
Errors are sent back for correction.
"""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.card import Card
from bylaw.compile.desk import Desk, Prompt, prompt_text, stage, yaml_answer
from bylaw.compile.naming import digest_of
from bylaw.compile.schema import Schema, has_table, holds_records, listed, names_in, nested, record, section, words_in
from bylaw.errors import BylawError, PackError
from bylaw.facts.call_record import accepted
from bylaw.facts.entity import UNDECLARED
from bylaw.facts.observation import NOTHING, Observation, sightings, unreadable
from bylaw.facts.value import coerce
from bylaw.pack import Pack
from bylaw.pack.statements import draft_sentences
from bylaw.policy.document import Document
from bylaw.scan.written import dump, packed
from bylaw.trace import Call, Result, Trajectory

_MOST_WORDS = 20
"""The maximum number of values in an enumeration."""
Place = tuple[str, str]
"""The name of an entity, and of one of its fields."""
OddWords = Mapping[Place, set[str | None]]
"""For each field, recorded values that its enumeration lacks, and None if the field was null but is not nullable."""


def misfits(pack: Pack, trajectories: Sequence[Trajectory], part: Container[str]) -> tuple[list[str], OddWords]:
    """Compare the observations of the tools in `part` with recorded results. Return complaints, and the recorded values
    that enumerations lack.

    Complaints concern observations that contradict the results, values of the wrong type, and look-ups that show
    nothing.
    """
    wrong: Counter[tuple[str, tuple[str, ...]]] = Counter()
    count: Counter[str] = Counter()
    for call, result in _results(pack, trajectories):
        if call.tool not in part:
            continue
        count[call.tool] += 1
        shows = pack.schema.shows.get(call.tool, {})
        # If a look-up's whole result may be one of several entity types, each call shows only one of these types.
        whole = tuple(
            kind for kind, all_of in shows.items() if any(each.each is None and not each.only for each in all_of)
        )
        for kinds in filter(None, (whole, *((kind,) for kind in shows if kind not in whole))):
            observations = [each for kind in kinds for each in shows[kind]]
            if unreadable(observations, call.arguments, result.value()) is not None:
                wrong[call.tool, kinds] += 1
    complaints = [
        f"`{tool}`: {number} of {count[tool]} recorded results show no `{'`, no `'.join(kinds)}` by its observations;"
        " look at the paths and the key"
        for (tool, kinds), number in wrong.items()
        if number * (2 if len(kinds) == 1 else 10) > count[tool]
    ]
    mistyped, odd = _mistyped(shown for shown in _shown(pack, trajectories) if shown.tool in part)
    silent = [name for name in count if pack.schema.tools[name].effect == "read" and name not in pack.schema.shows]
    complaints += mistyped
    complaints += [
        f"`{name}` reads, and `observations` says nothing of its results; if they show no entity, its effect is `none`"
        for name in silent
    ]
    return complaints, odd


def _results(pack: Pack, trajectories: Sequence[Trajectory]) -> Iterator[tuple[Call, Result]]:
    """Yield the accepted calls with their recorded results."""
    for trajectory in trajectories:
        for result in trajectory.events:
            call = trajectory.events[result.call] if isinstance(result, Result) and result.call is not None else None
            if not isinstance(result, Result) or not isinstance(call, Call) or not result.captured:
                continue
            tool = pack.schema.tools.get(call.tool)
            if tool is not None and accepted(tool, result):
                yield call, result


class _Shown(Struct, frozen=True):
    """An entity that a recorded result shows."""

    tool: str
    observation: Observation
    values: dict[str, Any]
    """The values that the result shows, by field."""


def _shown(pack: Pack, trajectories: Sequence[Trajectory]) -> Iterator[_Shown]:
    for call, result in _results(pack, trajectories):
        value = result.value()
        text = value if isinstance(value, str) else None
        for observation in (each for shown in pack.schema.shows.get(call.tool, {}).values() for each in shown):
            for sighting in sightings(observation, call.arguments, value, text, True):
                values = {name: sighting.show(name) for name in observation.entity.fields}
                shown = {name: raw for name, raw in values.items() if raw is not NOTHING}
                yield _Shown(call.tool, observation, shown)


def recorded_entities(pack: Pack, trajectories: Sequence[Trajectory]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each entity that a recorded result shows, with the values shown."""
    for shown in _shown(pack, trajectories):
        yield shown.observation.entity.name, shown.values


def unshown(pack: Pack, trajectories: Sequence[Trajectory]) -> list[str]:
    """Return a warning for each field that no recorded look-up shows although look-ups show its entity."""
    found: dict[str, set[str]] = {}
    for shown in _shown(pack, trajectories):
        if pack.schema.tools[shown.tool].effect != "write":
            found.setdefault(shown.observation.entity.name, set()).update(shown.values)
    return [
        f"`{kind}.{name}`: no recorded look-up shows it, so checks that read it stay undecided"
        for kind, fields in found.items()
        for name, field in pack.schema.entities[kind].fields.items()
        if name not in fields and name not in pack.schema.entities[kind].key and field.default is UNDECLARED
    ]


def _mistyped(every: Iterable[_Shown]) -> tuple[list[str], OddWords]:
    """Return complaints about recorded values that do not have their declared type, and the values that enumerations
    lack.

    If an enumeration lacks most recorded values, its path must be wrong, so there is a complaint and the values are
    left out.
    """
    count: Counter[Place] = Counter()
    wrong: dict[Place, Counter[str]] = {}
    odd: dict[Place, set[str | None]] = {}
    for shown in every:
        for name, raw in shown.values.items():
            place, field = (shown.observation.entity.name, name), shown.observation.entity.fields[name]
            count[place] += 1
            if raw is None and field.type != "boolean":
                if field.type != "enum" and not field.nullable:
                    odd.setdefault(place, set()).add(None)
                continue
            try:
                if raw is None:
                    raise ValueError(f"`{name}` is null, which could mean anything")
                coerce(field, raw)
            except ValueError as error:
                wrong.setdefault(place, Counter())[str(error)] += 1
                if field.type == "enum" and isinstance(raw, str):
                    odd.setdefault(place, set()).add(raw)
    complaints = [
        f"`{kind}.{name}`: {why.total()} of {count[kind, name]} recorded values are not of its type:"
        f" {why.most_common(1)[0][0]}; a boolean is true or false"
        for (kind, name), why in wrong.items()
    ]
    return complaints, {
        place: words for place, words in odd.items() if None in words or wrong[place].total() * 2 <= count[place]
    }


def widened(entities: Mapping[str, Any], odd: OddWords) -> dict[str, Any]:
    """Add recorded values to enumerations. Make a field nullable if it was `null` in a record."""
    made = dict(entities)
    for (kind, name), words in odd.items():
        fields = section(made[kind], "fields")
        spec = fields[name]
        body = record(spec)
        known = [*(listed(spec) or listed(body.get("values"))), *sorted(word for word in words if word is not None)]
        if None in words:
            # A missing amount, date or text can be null. For an enumeration, the meaning of null is unknown.
            type_ = f"{body.get('type') or (spec if isinstance(spec, str) else 'string')}?"
            wide: Any = {**body, "type": type_} if body else type_
        elif len(known) > _MOST_WORDS:
            wide = "string"
        else:
            wide = {**body, "values": known} if body else known
        made[kind] = {**made[kind], "fields": {**fields, name: wide}}
    return made


def shown_as(observed: Any) -> list[str]:
    """Return the entities that a tool's observations show."""
    return [str(record(each).get("as")) for each in (listed(observed) or [observed]) if isinstance(each, dict)]


def with_defaults(
    entities: Mapping[str, Any], tools: Mapping[str, Any], pack: Pack, trajectories: Sequence[Trajectory]
) -> dict[str, Any]:
    """Add a default for each field that some records lack: an empty list or object for such a field, and null for any
    other.

    Only complete records count, because a result that shows only part of an entity proves nothing about a missing
    field. A record is complete if it has every field that the entity's own look-up always shows. A field that no record
    has, but that a write sets to true (such as `closed`), defaults to false.
    """
    seen: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for shown in _shown(pack, trajectories):
        if not shown.observation.only and shown.observation.text is None:
            seen.setdefault(shown.observation.entity.name, []).append((shown.tool, frozenset(shown.values)))
    made = dict(entities)
    for kind, records in seen.items():
        read = pack.schema.entities[kind].read
        fetched = [names for tool, names in records if read is not None and tool == read.tool]
        if not fetched or not all(names >= frozenset[str].intersection(*fetched) for _, names in records):
            continue
        every = [names for _, names in records]
        fields = dict(section(made[kind], "fields"))
        at_times = frozenset[str].union(*every) - frozenset[str].intersection(*every)
        empty: dict[str, Any] = {"list": [], "object": {}}
        for name in sorted(at_times):
            spec = fields.get(name)
            if isinstance(spec, str) and spec != "boolean":
                fields[name] = {"type": spec, "default": empty.get(spec)}
        for name in _set_true(kind, tools) - frozenset[str].union(*every):
            spec = section(fields, name) or {"type": fields.get(name)}
            if spec.get("type") == "boolean":
                fields[name] = {**spec, "default": False}
        made[kind] = {**made[kind], "fields": fields}
    return made


def _set_true(kind: str, tools: Mapping[str, Any]) -> set[str]:
    """Return the fields of an entity that a write sets to true."""
    effects = [record(each) for body in tools.values() for each in listed(record(body).get("effects"))]
    return {
        name
        for each in effects
        if each.get("as") == kind
        for name, value in section(each, "set").items()
        if value is True
    }


LONGEST = 30_000
"""The maximum number of characters that one question spends on tools."""
_EMPTY_DOCUMENT = "# Policy\n\nNothing yet.\n"


class Things(Struct, frozen=True):
    """Entities and observations for `entities.yaml`, and what each tool reads and changes."""

    entities: dict[str, Any]
    observations: dict[str, Any]
    tools: dict[str, dict[str, Any]]
    complaints: tuple[str, ...] = ()
    """The errors that remain after the last question. If there are any, no pack is written."""
    misfits: tuple[str, ...] = ()
    """Contradictions of recorded results. The pack is still written, but a reviewer should see them."""
    unshown: tuple[str, ...] = ()
    """A warning for each field that no recorded look-up shows."""
    shown: str = ""
    """A digest of the tools in the question."""


_THINGS, _MORE = (Prompt(name, yaml_answer, max_tokens=16_384, rounds=3) for name in ("things", "things_more"))


@stage
def describe(
    desk: Desk,
    cards: Mapping[str, Card],
    trajectories: Sequence[Trajectory],
    earlier: Things | None = None,
    *,
    asks_who: bool = False,
    document: Document | None = None,
) -> Things:
    """Describe the data behind the tools. Many tools are split over several questions.

    Set `asks_who` if the document requires the agent to identify the user, who then becomes an entity. The document may
    name enumeration values that no result has shown. A change that affects only the document raises no new question.
    """
    who = f"\n\n{prompt_text('things_who')}" if asks_who else ""
    notes = (who, _tables_note(cards), _null_note(cards), _reads_note(cards, cards))
    shown = digest_of(*(card.whole for card in cards.values()), *filter(None, notes))
    if earlier is not None and earlier.shown == shown:
        return earlier
    made = Things({}, {}, {})
    complaints: list[str] = []
    known: dict[str, Card] = {}
    for part in _parts(cards):
        told = "\n\n".join(card.whole for card in part.values())
        more = f"{_tables_note(part)}{_null_note(part)}{_reads_note(part, cards)}{who}{_words_note(part, document)}"
        prompt, described = (_MORE, dump(_named_and_keyed(made.entities))) if known else (_THINGS, "")
        known |= part
        judge = partial(_judged, part=part, known=known, before=made, trajectories=trajectories)
        outcome = desk.ask(prompt, {"tools": told, "entities": described, "more": more}, judge, empty=made)
        made = outcome.made
        complaints += [each for each in outcome.complaints if each not in made.misfits]
    entities = _made_by_tools(made)
    if not complaints and trajectories:
        pack = Pack.from_files(schema_files(cards, replace(made, entities=entities)))
        entities = with_defaults(entities, made.tools, pack, trajectories)
        made = replace(made, unshown=tuple(unshown(pack, trajectories)))
    return replace(made, entities=entities, complaints=tuple(complaints), shown=shown)


def _tables_note(cards: Mapping[str, Card]) -> str:
    return f"\n\n{prompt_text('things_tables')}" if any(has_table(card.output) for card in cards.values()) else ""


def _null_note(cards: Mapping[str, Card]) -> str:
    has_null = any(re.search(r" or null\b", card.results) for card in cards.values())
    return f"\n\n{prompt_text('things_null')}" if has_null else ""


def _reads_note(part: Mapping[str, Card], cards: Mapping[str, Card]) -> str:
    """If no result has a field with the name of a look-up's id argument, advise the model to map the argument to the
    key.
    """
    shown = {name for card in cards.values() for name in names_in(card.output)}
    unlike = [
        f"{card.name}({name})"
        for card in part.values()
        if card.output and card.effect != "write" and card.required == tuple(card.parameters)
        for name in card.required
        if name not in shown and _ID.search(name)
    ]
    return f"\n\n{prompt_text('things_read').replace('{{arguments}}', ', '.join(unlike[:6]))}" if unlike else ""


def _words_note(part: Mapping[str, Card], document: Document | None) -> str:
    """Return the document's sentences that contain enumeration values, up to a maximum length."""
    words = {word for card in part.values() for word in words_in(card.output)}
    if document is None or not words:
        return ""
    named = re.compile(rf"\b({'|'.join(sorted(re.escape(word.replace('_', ' ')) for word in words))})\b", re.IGNORECASE)
    lines = [f"- {' '.join(each.text.split())}" for each in document.sentences if named.search(each.text)]
    sizes = accumulate(map(len, lines))
    shown = [line for line, size in zip(lines, sizes, strict=True) if size <= _SENTENCES]
    return "\n".join([f"\n\n{prompt_text('things_words')}\n", *shown]) if shown else ""


_SENTENCES = 6_000
"""The maximum number of characters in the sentences shown for enumeration values."""
_ID = re.compile(r"(^|_)(id|number|code|key|ref|reference)$", re.IGNORECASE)


def _made_by_tools(things: Things) -> dict[str, Any]:
    """Drop entities of origin `conversation` that no tool shows, because they would never exist.

    If an entity without a key is shown by look-ups but names none, the first of these look-ups becomes its own. If the
    entity is needed but unknown, the missing look-up is then reported.
    """
    made: dict[str, Any] = {}
    for name, body in things.entities.items():
        tools = [tool for tool, observed in things.observations.items() if name in shown_as(observed)]
        if record(body).get("origin") != "conversation":
            made[name] = body
        elif tools:
            looks = [tool for tool in tools if section(things.tools, tool).get("effect") == "read"]
            is_looked_up = looks and not body.get("complete") and not body.get("read") and not keys_of(body)
            made[name] = {**body, "read": {"tool": looks[0], "arguments": {}}} if is_looked_up else body
    return made


def keys_of(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the parts of an entity's key."""
    key = body.get("key", [])
    return tuple(map(str, listed(key))) if isinstance(key, list) else (str(key),)


def _parts(cards: Mapping[str, Card]) -> Iterator[dict[str, Card]]:
    """Yield the tools in order, in groups that each fit into one question."""
    part: dict[str, Card] = {}
    for name, card in cards.items():
        if part and sum(len(each.whole) for each in (*part.values(), card)) > LONGEST:
            yield part
            part = {}
        part[name] = card
    yield part


def _named_and_keyed(entities: Mapping[str, Any]) -> dict[str, Any]:
    """Reduce each entity to the information that later questions need: its key, its read tool and its field types."""
    return {
        name: {part: body[part] for part in ("key", "read", "fields") if part in body}
        for name, body in entities.items()
    }


def tools_file(
    cards: Mapping[str, Card], things: Things, *, write: Callable[[Any], str] = packed, sentences: bool = False
) -> str:
    """Return `tools.yaml`: every tool in the catalogue with its effects. With `sentences`, writes also get the first
    sentence of their description.
    """
    tools: dict[str, Any] = {}
    taken: set[str] = set()
    for name, card in cards.items():
        body: dict[str, Any] = {"effect": "write", **things.tools.get(name, {})}
        # Catalogues also mark calculators as read-only.
        if card.effect is not None and (card.effect, body["effect"]) != ("read", "none"):
            body["effect"] = card.effect
        if card.description:
            body["description"] = " ".join(card.description.split())
        if card.parameters:
            body["parameters"] = {
                "type": "object",
                "properties": card.parameters,
                "required": list(card.required),
            }
        is_put = sentences and body["effect"] == "write"
        if drafts := draft_sentences(name, body.get("parameters", {}), taken) if is_put else []:
            body["put_as"] = drafts[0] if len(drafts) == 1 else drafts
        tools[name] = body
    return write({"tools": tools})


def entities_file(
    things: Things, request: Mapping[str, Any] | None = None, *, write: Callable[[Any], str] = packed
) -> str:
    """Return `entities.yaml`, including the facts that only the user can state."""
    entities = dict(things.entities)
    if request:
        entities["Request"] = {"key": [], "fields": dict(request)}
    return write({"entities": entities, "observations": things.observations})


def schema_files(cards: Mapping[str, Card], things: Things) -> dict[str, str]:
    """Return the files of a pack that contains only a schema."""
    return {
        "pack.yaml": dump({"format": 1, "name": "trial", "document": "policy.md"}),
        "policy.md": _EMPTY_DOCUMENT,
        # These files are never shown to anyone, and pretty-printing them would take most of a compile's time.
        "tools.yaml": tools_file(cards, things, write=dump),
        "entities.yaml": entities_file(things, write=dump),
    }


def _judged(
    data: Mapping[str, Any],
    part: Mapping[str, Card],
    known: Mapping[str, Card],
    before: Things,
    trajectories: Sequence[Trajectory],
) -> tuple[Things, list[str]]:
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
    wrong = [*wrong, *_unmade(pack, part)]
    return replace(things, misfits=(*before.misfits, *wrong)), complaints + wrong


def _unmade(pack: Pack, part: Mapping[str, Card]) -> list[str]:
    """Complain about undeclared creations, where a write's result names an entity that its arguments do not name.

    Without the declaration, later calls with the new entity would be denied, because the entity is in no database. A
    field of another entity in the result is only a reference, so it needs no declaration.
    """
    complaints: list[str] = []
    for name, card in part.items():
        if pack.schema.tools[name].effect != "write":
            continue
        shown = pack.schema.shows.get(name, {})
        known = set(shown) | {each.entity for each in pack.schema.effects.get(name, ())}
        pointers = {field for entity in shown for field in pack.schema.entities[entity].fields}
        new = names_in(card.output) - names_in({"properties": card.parameters}) - pointers
        complaints += [
            f"`{name}` returns a `{entity.key[0]}` that is not among its arguments, and nothing says which"
            f" `{entity.name}` that is: under `observations`, say what its result and `$args` show of the new one"
            for entity in pack.schema.entities.values()
            if len(entity.key) == 1 and entity.key[0] in new and entity.name not in known
        ]
    return complaints


def _joined(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Add the entities from a later question. Earlier declarations win."""
    joined = {**more, **before}
    for name in before.keys() & more.keys():
        old, new = record(before[name]), record(more[name])
        if old and new:
            joined[name] = {**new, **old, "fields": {**section(new, "fields"), **section(old, "fields")}}
        else:
            joined[name] = more[name]
    return {name: joined[name] for name in dict.fromkeys([*before, *more])}


def _told(fault: BylawError) -> str:
    """Return a loader error without line numbers, because the model that wrote the answer has not seen the files."""
    return f"{fault.message}; {fault.hint}" if fault.hint else fault.message


_ESTABLISHES = re.compile(
    r"\bauthenticat|\b(?:verif|establish|confirm|check|find)\w*\s+(?:\S+\s+){0,4}?(?:identity|who)\b"
    r"|\bidentif\w+\s+(?:the|each|every|a)\s+(?:user|customer|caller|client|member|guest|patient|person)\b"
    r"|\b(?:user|customer|caller|client|member|guest|patient|person)s?\s+(?:\w+\s+){0,3}(?:identified|verified)\b",
    re.IGNORECASE,
)


def asks_who_it_is(document: Document) -> bool:
    """Whether a sentence requires the agent to authenticate or identify the user."""
    return any(_ESTABLISHES.search(sentence.text) for sentence in document.sentences)


def insides(things: Things, cards: Mapping[str, Card]) -> dict[Place, Schema]:
    """For each entity and field, return the JSON schema of records nested in the field."""
    return {field: schema for field, schema in held(things, cards).items() if holds_records(schema)}


def held(things: Things, cards: Mapping[str, Card]) -> dict[Place, Schema]:
    """For each entity, return the JSON schema of each list or object field. If a tool shows the records in the field,
    the schema includes them.
    """
    shown_by = _shown_by(things)
    found: dict[Place, Schema] = {}
    for entity, body in things.entities.items():
        for name, spec in section(body, "fields").items():
            if (record(spec).get("type") if isinstance(spec, dict) else spec) not in ("list", "object"):
                continue
            schemas = (cards[tool].output for tool in shown_by.get(entity, ()) if tool in cards)
            shown = [inner for schema in schemas for field, inner in nested(schema) if field == name]
            if shown:
                found[entity, name] = next(filter(holds_records, shown), shown[0])
    return found


def _shown_by(things: Things) -> dict[str, list[str]]:
    """Return the tools that show each entity, with its look-up first."""
    found = {entity: [read_tool(body)] for entity, body in things.entities.items() if body.get("read")}
    for tool, observed in things.observations.items():
        for name in shown_as(observed):
            found.setdefault(name, []).append(tool)
    return found


def read_tool(body: Mapping[str, Any]) -> str:
    """Return the tool that looks up an entity."""
    read = body.get("read")
    return str(record(read).get("tool") if isinstance(read, dict) else read)
