"""Describes the data behind the tools: the entities, the parts of them that each result shows, and the changes that
each write makes.

The answer is YAML in the format of a pack. It is loaded as a pack and compared with recorded results. Faults are sent
back for correction.
"""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.card import DEEPEST, Card, has_table, names_in
from bylaw.compile.desk import Desk, Prompt, Unreadable, prompt_text, stage
from bylaw.compile.naming import digest_of
from bylaw.errors import BylawError, PackError
from bylaw.facts.call_record import accepted
from bylaw.facts.entity import UNDECLARED
from bylaw.facts.observation import NOTHING, Observation, sightings, unreadable
from bylaw.facts.value import coerce
from bylaw.llm.chat import unfenced
from bylaw.pack import Pack
from bylaw.pack.statements import draft_sentences
from bylaw.policy.document import Document
from bylaw.policy.yaml import YamlError, read_yaml
from bylaw.scan.written import dump, packed
from bylaw.trace import Call, Result, Trajectory

_MOST_WORDS = 20
"""The maximum number of values in an enumeration."""
OddWords = Mapping[tuple[str, str], set[str | None]]
"""For each entity and field, recorded values that the enumeration lacks."""


def misfits(pack: Pack, trajectories: Sequence[Trajectory], part: Container[str]) -> tuple[list[str], OddWords]:
    """Return the tools whose observations contradict recorded results, and the look-ups that show nothing.

    For each entity and field, also return the recorded values that the enumeration lacks.
    """
    wrong: Counter[tuple[str, tuple[str, ...]]] = Counter()
    count: Counter[str] = Counter()
    typed = _Typed()
    for call, result in _results(pack, trajectories):
        if call.tool not in part:
            continue
        count[call.tool] += 1
        shows = pack.schema.shows.get(call.tool, {})
        # If a look-up's whole result may be any of several entities, it shows only one of them at a time.
        whole = tuple(
            kind for kind, all_of in shows.items() if any(each.each is None and not each.only for each in all_of)
        )
        for kinds in filter(None, (whole, *((kind,) for kind in shows if kind not in whole))):
            observations = [each for kind in kinds for each in shows[kind]]
            if unreadable(observations, call.arguments, result.value()) is not None:
                wrong[call.tool, kinds] += 1
        for observation in (each for observations in shows.values() for each in observations):
            typed.add(observation, call, result)
    complaints = [
        f"`{tool}`: {number} of {count[tool]} recorded results show no `{'`, no `'.join(kinds)}` by its observations;"
        " look at the paths and the key"
        for (tool, kinds), number in wrong.items()
        if number * (2 if len(kinds) == 1 else 10) > count[tool]
    ]
    silent = [name for name in count if pack.schema.tools[name].effect == "read" and name not in pack.schema.shows]
    complaints += typed.complaints()
    complaints += [
        f"`{name}` reads, and `observations` says nothing of its results; if they show no entity, its effect is `none`"
        for name in silent
    ]
    return complaints, typed.odd()


def _results(pack: Pack, trajectories: Sequence[Trajectory]) -> Iterator[tuple[Call, Result]]:
    for trajectory in trajectories:
        for result in trajectory.events:
            call = trajectory.events[result.call] if isinstance(result, Result) and result.call is not None else None
            if not isinstance(result, Result) or not isinstance(call, Call) or not result.captured:
                continue
            tool = pack.schema.tools.get(call.tool)
            if tool is not None and accepted(tool, result):
                yield call, result


def recorded_entities(pack: Pack, trajectories: Sequence[Trajectory]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each entity that a recorded result shows: its kind and the values shown."""
    for call, result in _results(pack, trajectories):
        for observation in (each for shown in pack.schema.shows.get(call.tool, {}).values() for each in shown):
            for sighting in sightings(observation, call.arguments, result.value(), None, True):
                values = {name: sighting.show(name) for name in observation.entity.fields}
                yield observation.entity.name, {name: raw for name, raw in values.items() if raw is not NOTHING}


def unshown(pack: Pack, trajectories: Sequence[Trajectory]) -> list[str]:
    """Return a warning for each field that no recorded look-up shows although look-ups show its entity."""
    shown: dict[str, set[str]] = {}
    for call, result in _results(pack, trajectories):
        if pack.schema.tools[call.tool].effect == "write":
            continue
        for observation in (each for found in pack.schema.shows.get(call.tool, {}).values() for each in found):
            for sighting in sightings(observation, call.arguments, result.value(), None, True):
                names = observation.entity.fields
                told = {name for name in names if sighting.show(name) is not NOTHING}
                shown.setdefault(observation.entity.name, set()).update(told)
    return [
        f"`{kind}.{name}`: no recorded look-up shows it, so checks that read it stay undecided"
        for kind, fields in shown.items()
        for name, field in pack.schema.entities[kind].fields.items()
        if name not in fields and name not in pack.schema.entities[kind].key and field.default is UNDECLARED
    ]


class _Typed:
    """Recorded values that do not have their declared type."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str]] = Counter()
        self._wrong: dict[tuple[str, str], Counter[str]] = {}
        self._odd: dict[tuple[str, str], set[str | None]] = {}

    def add(self, observation: Observation, call: Call, result: Result) -> None:
        value = result.value()
        text = value if isinstance(value, str) else None
        for sighting in sightings(observation, call.arguments, value, text, True):
            for name, field in observation.entity.fields.items():
                raw = sighting.show(name)
                if raw is NOTHING:
                    continue
                self._seen[observation.entity.name, name] += 1
                if raw is None and field.type != "boolean":
                    if field.type != "enum" and not field.nullable:
                        self._odd.setdefault((observation.entity.name, name), set()).add(None)
                    continue
                try:
                    if raw is None:
                        raise ValueError(f"`{name}` is null, which could mean anything")
                    coerce(field, raw)
                except ValueError as error:
                    self._wrong.setdefault((observation.entity.name, name), Counter())[str(error)] += 1
                    if field.type == "enum" and isinstance(raw, str):
                        self._odd.setdefault((observation.entity.name, name), set()).add(raw)

    def odd(self) -> OddWords:
        """Return the values that an enumeration lacks, and None for any other field that was `null`.

        If an enumeration lacks most values, its path is wrong and the field is left out.
        """
        return {
            field: words
            for field, words in self._odd.items()
            if None in words or self._wrong[field].total() * 2 <= self._seen[field]
        }

    def complaints(self) -> list[str]:
        return [
            f"`{kind}.{name}`: {sum(why.values())} of {self._seen[kind, name]} recorded values are not of its type:"
            f" {why.most_common(1)[0][0]}; a boolean is true or false"
            for (kind, name), why in self._wrong.items()
        ]


def widened(entities: Mapping[str, Any], odd: OddWords) -> dict[str, Any]:
    """Add recorded values to enumerations. Make a field nullable if it was `null` in a record."""
    made = dict(entities)
    for (kind, name), words in odd.items():
        fields = section(made[kind], "fields")
        spec = fields[name]
        listed = cast(list[str], spec if isinstance(spec, list) else section({"": spec}, "").get("values") or [])
        known = [*listed, *sorted(word for word in words if word is not None)]
        body: dict[str, Any] = cast(dict[str, Any], spec) if isinstance(spec, dict) else {}
        if None in words:
            # A missing amount, date or text can be null. In an enumeration, the meaning of null is unknown.
            kind_of = f"{body.get('type') or (spec if isinstance(spec, str) else 'string')}?"
            wide: Any = {**body, "type": kind_of} if body else kind_of
        else:
            wide = known if len(known) <= _MOST_WORDS else "string"
            wide = {**body, "values": known} if body and wide != "string" else wide
        made[kind] = {**made[kind], "fields": {**fields, name: wide}}
    return made


def section(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a section of an answer. Empty if the section is missing or is not a record."""
    found = data.get(name)
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def shown_as(observed: Any) -> list[str]:
    """Return the entities that a tool's observations show."""
    listed = cast(list[Any], observed) if isinstance(observed, list) else [observed]
    return [str(cast(dict[str, Any], each).get("as")) for each in listed if isinstance(each, dict)]


def with_defaults(
    entities: Mapping[str, Any], tools: Mapping[str, Any], pack: Pack, trajectories: Sequence[Trajectory]
) -> dict[str, Any]:
    """Add a default for each field that some records lack: an empty list or object, or else none.

    A record is complete if it has every field that the entity's own look-up always shows. A result that may show only
    part of an entity proves nothing about a missing field, so the field gets no default. A field that is in no record
    but that a write sets to true, such as `closed`, defaults to false.
    """
    seen: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for call, result in _results(pack, trajectories):
        for observation in (each for shown in pack.schema.shows.get(call.tool, {}).values() for each in shown):
            if observation.only or observation.text is not None:
                continue
            for sighting in sightings(observation, call.arguments, result.value(), None, True):
                names = observation.entity.fields
                shown = frozenset(name for name in names if sighting.show(name) is not NOTHING)
                seen.setdefault(observation.entity.name, []).append((call.tool, shown))
    made = dict(entities)
    for kind, records in seen.items():
        read = pack.schema.entities[kind].read
        fetched = [names for tool, names in records if read is not None and tool == read.tool]
        if not fetched or not all(names >= frozenset[str].intersection(*fetched) for _, names in records):
            continue
        every = [names for _, names in records]
        fields = dict(section(made[kind], "fields"))
        at_times = frozenset[str].union(*every) - frozenset[str].intersection(*every)
        plain = {name: str(fields[name]) for name in sorted(at_times) if isinstance(fields.get(name), str)}
        empty: dict[str, Any] = {"list": [], "object": {}}
        fields |= {
            name: {"type": spec, "default": empty.get(spec)} for name, spec in plain.items() if spec != "boolean"
        }
        for name in _made_true(kind, tools) - frozenset[str].union(*every):
            spec = section(fields, name) or {"type": fields.get(name)}
            if spec.get("type") == "boolean":
                fields[name] = {**spec, "default": False}
        made[kind] = {**made[kind], "fields": fields}
    return made


def _made_true(kind: str, tools: Mapping[str, Any]) -> set[str]:
    effects = [each for body in tools.values() for each in _records(section({"": body}, "").get("effects"))]
    return {
        str(name)
        for each in effects
        if each.get("as") == kind
        for name, value in section(each, "set").items()
        if value is True
    }


def _records(value: Any) -> list[dict[str, Any]]:
    listed = cast(list[Any], value) if isinstance(value, list) else []
    return [cast(dict[str, Any], each) for each in listed if isinstance(each, dict)]


LONGEST = 30_000
"""The maximum number of characters about tools in one question."""
_EMPTY_DOCUMENT = "# Policy\n\nNothing yet.\n"


class Things(Struct, frozen=True):
    """Entities and observations for `entities.yaml`, and what each tool reads and changes."""

    entities: dict[str, Any]
    observations: dict[str, Any]
    tools: dict[str, dict[str, Any]]
    complaints: tuple[str, ...] = ()
    """The errors that remain after the last question. No pack is made if there are any."""
    misfits: tuple[str, ...] = ()
    """Differences from recorded results. They do not prevent a pack from being made, but a reviewer should see them."""
    unshown: tuple[str, ...] = ()
    """A warning for each field that no recorded look-up shows."""
    shown: str = ""
    """A digest of the tools in the question."""


def _answer(text: str) -> dict[str, Any]:
    try:
        return read_yaml(unfenced(text), file="answer").data
    except YamlError as error:
        raise Unreadable(f"not YAML as asked for: {error}") from None


_THINGS, _MORE = (Prompt(name, _answer, max_tokens=16_384, rounds=3) for name in ("things", "things_more"))


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
    """Describe the data behind the tools. Many tools are described in several parts.

    Set `asks_who` if the document requires the agent to identify the user, who then becomes an entity. The document may
    name enumeration values that no result has shown. A change to the document alone raises no new question.
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
    """If a look-up's id has a different name in all results, advise mapping an argument to the key."""
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
    """Return the document's sentences that contain enumeration values, up to a limit."""
    words = {word for card in part.values() for word in _listed(card.output)}
    if document is None or not words:
        return ""
    named = re.compile(rf"\b({'|'.join(sorted(re.escape(word.replace('_', ' ')) for word in words))})\b", re.IGNORECASE)
    lines = [f"- {' '.join(each.text.split())}" for each in document.sentences if named.search(each.text)]
    sizes = accumulate(map(len, lines))
    shown = [line for line, size in zip(lines, sizes, strict=True) if size <= _SENTENCES]
    return "\n".join([f"\n\n{prompt_text('things_words')}\n", *shown]) if shown else ""


def _listed(schema: Any, depth: int = 0) -> Iterator[str]:
    if not isinstance(schema, dict) or depth > DEEPEST:
        return
    record = cast(dict[str, Any], schema)
    yield from filter(None, map(str, cast(list[Any], record.get("enum") or [])))
    inner = (record.get("items"), record.get("additionalProperties"), *section(record, "properties").values())
    for each in inner:
        yield from _listed(each, depth + 1)


_SENTENCES = 6_000
"""The maximum number of characters in the sentences shown for enumeration values."""
_ID = re.compile(r"(^|_)(id|number|code|key|ref|reference)$", re.IGNORECASE)


def _made_by_tools(things: Things) -> dict[str, Any]:
    """Drop entities of origin `conversation` that no tool shows. They would never exist.

    If such an entity can be looked up, the first tool that shows it becomes its look-up. A missing entity is then
    reported as a missing look-up.
    """
    made: dict[str, Any] = {}
    for name, body in things.entities.items():
        tools = [tool for tool, observed in things.observations.items() if name in shown_as(observed)]
        if section({"": body}, "").get("origin") != "conversation":
            made[name] = body
        elif tools:
            looks = [tool for tool in tools if section(things.tools, tool).get("effect") == "read"]
            is_looked_up = looks and not body.get("complete") and not body.get("read") and not keys_of(body)
            made[name] = {**body, "read": {"tool": looks[0], "arguments": {}}} if is_looked_up else body
    return made


def keys_of(body: Mapping[str, Any]) -> tuple[str, ...]:
    key = body.get("key", [])
    return tuple(map(str, cast(list[Any], key))) if isinstance(key, list) else (str(key),)


def _parts(cards: Mapping[str, Card]) -> Iterator[dict[str, Card]]:
    """Yield the tools in order, in groups small enough for one question."""
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
    """Reduce each entity to what later parts need: its key, its read tool and its field types."""
    return {
        name: {part: body[part] for part in ("key", "read", "fields") if part in body}
        for name, body in cast(Mapping[str, dict[str, Any]], entities).items()
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
        if (
            sentences
            and body["effect"] == "write"
            and (drafts := draft_sentences(name, body.get("parameters", {}), taken))
        ):
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
        # These files are never shown. Pretty-printing them would take most of a compile's time.
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
    """Complain about undeclared creations: a write's result names an entity that its arguments do not name.

    Without the declaration, later calls with the new entity would be denied, because no database has it. A field of
    another entity in the result is only a reference and does not matter here.
    """
    complaints: list[str] = []
    for name, card in part.items():
        if pack.schema.tools[name].effect != "write":
            continue
        shown = pack.schema.shows.get(name, {})
        known = set(shown) | {each.entity for each in pack.schema.effects.get(name, ())}
        pointers = {field for entity in shown for field in pack.schema.entities[entity].fields}
        new = set(names_in(card.output)) - set(names_in({"properties": card.parameters})) - pointers
        complaints += [
            f"`{name}` returns a `{entity.key[0]}` that is not among its arguments, and nothing says which"
            f" `{entity.name}` that is: under `observations`, say what its result and `$args` show of the new one"
            for entity in pack.schema.entities.values()
            if len(entity.key) == 1 and entity.key[0] in new and entity.name not in known
        ]
    return complaints


def _joined(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Add the entities of a later part. Earlier declarations win."""
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
    """Describe a loader error without line numbers. The author of the answer has not seen the files."""
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
    """Whether a sentence mentions authenticating or identifying users."""
    return any(pattern.search(sentence.text) for sentence in document.sentences for pattern in _ESTABLISHES)


Schema = Mapping[str, Any]


def insides(things: Things, cards: Mapping[str, Card]) -> dict[tuple[str, str], Schema]:
    """For each entity and field, return the JSON schema of records nested inside the field."""
    return {field: schema for field, schema in held(things, cards).items() if holds_records(schema)}


def held(things: Things, cards: Mapping[str, Card]) -> dict[tuple[str, str], Schema]:
    """For each entity, return the JSON schema of each list or object field. If a tool shows the records in the field,
    the schema includes them.
    """
    shown_by = _shown_by(things)
    found: dict[tuple[str, str], Schema] = {}
    for entity, body in things.entities.items():
        for name, spec in cast(dict[str, Any], cast(dict[str, Any], body).get("fields") or {}).items():
            kind = cast(dict[str, Any], spec).get("type") if isinstance(spec, dict) else spec
            if kind not in ("list", "object"):
                continue
            schemas = (cards[tool].output for tool in shown_by.get(entity, ()) if tool in cards)
            shown = [inner for schema in schemas for inner in _named(schema, name)]
            if shown:
                found[entity, name] = next(filter(holds_records, shown), shown[0])
    return found


def holds_records(schema: Any) -> bool:
    record = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
    if record.get("type") == "array":
        return holds_records(record.get("items"))
    return bool(record.get("properties")) or isinstance(record.get("additionalProperties"), dict)


def _shown_by(things: Things) -> dict[str, list[str]]:
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
    if not isinstance(schema, dict) or depth > DEEPEST:
        return
    record = cast(dict[str, Any], schema)
    properties = cast(dict[str, Any], record.get("properties") or {})
    if name in properties:
        yield properties[name]
    for part in (*properties.values(), record.get("items"), record.get("additionalProperties")):
        yield from _named(part, name, depth + 1)
