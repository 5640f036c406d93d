"""Four scripted agents. Each is a function of the conversation so far, so that any framework can run it.

All agents follow the feedback on a blocked call. None of them knows about a shield. The last one reads its system
prompt.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from asking.desks import Arguments, Task
from msgspec import Struct

Kind = Literal["calls at once", "looks up first", "asks in own words", "uses pack sentences"]
KINDS: tuple[Kind, ...] = ("calls at once", "looks up first", "asks in own words", "uses pack sentences")
OWN = "You are the assistant of the desk."
STOPPED = ("Not done yet", "Done (", "May have been done")
_SHOW = re.compile(r"[Ss]how the user the text below.*?\n(.*)", re.DOTALL)
_CALL = re.compile(r"(\w+)\(([^()]*)\)")
_SECTION = re.compile(r"^## (\w+)\n\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z0-9](?:[\w.@/+:&-]*\w)?")


class Said(Struct, frozen=True):
    """A message from the customer or the agent."""

    by: Literal["user", "agent"]
    text: str


class Made(Struct, frozen=True):
    """A call by the agent and its result."""

    tool: str
    arguments: Arguments
    result: str


Step = str | tuple[str, Arguments]
"""The next step of the agent: a message or a call."""
History = Sequence[Said | Made]


def next_step(kind: Kind, task: Task, prompt: str, look_ups: Sequence[str], history: History) -> Step:
    """Return the next step of the agent.

    `look_ups` are the look-ups that the agent was told to make, such as `get_order(order_id)`.
    """
    write = (task.tool, task.arguments)
    tried = [at for at, each in enumerate(history) if isinstance(each, Made) and each.tool == task.tool]
    if tried:
        return _after_a_try(write, history[tried[-1]], history[tried[-1] + 1 :])  # type: ignore[arg-type]
    if kind == "calls at once":
        return write
    section = dict(_SECTION.findall(prompt)).get(task.tool, "")
    if kind == "uses pack sentences" and section:
        look_ups = [call for line in section.splitlines() if line.startswith("- Look up") for call in _calls_in(line)]
    if (look_up := next(_open_look_ups(look_ups, task, history), None)) is not None:
        return look_up
    has_asked = any(isinstance(each, Said) and each.by == "agent" for each in history)
    if kind == "looks up first" or has_asked:
        return write
    if kind == "uses pack sentences" and ("# Changes: look up" in prompt):
        return _sentence(section, task, history) or write
    given = ", ".join(f"{name.replace('_', ' ')} {_own_words(value)}" for name, value in task.arguments.items())
    return f"I can {task.tool.replace('_', ' ')} for you, with {given}. Would you like that?"


def _after_a_try(write: tuple[str, Arguments], made: Made, since: History) -> Step:
    """Return the next step of the agent after its write ran or was blocked. The agent only follows the feedback."""
    if not made.result.startswith(STOPPED):
        return "That is done."
    answers = [each for each in since if isinstance(each, Said) and each.by == "user"]
    if answers:
        return write
    if card := _SHOW.search(made.result):
        return card[1]
    if "Look up: " not in made.result:
        return "I am sorry, I cannot do that."
    named = [_read_call(each) for each in _CALL.findall(made.result.partition("Look up: ")[2].partition("\n")[0])]
    seen = [(each.tool, each.arguments) for each in since if isinstance(each, Made)]
    return next((each for each in named if each not in seen), write)


def _read_call(found: tuple[str, str]) -> tuple[str, Arguments]:
    tool, given = found
    return tool, dict(part.split("=", 1) for part in given.split(", ") if part)  # type: ignore[misc]


def _calls_in(line: str) -> list[str]:
    return [f"{tool}({given})" for tool, given in _CALL.findall(line)]


def _known(task: Task, history: History) -> Mapping[str, Any]:
    """Return the values that the agent knows from the call and from results, by name."""
    found: dict[str, Any] = {}
    for each in history:
        if isinstance(each, Made) and not each.result.startswith(STOPPED):
            found |= dict(_fields(json.loads(each.result)))
    return found | task.arguments


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, each in value.items():
            if isinstance(each, dict | list):
                yield from _fields(each)
            else:
                yield name, each
    elif isinstance(value, list):
        for each in value:
            yield from _fields(each)


def _open_look_ups(look_ups: Sequence[str], task: Task, history: History) -> Iterator[tuple[str, Arguments]]:
    """Yield the look-ups that the agent has not made and whose arguments it knows."""
    known, made = _known(task, history), {each.tool for each in history if isinstance(each, Made)}
    for look_up in look_ups:
        tool, names = look_up.rstrip(")").split("(")
        wanted = [name for name in names.split(", ") if name]
        if tool not in made and all(name in known for name in wanted):
            yield tool, {name: known[name] for name in wanted}


def _sentence(section: str, task: Task, history: History) -> str:
    """Return the sentence from the pack with the values of the call. Empty if no sentence fits."""
    asked = re.search(r"^- Ask: `(.*)`$", section, re.MULTILINE)
    if asked is None:
        return ""
    known = _known(task, history)
    samples = dict(re.findall(r"`\{(\w+)\}` like `([^`]*)`", section))
    values: dict[str, str] = {}
    for name in re.findall(r"\{(\w+)\}", asked[1]):
        values[name] = _written(known.get(name), samples.get(name, ""))
    return "" if "" in values.values() else re.sub(r"\{(\w+)\}", lambda slot: values[slot[1]], asked[1])


def _written(value: Any, sample: str) -> str:
    """Return a value in the form that the instructions require. Empty if a sentence cannot contain it."""
    if sample:
        return sample.replace("1,234.50", f"{float(value):,.2f}") if value is not None else ""
    if isinstance(value, list):
        parts = [_written(each, "") for each in value]
        return ", ".join(parts) if parts and all(parts) else ""
    if value is None or isinstance(value, dict) or not _PLAIN.fullmatch(str(value)):
        return ""
    return str(value).replace("_", " ")


def _own_words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
