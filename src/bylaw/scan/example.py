"""The worked guard of a new pack: one write, the thing it is about, and the sentence that speaks of both."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from bylaw.policy.document import Document, Sentence
from bylaw.policy.verb import words_of
from bylaw.scan.sentence_words import Wording, objects_of
from bylaw.scan.shape import Shape
from bylaw.scan.survey import Scan, Write
from bylaw.scan.thing import LoggedThing, arguments_for, is_name, spelled_like
from bylaw.scan.written import flow, remark, switched_off

MARK = "(example written by init)"
_LONG = 20


class Example(Struct, frozen=True):
    """A guard that asks that the thing a write is about was looked up, and exists."""

    tool: str
    thing: LoggedThing
    arguments: tuple[str, ...]
    """The write's arguments that name the thing, in the order of its key."""
    sentence: Sentence | None
    """The sentence it serves; None where none speaks of it, and the guard is switched off."""
    is_first: bool = True
    """Whether the same words stand nowhere before it, so that a quote means this one."""

    @property
    def id(self) -> str:
        return f"example-{self.tool.replace('_', '-').lower()}"

    @property
    def noun(self) -> str:
        """The thing in words."""
        return " ".join(words_of(self.thing.name))

    @property
    def definition(self) -> str:
        """What it asks, and that nobody but `init` said so."""
        return f"{MARK} Before {self.tool}, the {self.noun} has been looked up, and it exists."

    @property
    def states_its_policy(self) -> bool:
        """Whether its guard can quote the sentence; else policies.yaml does."""
        text = self.sentence.text if self.sentence is not None else ""
        return bool(text) and text.isprintable() and not {"\\", '"'} & set(text) and self.is_first

    @property
    def files(self) -> tuple[str, str]:
        """Where its guard and its cases stand."""
        return f"guards/{self.id.replace('-', '_')}.py", f"cases/{self.id}.yaml"


def choose_example(
    scan: Scan, found: Mapping[str, LoggedThing], shapes: Mapping[str, Shape], document: Document
) -> Example | None:
    """The write and sentence that speak most surely of one thing; without a sentence, the surest write."""
    tools = [guess.tool for guess in scan.tools]
    writes = [guess.tool for guess in scan.tools if guess.effect == "write"]
    wordings = [(sentence, Wording(sentence.text)) for sentence in document.sentences]
    deeds = [(sentence, wording, wording.deeds(writes, tools)) for sentence, wording in wordings]
    best: tuple[tuple[bool, float], Example] | None = None
    for write in scan.writes:
        shape = shapes[write.tool]
        required = {name: shape.arguments[name] for name in shape.required if is_name(name)}
        for thing, arguments in _about(write, required, found, shapes):
            surest = max((habit.sure for habit in write.habits if thing.read in habit.tools), default=0.0)
            options = [
                (_fit(wording, write.tool), sentence)
                for sentence, wording, done in deeds
                if write.tool in done
                and wording.speaks_of(thing.name)
                and (wording.lays_down or wording.looks_up_first)
            ]
            fit, sentence = max(options, key=lambda option: option[0], default=(0.0, None))
            score = (sentence is not None, surest + fit)
            if best is None or score > best[0]:
                best = score, Example(write.tool, thing, arguments, sentence, _is_first(document, sentence))
    return best[1] if best else None


def _about(
    write: Write, required: Mapping[str, Any], found: Mapping[str, LoggedThing], shapes: Mapping[str, Shape]
) -> Sequence[tuple[LoggedThing, tuple[str, ...]]]:
    """The things that a write's arguments name, by the names nearest to their keys."""
    fitting = [
        (distance, thing, arguments)
        for thing in found.values()
        if thing.key and is_name(write.tool)
        for arguments, distance in [arguments_for(thing.key, thing.name, required, _known(thing, shapes))]
        if arguments
    ]
    nearest = min((distance for distance, _, _ in fitting), default=0)
    return [(thing, arguments) for distance, thing, arguments in fitting if distance == nearest]


def _is_first(document: Document, sentence: Sentence | None) -> bool:
    return sentence is not None and document.find(sentence.text) == (sentence.start, sentence.end)


def _fit(wording: Wording, tool: str) -> float:
    """How well a sentence that speaks of a write and its thing suits a guard that asks for a look-up."""
    asks = 3 * wording.looks_up_first + 0.5 * wording.looks_up + wording.lays_down
    # A long sentence speaks of much else.
    return asks + 0.5 * wording.names(objects_of(tool)) - max(0, len(wording.words) - _LONG) / 10


def _known(thing: LoggedThing, shapes: Mapping[str, Shape]) -> dict[str, set[str]]:
    """The values that each part of a thing's key was seen to have, in records and as what it was looked up with."""
    asked = shapes[thing.read].arguments if thing.read in shapes else {}
    return {
        part: {value for values in (thing.fields.get(part), asked.get(part)) if values for value in values.seen}
        for part in thing.key
    }


def example_files(example: Example, shape: Shape) -> dict[str, str]:
    """Its guard and its cases by path; as comments where no sentence speaks of it."""
    guard, cases = example.files
    if example.sentence is not None:
        return {
            guard: _said(example.sentence)
            + _TALK.format(noun=example.noun, some=_some_field(example))
            + _guard(example),
            cases: _cases(example, shape),
        }
    off = _OFF.format(id=example.id, tool=example.tool, noun=example.noun, guard=guard, cases=cases)
    return {guard: off + switched_off(_guard(example)), cases: off + switched_off(_cases(example, shape))}


_TALK = """\
# A worked example. It names the tool it binds and quotes its sentence, so that policies.yaml need not.
# A guard asks for facts, never for tool calls: any look-up that showed the {noun} will do.
# Where none did, the call is undetermined: a near-miss where a database shows that it was right.
# Next, ask for the fields that the sentence is about, e.g. `{some}`.
"""
_OFF = """\
# Switched off: no sentence of the document seems to ask that the {noun} is looked up before {tool}.
# To switch it on, take the `# ` off the lines below the blank one, here and in its other file
# ({guard}, {cases}), and quote in the guard the sentence that it serves.

"""


def _said(sentence: Sentence) -> str:
    """Where the document says it, above the draft of what it asks for."""
    return f"# policy.md:{sentence.line}{remark(f', {sentence.heading}' if sentence.heading else '')}\n#\n"


def _guard(example: Example) -> str:
    quoted = example.sentence.text if example.sentence is not None else "the sentence"
    if example.sentence is None or example.states_its_policy:
        call, said = f"call: {example.tool}", f'"""{quoted}"""'
    else:
        call, said = "call", f"# {remark(quoted)}"
    return f"""def {example.id.replace("-", "_")}({call}, facts):
    {said}
    if not facts.{example.thing.name}({_asked(example)}).exists:
        return deny("there is no such {example.noun}")
    return permit()
"""


def _asked(example: Example) -> str:
    return ", ".join(f"call.{name}" for name in example.arguments)


def _some_field(example: Example) -> str:
    """A field to name as an example: none that only spells the key in another way."""
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
