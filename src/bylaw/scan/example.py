"""The worked example in a new pack: a guard on one write and the record its arguments name."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from bylaw.policy.verb import words_of
from bylaw.scan.shape import Shape
from bylaw.scan.spelling import is_name, spelled_like
from bylaw.scan.survey import Scan
from bylaw.scan.thing import LoggedThing, arguments_for
from bylaw.scan.written import flow

_MARK = "(example written by init)"


class Example(Struct, frozen=True):
    """A guard that requires a look-up of the record a write names, and that the record exists."""

    tool: str
    thing: LoggedThing
    arguments: tuple[str, ...]
    """The write's arguments that name the record, in key order."""

    @property
    def id(self) -> str:
        return f"example-{self.tool.replace('_', '-').lower()}"

    @property
    def noun(self) -> str:
        """The entity in words."""
        return " ".join(words_of(self.thing.name))

    @property
    def definition(self) -> str:
        """What it requires, and that `init` drafted it."""
        return f"{_MARK} Before {self.tool}, the {self.noun} has been looked up, and it exists."


def choose_example(scan: Scan, found: Mapping[str, LoggedThing], shapes: Mapping[str, Shape]) -> Example | None:
    """The write with the strongest habit of a look-up of a record that its arguments name."""
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
    tool: str, required: Mapping[str, Any], found: Mapping[str, LoggedThing], shapes: Mapping[str, Shape]
) -> Sequence[tuple[LoggedThing, tuple[str, ...]]]:
    """The entities a write's arguments name, by similarity to their key names."""
    fitting = [
        (distance, thing, arguments)
        for thing in found.values()
        if thing.key and is_name(tool)
        for arguments, distance in [arguments_for(thing.key, thing.name, required, _known(thing, shapes))]
        if arguments
    ]
    nearest = min((distance for distance, _, _ in fitting), default=0)
    return [(thing, arguments) for distance, thing, arguments in fitting if distance == nearest]


def _known(thing: LoggedThing, shapes: Mapping[str, Shape]) -> dict[str, set[str]]:
    """The values seen for each part of an entity's key, in records and as look-up arguments."""
    asked = shapes[thing.read].arguments if thing.read in shapes else {}
    return {
        part: {value for values in (thing.fields.get(part), asked.get(part)) if values for value in values.seen}
        for part in thing.key
    }


def example_files(example: Example, shape: Shape) -> dict[str, str]:
    """Its guard and its cases by path."""
    name, thing, key = example.id.replace("-", "_"), example.thing.name, _asked(example)
    guard = f"""{_TALK.format(noun=example.noun, some=_some_field(example))}
def {name}(call: {example.tool}, facts):
    if not facts.{thing}({key}).exists:
        return deny("there is no such {example.noun}")
    return permit()
"""
    return {f"guards/{name}.py": guard, f"cases/{example.id}.yaml": _cases(example, shape)}


_TALK = """\
# A worked example. It names the tool it binds. Replace it by a guard of your own, with its sentence as the docstring.
# A guard asks for facts, never for tool calls: any look-up that showed the {noun} will do.
# Without one, the call is undetermined: a near-miss if a database shows that it was right.
# Next, ask for the fields that your policy is about, e.g. `{some}`.

"""


def _asked(example: Example) -> str:
    return ", ".join(f"call.{name}" for name in example.arguments)


def _some_field(example: Example) -> str:
    """A field to use as an example, other than a differently spelled key."""
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
    seen: dict[str, Any] = {"note": f"the {example.noun} was looked up, and it exists", "policy": example.id}
    seen |= {} if named else {"call": call}
    seen |= {"facts": {thing: {"exists": True}}}
    seen |= {"but": {"note": f"the {example.noun} was looked up, and there is none", "facts": {thing: None}}}
    unseen = {"note": f"the {example.noun} was never looked up", "policy": example.id, "call": call}
    unseen |= {"want": "undetermined"}
    written = (["- ", *(f"{name}: {flow([part])[1:-1]}\n  " for name, part in case.items())] for case in (seen, unseen))
    return "".join("".join(lines).removesuffix("  ") for lines in written)


def _literal(value: str, shape: Shape, name: str) -> Any:
    kind = shape.arguments[name].type if name in shape.arguments else "string"
    return int(value) if kind in ("integer", "number") else value == "true" if kind == "boolean" else value
