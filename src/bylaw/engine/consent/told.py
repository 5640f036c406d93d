"""Whether what matters in a call was told before the user agreed to it, whatever words it was told in."""

from collections.abc import Sequence
from typing import Any

from bylaw.engine.consent.detail import Detail
from bylaw.engine.consent.hearing import Hearing
from bylaw.engine.consent.lack import Lack
from bylaw.engine.consent.marks import is_told_apart, marks, marks_told
from bylaw.engine.consent.naming import (
    alike,
    counts,
    heads,
    names_kind,
    names_kind_word,
    names_word,
    plain,
    puts_word,
    stem,
)
from bylaw.engine.consent.payment import money_lacks
from bylaw.engine.consent.records import scalars
from bylaw.engine.consent.roles import swapped, told_in_place
from bylaw.engine.consent.utterance import Utterance
from bylaw.facts.folded_text import fold_name
from bylaw.policy.verb import words_of

_LARGE = 13
"""Numbers from here on are told of nothing by chance."""
_MARKS = 2
"""So many fields of a thing must be named where its own id is not."""


def lacks(hearing: Hearing, matters: Sequence[Detail]) -> list[Lack]:
    """What of a call was not surely told."""
    goals = [detail for detail in matters if detail.is_target]
    found: list[Lack] = []
    for detail in matters:
        if detail.kind in ("amount", "means") or (lack := _lack(hearing, detail, matters)) is None:
            continue
        if not hearing.is_forced(detail.value) and (
            detail in goals or hearing.is_new or not hearing.is_unchanged(detail, goals)
        ):
            found.append(lack)
    return found + swapped(hearing, matters) + _left_out(hearing, matters) + money_lacks(hearing, matters)


def chooses(hearing: Hearing, matters: Sequence[Detail]) -> bool:
    """Whether the answer names something of the call that the proposal had named, or the means to pay for it."""
    told = [detail for detail in matters if detail.kind in ("id", "date", "amount") and not detail.is_target]
    is_told = any(each.says(detail.value) for detail in told for each in hearing.proposal)
    for detail in matters:
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


def _lack(hearing: Hearing, detail: Detail, matters: Sequence[Detail]) -> Lack | None:
    match detail.kind:
        case "id":
            return _id_lack(hearing, detail, matters)
        case "name":
            # What belongs to what was told by name need not be read out: the names of those who travel.
            if not hearing.is_told_now(detail.value) and told_in_place(hearing, detail):
                return Lack(detail.name, "unclear", "another_told")
            told = hearing.is_told(detail.value) or hearing.belongs(str(detail.value))
        case "choice":
            return _choice_lack(hearing, detail, matters)
        case "count":
            return _count_lack(hearing, detail, matters)
        case "flag":
            told = detail.is_off or any(_is_spoken_of(hearing, word) for word in words_of(detail.name))
        case _:
            # A day that a record showed need not be read out: a birth date.
            told = hearing.is_told(detail.value) or hearing.records.shows(str(detail.value), hearing.before)
    return None if told else Lack(detail.name, "unclear", "never_told")


def _is_spoken_of(hearing: Hearing, word: str) -> bool:
    """Whether the agent has spoken of something."""
    if any(word in each.folded for each in hearing.proposal):
        return True
    return hearing.said_before(("word", word), lambda each: word in each.folded, "agent")


def _id_lack(hearing: Hearing, detail: Detail, matters: Sequence[Detail]) -> Lack | None:
    if hearing.is_told_now(detail.value):
        return None
    own = fold_name(str(detail.value))
    by_user, by_agent = hearing.last_said(detail.value, "user"), hearing.last_said(detail.value, "agent")
    is_said = by_user is not None or by_agent is not None
    if detail.is_person and not _names_person(hearing, detail):
        return None if is_said else _unsaid(hearing, detail, matters)
    if is_said and any(_names_other(hearing, detail, each) for each in hearing.proposal):
        return Lack(detail.name, "missing" if detail.is_target else "unclear", "another_told")
    if is_said and told_in_place(hearing, detail):
        return Lack(detail.name, "unclear", "another_told")
    if by_agent is not None and by_user is None:
        since = hearing.mentions.since(by_agent, hearing.end)
        if any(_names_other(hearing, detail, each) for each in since):
            return Lack(detail.name, "unclear", "others_since")
    is_other = not is_said and detail.is_target and any(_names_other(hearing, detail, each) for each in hearing.now)
    if not is_other and is_said:
        return None
    if not is_other and not hearing.records.has_other(detail.name, own, hearing.before):
        return _unsaid(hearing, detail, matters)
    told = marks_told(hearing, detail)
    if told >= _MARKS or (not is_other and is_told_apart(hearing, detail, matters)):
        return None
    if is_other and not told:
        return Lack(detail.name, "missing", "another_told")
    return Lack(detail.name, "unclear" if told else "missing", "one_mark" if told else "never_told")


def _unsaid(hearing: Hearing, detail: Detail, matters: Sequence[Detail]) -> Lack | None:
    """An id that nobody said, and no other written like it: told by what it belongs to, or by what belongs to it."""
    if told_in_place(hearing, detail):
        return Lack(detail.name, "missing", "another_told")
    if hearing.belongs(str(detail.value), alone=True) or marks_told(hearing, detail):
        return None
    if is_told_apart(hearing, detail, matters) or _is_the_only_one(hearing, detail):
        return None
    own = fold_name(str(detail.value))
    if detail.is_caller and (
        # Callers say who they are once, by their name or the day they were born.
        any(hearing.last_said(mark, "user") is not None for mark in marks(hearing, detail))
        or not hearing.records.has_other(detail.name, own, hearing.before)
    ):
        return None
    is_worded = not detail.is_person and any(names_kind(each.loose, own) for each in hearing.now)
    return None if is_worded else Lack(detail.name, "unclear", "never_told")


def _is_the_only_one(hearing: Hearing, detail: Detail) -> bool:
    """Whether the agent spoke of the order, and records show no other order beside it."""
    if not detail.is_target or detail.is_person:
        return False
    word = next((word for word in words_of(detail.name) if len(word) > 3), "")
    if not word or not any(names_kind_word(each.loose, word) for each in hearing.proposal):
        return False
    holders = list(hearing.records.holders(str(detail.value), hearing.before))
    return bool(holders) and not any(each.is_one_of_several(str(detail.value)) for each in holders)


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


def _choice_lack(hearing: Hearing, detail: Detail, matters: Sequence[Detail]) -> Lack | None:
    others = tuple(word for word in detail.words if word != detail.value)
    word = str(detail.value)
    for each in hearing.now:
        own, other = names_word(each.loose, word, others)
        if own:
            if each.by == "user" and hearing.is_changed:
                put = [names_word(one.loose, word, others) for one in hearing.proposal]
                if any(told for _, told in put) and not any(told for told, _ in put):
                    return Lack(detail.name, "missing", "user_changed")
            is_mixed = other and each.by != "user" and any(puts_word(each.loose, word) for word in others)
            return Lack(detail.name, "unclear", "another_beside") if is_mixed else None
        if other and each.by != "user":
            return Lack(detail.name, "unclear", "another_told")
    # Nobody spoke of any of the words: where the sum was told, the word is part of what was.
    has_sum = any(each.kind == "amount" for each in matters)
    if has_sum or hearing.said_before((word, others), lambda each: names_word(each.loose, word, others)[0]):
        return None
    return Lack(detail.name, "unclear", "never_told")


def _count_lack(hearing: Hearing, detail: Detail, matters: Sequence[Detail]) -> Lack | None:
    """A number is told by the agent, in all or for each head; what only the user spoke of was asked for, not told."""
    if detail.is_off:
        return None
    of = stem(detail.name)
    alike = [int(each.value) for each in matters if each.kind == "count" and stem(each.name) == of and each.value]
    total = {str(plain(value)) for value in (alike if of else [float(detail.value)])}
    each_head = heads(matters)
    wanted = total | {str(value // each_head) for value in alike if each_head > 1 and value % each_head == 0}
    put = _numbers(hearing.proposal, of)
    if put & total or (put & wanted and ("0" not in put or not of)):
        return None
    if any(_is_number_told(each, detail.value) for each in hearing.proposal):
        return None
    if of and "0" in put:
        return Lack(detail.name, "missing", "another_told")
    if hearing.counted_before(wanted, of, "agent"):
        return None
    is_asked = _numbers(hearing.answer, of) & wanted or hearing.counted_before(wanted, of, "user")
    if is_asked and put:
        return None
    if is_asked:
        is_named = any(of in each.folded for each in hearing.proposal)
        return Lack(detail.name, "unclear" if is_named else "missing", "user_alone")
    return Lack(detail.name, "unclear", "never_told")


def _is_number_told(said: Utterance, value: str | float) -> bool:
    """Whether a number was told that may count nothing: a limit of $2,000, on the 15th."""
    number = plain(float(value))
    return (number >= _LARGE and said.says(number)) or said.names(f"the {number}{_ordinal(number)}")


def _ordinal(number: float) -> str:
    return "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(int(number % 10), "th")


def _numbers(said: Sequence[Utterance], of: str) -> set[str]:
    return set[str]().union(*(counts(each.text, of) for each in said))


def _left_out(hearing: Hearing, matters: Sequence[Detail]) -> list[Lack]:
    """Members of a list that the call would leave out without putting others in their place."""
    found: list[Lack] = []
    if hearing.is_new:
        return found
    lists = {(detail.top, detail.name) for detail in matters if detail.kind == "id" and detail.top != detail.name}
    records = [hearing.record(detail) for detail in matters if detail.is_target] if lists else []
    for record in records:
        for top, name in sorted(lists):
            listed: Any = record.fields.get(top) if record is not None else None
            had = {fold_name(str(value)) for key, value in scalars({top: listed}) if key == name}
            has = {fold_name(str(detail.value)) for detail in matters if (detail.top, detail.name) == (top, name)}
            if has < had:
                found.append(Lack(name, "missing", "left_out"))
    return found
