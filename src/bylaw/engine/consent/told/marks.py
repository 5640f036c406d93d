"""By what its record holds a thing is named where its id is not: a trip by its route, an account as the savings one."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from bylaw.engine.consent.call.detail import Detail
from bylaw.engine.consent.shown.entry import scalars
from bylaw.engine.consent.told.hearing import Hearing
from bylaw.engine.consent.told.naming import mark_forms
from bylaw.facts.folded_text import fold_name
from bylaw.policy.verb import words_of

_NAMING = frozenset(("name", "title", "label", "nickname", "type", "kind", "category", "brand", "model", "city"))
"""In a field's name: it says what the thing is called, and one word of several may be enough."""
_PASSING = frozenset(("status", "state", "stage", "description", "note", "notes", "reason", "comment", "currency"))
"""In a field's name: how the thing is now, or what was written of it. Nobody names it by that."""
_FIGURES = re.compile(r"\d{4}|\d{3}.*\d{3}")
"""In what names a thing even where no other was shown: the last digits of a card, a telephone's number."""
_SHORTEST, _LONGEST = 3, 40
_WORD = 4
"""Letters of a word that stands for a name of several."""


def marks(hearing: Hearing, detail: Detail) -> set[str]:
    """What the record of a thing holds that tells it from others."""
    record = hearing.record(detail)
    fields = scalars(record.fields) if record is not None else ()
    return {form for name, value in fields for form in mark_forms(name, value)} - {str(detail.value)}


def marks_told(hearing: Hearing, detail: Detail) -> int:
    """By how much of what its record holds a thing was named: a trip by its flights or its route, an order by items."""
    return sum(map(hearing.is_told_now, marks(hearing, detail)))


def is_told_apart(hearing: Hearing, detail: Detail, *, by: str = "") -> bool:
    """Whether something was told that the thing's record alone holds, of all the things of its kind that were shown.

    What the call itself gives does not count: "to business" names no trip that is in business already.
    """
    record = hearing.record(detail)
    if record is None:
        return False
    rivals = hearing.records.rivals(record, hearing.before)
    given = {fold_name(str(each.value)) for each in hearing.matters}
    given.update(fold_name(word) for each in hearing.matters for word in each.words)
    own = {form for form in _forms(record.fields) if form not in given and (rivals or _FIGURES.search(form))}
    said = [each for each in hearing.now if not by or each.by == by]
    told = {form for form in own if any(each.names(form) for each in said)}
    # Mostly nothing of it was told, and then nobody has to look through the others.
    for rival in rivals:
        if not told:
            return False
        told.difference_update(_forms(rival))
    return bool(told)


def _forms(fields: Mapping[str, Any]) -> Iterator[str]:
    """The folded words that may name a thing, by its record."""
    for name, value in scalars(fields):
        if not isinstance(value, str) or not _SHORTEST <= len(value) <= _LONGEST or _is_passing(name):
            continue
        yield (whole := fold_name(value))
        if _is_naming(name):
            yield from (word for word in whole.split() if len(word) >= _WORD and word.isalpha())


@lru_cache(maxsize=4096)
def _is_passing(field: str) -> bool:
    return not _PASSING.isdisjoint(words_of(field))


@lru_cache(maxsize=4096)
def _is_naming(field: str) -> bool:
    return not _NAMING.isdisjoint(words_of(field))
