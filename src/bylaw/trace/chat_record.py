"""A conversation written as chat messages, the way the readers take it: reading it gives the same events again.

Beside what OpenAI's messages have, each says its `turn` and `time`, and a call that was refused before it ran, that a
person approved, or that a shield looked something up for, says so.
"""

from typing import Any

import msgspec

from bylaw.trace.event import Call, Message, Result
from bylaw.trace.trajectory import Trajectory

_encode = msgspec.json.Encoder(enc_hook=str, decimal_format="string").encode


def chat_line(trajectory: Trajectory) -> bytes:
    """One line of a JSONL file."""
    return _encode(chat_record(trajectory)) + b"\n"


def chat_record(trajectory: Trajectory) -> dict[str, Any]:
    """The conversation as one record; ids of calls are made up where there are none or they are not unique."""
    record: dict[str, Any] = {"id": trajectory.id}
    if trajectory.agent:
        record["agent"] = trajectory.agent
    if trajectory.context:
        record["context"] = trajectory.context
    return record | {"messages": _messages(trajectory)}


def _messages(trajectory: Trajectory) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    names: dict[int, str] = {}
    used: set[str] = set()
    answered = ""
    """A call that has its answer: a result that answers nothing is written as a second one to it."""
    for step, event in enumerate(trajectory.events):
        if isinstance(event, Result):
            name = names.get(event.call) if event.call is not None else None
            messages.append(_result(event, answered if name is None else name))
            answered = name or answered
            continue
        role = "user" if event.by == "user" else "assistant"
        about: dict[str, Any] = {"role": role, "turn": event.turn}
        about |= {"time": event.time} if event.time is not None else {}
        about |= {"agent": event.agent} if event.agent else {}
        if isinstance(event, Message):
            told = {"content": event.text} | ({} if event.captured else {"captured": False})
            told |= {"confirmation": event.confirmation} if event.confirmation is not None else {}
            told |= {"handover": event.handover} if event.handover is not None else {}
            messages.append(about | told)
            continue
        name = event.id if event.id and event.id not in used else f"{event.id or 'call'}-{step}"
        names[step] = name
        used.add(name)
        last = messages[-1] if messages else {}
        if all(last.get(key) == value for key, value in about.items()):
            last.setdefault("tool_calls", []).append(_call(event, name))
        else:
            messages.append(about | {"content": None, "tool_calls": [_call(event, name)]})
    return messages


def _call(call: Call, name: str) -> dict[str, Any]:
    # Arguments that are not to be trusted are read back as such.
    arguments = None if call.fault else _encode(call.arguments).decode()
    told = {"id": name, "type": "function", "function": {"name": call.tool, "arguments": arguments}}
    told |= {"refused": True} if call.refused else {}
    told |= {"approved": call.approved} if call.approved is not None else {}
    told |= {"card": call.card} if call.card is not None else {}
    told |= {"vouched": call.context} if call.context else {}
    return told | ({"looked_up": call.looked_up} if call.looked_up else {})


def _result(result: Result, name: str) -> dict[str, Any]:
    # Data goes as text: a list of texts would be read as the parts of one.
    content = result.content if isinstance(result.content, str) else bytes(result.content).decode()
    message: dict[str, Any] = {"role": "tool", "tool_call_id": name, "name": result.tool, "content": content}
    if result.error is not None:
        message["is_error"] = result.error
    if not result.captured:
        message["captured"] = False
    if result.refused is not None:
        message["refused"] = result.refused
    if result.time is not None:
        message["time"] = result.time
    return message
