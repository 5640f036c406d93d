"""Whether a day, or from when to when, was told, and leave was not asked for another."""

from collections.abc import Iterable, Iterator

from bylaw.engine.consent.call.detail import Detail
from bylaw.engine.consent.said.day import days_told
from bylaw.engine.consent.said.hours import span_in, spans_told
from bylaw.engine.consent.told.hearing import Hearing
from bylaw.engine.consent.told.lack import Lack
from bylaw.facts.folded_text import fold
from bylaw.policy.verb import words_of

_OF_A_BIRTH = frozenset(("dob", "birth", "birthdate", "birthday", "born"))
When = tuple[int, int] | tuple[tuple[int, int], tuple[int, int]]
"""The month and the day, or the times between which it is."""


def when_lack(hearing: Hearing, detail: Detail) -> Lack | None:
    """What is wrong with a day or a time: nobody told it, or what was asked is whether it shall be another."""
    is_told = hearing.is_told_now(detail.value)
    asked = [part for part in hearing.put.leave() if part.endswith("?")]
    if _is_another(hearing, detail, asked) and not any(each.says(detail.value) for each in hearing.answer):
        return Lack(detail.name, "unclear" if is_told else "missing", "another_told")
    if is_told or hearing.last_said(detail.value) is not None:
        return None
    if not hearing.records.shows(str(detail.value), hearing.before):
        return Lack(detail.name, "unclear", "never_told")
    # A day that a record showed need not be read out, a birth date, where no other was.
    is_another = _is_another(hearing, detail, (each.folded for each in hearing.proposal))
    return Lack(detail.name, "unclear", "another_told") if is_another else None


def _is_another(hearing: Hearing, detail: Detail, parts: Iterable[str]) -> bool:
    """Whether days or times are told that are none of the call's, nor any that its thing has by now."""
    is_span = span_in(str(detail.value)) is not None
    told = {when for part in parts for when in _whens(part, is_span=is_span)}
    if not told or not _OF_A_BIRTH.isdisjoint(words_of(detail.name)):
        return False
    known = [str(each.value) for each in hearing.matters if each.kind == "date"]
    known += [str(part) for goal in hearing.goals if (record := hearing.record(goal)) for part in record.parts]
    return told.isdisjoint(when for value in known for when in _whens(fold(value), is_span=is_span))


def _whens(text: str, *, is_span: bool) -> Iterator[When]:
    if is_span:
        yield from ((first, last) for first, last in spans_told(text))
    else:
        yield from ((month, day) for _, month, day in days_told(text))
