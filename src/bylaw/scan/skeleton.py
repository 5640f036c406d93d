"""A pack to start from: what logs and a policy document give by themselves, each guess marked as one."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from bylaw.errors import BylawError, UsageError
from bylaw.policy.document import Document, Sentence
from bylaw.policy.tool import Effect
from bylaw.policy.verb import words_of
from bylaw.scan.effect import Guess
from bylaw.scan.example import Example, choose_example, example_files
from bylaw.scan.shape import Shape, Shapes, parameters_of
from bylaw.scan.survey import Scan, Survey
from bylaw.scan.thing import LoggedThing, ToolSight, things
from bylaw.scan.wording import Wording
from bylaw.scan.written import dump, flow, indent, remark, word
from bylaw.trace import Trajectory

_ACCEPTED = "bylaw init"
_LONGEST_ID = 48
_ENDING = {"delete", "remove", "drop", "destroy", "create", "add", "merge", "purge"}
"""Words of writes after which a thing may be there no more, or only then."""
_LOOKED_UP = "an example: its guard asks only that the record was looked up and exists"


class Skeleton(Struct, frozen=True):
    """The files of a new pack, by path inside its folder, and what they were made from."""

    files: dict[str, str]
    scan: Scan
    things: tuple[str, ...]
    sentences: int
    example: str
    """Id of the policy with the worked guard; empty where there is none."""
    switched_off: str
    """Id for the worked guard where it is only a comment, as no sentence speaks of it."""


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
    example = choose_example(scan, found, shapes.tools, document)
    files = {
        "pack.yaml": _manifest(name, document),
        "policy.md": document.text,
        "tools.yaml": _tools(scan.tools, shapes.tools, list(found.values())),
        "entities.yaml": _entities(found.values()),
        "policies.yaml": _policies(document, scan.tools, example),
    }
    if example is not None:
        files |= example_files(example, shapes.tools[example.tool])
    live = example is not None and example.sentence is not None
    names = (example.id, "") if example and live else ("", example.id) if example else ("", "")
    return Skeleton(files, scan, tuple(found), len(document.sentences), *names)


def _manifest(name: str, document: Document) -> str:
    title = next((line.lstrip("# ").strip() for line in document.text.splitlines() if line.startswith("# ")), name)
    body = dump({"format": 1, "name": name, "version": "0.1.0", "title": title, "document": "policy.md"})
    return body + "# now: 2025-01-31T09:00:00   # a fixed clock, where the logs do not say when they happened\n"


def _tools(guesses: Sequence[Guess], shapes: Mapping[str, Shape], found: Sequence[LoggedThing]) -> str:
    lines = [
        "# What each tool does is a guess: read | write | none. Correct it; a write is what policies bind.",
        "# `changes` of a write are all fields of what its arguments name: keep those that it really changes.",
        "tools:",
    ]
    for guess in sorted(guesses, key=lambda guess: (guess.effect != "write", guess.tool)):
        shape = shapes.get(guess.tool, Shape())
        body: dict[str, Any] = {"effect": guess.effect}
        if description := shape.definition.get("description"):
            body["description"] = " ".join(str(description).split())[:300]
        if parameters := parameters_of(shape):
            body["parameters"] = dict(parameters)
        if guess.effect == "write" and (changes := _changes(guess.tool, shape, found)):
            body["changes"] = changes
        lines.append(f"  # {guess.sure:.0%} sure: {remark('; '.join(guess.why))}")
        lines.append(indent(dump({guess.tool: body}), 2))
    return "\n".join(lines) + "\n"


def _changes(tool: str, shape: Shape, found: Sequence[LoggedThing]) -> list[dict[str, Any]]:
    """What a write may change of the things that its arguments name; that there are such things it leaves as it is."""
    if set(words_of(tool)) & _ENDING:
        return []
    given = parameters_of(shape) or {}
    named = [thing for thing in found if thing.key and given.keys() >= set(thing.key)]
    fields = [(thing, [name for name in thing.fields if name not in thing.key]) for thing in named]
    if not all(names for _, names in fields):
        return []
    return [{"as": thing.name, "fields": names} for thing, names in fields]


def _entities(found: Iterable[LoggedThing]) -> str:
    found = list(found)
    lines = [
        "# Things and their fields, as the results in the logs show them. Types are guesses. Where a field repeats",
        "# few words, they stand beside it: make it an enum once you know them all, and a typo in a guard is a fault.",
    ]
    lines.append("entities:" if found else "entities: {}")
    for thing in found:
        lines.append(f"  {thing.name}:")
        lines.append(f"    key: {flow(list(thing.key))}")
        if thing.read:
            lines.append(f"    read: {word(thing.read)}")
        lines.append("    fields:")
        for name, values in thing.fields.items():
            words = f"  # seen: {remark(', '.join(values.few))}" if values.few and name not in thing.key else ""
            lines.append(f"      {name}: {values.type}{words}")
    lines.append("observations:" if found else "observations: {}")
    by_tool: dict[str, list[tuple[LoggedThing, ToolSight]]] = {}
    for thing in found:
        for sight in thing.sights:
            by_tool.setdefault(sight.tool, []).append((thing, sight))
    for tool, sights in by_tool.items():
        lines.append(f"  {word(tool)}:")
        lines += [f"    - {flow(_observation(thing, sight))}" for thing, sight in sights]
    return "\n".join(lines) + "\n"


def _observation(thing: LoggedThing, sight: ToolSight) -> dict[str, Any]:
    parts = {"each": sight.each, "as": thing.name, "key": sight.key, "fields": sight.fields, "absent": sight.absent}
    return {name: part for name, part in parts.items() if part}


def _policies(document: Document, guesses: Sequence[Guess], example: Example | None) -> str:
    lines = [
        "# Every sentence of the document, and nothing enforces any of them yet. For each, decide on its kind:",
        "#   guard: one call can be held to it (write guards/*.py); rule: it is about order;",
        "#   conversation or knowledge: neither. Here `knowledge` only says that no tool was recognised in it.",
        "# Reword `definition`, name the `tools` it binds, and drop `unenforced` once it is enforced.",
        "policies:",
    ]
    tools = [guess.tool for guess in guesses]
    writes = [guess.tool for guess in guesses if guess.effect == "write"]
    ids: set[str] = {example.id} if example else set()
    for sentence in document.sentences:
        if example is not None and sentence == example.sentence:
            body = _policy(example.id, [example.tool], document, sentence, _LOOKED_UP)
            body["definition"] = example.definition
        else:
            bound = Wording(sentence.text).deeds(writes, tools)
            body = _policy(_id(sentence, ids), bound, document, sentence, "not yet written")
        heading = f", {sentence.heading}" if sentence.heading else ""
        lines.append(f"  # {document.name}:{sentence.line}{remark(heading)}")
        lines.append(indent(dump([body]), 2))
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
