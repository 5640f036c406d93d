"""Checks amounts and times. The user must have stated them, a named source must show them, or they must follow from
such values.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bylaw.engine.request.allowance import Slot, Source, Why, kinds_of
from bylaw.engine.request.choosing import Choosing
from bylaw.engine.request.naming import Naming
from bylaw.engine.request.saying import Saying
from bylaw.engine.request.values import CLOCK, DAY, NUMBER, View, ends_of, given_words, says_a_day
from bylaw.facts.provenance import Traced
from bylaw.policy.tool import Tool
from bylaw.text.day import times
from bylaw.text.folding import fold
from bylaw.text.spelling import spell

_CENT = 0.005
_ROUNDED = 0.01


class Amounts:
    def __init__(self, view: View, naming: Naming) -> None:
        self._view, self._naming = view, naming

    def objection(self, slot: Slot, number: float, *, is_one: bool) -> Why | None:
        """Return why an amount is not the requested one. None if it is the requested one, or if nothing is known about
        it.

        An amount that the user did not state must not exceed the sum of all stated and shown amounts. `is_one` means
        that the action is performed only once.
        """
        named = [source for source in slot.sources if source.named] if slot.fill == "found" else []
        if slot.factor or slot.plus:
            return None if self._is_share(number, slot) else "not_found"
        if named:
            sights = [*self._view.sights(number)]
            if any(self._naming.is_of(source, sight, number) for source in named for sight in sights):
                return None
            # A record states the value itself. Only running text states how much a value changes.
            texts = (text for source in named for text in self._naming.texts(source, only_prose=True))
            told = " \n ".join(texts).strip()
            return None if told and self._follows(number, told) else "not_found"
        if slot.fill == "free" and is_one and self._is_shown_as_it_is(slot, number):
            return "as_shown"
        known = self._view.numbers()
        return "too_much" if known and number > 2 * max(known) else None

    def _is_shown_as_it_is(self, slot: Slot, number: float) -> bool:
        """Whether a source shows exactly this amount, even though the amount had to be calculated."""
        sources = [source for source in slot.sources if source.named]
        sights = [*self._view.sights(number)]
        return any(self._naming.is_of(source, sight, number) for source in sources for sight in sights)

    def _is_share(self, number: float, slot: Slot) -> bool:
        for base in self._view.numbers():
            if abs(base * (slot.factor or 1) + slot.plus - number) < _ROUNDED:
                sights = [*self._view.sights(base)]
                if not slot.sources or any(
                    self._naming.is_of(source, sight, base) for source in slot.sources for sight in sights
                ):
                    return True
        return False

    def _follows(self, number: float, text: str) -> bool:
        """Whether an amount follows from a passage that raises or lowers a shown amount by a number or a percentage.
        Passages without numbers are skipped.
        """
        told = [float(each.replace(",", "")) for each in NUMBER.findall(text)]
        shown = self._view.numbers()
        changes = (
            (base, sign * by) for base in shown for each in told for by in (each, base * each / 100) for sign in (1, -1)
        )
        return not told or any(abs(base + by - number) < _CENT for base, by in changes)


class Moments:
    def __init__(self, view: View, naming: Naming, choosing: Choosing, saying: Saying) -> None:
        self._view, self._naming, self._choosing, self._saying = view, naming, choosing, saying

    def objection(self, slot: Slot, value: str | float) -> Why | None:
        """Return why a date is not the requested one, or None if it is the requested one.

        Either the user must have stated the date or results must show it. If the user stated another date, only texts
        that the user named are considered.
        """
        day = DAY.match(str(value))
        if day is None or self._saying.is_user_word(day[0]):
            return None
        spelling = spell(day[0])
        if spelling is not None and any(spelling.said_in(ends) for ends in ends_of(fold(self._view.request))):
            return None
        sights = [*self._view.sights(day[0])]
        if not sights:
            is_open = slot.fill == "free" or not says_a_day(self._view.request)
            return None if is_open else "not_said"
        is_trusted = any(sight.source == "record" or sight.pointed for sight in sights)
        if not slot.sources and not is_trusted and says_a_day(self._view.request):
            return "not_said"
        named = [source for source in slot.sources if source.named]
        if slot.fill == "found" and named and not self._is_shown_moment(slot, named, str(value), sights):
            return "not_found"
        if not named or any(sight.source == "record" or sight.is_whole for sight in sights):
            return None
        is_named = any(self._naming.is_of(source, sight, day[0]) for source in named for sight in sights)
        return None if is_named else "not_found"

    def _is_shown_moment(self, slot: Slot, named: Sequence[Source], value: str, sights: Sequence[Traced]) -> bool:
        """Whether a time belongs to a named record. If the record shows a time of day, that time must match too."""
        shown = [
            (sight, self._told(sight))
            for sight in sights
            if sight.step is not None and any(self._naming.is_of(source, sight, value[:10]) for source in named)
        ]
        clock = CLOCK.search(value)
        fits = [sight for sight, told in shown if clock is None or _is_at(clock, value[:10], told)]
        if slot.choice is None:
            return bool(fits) or not shown
        return any(self._choosing.is_best(slot, sight) is not False for sight in fits)

    def _told(self, sight: Traced) -> str:
        places = self._view.around(sight)
        written = places.written(sight.number, sight.field)
        return written or places.fields(sight.number).get(fold(sight.field), "")


def _is_at(clock: re.Match[str], day: str, told: str) -> bool:
    """Whether a time, or text with a date, contains only this time of day."""
    spelling = spell(day)
    pieces = [fold(line) for line in told.splitlines() if line.strip()]
    said = [piece for piece in pieces if len(pieces) == 1 or (spelling is not None and spelling.said_in(piece))]
    at = {time for piece in said for time in times(piece)} or {
        (int(each[1]), int(each[2])) for piece in said for each in CLOCK.finditer(piece)
    }
    return not at or (int(clock[1]), int(clock[2])) in at


class Lasting:
    """Checks the duration between the first and the last time in a call."""

    def __init__(self, view: View, tool: Tool, arguments: Mapping[str, Any]) -> None:
        self._view = view
        kinds = kinds_of(tool)
        given = (moment(str(each)) for name, each in arguments.items() if kinds.get(name) == "moment")
        self._moments = sorted(each for each in given if each is not None)
        names = (each for name, part in arguments.items() if kinds.get(name) == "name" for each in given_words(part))
        self._named = {*names}

    def objection(self, slot: Slot) -> Why | None:
        """Return why the duration is not the requested one. None if it is the requested one, or if nothing is known
        about it.
        """
        if len(self._moments) < 2:
            return None
        start, end = self._moments[0], self._moments[-1]
        if slot.minutes and (end - start).total_seconds() != 60 * slot.minutes:
            return "not_said"
        if slot.clear and any(first < end and start < last for first, last in self._others(slot)):
            return "taken"
        return None

    def _others(self, slot: Slot) -> list[tuple[datetime, datetime]]:
        tools = {source.tool for source in slot.sources}
        found: list[tuple[datetime, datetime]] = []
        for step, call, _ in self._view.results():
            for fields in self._view.records(step) if call.tool in tools else ():
                moments = sorted(each for told in fields.values() if (each := moment(told)) is not None)
                if len(moments) > 1 and not self._named & {*fields.values()}:
                    found.append((moments[0], moments[-1]))
        return found


def moment(told: str) -> datetime | None:
    """Parse a date with a time of day. Return None for any other text."""
    try:
        found = datetime.fromisoformat(told.strip()) if ":" in told else None
    except ValueError:
        return None
    return found.replace(tzinfo=None) if found is not None else None
