"""By what its record holds a thing is named where its id is not: a trip by its route, an account as the savings one."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from bylaw.engine.consent.call.detail import Detail
from bylaw.engine.consent.said.utterance import Utterance
from bylaw.engine.consent.shown.entry import Entry, scalars
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
_PRICED = frozenset(("price", "total", "amount", "cost", "fare", "rate", "sum"))
"""In a field's name: a sum that one of several offers may be told by."""
_SHORTEST, _LONGEST = 3, 40
_RECORDS = 4
"""So many records of a thing, the newest, are looked at."""
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
    """Whether something was told that a record of the thing alone holds, of all the things of its kind that were shown.

    What the call itself gives does not count: "to business" names no trip that is in business already.
    """
    # An invoice says less of a line than its account does.
    records = islice(hearing.records_of(detail), _RECORDS)
    return any(_tells_apart(hearing, record, by) for record in records)


def is_spoken_of(hearing: Hearing, detail: Detail, *, by: str = "") -> bool:
    """Whether anything was told that the record of the thing holds."""
    record = hearing.record(detail)
    if record is None:
        return False
    given = hearing.action.given
    said = [each for each in hearing.now if not by or each.by == by]
    if any(_is_told(form, said) for form in _forms(record.fields) if form not in given):
        return True
    return any(each.says(sum) for sum in _sums(record.fields) for each in said)


def is_other_told(hearing: Hearing, detail: Detail, *, by: str = "") -> bool:
    """Whether something was told that the record of another thing of its kind holds, and none of its own."""
    record = hearing.record(detail)
    if record is None:
        return False
    own = {form for each in islice(hearing.records_of(detail), _RECORDS) for form in _forms(each.fields)}
    own |= hearing.action.given
    rivals = hearing.records.rivals(record, hearing.before)
    said = [each for each in hearing.now if not by or each.by == by]
    return any(_is_told(form, said) for rival in rivals for form in _forms(rival) if form not in own)


def _tells_apart(hearing: Hearing, record: Entry, by: str) -> bool:
    given = hearing.action.given
    said = [each for each in hearing.now if not by or each.by == by]
    forms = {form for form in _forms(record.fields) if form not in given and _is_told(form, said)}
    sums = {sum for sum in _sums(record.fields) if any(each.says(sum) for each in said)}
    if not forms and not sums:
        # Mostly nothing of it was told, and then nobody has to look through the others.
        return False
    told, is_alone = forms | sums, True
    for rival in hearing.records.rivals(record, hearing.before):
        is_alone = False
        if not _is_twin(rival, record):
            told.difference_update(_forms(rival), _sums(rival))
        if not told:
            return False
    return any(map(_FIGURES.search, forms)) if is_alone else bool(told)


def _is_twin(rival: Mapping[str, Any], record: Entry) -> bool:
    """Whether nothing but its id tells another thing from this one: a charge that was made twice."""
    name = record.id_field
    return all(rival.get(key) == value for key, value in record.fields.items() if key != name)


def _sums(fields: Mapping[str, Any]) -> Iterator[float]:
    for name, value in fields.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and not _PRICED.isdisjoint(words_of(name)):
            yield float(value)


def _is_told(form: str, said: Iterable[Utterance]) -> bool:
    for each in said:  # noqa: SIM110 - asked of everything that a record holds
        if each.names(form) or (form[-1:].isdigit() and each.says(form)):
            return True
    return False


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
