"""Messages that stand in a log twice: what writes at least once writes some of them again."""

import re
from collections.abc import Iterable
from itertools import takewhile
from typing import Any, TypeVar, cast

from bylaw.trace.readers.parts import answers_in, call_in

M = TypeVar("M", bound=Any)

_COUNT = re.compile(r"[^0-9]*[0-9]{1,4}")
"""An id that a host may have counted, and may count anew in each turn: `1`, `call_0`."""


def told_once(messages: Iterable[M]) -> list[M]:
    """The messages, without copies of those in which the agent called something, and of what was answered.

    A copy is the very same message, with nothing but results between. Where the calls may be others under ids that a
    host counts anew, and nothing says when they were made, or where they were answered otherwise, it is none.
    """
    listed = list(messages)
    copies: set[int] = set()
    first: int | None = None
    """The message that the next of the agent's may be a copy of."""
    for place, message in enumerate(listed):
        if message.role != "assistant" and (message.role is not None or _is_answer(message)):
            continue
        if place in copies:
            continue
        if first is not None and _is_same(listed[first], message):
            before = [listed[at] for at in range(first + 1, place) if at not in copies]
            after = list(takewhile(_is_answer, listed[place + 1 :]))
            if all(map(_is_answer, before)) and (not before or all(each in before for each in after)):
                copies.add(place)
                copies.update(range(place + 1, place + 1 + len(after)) if before else ())
                continue
        first = place
    return [message for place, message in enumerate(listed) if place not in copies] if copies else listed


def _is_same(first: Any, again: Any) -> bool:
    # What `bylaw log export` writes stands there once, and says which turn it is of.
    if first != again or getattr(again, "turn", None) is not None:
        return False
    ids = _ids(again)
    is_timed = any(getattr(again, name, None) is not None for name in ("time", "timestamp"))
    return bool(ids) and all(ids) and (is_timed or not any(map(_COUNT.fullmatch, ids)))


def _ids(message: Any) -> list[str]:
    """The ids of the calls that the agent makes in a message; empty for one without."""
    if message.tool_calls:
        return [str(call.id or "") for call in message.tool_calls]
    if message.content.__class__ is list:
        calls = [call_in(cast("dict[str, Any]", part)) for part in message.content if isinstance(part, dict)]
        return [call[2] for call in calls if call is not None]
    id = getattr(message, "call_id", None)
    return [] if id is None else [str(id)]


def _is_answer(message: Any) -> bool:
    if message.role == "user" and message.content.__class__ is list:
        parts = cast("list[Any]", message.content)
        return bool(parts) and len(answers_in(parts)) == len(parts)
    return message.role in ("tool", "function") or str(getattr(message, "type", "")).endswith("_output")
