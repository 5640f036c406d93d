"""A pack to start from: what logs and a policy document give by themselves, each guess marked as one."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml
from msgspec import Struct

from bylaw.errors import BylawError, UsageError
from bylaw.policy.document import Document, Sentence
from bylaw.policy.tool import Effect
from bylaw.policy.verb import words_of
from bylaw.scan.effect import Guess
from bylaw.scan.match import arguments_for, spelled_like
from bylaw.scan.shape import Shape, Shapes, parameters_of
from bylaw.scan.survey import Scan, Survey
from bylaw.scan.thing import Sight, Thing, is_name, things
from bylaw.trace import Trajectory

_ACCEPTED = "bylaw init"
_LONGEST_ID = 48
_MODALS = {"must", "cannot", "only", "should", "never", "not", "may", "unless"}
_WORD = re.compile(r"[A-Za-z_][\w.-]*")


class Skeleton(Struct, frozen=True):
    """The files of a new pack, by path inside its folder, and what they were made from."""

    files: dict[str, str]
    scan: Scan
    things: tuple[str, ...]
    sentences: int
    example: str
    """Id of the policy with the worked guard; empty where no write tool allowed one."""


class Example(Struct, frozen=True):
    """The worked guard: one write, and the thing it is about."""

    id: str
    tool: str
    thing: Thing
    arguments: tuple[str, ...]
    """The write's arguments that name the thing, in the order of its key."""
    sentence: Sentence


def skeleton(
    trajectories: Iterable[Trajectory | BylawError],
    document: Document,
    *,
    name: str,
    effects: Mapping[str, Effect] | None = None,
) -> Skeleton:
    """The files of a pack for `document`, from what `trajectories` show."""
    if not document.sentences:
        raise UsageError("the document has no sentence", place=document.name)
    survey, shapes = Survey(effects=effects), Shapes()
    for trajectory in trajectories:
        survey.add(trajectory)
        if isinstance(trajectory, Trajectory):
            shapes.add(trajectory)
    scan = survey.result()
    guesses = {guess.tool: guess for guess in scan.tools}
    if not guesses:
        raise UsageError("the logs show no tool", hint="a pack needs the tools that the agent may call")
    found = things(shapes.tools, guesses)
    example = _example(scan, found, shapes.tools, document)
    files = {
        "pack.yaml": _manifest(name, document),
        "policy.md": document.text,
        "tools.yaml": _tools(scan.tools, shapes.tools),
        "entities.yaml": _entities(found.values()),
        "policies.yaml": _policies(document, scan.tools, example),
    }
    if example is not None:
        function = example.id.replace("-", "_")
        files[f"guards/{function}.py"] = _guard(example, function)
        files[f"cases/{example.id}.yaml"] = _cases(example, shapes.tools[example.tool])
    return Skeleton(files, scan, tuple(found), len(document.sentences), example.id if example else "")


def _manifest(name: str, document: Document) -> str:
    title = next((line.lstrip("# ").strip() for line in document.text.splitlines() if line.startswith("# ")), name)
    body = _dump({"format": 1, "name": name, "version": "0.1.0", "title": title, "document": "policy.md"})
    return body + "# now: 2025-01-31T09:00:00   # a fixed clock, where the logs do not say when they happened\n"


def _tools(guesses: Sequence[Guess], shapes: Mapping[str, Shape]) -> str:
    lines = [
        "# What each tool does is a guess: read | write | none. Correct it; a write is what policies bind.",
        "tools:",
    ]
    for guess in sorted(guesses, key=lambda guess: (guess.effect != "write", guess.tool)):
        shape = shapes.get(guess.tool, Shape())
        body: dict[str, Any] = {"effect": guess.effect}
        if description := shape.definition.get("description"):
            body["description"] = " ".join(str(description).split())[:300]
        if parameters := parameters_of(shape):
            body["parameters"] = dict(parameters)
        lines.append(f"  # {guess.sure:.0%} sure: {_comment('; '.join(guess.why))}")
        lines.append(_indent(_dump({guess.tool: body}), 2))
    return "\n".join(lines) + "\n"


def _entities(found: Iterable[Thing]) -> str:
    found = list(found)
    lines = [
        "# Things and their fields, as the results in the logs show them. Types are guesses; where few words were",
        "# seen, they stand beside: make such a field an enum once you know all its words.",
    ]
    lines.append("entities:" if found else "entities: {}")
    for thing in found:
        lines.append(f"  {thing.name}:")
        lines.append(f"    key: {_flow(list(thing.key))}")
        if thing.read:
            lines.append(f"    read: {_word(thing.read)}")
        lines.append("    fields:")
        for name, values in thing.fields.items():
            words = f"  # seen: {_comment(', '.join(values.few))}" if values.few and name not in thing.key else ""
            lines.append(f"      {name}: {values.type}{words}")
    lines.append("observations:" if found else "observations: {}")
    by_tool: dict[str, list[tuple[Thing, Sight]]] = {}
    for thing in found:
        for sight in thing.sights:
            by_tool.setdefault(sight.tool, []).append((thing, sight))
    for tool, sights in by_tool.items():
        lines.append(f"  {_word(tool)}:")
        lines += [f"    - {_flow(_observation(thing, sight))}" for thing, sight in sights]
    return "\n".join(lines) + "\n"


def _observation(thing: Thing, sight: Sight) -> dict[str, Any]:
    parts = {"each": sight.each, "as": thing.name, "key": sight.key, "fields": sight.fields, "absent": sight.absent}
    return {name: part for name, part in parts.items() if part}


def _policies(document: Document, guesses: Sequence[Guess], example: Example | None) -> str:
    lines = [
        "# Every sentence of the document, and nothing enforces any of them yet. For each, decide on its kind:",
        "#   guard: one call can be held to it (write guards/*.py); rule: it is about order;",
        "#   conversation or knowledge: neither.",
        "# Reword `definition`, name the tools it binds, and drop `unenforced` once it is enforced.",
        "policies:",
    ]
    writes = [guess.tool for guess in guesses if guess.effect == "write"]
    ids: set[str] = {example.id} if example else set()
    for sentence in document.sentences:
        if example is not None and sentence == example.sentence:
            reason = "an example: its guard asks only that the record was looked up and exists"
            body = _policy(example.id, [example.tool], document, sentence, reason)
        else:
            body = _policy(_id(sentence, ids), _bound(sentence, writes), document, sentence, "not yet written")
        lines.append(_indent(_dump([body]), 2))
    return "\n".join(lines) + "\n"


def _policy(id: str, tools: Sequence[str], document: Document, sentence: Sentence, reason: str) -> dict[str, Any]:
    if document.find(sentence.text) == (sentence.start, sentence.end):
        span: dict[str, Any] = {"quote": sentence.text}
    else:  # the same words stand earlier too
        span = {
            "heading": sentence.heading,
            "line": sentence.line,
            "sentence": sentence.index,
            "digest": sentence.digest,
        }
    return {
        "id": id,
        "kind": "guard" if tools else "knowledge",
        **({"tools": list(tools)} if tools else {}),
        "definition": sentence.text,
        "spans": [span],
        "unenforced": {"accepted_by": _ACCEPTED, "reason": reason},
    }


def _id(sentence: Sentence, taken: set[str]) -> str:
    words = re.findall(r"[a-z0-9]+", sentence.text.lower())
    name = "-".join(words[:6])[:_LONGEST_ID].strip("-") or f"line-{sentence.line}"
    if not name[0].isalpha():
        name = f"line-{sentence.line}-{name}"
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}-{number}", number + 1
    taken.add(candidate)
    return candidate


def _bound(sentence: Sentence, writes: Sequence[str]) -> list[str]:
    """The writes a sentence seems to speak of: it uses their verb."""
    said = set(re.findall(r"[a-z]+", sentence.text.lower()))
    return [tool for tool in writes if (words := words_of(tool)) and _speaks_of(words[0], said)]


def _speaks_of(word: str, said: set[str]) -> bool:
    stem = word.removesuffix("e")
    return any(each == word or (each.startswith(stem) and len(each) <= len(word) + 5) for each in said if len(stem) > 2)


def _example(scan: Scan, found: Mapping[str, Thing], shapes: Mapping[str, Shape], document: Document) -> Example | None:
    """The write that is most surely about a thing we know, with the sentence that speaks of it most."""
    best: tuple[float, Example] | None = None
    for write in scan.writes:
        shape = shapes[write.tool]
        required = {name: shape.arguments[name] for name in shape.required if is_name(name)}
        fitting = [
            (distance, thing, arguments)
            for thing in found.values()
            if thing.key
            for arguments, distance in [arguments_for(thing.key, thing.name, required, _known(thing, shapes))]
            if arguments
        ]
        if not fitting or not is_name(write.tool):
            continue
        _, thing, arguments = min(fitting, key=lambda fit: fit[0])
        surest = max((habit.sure for habit in write.habits if thing.read in habit.tools), default=0.0)
        overlap = [_relevance(sentence, write.tool, thing) for sentence in document.sentences]
        sentence = document.sentences[overlap.index(max(overlap))]
        score = surest + max(overlap)
        if best is None or score > best[0]:
            id = f"example-{write.tool.replace('_', '-').lower()}"
            best = score, Example(id, write.tool, thing, arguments, sentence)
    return best[1] if best else None


def _known(thing: Thing, shapes: Mapping[str, Shape]) -> dict[str, set[str]]:
    """The values that each part of a thing's key was seen to have, in records and as what it was looked up with."""
    asked = shapes[thing.read].arguments if thing.read in shapes else {}
    return {
        part: {value for values in (thing.fields.get(part), asked.get(part)) if values for value in values.seen}
        for part in thing.key
    }


def _relevance(sentence: Sentence, tool: str, thing: Thing) -> int:
    """How much a sentence speaks of a write and its thing, and lays down something."""
    said = set(re.findall(r"[a-z]+", sentence.text.lower()))
    words = {word for word in (*words_of(tool), *words_of(thing.name)) if len(word) > 2}
    return sum(_speaks_of(word, said) for word in words) + 2 * bool(said & _MODALS)


def _guard(example: Example, function: str) -> str:
    thing = ", ".join(f"call.{name}" for name in example.arguments)
    noun = " ".join(words_of(example.thing.name))
    some = f"facts.{example.thing.name}({thing}).{_some_field(example.thing)}"
    return f"""# A worked example. A guard asks for facts, never for tool calls.
# Any look-up that showed the {noun} will do.
# Where none did, the call is undetermined: a near-miss where a database shows that it was right.
# Next, ask for the fields that the sentence is about, e.g. `{some}`.
def {function}(call, facts):
    if not facts.{example.thing.name}({thing}).exists:
        return deny("there is no such {noun}")
    return permit()
"""


def _some_field(thing: Thing) -> str:
    """A field to name as an example: none that only spells the key in another way."""
    ids = {spelled_like(part, thing.fields, thing=thing.name) for part in thing.key}
    return next((name for name in thing.fields if name not in thing.key and name not in ids), "exists")


def _cases(example: Example, shape: Shape) -> str:
    keys = {name: f"K{number}" for number, name in enumerate(example.arguments, 1)}
    for name in keys:
        kind = shape.arguments[name].type if name in shape.arguments else "string"
        keys[name] = {"integer": "1", "number": "1", "date": "2025-01-31", "boolean": "true"}.get(kind, keys[name])
    call = {example.tool: {name: _literal(value, shape, name) for name, value in keys.items()}}
    thing = f"{example.thing.name}[{', '.join(keys.values())}]"
    noun = " ".join(words_of(example.thing.name))
    cases: list[tuple[str, dict[str, Any], str]] = [
        (f"the {noun} was looked up, and it exists", {thing: {"exists": True}}, "permit"),
        (f"the {noun} was looked up, and there is none", {thing: None}, "deny"),
        (f"the {noun} was never looked up", {}, "undetermined"),
    ]
    listed: list[dict[str, Any]] = [
        {"note": note, "policy": example.id, "call": call, "facts": facts, "want": want} for note, facts, want in cases
    ]
    return _dump(listed)


def _literal(value: str, shape: Shape, name: str) -> Any:
    kind = shape.arguments[name].type if name in shape.arguments else "string"
    return int(value) if kind in ("integer", "number") else value == "true" if kind == "boolean" else value


class _Plain(yaml.SafeDumper):
    """Writes every repeated value out: packs allow no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _dump(data: Any) -> str:
    return str(yaml.dump(data, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=110))


def _flow(data: Any) -> str:
    text = yaml.dump(data, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=10_000, default_flow_style=True)
    return str(text).removesuffix("\n...\n").strip()


def _word(text: str) -> str:
    """A name as YAML takes it on one line."""
    return text if _WORD.fullmatch(text) and text not in ("true", "false", "null") else json.dumps(text)


def _indent(text: str, by: int) -> str:
    return "\n".join(" " * by + line if line else line for line in text.rstrip("\n").split("\n"))


def _comment(text: str) -> str:
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())
