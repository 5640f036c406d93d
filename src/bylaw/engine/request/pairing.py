"""Which of the values that the user said belong together: "250 to AC-22 and 30 to AC-23", "from the 3rd to the 5th"."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from bylaw.engine.request.allowance import ParameterKind
from bylaw.engine.request.values import DAY, number_of, parts_of
from bylaw.text.day import days, without_days
from bylaw.text.folding import fold_said
from bylaw.text.identifier import identifiers
from bylaw.text.number import numbers
from bylaw.text.sentence import lowered
from bylaw.text.spelling import spell

_CLAUSE = re.compile(r"[,;.]\s+|\s(?:and|then|plus|&)\s|\n")
_NAME = re.compile(r"\s[A-Z]\w")


class _Clause(NamedTuple):
    words: str
    """Folded."""
    figures: frozenset[float]
    """Its numbers that are no part of a name or a day."""
    names: bool
    """Whether it seems to name something."""


def mixed_up(request: str, kinds: Mapping[str, ParameterKind], arguments: Mapping[str, Any]) -> Iterator[str]:
    """The arguments that are given what the user said of another argument, or of another such call.

    A number is of another where the clauses that name what else is given tell other numbers, and its own clauses name
    other things.
    """
    yield from _out_of_order(request, kinds, arguments)
    figures = {name: number for name, each in arguments.items() if (number := _figure(each)) is not None}
    named = [each for name, given in arguments.items() if name not in figures for each in parts_of(given)]
    for spelling in filter(None, map(spell, named)) if figures else ():
        counted = [each for each in _clauses(request) if each.figures and spelling.said_in(each.words)]
        if not counted or any(each.figures & {*figures.values()} for each in counted):
            continue
        for name, number in figures.items():
            told = [each.names for each in _clauses(request) if number in each.figures]
            if told and all(told):
                yield name


def _out_of_order(request: str, kinds: Mapping[str, ParameterKind], arguments: Mapping[str, Any]) -> Iterator[str]:
    """The days that the user said only before one which the tool takes first."""
    said = [(each.year, each.month, each.day) for each in days(lowered(request))]
    first = -1
    for name, kind in kinds.items():
        told = DAY.match(str(arguments.get(name))) if kind == "moment" else None
        year, month, day = map(int, told[0].split("-")) if told else (-1, 0, 0)
        places = [place for place, each in enumerate(said) if each in ((year, month, day), (0, month, day))]
        if places and places[-1] < first:
            yield name
        first = max(first, places[0] if places else -1)


def _figure(given: Any) -> float | None:
    return number_of(given) if isinstance(given, (str, int, float)) and not isinstance(given, bool) else None


@lru_cache(maxsize=64)
def _clauses(request: str) -> list[_Clause]:
    found: list[_Clause] = []
    for clause in filter(None, _CLAUSE.split(request)):
        called = identifiers(clause)
        bare = clause
        for each in called:
            bare = bare.replace(each, " ")
        figures = frozenset(float(each.value) for each in numbers(without_days(lowered(bare))))
        found.append(_Clause(fold_said(clause), figures, bool(called) or _NAME.search(clause) is not None))
    return found
