"""Whether the money of a call was told, and the means of payment in whatever words, with no others to pay beside."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from bylaw.engine.consent.call.detail import PAYING, Detail
from bylaw.engine.consent.said.utterance import Utterance
from bylaw.engine.consent.shown.means import Called, tells_rank
from bylaw.engine.consent.told.hearing import Hearing
from bylaw.engine.consent.told.lack import Lack
from bylaw.engine.consent.told.price import (
    REFUND,
    is_free,
    is_offered_otherwise,
    is_perhaps_free,
    is_summed,
    price_lack,
    sums_in,
)
from bylaw.facts.folded_text import fold, occurs
from bylaw.facts.phrases import Phrases
from bylaw.policy.verb import words_of

_BESIDE = 20
"""Letters between a means of payment and what is taken from it."""
_KINDS = re.compile(r"\b(?:gift card|credit card|debit card|certificate|voucher|store credit|bank account|paypal)s?\b")
_NOT_USED = Phrases(
    (
        "cannot|can't|unable|unfortunately|issue|instead|not ",
        r"\b(?:cannot|can't|unable|unfortunately|issue|instead|not (?:be )?(?:allowed|possible|enough))\b",
    )
)
"""Says of a means of payment that it will not do."""
_NOT_BY = Phrases(
    (
        "instead of|rather than|not|without|don't",
        r"\b(?:instead of|rather than|not|without|don't)\b[^.!?,;]*",
    )
)
_ORIGINAL = Phrases(
    (
        "original|same|existing|current|previous|used |paid with|on file|initial",
        r"\b(?:original(?:ly)?|same|existing|current|previous|used (?:for|to)|paid with|on file|initial)\b[^.!?]{0,40}"
        r"\b(?:payment|card|method|form|account|means|booking|gift|credit|purchase|paid|used)",
    ),
    ("to you", r"\b(?:refund\w*|back) to (?:you|your)\b"),
)


_SOME_CARD = re.compile(r"\b(?:ending|ends|end)(?: in| with)? \W{0,4}\d{3,4}\b|\b(?:x{2,}|\*{2,}|•{2,})\W?\d{3,4}\b")
"""A means of payment by its last figures."""


def money_lacks(hearing: Hearing) -> list[Lack]:
    """What of the money, and of the means of payment, was not surely told."""
    amounts = [detail for detail in hearing.matters if detail.kind == "amount" and not detail.is_off]
    means = [detail for detail in hearing.matters if detail.kind == "means"]
    found: list[Lack | None] = []
    if amounts and not is_summed(hearing, amounts):
        found.append(Lack("amount", "missing", "sum_untold"))
    elif amounts and is_offered_otherwise(hearing, amounts):
        found.append(Lack("amount", "unclear", "another_told"))
    if means and not amounts:
        if is_free(hearing):
            return []
        lack = price_lack(hearing)
        if lack is not None and not any(PAYING & {*words_of(detail.name)} for detail in means):
            # A card may be there for other ends than to pay with it.
            lack = Lack(lack.detail, "unclear", lack.why)
        found.append(lack)
    if means:
        used = set[str]().union(*(hearing.called(detail).own for detail in means))
        found += [_lack(hearing, each, used, has_sums=bool(amounts)) for each in means]
    if means and not amounts and is_perhaps_free(hearing):
        # Then nobody need say what it is paid with.
        return [replace(lack, grade="unclear") for lack in found if lack is not None]
    return [lack for lack in found if lack is not None]


def _lack(hearing: Hearing, detail: Detail, used: set[str], *, has_sums: bool) -> Lack | None:
    called = hearing.called(detail)
    if any(called.is_own_in(part) or _names(part, called.kind) for part in hearing.aside):
        return Lack(detail.name, "missing", "set_aside")
    if any(called.is_own_in(each.folded) for each in hearing.now) or _is_own_before(hearing, called):
        if has_sums or not _is_split(hearing, called, used):
            return None
        return Lack(detail.name, "missing", "another_beside")
    spoken, now = hearing.exchange.spoken, hearing.said_now
    is_original = hearing.is_unchanged(detail)
    if is_original and _ORIGINAL.found_in(now):
        return None
    if _names(called.another.sub(" ", spoken), called.kind):
        return None
    if _names(now, called.others - used):
        return Lack(detail.name, "missing", "another_told")
    if is_original and hearing.said_before("original", lambda each: _ORIGINAL.found_in(each.folded)):
        return None
    if tells_rank(now) and called.outranked is not None and called.outranked.search(now):
        return Lack(detail.name, "missing", "another_told")
    if _is_named(hearing, called, called.kind):
        return None
    if _is_named(hearing, called, called.shared):
        return Lack(detail.name, "unclear", "one_of_several")
    if called.another.search(now):
        return Lack(detail.name, "missing" if called.is_recorded else "unclear", "another_told")
    if not called.is_recorded and _SOME_CARD.search(now):
        # Nothing shown says what it is called.
        return Lack(detail.name, "unclear", "one_mark")
    if is_original and REFUND.found_in(now):
        return Lack(detail.name, "unclear", "original_untold")
    return Lack(detail.name, "missing", "never_told")


def _is_split(hearing: Hearing, called: Called, used: set[str]) -> bool:
    """Whether others are to pay as well: by the answer, or, where that names none, by what the proposal takes from
    each. What several things are paid with, each with its own, is no split."""
    others = called.others - used
    spoken = _usable(hearing.said)
    kinds = {found[0].rstrip("s") for found in _KINDS.finditer(_NOT_BY.without(spoken))}
    if _names(spoken, others) or len(kinds) > 1:
        is_split = not kinds or not all(any(kind in form for form in used) for kind in kinds)
    elif kinds or not others or called.is_own_in(spoken):
        return False
    else:
        text = _usable(hearing.put.parts)
        sums = list(sums_in(text))
        is_split = _has_sum(text, sums, called.own) and _has_sum(text, sums, others)
    return is_split and not any(_names_other_goal(hearing, goal) for goal in hearing.goals)


def _usable(parts: Sequence[str]) -> str:
    """What was said, without what it says will not do."""
    bad = {*_NOT_USED.among(parts, " ".join(parts))}
    return fold(" ".join(part for part in parts if part not in bad) if bad else " ".join(parts))


def _names_other_goal(hearing: Hearing, goal: Detail) -> bool:
    """Whether the proposal speaks of other things like the one that is acted on."""
    own = fold(str(goal.value))
    return not goal.is_person and any(
        hearing.records.other_in(goal.name, own, each, hearing.before) for each in hearing.proposal
    )


def _has_sum(text: str, sums: Sequence[int], forms: set[str]) -> bool:
    """Whether a sum stands right beside a means of payment."""
    for form in forms:
        here = -1 if form[:1] in "$€£" else occurs(form, text)
        while here >= 0:
            end = here + len(form)
            if any(here - _BESIDE <= start < end + _BESIDE for start in sums):
                return True
            here = occurs(form, text, end)
    return False


def _is_own_before(hearing: Hearing, called: Called) -> bool:
    """Whether it was named before, and no other."""
    if hearing.named_before(called.own):
        return True
    ranked = called.ranked if hearing.said_before("rank", lambda each: tells_rank(each.folded)) else None
    return ranked is not None and hearing.said_before(ranked, lambda each: ranked.search(each.folded) is not None)


def _is_named(hearing: Hearing, called: Called, forms: set[str]) -> bool:
    """Whether it was named, at any time, by its kind, and not as one of the kind by digits that are not its own."""

    def names(said: Utterance) -> bool:
        return _names(said.folded, forms) and _names(called.another.sub(" ", said.folded), forms)

    return any(map(names, hearing.now)) or hearing.said_before((called.another, frozenset(forms)), names)


def _names(text: str, forms: set[str]) -> bool:
    return any(occurs(form, text) >= 0 for form in forms)
