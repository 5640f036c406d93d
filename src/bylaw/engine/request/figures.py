"""Checks amounts, dates and limits against the user's words and the results.

Code checks that a value occurs in the places that the user named. The second look (`meaning`) checks which of several
values is meant, such as the cheapest, and whether a value was calculated correctly.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache

from bylaw.engine.request.allowance import Limit, Slot, Why, parameter_kind
from bylaw.engine.request.bearing import stem
from bylaw.engine.request.naming import Naming
from bylaw.engine.request.values import DAY, View, ends_of, says_a_day
from bylaw.policy.verb import words_of
from bylaw.text.folding import fold
from bylaw.text.spelling import spell

_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_MOMENT = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[t ](\d\d):(\d\d)(?::(\d\d))?)?")
_CLOCK = re.compile(r"(\d\d?):(\d\d)")


def object_to_amount(view: View, naming: Naming, slot: Slot, number: float, *, is_one: bool) -> Why | None:
    """Return why an amount may not be the requested one, or None if there is no objection.

    An amount that the user did not state must not exceed twice the largest amount stated or shown. `is_one` means that
    the action is performed only once.
    """
    named = [source for source in slot.sources if source.named]
    if slot.factor or slot.plus:
        return "not_found" if slot.sources else "in_part"
    is_shown = any(naming.is_of(source, sight, number) for source in named for sight in view.sights(number))
    if slot.fill == "found" and named:
        return None if is_shown else "not_found"
    if slot.fill == "free" and is_one and is_shown:
        return "as_shown"
    known = view.numbers()
    return "too_much" if known and number > 2 * max(known) else None


def object_to_moment(view: View, naming: Naming, slot: Slot, value: str | float) -> Why | None:
    """Return why a date may not be the requested one, or None if there is no objection.

    The user must have stated the date, or results must show it. If the user stated a different date, only results from
    sources that the user named count.
    """
    day = DAY.match(str(value))
    if day is None or view.is_said(day[0]):
        return None
    spelling = spell(day[0])
    if spelling is not None and any(spelling.said_in(ends) for ends in ends_of(fold(view.request))):
        return None
    sights = [*view.sights(day[0])]
    if not sights:
        return None if slot.fill == "free" or not says_a_day(view.request) else "not_said"
    is_trusted = any(sight.source == "record" or sight.pointed for sight in sights)
    if not slot.sources and not is_trusted and says_a_day(view.request):
        return "not_said"
    named = [source for source in slot.sources if source.named]
    is_recorded = any(sight.source == "record" or sight.is_whole for sight in sights)
    if not named or (slot.fill != "found" and is_recorded):
        return None
    is_named = any(naming.is_of(source, sight, day[0]) for source in named for sight in sights)
    return None if is_named else "not_found"


def lasts(arguments: Iterable[object], minutes: int) -> bool:
    """Whether the time between the first and the last of these times is this many minutes. True if there are fewer than
    two times.
    """
    moments = sorted(each for each in map(_moment, map(str, arguments)) if each is not None)
    return len(moments) < 2 or (moments[-1] - moments[0]).total_seconds() == 60 * minutes


def _moment(told: str) -> datetime | None:
    try:
        return datetime.fromisoformat(told.strip()).replace(tzinfo=None) if ":" in told else None
    except ValueError:
        return None


def is_beyond(limit: Limit, told: str) -> bool:
    """Whether a value is outside the limit. False if the value and the limit cannot be compared."""
    for bound, is_least in ((limit.least, True), (limit.most, False)):
        if bound:
            mine, other = _alike(told, bound)
            if mine is not None and other is not None and (mine < other if is_least else mine > other):
                return True
    return False


def _alike(told: str, bound: str) -> tuple[float | None, float | None]:
    """Return a value and a limit as comparable numbers, for times of day, dates or other numbers."""
    moment = _MOMENT.match(told)
    if clock := _CLOCK.fullmatch(bound):
        shown = _CLOCK.search(told) if moment is None or moment[4] else None
        return (_minutes(shown) if shown else None), _minutes(clock)
    if day := _MOMENT.match(bound):
        return (float("".join(moment.groups()[:3])) if moment else None), float("".join(day.groups()[:3]))
    return (None if moment else _number(told)), _number(bound)


def _minutes(clock: re.Match[str]) -> float:
    return 60.0 * int(clock[1]) + int(clock[2])


def _number(told: str) -> float | None:
    number = _NUMBER.search(told)
    return float(number[0].replace(",", "")) if number else None


def fits(field: str, name: str) -> bool:
    """Whether a field name from the model means the same as an argument's name. All time names match each other."""
    return bool(_stems(field) & _stems(name)) or (_is_moment(field) and _is_moment(name))


@lru_cache(maxsize=1024)
def _stems(name: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words_of(name.replace(" ", "_")))


def _is_moment(field: str) -> bool:
    return parameter_kind(field.replace(" ", "_"), None) == "moment" or bool(
        {"timestamp", "modified", "created", "received", "sent"} & set(words_of(field.replace(" ", "_")))
    )
