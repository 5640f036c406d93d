"""A conversation as it stands in a prompt, as events that the guards can look at."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from bylaw.align.output import read_output
from bylaw.trace.event import Call, Event, Message, Result, decode_text


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
