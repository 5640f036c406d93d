"""Drafts a pack from logs and a policy document. Guesses are marked as guesses."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from bylaw.errors import BylawError, UsageError
from bylaw.pack.statements import draft_sentences
from bylaw.policy.document import Clock, Document, stated_clock
from bylaw.policy.statement import DRAFTED_BY
from bylaw.policy.tool import Effect
from bylaw.policy.verb import words_of
from bylaw.scan.effect import Guess
from bylaw.scan.entities import DraftEntity, EntityInResult, Table, arguments_for, draft_entities, kind_of
from bylaw.scan.generic import draft_actions
from bylaw.scan.shape import SeenValues, Shape, Shapes, bare, is_name, parameters_of, spelled_like
from bylaw.scan.survey import Scan, Survey
from bylaw.scan.written import dump, flow, remark, word, wrapped
from bylaw.trace import Trajectory

_MARK = "(example written by init)"


class Example(Struct, frozen=True):
    """An example guard. It requires that the record which a write names exists and was looked up."""

    tool: str
    thing: DraftEntity
    arguments: tuple[str, ...]
    """The arguments of the write that contain the record's key, in the order of the key."""

    @property
    def id(self) -> str:
        return f"example-{self.tool.replace('_', '-').lower()}"

    @property
    def noun(self) -> str:
        """The entity's name in words."""
        return " ".join(words_of(self.thing.name))

    @property
    def definition(self) -> str:
        """What the guard requires, marked as a draft by `init`."""
        return f"{_MARK} Before {self.tool}, the {self.noun} has been looked up, and it exists."


def choose_example(scan: Scan, found: Mapping[str, DraftEntity], shapes: Mapping[str, Shape]) -> Example | None:
    """Choose the write that comes most often after a look-up of a record that its arguments name."""
    best: tuple[float, Example] | None = None
    habits = {write.tool: write.habits for write in scan.writes}
    called = sorted((guess for guess in scan.tools if guess.effect == "write"), key=lambda each: not each.calls)
    for tool in [guess.tool for guess in called if guess.tool in shapes]:
        shape = shapes[tool]
        required = {name: shape.arguments[name] for name in shape.required if is_name(name) and name in shape.arguments}
        for thing, arguments in _about(tool, required, found, shapes):
            surest = max((habit.sure for habit in habits.get(tool, ()) if thing.read in habit.tools), default=0.0)
            if best is None or surest > best[0]:
                best = surest, Example(tool, thing, arguments)
    return best[1] if best else None


def _about(
    tool: str, required: Mapping[str, Any], found: Mapping[str, DraftEntity], shapes: Mapping[str, Shape]
) -> Sequence[tuple[DraftEntity, tuple[str, ...]]]:
    fitting = [
        (distance, thing, arguments)
        for thing in found.values()
        if thing.key and is_name(tool)
        for arguments, distance in [arguments_for(thing.key, thing.name, required, _known(thing, shapes))]
        if arguments
    ]
    nearest = min((distance for distance, _, _ in fitting), default=0)
    return [(thing, arguments) for distance, thing, arguments in fitting if distance == nearest]


def _known(thing: DraftEntity, shapes: Mapping[str, Shape]) -> dict[str, set[str]]:
    asked = shapes[thing.read].arguments if thing.read in shapes else {}
    return {
        part: {value for values in (thing.fields.get(part), asked.get(part)) if values for value in values.seen}
        for part in thing.key
    }


def example_files(example: Example, shape: Shape) -> dict[str, str]:
    """Return the guard and its cases, keyed by path."""
    name, thing, key = example.id.replace("-", "_"), example.thing.name, _asked(example)
    guard = f"""{_TALK.format(noun=example.noun, some=_some_field(example))}
def {name}(call: {example.tool}, facts):
    if not facts.{thing}({key}).exists:
        return deny("this {example.noun} does not exist")
    return permit()
"""
    return {f"guards/{name}.py": guard, f"cases/{example.id}.yaml": _cases(example, shape)}


_TALK = """\
# A worked example. It names the tool it binds. Replace it with your own guard, with its sentence as the docstring.
# A guard asks for facts, never for tool calls: any look-up that showed the {noun} counts.
# Without one, the call is undetermined: a near-miss if a database shows that it was right.
# Next, ask for the fields that your policy is about, e.g. `{some}`.

"""


def _asked(example: Example) -> str:
    return ", ".join(f"call.{name}" for name in example.arguments)


def _some_field(example: Example) -> str:
    """Return a field of the entity for use in an example.

    Keys that are spelled differently by different tools are not suitable.
    """
    thing = example.thing
    ids = {spelled_like(part, thing.fields, thing=thing.name) for part in thing.key}
    field = next((name for name in thing.fields if name not in thing.key and name not in ids), "exists")
    return f"facts.{thing.name}({_asked(example)}).{field}"


def _cases(example: Example, shape: Shape) -> str:
    keys = {name: f"K{number}" for number, name in enumerate(example.arguments, 1)}
    for name in keys:
        kind = shape.arguments[name].type if name in shape.arguments else "string"
        keys[name] = {"integer": "1", "number": "1", "date": "2025-01-31", "boolean": "true"}.get(kind, keys[name])
    call = {example.tool: {name: _literal(value, shape, name) for name, value in keys.items()}}
    named = example.arguments == example.thing.key
    thing = example.thing.name if named else f"{example.thing.name}[{', '.join(keys.values())}]"
    seen: dict[str, Any] = {"note": f"the {example.noun} was looked up and exists", "policy": example.id}
    seen |= {} if named else {"call": call}
    seen |= {"facts": {thing: {"exists": True}}}
    seen |= {"but": {"note": f"the {example.noun} was looked up and does not exist", "facts": {thing: None}}}
    unseen = {"note": f"the {example.noun} was never looked up", "policy": example.id, "call": call}
    unseen |= {"want": "undetermined"}
    written = (["- ", *(f"{name}: {flow([part])[1:-1]}\n  " for name, part in case.items())] for case in (seen, unseen))
    return "".join("".join(lines).removesuffix("  ") for lines in written)


def _literal(value: str, shape: Shape, name: str) -> Any:
    kind = shape.arguments[name].type if name in shape.arguments else "string"
    return int(value) if kind in ("integer", "number") else value == "true" if kind == "boolean" else value


_WIDE = 110
_UNDECIDED = "undecided"
_ROWS = 20
"""The minimum number of rows for a field to become an enumeration."""
_LOOKED_UP = "an example: its guard requires only that the record was looked up and exists"
_ENDING = {"delete", "remove", "drop", "destroy", "create", "add", "merge", "purge"}
"""Verbs in the names of writes that may create or delete an entity."""


class Skeleton(Struct, frozen=True):
    """The files of a new pack, keyed by path, and the sources of their content."""

    files: dict[str, str]
    scan: Scan
    things: tuple[str, ...]
    sentences: int
    example: str
    """The id of the example guard's policy. Empty if no write names a record from the logs."""
    whole: frozenset[str] = frozenset()
    """Tools whose whole result is plain text, such as an id."""
    undeclared: tuple[str, ...] = ()
    """Tools that are called in the logs but are not in the catalogue."""
    places: dict[str, str] = {}
    """The location of each entity in the database, for `world:`."""
    unread: frozenset[str] = frozenset()
    """Entities that no known tool returns."""


def skeleton(
    trajectories: Iterable[Trajectory | BylawError],
    document: Document,
    *,
    name: str,
    effects: Mapping[str, Effect] | None = None,
    catalogue: Mapping[str, Mapping[str, Any]] | None = None,
    tables: Sequence[Table] = (),
) -> Skeleton:
    """Draft the files of a pack from `document` and `trajectories`.

    `catalogue` contains each tool's description, parameters, effect and output, as in `tools.json`. `tables` are from
    the tools' database.
    """
    catalogue = catalogue or {}
    said: dict[str, Effect] = {name: body["effect"] for name, body in catalogue.items() if body.get("effect")}
    effects = {**said, **(effects or {})}
    if not document.sentences:
        raise UsageError("the document has no sentences", place=document.name)
    survey, shapes = Survey(effects=effects), Shapes(kind_of(tables) if tables else None)
    for tool, body in catalogue.items():
        survey.define({"name": tool, **body})
        shapes.define({"name": tool, **body})
    timed = False
    for trajectory in trajectories:
        survey.add(trajectory)
        if isinstance(trajectory, Trajectory):
            shapes.add(trajectory)
            timed = timed or trajectory.bears_times
    scan = survey.result()
    guesses = {each.tool: each for each in scan.tools}
    if not guesses:
        raise UsageError(
            "the logs contain no tool calls", hint="a pack needs the tools that the agent may call: add --tools"
        )
    found = draft_entities(shapes.tools, guesses, tables)
    example = choose_example(scan, found, shapes.tools)
    is_timed = timed or not scan.trajectories
    files = {
        "pack.yaml": _manifest(name, document, stated_clock(document) if not is_timed else None),
        **{file.name: file.text for file in document.files},
        "tools.yaml": _tools(scan, shapes.tools, list(found.values()), catalogue),
        "entities.yaml": _entities(found.values()),
        "policies.yaml": _policies(document, example),
        "rules.yaml": _RULES,
    }
    if example is not None:
        files |= example_files(example, shapes.tools[example.tool])
    sights = [sight for thing in found.values() for sight in thing.sights]
    whole = frozenset(sight.tool for sight in sights if "$" in sight.fields.values())
    undeclared = tuple(each.tool for each in scan.tools if catalogue and each.tool not in catalogue)
    called = example.id if example is not None else ""
    names = tuple(thing.name for thing in found.values())
    unread = frozenset(thing.name for thing in found.values() if not thing.read and not thing.sights)
    places = {thing.name: flow(dict(thing.table.world)) for thing in found.values() if thing.table is not None}
    return Skeleton(files, scan, names, len(document.sentences), called, whole, undeclared, places, unread)


_RULES = """\
# If the document asks for one of these, uncomment its lines. In policies.yaml, move its sentence to a separate
# policy: {id: confirm-before-change, kind: rule, spans: [...]}.
#
# predicates:
#   change: {effect: write, description: the act changes data}
#   agreed: {consented: told, description: the user agreed to this exact change after the agent stated it}
#   several_calls: {turn: several_calls, description: the turn makes several calls}
# rules:
#   - {id: confirm-before-change, formula: ALWAYS (change IMPLIES agreed)}
#   - {id: one-call-at-a-time, formula: ALWAYS NOT several_calls}
"""


def _manifest(name: str, document: Document, clock: Clock | None) -> str:
    title = next((line.lstrip("# ").strip() for line in document.text.splitlines() if line.startswith("# ")), name)
    names = [file.name for file in document.files]
    named = names[0] if len(names) == 1 else names
    body = dump({"format": 1, "name": name, "version": "0.1.0", "title": title, "document": named})
    body += "# timezone: Europe/Berlin   # the document's time zone; the default is UTC\n"
    if clock is not None:
        return body + f"now: {clock.now}   # the logs have no times, and the document says: {remark(clock.sentence)}\n"
    return body + "# now: 2025-01-31T09:00:00   # a fixed clock, if the logs have no times\n"


def _tools(
    scan: Scan,
    shapes: Mapping[str, Shape],
    found: Sequence[DraftEntity],
    catalogue: Mapping[str, Mapping[str, Any]],
) -> str:
    lines = [
        "# Inferred effect of each tool: read | write | none. Correct it; policies bind only writes.",
        "# `put_as` asks the user for confirmation. Use words that they know, with every {argument}.",
        "# `changes` lists all fields of the records that the arguments name. Keep only those that the write changes.",
        *(["from: tools.json   # names, descriptions and parameters"] if catalogue else []),
        "tools:",
    ]
    alike: dict[str, list[Guess]] = {}
    taken: set[str] = set()
    generic = {each.tool for each in scan.generic}
    for each in sorted(scan.tools, key=lambda each: (each.effect != "write", each.tool)):
        shape = shapes.get(each.tool, Shape())
        body: dict[str, Any] = {"effect": "write" if each.tool in generic else each.effect}
        if each.tool not in catalogue:
            if description := shape.definition.get("description"):
                body["description"] = " ".join(str(description).split())[:300]
            if parameters := parameters_of(shape):
                body["parameters"] = dict(parameters)
        given: Mapping[str, Any] = parameters_of(shape)
        if each.tool in catalogue:
            given = cast(Mapping[str, Any], catalogue[each.tool]).get("parameters", {})
        if each.tool in generic:
            lines.append("  # A generic tool: each call does what an argument says; see `actions`")
        elif each.effect == "write" and (sentences := draft_sentences(each.tool, given, taken)):
            body["put_as"] = sentences[0] if len(sentences) == 1 else sentences
        if each.tool not in generic and each.effect == "write" and (changes := _changes(each.tool, shape, found)):
            body["changes"] = changes
        if (
            each.effect != "write"
            and each.tool not in generic
            and len(body) == 1
            and not (catalogue and each.tool not in catalogue)
        ):
            alike.setdefault(each.effect, []).append(each)
            continue
        if catalogue and each.tool not in catalogue:
            lines.append(
                "  # Not in tools.json. If the agent invented this tool, remove it here; otherwise, add it to the file"
            )
        lines.append(f"  # {each.sure:.0%} sure: {remark('; '.join(each.why))}")
        if each.declaration:
            lines.append(f"  # if this result means that nothing was done, add: {remark(each.declaration)}")
        lines += _entry(each.tool, body)
    for effect, several in alike.items():
        reasons = dict.fromkeys(reason for each in several for reason in each.why)
        lines.append(f"  # {min(each.sure for each in several):.0%} sure or more: {remark('; '.join(reasons))}")
        lines += _shared([each.tool for each in several], flow({"effect": effect}))
    return "\n".join(lines) + "\n" + draft_actions(scan.generic)


def _shared(tools: Sequence[str], body: str) -> list[str]:
    if any("," in tool for tool in tools):
        return [f"  {word(tool)}: {body}" for tool in tools]
    lines: list[str] = []
    line: list[str] = []
    for tool in tools:
        if line and len(_names([*line, tool])) + len(body) > _WIDE:
            lines.append(f"  {_names(line)}: {body}")
            line = []
        line.append(tool)
    return [*lines, f"  {_names(line)}: {body}"]


def _names(tools: Sequence[str]) -> str:
    joined = ", ".join(tools)
    return joined if len(tools) > 1 and all(word(tool) == tool for tool in tools) else word(joined)


def _entry(name: str, body: Mapping[str, Any]) -> list[str]:
    """Return the entry of a tool, on one line if it fits, otherwise with each part on a line of its own."""
    whole = f"  {word(name)}: {flow(body)}"
    if len(whole) <= _WIDE:
        return [whole]
    return [f"  {word(name)}:", *(wrapped(f"    {part}: ", value) for part, value in body.items())]


def _changes(tool: str, shape: Shape, found: Sequence[DraftEntity]) -> list[str | dict[str, Any]]:
    """Return the fields that a write may change: all fields except keys of the entities that its arguments name."""
    if set(words_of(tool)) & _ENDING:
        return []
    given = parameters_of(shape)
    names: Any = given.get("properties", given)
    arguments = {name: shape.arguments.get(name, SeenValues()) for name in names}
    changes: list[str | dict[str, Any]] = []
    for thing in found:
        fields = [name for name in thing.fields if name not in thing.key]
        if thing.key and arguments.keys() >= set(thing.key):
            if not fields:
                return []
            changes.append(f"{thing.name}.*")
        elif thing.key and fields and (named := _named_otherwise(thing, arguments)):
            changes.append({"as": thing.name, "key": named, "fields": fields})
    return changes


def _named_otherwise(thing: DraftEntity, arguments: Mapping[str, SeenValues]) -> str | dict[str, str]:
    """Return the arguments whose name differs from that of their key, such as `loan_id` for the `id` of a loan."""
    known = {part: thing.fields[part].seen for part in thing.key if part in thing.fields}
    chosen, _ = arguments_for(thing.key, thing.name, arguments, known)
    paths = {part: f"$args.{name}" for part, name in zip(thing.key, chosen, strict=False) if is_name(name)}
    if len(paths) < len(thing.key):
        return {}
    return next(iter(paths.values())) if len(paths) == 1 else paths


def _entities(found: Iterable[DraftEntity]) -> str:
    found = list(found)
    lines = [
        "# Entities and their fields, from the database and the results in the logs. Types are inferred. If a field",
        "# has few values, they are listed: make it an enumeration once you know them all, to find typos in guards.",
    ]
    finding = [thing for thing in found if thing.finds]
    if finding:
        key, place = finding[0].finds, finding[0].found_at
        tools = _names([thing.read for thing in finding if (thing.finds, thing.found_at) == (key, place)])
        lines += [
            f"# {remark(finding[0].read)} returns only a {key}. If it identifies the user, declare this entity:",
            f"#   Caller: {{key: [], origin: conversation, complete: true, fields: {{{key}: string}}}}",
            f"# and under observations `{remark(tools)}: {{as: Caller, fields: {{{key}: {place}}}}}`.",
        ]
    lines.append("entities:" if found else "entities: {}")
    for thing in found:
        lines.append(f"  {thing.name}:")
        lines.append(f"    key: {thing.key[0] if len(thing.key) == 1 else flow(list(thing.key))}")
        if thing.asked_with and any(name != part for name, part in thing.asked_with.items()):
            lines.append(f"    read: {flow({'tool': thing.read, 'arguments': thing.asked_with})}   # a guess")
        elif thing.read:
            lines.append(f"    read: {word(thing.read)}")
        lines.append(
            "    fields:" if thing.fields else "    fields: {}   # no log shows any: add the fields that guards need"
        )
        for name, values in thing.fields.items():
            few = values.few if bare(name) == tuple(words_of(name)) else ()
            none = "?" if values.nullable and values.type != "boolean" else ""
            if few and thing.table is not None and thing.table.rows >= _ROWS:
                body = {"type": "enum?", "values": list(few)} if none else list(few)
                lines.append(f"      {name}: {flow(body)}")
                continue
            words = f"  # seen: {remark(', '.join(few))}" if few else ""
            lines.append(f"      {name}: {values.type}{none}{words}")
    return "\n".join([*lines, *_observations(found)]) + "\n"


def _observations(found: Sequence[DraftEntity]) -> list[str]:
    """Return the observations of each tool. A look-up that returns only its own entity needs no observations."""
    by_tool: dict[str, list[str]] = {}
    plain = {(thing.read, shown) for thing in found for shown in _shown_by_itself(thing)}
    for thing in found:
        for sight in thing.sights:
            by_tool.setdefault(sight.tool, []).append(flow(_observation(thing, sight)))
    alike: dict[str, list[str]] = {}
    for tool, shown in by_tool.items():
        if len(shown) > 1 or (tool, shown[0]) not in plain:
            alike.setdefault(shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]", []).append(tool)
    return (
        ["observations:", *(line for shown, tools in alike.items() for line in _shared(tools, shown))] if alike else []
    )


def _shown_by_itself(thing: DraftEntity) -> list[str]:
    return [flow({"as": thing.name}), *(flow({"as": thing.name, "absent": text}) for text in ("not found", "no such"))]


def _observation(thing: DraftEntity, sight: EntityInResult) -> dict[str, Any]:
    when = {"path": f"$.{sight.has}", "exists": True} if sight.has else {}
    parts = {"each": sight.each, "as": thing.name, "key": sight.key, "when": when, "fields": sight.fields}
    parts["absent"] = sight.absent
    return {name: part for name, part in parts.items() if part}


def _policies(document: Document, example: Example | None) -> str:
    lines = [
        "# Every sentence of the document; no check enforces them yet. Write a guard in guards/*.py for each that a",
        "# call can break, and a rule in rules.yaml for each about order. Quote the sentence there; delete its line.",
        "# For the others, add your name and reason under `unenforced`.",
        "policies:",
    ]
    if example is not None:
        about = {"id": example.id, "definition": example.definition, "unenforced": _not_enforced(_LOOKED_UP)}
        lines.append("  - " + "\n".join(wrapped(f"    {part}: ", value) for part, value in about.items()).lstrip())
    lines += [
        f"  - id: {_UNDECIDED}",
        "    kind: knowledge",
        f"    unenforced: {flow(_not_enforced('not yet decided'))}",
        "    spans:",
    ]
    heading: str | None = None
    # A quote covers every occurrence of its text, so list a repeated sentence only once.
    first = {each.text: each for each in reversed(document.sentences)}
    for sentence in (each for each in document.sentences if first[each.text] is each):
        if sentence.heading != heading:
            remarked = f", {sentence.heading}" if sentence.heading else ""
            lines.append(f"      # {document.file_at(sentence.start).name}:{sentence.line}{remark(remarked)}")
            heading = sentence.heading
        lines.append(f"      - {flow([sentence.text])[1:-1]}")
    return "\n".join(lines) + "\n"


def _not_enforced(reason: str) -> dict[str, str]:
    return {"accepted_by": DRAFTED_BY, "reason": reason}
