"""Determines whether a value is the one that the user asked for, such as the largest file or the cheapest hotel."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from bylaw.engine.request.allowance import Choice, Limit, Slot, parameter_kind
from bylaw.engine.request.bearing import stem
from bylaw.engine.request.naming import Naming, about
from bylaw.engine.request.values import View, given_words, is_code, step_of
from bylaw.facts.provenance import Traced
from bylaw.policy.verb import words_of
from bylaw.text.folding import fold, occurs
from bylaw.text.identifier import identifiers

_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_SUM = re.compile(
    r"(?<![\w.])(?:[$€£]\s?\d[\d,]*(?:\.\d+)?|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d\d?"
    r"|\d+(?=\s?(?:[$€£]|eur|usd|gbp)))(?!\w)"
)
_RANGE = re.compile(r"\d[\d,]*(?:\.\d+)?\s*-\s*\d[\d,]*(?:\.\d+)?")
_MOMENT = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[t ](\d\d):(\d\d)(?::(\d\d))?)?")
_CLOCK = re.compile(r"(\d\d?):(\d\d)")


class Choosing:
    """Compares a value with other values of its kind in results."""

    def __init__(self, view: View, naming: Naming) -> None:
        self._view, self._naming = view, naming

    def is_chosen(self, slot: Slot, value: str | float, sight: Traced) -> bool:
        """Whether a value is within the limits and has the highest or lowest criterion.

        True if the criterion does not appear in any result, because code then cannot choose.
        """
        if self.is_out(slot, value, sight):
            return False
        if slot.choice is None:
            return True
        measured = self._measured(slot, slot.choice, value, sight)
        mine = measured.pop(fold(str(value)), None)
        rest = [each for other, each in measured.items() if not self.is_out(slot, other)]
        if (mine is None or not measured) and not _is_moment(slot.choice.field):
            mine, rest = (
                self._among_texts(slot, sight, value) if _are_apart(slot, sight) else self._by_sums(sight, value)
            )
        if slot.judged and sight.source == "record":
            # A value that code cannot exclude might rank higher.
            return mine is not None
        if mine is None:
            return not rest and not measured
        return all(mine >= other if slot.choice.order == "most" else mine <= other for other in rest)

    def is_best(self, slot: Slot, sight: Traced) -> bool | None:
        """Whether the fields of a value's record show that it is the chosen record. None if there is nothing to choose,
        or if the records do not have the criterion.
        """
        if slot.choice is None or sight.step is None or sight.number < 0:
            return None
        places = self._view.around(sight)
        figures: dict[int, float] = {}
        for number in self._named(slot, sight) or range(len(places.records)):
            fields = places.fields(number)
            told = [fields[name] for name in fitting(slot.choice.field, fields)]
            bounds = [(limit, fields[name]) for limit in slot.limits for name in fitting(limit.field, fields)]
            is_out = any(is_beyond(limit, shown) for limit, shown in bounds)
            if (mine := figure(told[0]) if told else None) is not None and not is_out:
                figures[number] = mine
        if not figures:
            return None
        best = max(figures.values()) if slot.choice.order == "most" else min(figures.values())
        return figures.get(sight.number) == best

    def is_out(self, slot: Slot, value: str | float, sight: Traced | None = None) -> bool:
        """Whether results show that a value is outside the limits or of a different kind. If the record in `sight` has
        the field, only that record counts.
        """
        for limit in slot.limits:
            own = self._own(limit.field, sight) if sight is not None else []
            if any(is_beyond(limit, figure) for figure in own or self._told(limit.field, value)):
                return True
        return False

    def _own(self, field: str, sight: Traced) -> list[str]:
        fields = self._view.around(sight).fields(sight.number)
        return [fields[name] for name in fitting(field, fields)]

    def _told(self, field: str, value: str | float) -> Iterator[str]:
        name = fold(str(value))
        for step, call, _ in self._view.mentions(value):
            for fields in self._view.records(step):
                if name in fields.values():
                    yield from (told for other, told in fields.items() if fits(field, other) and told != name)
            told = about(self._view, step, call.arguments, value)
            if told is not None:
                labelled = re.search(rf"\b{re.escape(fold(field))}\w*\W{{0,3}}({_NUMBER.pattern})", told)
                if labelled:
                    yield labelled[1]
                elif fits(field, call.tool):
                    yield told

    def _named(self, slot: Slot, sight: Traced) -> list[int]:
        records = self._view.around(sight).records
        named = {
            number for source in slot.sources if source.named for number in self._naming.named_records(source, sight)
        }
        return [number for number in sorted(named) if sight.field in records[number]]

    def _measured(self, slot: Slot, choice: Choice, value: str | float, sight: Traced) -> dict[str, float]:
        """Return the criterion for each named value in the same place in the result, keyed by normalised value."""
        places = self._view.around(sight)
        among = dict.fromkeys(places.values(sight.field) if places.records else places.values())
        if sight.number >= 0:
            named = {places.records[each][sight.field] for each in self._named(slot, sight)}
            among = {each: None for each in among if fold(str(value)) not in named or each in named}
        found = {each: figure for each in among if (figure := self._figure(choice.field, each)) is not None}
        return found or self._counts(choice, sight, among)

    def _figure(self, field: str, value: str) -> float | None:
        figures = (figure(told, field) for told in self._told(field, value))
        return next((each for each in figures if each is not None), None)

    def _counts(self, choice: Choice, sight: Traced, among: dict[str, None]) -> dict[str, float]:
        """Return a count for each value: the number of items that a tool shows for it, or the number of records with
        the value in the same field.
        """
        thing = {stem(word) for word in words_of(choice.field)}
        counts: dict[str, float] = {}
        named: dict[str, float] = {}
        for step, call, _ in self._view.results():
            tool = self._view.tools.get(call.tool)
            places = self._view.places(step)
            if tool is not None and tool.effect == "read" and thing <= {stem(word) for word in words_of(call.tool)}:
                given = given_words(call.arguments)
                counts.update((each, places.members) for each in given if each in among)
            for record in places.records if call.tool == sight.tool else ():
                if name := record.get(sight.field, ""):
                    named[name] = named.get(name, 0) + 1
        return counts or (named if any(count > 1 for count in named.values()) else {})

    def _by_sums(self, sight: Traced, value: str | float) -> tuple[float | None, list[float]]:
        """Return the largest amount next to a value in its record, paragraph or line, and the amounts next to the other
        values.
        """
        places = self._view.around(sight)
        if sight.number >= 0:
            pieces = [" ".join(places.fields(each).values()) for each in range(len(places.records))]
            mine = [sight.number]
        else:
            text = self._view.text(step_of(sight))
            paragraphs = re.split(r"\n\s*\n", text)
            pieces = [fold(each) for each in (paragraphs if len(paragraphs) > 2 else text.splitlines())]
            mine = [number for number, piece in enumerate(pieces) if occurs(fold(str(value)), piece) >= 0]
        if is_code(str(value)):
            # An amount without an account next to it is not one of the choices.
            pieces = [piece if any(map(is_code, identifiers(piece))) else "" for piece in pieces]
        sums = {number: each for number, piece in enumerate(pieces) if (each := _sum(piece)) is not None}
        own = sums.pop(mine[0], None) if len(mine) == 1 else None
        return (own, [*sums.values()]) if sums else (None, [])

    def _among_texts(self, slot: Slot, sight: Traced, value: str | float) -> tuple[float | None, list[float]]:
        """Return the largest amount in the text that contains a value, and in each other text that the user named.
        Empty if one of these texts was not read.
        """
        own: float | None = None
        rest: list[float] = []
        for source in slot.sources:
            sums = [_sum(fold(text)) for text in self._naming.texts(source)]
            largest = max((each for each in sums if each is not None), default=None)
            if largest is None:
                return None, []
            if self._naming.is_of(source, sight, value):
                own = largest
            else:
                rest.append(largest)
        return own, rest


def _are_apart(slot: Slot, sight: Traced) -> bool:
    return sight.number < 0 and len({source.named for source in slot.sources if source.tool == sight.tool}) > 1


def is_beyond(limit: Limit, told: str) -> bool:
    """Whether a limit excludes a shown value. Values that cannot be compared are not excluded."""
    for bound, is_least in ((limit.least, True), (limit.most, False)):
        if bound:
            mine, other = _alike(told, bound, limit.field)
            if mine is not None and other is not None and (mine < other if is_least else mine > other):
                return True
    return False


def _alike(told: str, bound: str, field: str) -> tuple[float | None, float | None]:
    """Return a shown value and a limit as comparable numbers: times of day, dates or plain numbers."""
    moment = _MOMENT.match(told)
    if clock := _CLOCK.fullmatch(bound):
        shown = _CLOCK.search(told) if moment is None or moment[4] else None
        return (_minutes(shown) if shown else None), _minutes(clock)
    if day := _MOMENT.match(bound):
        return (float("".join(moment.groups()[:3])) if moment else None), float("".join(day.groups()[:3]))
    return (None if moment else figure(told, field)), figure(bound)


def _minutes(clock: re.Match[str]) -> float:
    return 60.0 * int(clock[1]) + int(clock[2])


def figure(told: str, field: str = "") -> float | None:
    """Return a shown value or time as a number. For a range whose field is a maximum, return the upper end."""
    if moment := _MOMENT.match(told):
        return float("".join(part or "00" for part in moment.groups()))
    found = _RANGE.search(told) if _stems(field) & _TOP else None
    number = _NUMBER.search(found[0][found[0].rindex("-") + 1 :] if found else told)
    return float(number[0].replace(",", "")) if number else None


def fits(field: str, name: str) -> bool:
    """Whether a field name from the model matches a field or a tool's subject. All names for times match each other."""
    return bool(_stems(field) & _stems(name)) or (_is_moment(field) and _is_moment(name))


@lru_cache(maxsize=1024)
def _stems(name: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words_of(name.replace(" ", "_")))


_TOP = frozenset(("max", "maximum", "highest", "upper", "top"))


def fitting(field: str, names: Iterable[str]) -> set[str]:
    """Return the field names that share the most words with the model's field name. Empty if none shares a word."""
    mine = _stems(field)
    shared = {name: len(mine & _stems(name)) for name in names}
    most = max(shared.values(), default=0)
    return {name for name, count in shared.items() if most and count == most}


def _is_moment(field: str) -> bool:
    return parameter_kind(field.replace(" ", "_"), None) == "moment" or bool(
        {"timestamp", "modified", "created", "received", "sent"} & set(words_of(field.replace(" ", "_")))
    )


def _sum(piece: str) -> float | None:
    for name in identifiers(piece):
        piece = piece.replace(name, " ")
    return max((each for found in _SUM.findall(piece) if (each := figure(found)) is not None), default=None)
