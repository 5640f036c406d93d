"""Writes a conversation as chat messages; reading them gives the same events again.

Besides OpenAI's fields, each message has its `turn` and `time`, and calls have fields for a refusal, an approval,
and a shield's look-ups.
"""

from typing import Any

import msgspec

from bylaw.trace.event import Call, Message, Result, Trajectory

_encode = msgspec.json.Encoder(enc_hook=str, decimal_format="string").encode


def chat_line(trajectory: Trajectory) -> bytes:
    """One line of a JSONL file."""
    return _encode(chat_record(trajectory)) + b"\n"


def chat_record(trajectory: Trajectory) -> dict[str, Any]:
    """The conversation as one record; missing and repeated ids of calls are replaced."""
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
    """An answered call: a result without a call is written as a second result of it."""
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
    # Unusable arguments are read back as unusable.
    arguments = None if call.fault else _encode(call.arguments).decode()
    told = {"id": name, "type": "function", "function": {"name": call.tool, "arguments": arguments}}
    told |= {"refused": True} if call.refused else {}
    told |= {"approved": call.approved} if call.approved is not None else {}
    told |= {"card": call.card} if call.card is not None else {}
    told |= {"vouched": call.context} if call.context else {}
    return told | ({"looked_up": call.looked_up} if call.looked_up else {})


def _result(result: Result, name: str) -> dict[str, Any]:
    # Data is written as text: a list of texts would be read as parts.
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
