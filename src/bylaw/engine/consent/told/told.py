"""Whether what matters in a call was told before the user agreed to it, whatever words it was told in."""

from typing import Any

from bylaw.engine.consent.call.detail import Detail
from bylaw.engine.consent.shown.entry import scalars
from bylaw.engine.consent.told.choice import choice_lack, names_word
from bylaw.engine.consent.told.count import count_lack
from bylaw.engine.consent.told.hearing import Hearing
from bylaw.engine.consent.told.identity import id_lack
from bylaw.engine.consent.told.lack import Lack
from bylaw.engine.consent.told.payment import money_lacks
from bylaw.engine.consent.told.roles import swapped, told_in_place
from bylaw.engine.consent.told.when import when_lack
from bylaw.facts.folded_text import fold_name
from bylaw.policy.verb import words_of

_EFFORTS = {"id": 1, "choice": 2}
"""How long it may take to find out whether something was told, where that is long."""


def lacks(hearing: Hearing) -> list[Lack]:
    """What of a call was not surely told."""
    told = (_lack(hearing, detail) for detail in hearing.matters)
    found = [lack for lack in told if lack is not None]
    return found + swapped(hearing) + _left_out(hearing) + money_lacks(hearing)


def is_all_told(hearing: Hearing) -> bool:
    """Whether `lacks` finds nothing: read no further than to the first thing it finds, and what is soonest read comes
    first."""
    if money_lacks(hearing) or swapped(hearing) or _left_out(hearing):
        return False
    return not any(_lack(hearing, detail, is_graded=False) for detail in sorted(hearing.matters, key=_effort))


def _effort(detail: Detail) -> int:
    return 3 if detail.is_person else _EFFORTS.get(detail.kind, 0)


def chooses(hearing: Hearing) -> bool:
    """Whether the answer names something of the call that the proposal had named, or the means to pay for it."""
    told = [detail for detail in hearing.matters if detail.kind in ("id", "date", "amount") and not detail.is_target]
    is_told = any(each.says(detail.value) for detail in told for each in hearing.proposal)
    for detail in hearing.matters:
        if detail.kind == "means":
            called = hearing.called(detail)
            is_offered = is_told or any(called.is_own_in(each.folded) for each in hearing.proposal)
            if is_offered and any(called.is_own_in(each.folded) for each in hearing.answer):
                return True
        elif detail.kind == "choice":
            others = tuple(word for word in detail.words if word != detail.value)
            word = str(detail.value)
            if any(names_word(each.loose, word, others)[0] for each in hearing.answer) and any(
                names_word(each.loose, word, others)[0] for each in hearing.proposal
            ):
                return True
        elif detail.kind not in ("count", "flag"):
            said = any(each.says(detail.value) for each in hearing.answer)
            if said and any(each.says(detail.value) for each in hearing.proposal):
                return True
    return False


def _lack(hearing: Hearing, detail: Detail, *, is_graded: bool = True) -> Lack | None:
    """What is wrong where a value was not told, unless the system asked for it, or it stays as it was."""
    lack = _untold(hearing, detail, is_graded=is_graded)
    if lack is None or hearing.is_forced(detail.value):
        return None
    return lack if detail.is_target or hearing.is_new or not hearing.is_unchanged(detail) else None


def _untold(hearing: Hearing, detail: Detail, *, is_graded: bool) -> Lack | None:
    match detail.kind:
        case "amount" | "means":
            return None
        case "id":
            return id_lack(hearing, detail, is_graded=is_graded)
        case "name":
            # What belongs to what was told by name need not be read out: the names of those who travel.
            if not hearing.is_told_now(detail.value) and told_in_place(hearing, detail):
                return Lack(detail.name, "unclear", "another_told")
            told = hearing.is_told(detail.value) or hearing.belongs(str(detail.value))
        case "choice":
            return choice_lack(hearing, detail)
        case "count":
            return count_lack(hearing, detail)
        case "flag":
            told = detail.is_off or any(_is_spoken_of(hearing, word) for word in words_of(detail.name))
        case _:
            return when_lack(hearing, detail)
    return None if told else Lack(detail.name, "unclear", "never_told")


def _is_spoken_of(hearing: Hearing, word: str) -> bool:
    """Whether the agent has spoken of something."""
    if any(word in each.folded for each in hearing.proposal):
        return True
    return hearing.said_before(("word", word), lambda each: word in each.folded, "agent")


def _left_out(hearing: Hearing) -> list[Lack]:
    """Members of a list that the call would leave out without putting others in their place."""
    found: list[Lack] = []
    if hearing.is_new:
        return found
    matters = hearing.matters
    lists = {(detail.top, detail.name) for detail in matters if detail.kind == "id" and detail.top != detail.name}
    records = [hearing.record(detail) for detail in hearing.goals] if lists else []
    for record in records:
        for top, name in sorted(lists):
            listed: Any = record.fields.get(top) if record is not None else None
            had = {fold_name(str(value)) for key, value in scalars({top: listed}) if key == name}
            has = {fold_name(str(detail.value)) for detail in matters if (detail.top, detail.name) == (top, name)}
            if has < had:
                found.append(Lack(name, "missing", "left_out"))
    return found
