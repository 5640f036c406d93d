"""What a model wrote: an optional thought, then either a text for the user or one tool call as JSON.

A whole prompt of such turns is read as events that the guards can look at.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct

from bylaw.trace.event import Call, Event, Message, Result, decode_text

_THOUGHT = re.compile(r"\s*<think>(.*?)</think>(.*)", re.DOTALL)
_FENCE = re.compile(r"```(?:json)?\s*\n?(.*?)\n?\s*```\s*", re.DOTALL)


class Output(Struct, frozen=True):
    """One output, taken apart."""

    thought: str | None
    """What stands in the think block; None where there is none."""
    tool: str | None
    """The tool that is called; None for a text."""
    arguments: dict[str, Any]
    text: str
    """What is said to the user; empty beside a call."""
    fault: str = ""
    """Why neither a text nor a call could be made out."""
    rest: str = ""
    """Everything after the thought, as it was written."""

    @property
    def is_formatted(self) -> bool:
        """Exactly one closed think block first, then either text or one JSON call."""
        return self.thought is not None and not self.fault


def read_output(raw: str) -> Output:
    """Take an output apart. Never fails: what is wrong with it stands in `fault`."""
    thought: str | None = None
    rest = raw
    if (match := _THOUGHT.fullmatch(raw)) is not None:
        thought, rest = match[1].strip(), match[2]
    rest = rest.strip()
    if "<think>" in rest or "</think>" in rest or (thought is not None and "<think>" in thought):
        return Output(thought, None, {}, "", "a thought is one <think>...</think> block at the beginning", rest)
    if not rest:
        return Output(thought, None, {}, "", "there is neither a text nor a call", rest)
    fenced = _FENCE.fullmatch(rest)
    body = fenced[1].strip() if fenced else rest
    if not body.startswith(("{", "[")):
        if '{"name"' in body:
            return Output(thought, None, {}, "", "a call stands alone, without other text", rest)
        return Output(thought, None, {}, rest, "", rest)
    return _read_call(thought, body, rest)


def _read_call(thought: str | None, body: str, rest: str) -> Output:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return Output(thought, None, {}, "", "the call is not one JSON object", rest)
    if not isinstance(found, dict):
        return Output(thought, None, {}, "", "one call at a time, as one JSON object", rest)
    call = cast(dict[str, Any], found)
    arguments = call.get("arguments", {})
    if not isinstance(call.get("name"), str) or not isinstance(arguments, dict) or set(call) - {"name", "arguments"}:
        return Output(thought, None, {}, "", 'a call is {"name": ..., "arguments": {...}}', rest)
    return Output(thought, call["name"], cast(dict[str, Any], arguments), "", "", rest)


def write_call(tool: str, arguments: dict[str, Any]) -> str:
    return msgspec.json.encode({"name": tool, "arguments": arguments}).decode()


def events_of(messages: Sequence[Mapping[str, Any]]) -> list[Event]:
    """A conversation as it stands in a prompt: outputs in `content` or calls beside it, results after the calls.

    A result without the id of its call, as TRL gives it, answers the first call that is still open, of its name if it
    has one.
    """
    events: list[Event] = []
    waiting: dict[int, tuple[str, str]] = {}
    """Calls that are still open: step, id and tool."""
    for turn, message in enumerate(messages):
        content = text_of(message.get("content"))
        match message.get("role"):
            case "user":
                events.append(Message("user", content, turn=turn))
            case "assistant":
                waiting.clear()
                for name, arguments, call_id in _calls(message, content):
                    waiting[len(events)] = (call_id, name)
                    events.append(Call(name, arguments, id=call_id, turn=turn))
                if not waiting:
                    read = read_output(content)
                    events.append(Message("agent", read.text or read.rest, turn=turn))
            case "tool":
                step = _answered(waiting, str(message.get("tool_call_id") or ""), str(message.get("name") or ""))
                if step is not None:
                    waiting.pop(step)
                events.append(Result(step, content))
            case _:
                pass
    return events


def _calls(message: Mapping[str, Any], content: str) -> list[tuple[str, dict[str, Any], str]]:
    """The calls of a turn: native ones, or the one that its text is."""
    found: list[tuple[str, dict[str, Any], str]] = []
    for call in cast(Sequence[Mapping[str, Any]], message.get("tool_calls") or ()):
        function = cast(Mapping[str, Any], call.get("function") or call)
        arguments: Any = function.get("arguments") or {}
        if isinstance(arguments, str):
            arguments = decode_text(arguments)
        known = cast(dict[str, Any], arguments) if isinstance(arguments, dict) else {}
        found.append((str(function.get("name")), known, str(call.get("id") or "")))
    read = read_output(content)
    if not found and read.tool is not None:
        found.append((read.tool, read.arguments, ""))
    return found


def _answered(waiting: Mapping[int, tuple[str, str]], call_id: str, name: str) -> int | None:
    steps = list(waiting)
    by_id = [step for step in steps if call_id and waiting[step][0] == call_id]
    by_name = [step for step in steps if name and waiting[step][1] == name]
    return next(iter(by_id or by_name or steps), None)


def text_of(content: Any) -> str:
    """A message's content: a text, or the texts of its parts."""
    if isinstance(content, list):
        parts = cast(list[Mapping[str, Any] | str], content)
        return "".join(part if isinstance(part, str) else str(part.get("text") or "") for part in parts)
    return "" if content is None else str(content)
