"""Results that a log lacks: nobody recorded them, or only a part or a mark such as `[REDACTED]` is there."""

from collections.abc import Sequence

from bylaw.facts.result_field import is_cut
from bylaw.trace.event import Call, Event, Result


class MissingResults:
    """Follows the events of one conversation as far as somebody asks."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._looked = 0
        """How many of the events were looked at."""
        self._lost: list[int] = []
        """Steps of results that were not captured or were cut off."""
        self._answers: dict[int, int] = {}
        """By the step of a call, that of its result."""
        self._turn = -1
        self._open: list[int] = []
        """Calls of the latest turn."""
        self._left: list[int] = []
        """Calls of earlier turns that had no result when the next one began."""

    def any_before(self, step: int) -> bool:
        """Whether one is missing of what the turn that begins at a step should have seen."""
        self._look(step)
        if self._lost and self._lost[0] < step:
            return True
        waiting = (call for call in (*self._left, *self._open) if call < step)
        return any(self._answers.get(call, step) >= step for call in waiting)

    def _look(self, step: int) -> None:
        end = min(step, len(self._events))
        for place in range(self._looked, end):
            event = self._events[place]
            if type(event) is Result:
                if event.call is not None:
                    self._answers.setdefault(event.call, place)
                if not event.captured or is_cut(event.text):
                    self._lost.append(place)
                continue
            if event.turn != self._turn:
                self._left += (call for call in self._open if call not in self._answers)
                self._open.clear()
                self._turn = event.turn
            if type(event) is Call and not event.refused:
                self._open.append(place)
        self._looked = max(self._looked, end)
