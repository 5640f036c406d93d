"""Messages that a host tells again: its whole history before each call, or a request sent twice since no answer came.

What happened once happened once: a yes that is told again is no second yes, a look-up no fresh one. Calls that were
decided on here may be missing in what the host tells, and so may their results; words may not.
"""

from collections.abc import Sequence
from typing import Any

from bylaw.trace import Call, Event, Message
from bylaw.trace.messages import follow_messages
from bylaw.trace.transcript import Transcript


def already_told(messages: Sequence[Any], known: Sequence[Event]) -> tuple[int, bool]:
    """How many of the messages, from the first, were told when the conversation began, and whether that is sure.

    It is sure where the id of a call is among them, or where no word was said since: the same words may also have been
    said once more, and a "no" among them must not get lost.
    """
    if len(messages) < 2 or not known:
        return 0, True
    script, told, place, has_id = Transcript(), 0, 0, False
    for message in messages:
        start = len(script.events)
        follow_messages([message], script)
        new = script.events[start:]
        if (after := _follow(new, known, place)) is None:
            break
        told, place = told + 1, after
        has_id = has_id or any(isinstance(event, Call) and event.id for event in new)
    if not place:
        return 0, True
    if not any(_is_said(event) for event in known[place:]):
        return told, True
    return (told, has_id) if told > 1 else (0, True)


def _follow(events: Sequence[Event], known: Sequence[Event], place: int) -> int | None:
    """Where it goes on after these events, if they stand here in order."""
    for event in events:
        found = _find(event, known, place)
        if found is None:
            return None
        place = found + 1
    return place


def _find(event: Event, known: Sequence[Event], start: int) -> int | None:
    """Where an event stands, with no other words before it."""
    for place in range(start, len(known)):
        if _is_same(event, known[place]):
            return place
        if _is_said(known[place]):
            return None
    return None


def _is_said(event: Event) -> bool:
    return isinstance(event, Message) and event.captured


def _is_same(one: Event, other: Event) -> bool:
    if isinstance(one, Message):
        return isinstance(other, Message) and (one.by, one.text, one.captured) == (other.by, other.text, other.captured)
    if isinstance(one, Call):
        return isinstance(other, Call) and (one.id, one.tool, one.arguments) == (other.id, other.tool, other.arguments)
    return not isinstance(other, Message | Call) and one.value() == other.value()
