"""Parses the output of a model: an optional thought, followed by a text for the user or one tool call in JSON.

A prompt that contains such outputs can be converted to events for the guards.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct

from bylaw.trace.event import Event
from bylaw.trace.readers.chat import ChatMessage, follow
from bylaw.trace.transcript import Transcript

_THOUGHT = re.compile(r"\s*<think>(.*?)</think>(.*)", re.DOTALL)
_FENCE = re.compile(r"```(?:json)?\s*\n?(.*?)\n?\s*```\s*", re.DOTALL)


class Output(Struct, frozen=True):
    thought: str | None
    """The content of the think block, or None if there is none."""
    tool: str | None
    """The called tool, or None for a text."""
    arguments: dict[str, Any]
    text: str
    """The text for the user, or an empty text for a call."""
    fault: str = ""
    """Why the output is neither a text nor a call. Empty if it is one of them."""
    rest: str = ""
    """Everything after the thought, unchanged."""

    @property
    def is_formatted(self) -> bool:
        """Whether the output is one closed think block, followed by a text or one JSON call."""
        return self.thought is not None and not self.fault


def read_output(raw: str) -> Output:
    """Split an output into parts. Never raises; `fault` contains the error."""
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
            return Output(thought, None, {}, "", "a call must stand alone, without other text", rest)
        return Output(thought, None, {}, rest, "", rest)
    return _read_call(thought, body, rest)


def _read_call(thought: str | None, body: str, rest: str) -> Output:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return Output(thought, None, {}, "", "the call is not a single JSON object", rest)
    if not isinstance(found, dict):
        return Output(thought, None, {}, "", "make one call at a time, as a single JSON object", rest)
    call = cast(dict[str, Any], found)
    arguments = call.get("arguments", {})
    if not isinstance(call.get("name"), str) or not isinstance(arguments, dict) or set(call) - {"name", "arguments"}:
        return Output(thought, None, {}, "", 'a call is {"name": ..., "arguments": {...}}', rest)
    return Output(thought, call["name"], cast(dict[str, Any], arguments), "", "", rest)


def write_call(tool: str, arguments: dict[str, Any]) -> str:
    return msgspec.json.encode({"name": tool, "arguments": arguments}).decode()


def events_of(messages: Sequence[Mapping[str, Any]]) -> list[Event]:
    """Return the conversation in a prompt as events. An output that contains a call becomes a call event."""
    transcript = Transcript()
    follow((msgspec.convert(_plain(message), ChatMessage, strict=False) for message in messages), transcript)
    return transcript.events


def _plain(message: Mapping[str, Any]) -> Mapping[str, Any]:
    if message.get("role") != "assistant":
        return message
    if message.get("tool_calls"):
        return {**message, "content": None}
    read = read_output(text_of(message.get("content")))
    if read.tool is None:
        return {"role": "assistant", "content": read.text or read.rest}
    return {"role": "assistant", "tool_calls": [{"function": {"name": read.tool, "arguments": read.arguments}}]}


def text_of(content: Any) -> str:
    if isinstance(content, list):
        parts = cast(list[Mapping[str, Any] | str], content)
        return "".join(part if isinstance(part, str) else str(part.get("text") or "") for part in parts)
    return "" if content is None else str(content)
