"""Messages that a host tells again: its whole history before each call, the end of it, or a request sent twice since no
answer came.

What happened once happened once: a yes that is told again is no second yes, a look-up no fresh one. Calls that were
decided on here may be missing in what the host tells, and so may their results; words may not.
"""

from collections.abc import Sequence
from typing import Any

from bylaw.trace import Call, Event, Message
from bylaw.trace.messages import follow_messages
from bylaw.trace.transcript import Transcript


class ToldBefore:
    """Finds what of new messages a conversation knows."""

    def __init__(self, known: Sequence[Event]) -> None:
        self._known = known
        self._places: dict[tuple[str, ...], list[int]] = {}
        """Where what was said and called stands."""
        self._looked = 0

    def count(self, messages: Sequence[Any]) -> tuple[int, bool]:
        """How many of the messages, from the first, were told before, and whether that is sure.

        It is sure where all of them are known and the id of a call is among them, or no word was said since: the same
        words may also have been said once more, and a "no" among them must not get lost. Words that are not known, with
        known ones after them, are what a host has made of older ones.
        """
        if len(messages) < 2 or not self._known:
            return 0, True
        told = _read(messages)
        self._look()
        for first, events in enumerate(told):
            start = _mark(events[0]) if events else None
            for place in reversed(self._places.get(start, ()) if start else ()):
                count, end = self._follow(told[first:], place)
                is_latest = not any(_is_said(event) for event in self._known[end:])
                # Of one message alone, nobody knows; unless there is no other.
                if count > 1 or (is_latest and not any(_is_said(event) for event in self._known[:place])):
                    has_id = any(
                        isinstance(one, Call) and one.id for each in told[first : first + count] for one in each
                    )
                    return first + count, first == 0 and (has_id or is_latest)
        return 0, True

    def _look(self) -> None:
        if self._looked > len(self._known):
            # A call was taken back.
            self._places, self._looked = {}, 0
        for place in range(self._looked, len(self._known)):
            if mark := _mark(self._known[place]):
                self._places.setdefault(mark, []).append(place)
        self._looked = len(self._known)

    def _follow(self, told: Sequence[Sequence[Event]], place: int) -> tuple[int, int]:
        """How many messages stand in order from a place on, and where it goes on after them."""
        for count, events in enumerate(told):
            after = place
            for event in events:
                if (found := self._find(event, after)) is None:
                    return count, place
                after = found + 1
            place = after
        return len(told), place

    def _find(self, event: Event, start: int) -> int | None:
        """Where an event stands, with no other words before it."""
        for place in range(start, len(self._known)):
            if _is_same(event, self._known[place]):
                return place
            if _is_said(self._known[place]):
                return None
        return None


def _read(messages: Sequence[Any]) -> list[list[Event]]:
    """The events of each message."""
    script, told = Transcript(), list[list[Event]]()
    for message in messages:
        start = len(script.events)
        follow_messages([message], script)
        told.append(script.events[start:])
    return told


def _mark(event: Event) -> tuple[str, ...] | None:
    """By what an event may be found again; None for results, and for what nobody heard."""
    if isinstance(event, Call):
        return ("call", event.tool, event.id)
    return (event.by, event.text) if isinstance(event, Message) and _is_said(event) else None


def _is_said(event: Event) -> bool:
    """Whether it is words: an answer to a card and a handover are none that a host tells."""
    return isinstance(event, Message) and event.captured and bool(event.text)


def _is_same(one: Event, other: Event) -> bool:
    if isinstance(one, Message):
        return isinstance(other, Message) and (one.by, one.text, one.captured) == (other.by, other.text, other.captured)
    if isinstance(one, Call):
        return isinstance(other, Call) and (one.id, one.tool, one.arguments) == (other.id, other.tool, other.arguments)
    return not isinstance(other, Message | Call) and one.value() == other.value()
