"""What results have shown of things: each value with the step that showed it, and to whom."""

from typing import Any

from msgspec import Struct

from bylaw.facts.observation import Sighting
from bylaw.facts.path import NOTHING


class Shown(Struct, frozen=True, gc=False):
    """One value of one field, as one result showed it."""

    as_of: int
    """Step of the call that looked."""
    delivered: int
    """Step of the result."""
    agent: str
    value: Any
    time: float | None


class SeenThing:
    """One thing's sightings, and per field asked for, the values they show."""

    __slots__ = ("_fields", "_told", "is_ever_absent", "lost", "sightings")

    def __init__(self) -> None:
        self.is_ever_absent = False
        """Whether anything has shown that there is no such thing."""
        self.sightings: list[tuple[int, int, str, Sighting, float | None]] = []
        self.lost: list[tuple[int, int, str]] = []
        """Look-ups of this very thing whose answers nobody can read: their steps, those of the answers, and to whom."""
        self._fields: dict[str, tuple[int, list[Shown]]] = {}
        self._told: set[str] = set()
        """The fields that some answer has told itself, not by their default."""

    def shown(self, field: str) -> list[Shown]:
        """Every value of the field shown so far, in the order of delivery."""
        read, values = self._fields.get(field, (0, None))
        if values is None:
            values = []
        if read < len(self.sightings):
            for as_of, delivered, who, sighting, time in self.sightings[read:]:
                value = sighting.show(field)
                if value is not NOTHING and not self._is_left_out(field, sighting):
                    values.append(Shown(as_of, delivered, who, value, time))
            self._fields[field] = (len(self.sightings), values)
        return values

    def _is_left_out(self, field: str, sighting: Sighting) -> bool:
        """Whether an answer only leaves out what one before it told: what was seen does not become the default."""
        if field == "exists":
            return False
        if sighting.leaves_out(field):
            return field in self._told
        self._told.add(field)
        return False

    def lost_since(self, entry: Shown, before: int) -> int:
        """How often the agent was answered anew after a value was shown, before a step, and nobody can read what."""
        return sum(
            asked > entry.as_of and entry.delivered < delivered < before and who == entry.agent
            for asked, delivered, who in self.lost
        )
