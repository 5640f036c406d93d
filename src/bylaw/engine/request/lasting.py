"""When something is that a call sets up: for how long, and whether anything else is on at that time."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from bylaw.engine.request.allowance import Slot, kinds_of
from bylaw.engine.request.naming import leaves_of
from bylaw.facts.provenance import Provenance
from bylaw.policy.tool import Tool
from bylaw.text.folding import fold


class Lasting:
    """The time from the first to the last moment that a call is given."""

    def __init__(self, provenance: Provenance, tool: Tool, arguments: Mapping[str, Any], before: int) -> None:
        self._provenance, self._before = provenance, before
        kinds = kinds_of(tool)
        given = (moment(str(each)) for name, each in arguments.items() if kinds.get(name) == "moment")
        self._moments = sorted(each for each in given if each is not None)
        names = (each for name, part in arguments.items() if kinds.get(name) == "name" for each in leaves_of(part))
        self._named = {fold(str(each)) for each in names}

    def objection(self, slot: Slot) -> Literal["not_said", "taken"] | None:
        """Why the time is not one that the user asked for; None where it is, or nothing tells."""
        if len(self._moments) < 2:
            return None
        start, end = self._moments[0], self._moments[-1]
        if slot.minutes and (end - start).total_seconds() != 60 * slot.minutes:
            return "not_said"
        if slot.clear and any(first < end and start < last for first, last in self._others(slot)):
            return "taken"
        return None

    def _others(self, slot: Slot) -> list[tuple[datetime, datetime]]:
        """When the things are that the sources show, but for the one that the call changes."""
        tools = {source.tool for source in slot.sources}
        found: list[tuple[datetime, datetime]] = []
        for step, call, _ in self._provenance.results(before=self._before):
            places = self._provenance.places(step)
            for number in range(len(places.records)) if call.tool in tools else ():
                fields = places.fields(number)
                moments = sorted(each for told in fields.values() if (each := moment(told)) is not None)
                if len(moments) > 1 and not self._named & {*fields.values()}:
                    found.append((moments[0], moments[-1]))
        return found


def moment(told: str) -> datetime | None:
    """A moment with a time of day; None where it is none."""
    try:
        found = datetime.fromisoformat(told.strip()) if ":" in told else None
    except ValueError:
        return None
    return found.replace(tzinfo=None) if found is not None else None
