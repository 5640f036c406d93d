"""Whether a thing was told by its id, by what it belongs to, or by what its record holds; and no other in its place."""

import re

from bylaw.engine.consent.call.detail import Detail
from bylaw.engine.consent.said.utterance import Utterance
from bylaw.engine.consent.told.hearing import Hearing
from bylaw.engine.consent.told.lack import Lack
from bylaw.engine.consent.told.marks import is_other_told, is_spoken_of, is_told_apart, marks, marks_told
from bylaw.engine.consent.told.naming import alike, names_kind
from bylaw.engine.consent.told.roles import told_in_place
from bylaw.facts.folded_text import fold_name

_FIGURES = re.compile(r"\d{3}")
_MARKS = 2
"""So many fields of a thing must be named where its own id is not."""


def id_lack(hearing: Hearing, detail: Detail, *, is_graded: bool = True) -> Lack | None:
    """What is wrong where an id was not told, or another was; where it is not graded, no more than whether anything."""
    if hearing.is_told_now(detail.value):
        return None
    own = fold_name(str(detail.value))
    is_said = hearing.last_said(detail.value) is not None
    if detail.is_person and not _names_person(hearing, detail):
        return None if is_said else _unsaid(hearing, detail, is_graded=is_graded)
    if is_said and any(_names_other(hearing, detail, each) for each in hearing.proposal):
        return Lack(detail.name, "missing" if detail.is_target else "unclear", "another_told")
    if is_said and told_in_place(hearing, detail):
        return Lack(detail.name, "unclear", "another_told")
    by_agent = hearing.last_said(detail.value, "agent") if is_said else None
    if by_agent is not None and hearing.last_said(detail.value, "user") is None:
        since = hearing.mentions.since(by_agent, hearing.end)
        if any(_names_other(hearing, detail, each) for each in since):
            return Lack(detail.name, "unclear", "others_since")
    is_other = not is_said and detail.is_target and any(_names_other(hearing, detail, each) for each in hearing.now)
    if not is_other and is_said:
        return None
    if not is_other and not hearing.records.has_other(detail.name, own, hearing.before):
        return _unsaid(hearing, detail, is_graded=is_graded)
    told = marks_told(hearing, detail)
    if told >= _MARKS or (not is_other and is_told_apart(hearing, detail)):
        return None
    if is_other and not told:
        return Lack(detail.name, "missing", "another_told")
    if is_graded and not told and (is_other_told(hearing, detail) or _is_other_spoken_of(hearing, detail)):
        return Lack(detail.name, "missing", "never_told")
    # It may have been told in words that nothing shown ties to it.
    return Lack(detail.name, "unclear", "one_mark" if told else "never_told")


def _is_other_spoken_of(hearing: Hearing, detail: Detail) -> bool:
    """Whether the talk was of another thing of the kind, and this one was never shown, or the proposal has no figures
    that may name it."""
    is_shown = hearing.record(detail) is not None
    if is_shown and any(_FIGURES.search(each.folded) for each in hearing.proposal):
        return False
    return hearing.said_before(("other", *detail.key), lambda each: _names_other(hearing, detail, each))


def _unsaid(hearing: Hearing, detail: Detail, *, is_graded: bool) -> Lack | None:
    """An id that nobody said, and no other written like it: told by what it belongs to, or by what belongs to it."""
    if told_in_place(hearing, detail):
        return Lack(detail.name, "missing", "another_told")
    if hearing.belongs(str(detail.value), alone=True) or marks_told(hearing, detail):
        return None
    if is_told_apart(hearing, detail) or is_the_only_one(hearing, detail) or _is_the_callers(hearing, detail):
        return None
    own = fold_name(str(detail.value))
    if detail.is_caller and (
        # Callers say who they are once, by their name or the day they were born.
        any(hearing.last_said(mark, "user") is not None for mark in marks(hearing, detail))
        or not hearing.records.has_other(detail.name, own, hearing.before)
    ):
        return None
    is_worded = not detail.is_person and any(names_kind(each.loose, own) for each in hearing.now)
    if is_worded:
        return None
    is_of_none = is_graded and hearing.record(detail) is None and not detail.is_person
    is_from_nowhere = is_of_none and _is_other_spoken_of(hearing, detail)
    return Lack(detail.name, "missing" if is_from_nowhere else "unclear", "never_told")


def _is_the_callers(hearing: Hearing, detail: Detail) -> bool:
    """Whether an account was looked up by what the user said of themselves, and no other was shown or named."""
    record = hearing.record(detail) if detail.is_person else None
    if record is None or hearing.records.has_other(detail.name, fold_name(str(detail.value)), hearing.before):
        return False
    asked = hearing.records.asked_with(record)
    return any(hearing.last_said(each, "user") is not None for each in (*asked, *marks(hearing, detail)))


def is_the_only_one(hearing: Hearing, detail: Detail) -> bool:
    """Whether records show the thing and no other of its kind, and it was spoken of, if only by what it holds."""
    record = hearing.record(detail)
    if detail.is_person or record is None or any(True for _ in hearing.records.rivals(record, hearing.before)):
        return False
    holders = hearing.records.holders(str(detail.value), hearing.before)
    if any(each.is_one_of_several(str(detail.value)) for each in holders):
        return False
    return detail.is_target or is_spoken_of(hearing, detail)


def _names_other(hearing: Hearing, detail: Detail, said: Utterance) -> bool:
    """Whether an utterance names another thing of the kind: an id that is written alike, or one that records hold."""
    own = fold_name(str(detail.value))
    shape = alike(own)
    if shape is not None:
        return any(found[0] != own for found in shape.finditer(said.folded))
    return hearing.records.other_in(detail.name, own, said, hearing.before)


def _names_person(hearing: Hearing, detail: Detail) -> bool:
    """Whether some person is told by an id. Nobody reads the caller's own out to them."""
    return any(_names_other(hearing, detail, each) for each in hearing.now)
