"""What a model wrote: an optional thought, then either a text for the user or one tool call as JSON."""

import re
from typing import Any, cast

import msgspec
from msgspec import Struct

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
