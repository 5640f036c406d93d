"""Whether the money of a call was told, and the means of payment: the sum where the call names it, else some price."""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import combinations

from bylaw.engine.consent.detail import Detail
from bylaw.engine.consent.hearing import Hearing
from bylaw.engine.consent.lack import Lack
from bylaw.engine.consent.means import Called
from bylaw.engine.consent.naming import heads, plain
from bylaw.engine.consent.proposal import PRICED, objects
from bylaw.engine.consent.utterance import Utterance
from bylaw.facts.assent import sentences
from bylaw.facts.provenance import fold, occurs
from bylaw.policy.verb import words_of

_CURRENCY = re.compile(r"[$€£]\s?\d|\b\d[\d,.]*\s?(?:dollars|usd|euros?|eur|pounds|gbp)\b")
_FREE = re.compile(r"(?<!\w)(?:free|complimentary|waived|included|covered|\$0)(?!\w)")
_NO_COST = re.compile(
    r"\b(?:no (?:extra |additional |further |added |net )?(?:cost|charge|fee|payment)s?|at no|"
    r"without (?:any )?(?:extra |additional )?(?:cost|charge|fee)|same price|no (?:price |fare )?difference|"
    r"not be charged|won't be charged|nothing to pay|free of charge)\b"
)
_PAID = frozenset(("nonfree", "paid", "chargeable", "billable", "charged"))
"""In the name of a number of things: those that cost something. Where there are none, no money moves."""
_TOLD_SUM = re.compile(
    r"((?:~|about |approximately |around |roughly |est\.? |estimated )\s?)?[$€£]\s?(\d[\d,]*(?:\.\d+)?)"
)
_SUMS = 12
_BESIDE = 20
"""Letters between a means of payment and what is taken from it."""
_ABOUT = 0.02
"""How far a sum may be from a guess at it."""
_MONEY = r"[$€£]\s?\d[\d,.]*"
_KINDS = re.compile(r"\b(?:gift card|credit card|debit card|certificate|voucher|store credit|bank account|paypal)s?\b")
_NOT_USED = re.compile(
    r"\b(?:cannot|can't|unable|unfortunately|issue|instead|not (?:be )?(?:allowed|possible|enough))\b"
)
"""Says of a means of payment that it will not do."""
_NOT_BY = re.compile(r"\b(?:instead of|rather than|not|without|don't)\b[^.!?,;]*")
_OLD = r"(?:original(?:ly)?|current(?:ly)?|previous(?:ly)?|existing|old|payment history|paid)"
_NO_PRICE = re.compile(
    rf"\b(?:balance|bal)\b(?: of| is| was|:)?\s*\(?{_MONEY}"
    rf"|{_MONEY}\s*(?:\w+ )?(?:balance|bal|available|left|remaining)\b"
    rf"|\b{_OLD}\b[^.!?$;]{{0,40}}{_MONEY}|{_MONEY} (?:\w+ )?(?:was )?(?:paid|originally)\b"
)
"""Says how much is on a card, or was paid before, not what something costs."""
_ON_CARD = re.compile(rf"\b(?:card|certificate|voucher)s?\b[ \w#*]{{0,20}}[(:]\s*{_MONEY}")
_GUESS = re.compile(rf"(?:~|\b(?:about|approx\w*|around|roughly|estimated|expect\w*)\b[^.!?]{{0,20}})\s?{_MONEY}")
_OLD_PART = re.compile(rf"^\W*(?:your |the )?{_OLD}\b[^$]*(?::|details|summary|reservation|booking)\W*$")
_NEW_PART = re.compile(
    r"\b(?:propos|new|chang|upgrad|downgrad|updat|refund|differen|cost|charge|fee|estimat|total|impact)\w*"
)
"""Begin a part of a message about how things are, and one about what they would become."""
_LATER = re.compile(
    r"\b(?:exact|final|actual|precise) (?:amount|price|cost|total|charge|fee|refund|difference|figure)s?\b"
    r"[^.!?$]{0,40}\b(?:will|once|after|upon|on|at|when|calculat\w*|determin\w*|confirm\w*)\b"
)
"""Says that the sum will be known only when it is done."""
_LOWERS = re.compile(r"\b(?:downgrad\w*|cheaper|since the (?:price|fare)|lower fare)\b")
_RAISES = re.compile(r"\b(?:upgrad\w*|charged?|pay(?:ing|s)?|due)\b")
_REFUND = re.compile(r"\b(?:refund|reimburs|credited|money back|saving|cheaper|lower)\w*")
_ORIGINAL = re.compile(
    r"\b(?:original(?:ly)?|same|existing|current|previous|used (?:for|to)|paid with|on file|initial)\b[^.!?]{0,40}"
    r"\b(?:payment|card|method|form|account|means|booking|gift|credit|purchase|paid|used)"
    r"|\b(?:refund\w*|back) to (?:you|your)\b"
)


def money_lacks(hearing: Hearing, matters: Sequence[Detail]) -> list[Lack]:
    """What of the money was not surely told."""
    amounts = [detail for detail in matters if detail.kind == "amount" and not detail.is_off]
    means = [detail for detail in matters if detail.kind == "means"]
    found: list[Lack] = []
    if amounts and not _is_summed(hearing, amounts, matters):
        found.append(Lack("amount", "missing", "sum_untold"))
    if not means:
        return found
    is_free = _is_free(hearing, matters)
    if not amounts and not is_free and (lack := _price_lack(hearing, matters)) is not None:
        found.append(lack)
    if amounts or not is_free:
        used = set[str]().union(*(hearing.called(detail).own for detail in means))
        goals = [detail for detail in matters if detail.is_target]
        for each in means:
            is_same = hearing.is_unchanged(each, goals)
            lack = _means_lack(hearing, each, used, goals, is_original=is_same, has_sums=bool(amounts))
            found += [] if lack is None else [lack]
    return found


def _is_summed(hearing: Hearing, amounts: Sequence[Detail], matters: Sequence[Detail]) -> bool:
    """Whether the sum was told, or the sum for each head, or every single amount; or the system demanded it."""
    total = sum(float(detail.value) for detail in amounts)
    if any(hearing.is_agents(plain(share)) for share in {total, total / heads(matters)}):
        return True
    if hearing.is_forced(plain(total)) or any(_adds_up(each.folded, total) for each in hearing.proposal):
        return True
    return all(hearing.is_agents(plain(float(detail.value))) for detail in amounts)


def _adds_up(text: str, total: float) -> bool:
    """Whether a sum is made up of sums that a text tells, or is about one that it tells as a guess."""
    sums = {float(found[2].replace(",", "").rstrip(".")): bool(found[1]) for found in _TOLD_SUM.finditer(text)}
    told = sorted(sums)[:_SUMS]
    if any(sums[each] and abs(each - total) <= total * _ABOUT for each in told):
        return True
    return any(abs(sum(some) - total) < 0.005 for size in (2, 3) for some in combinations(told, size))


def _is_free(hearing: Hearing, matters: Sequence[Detail]) -> bool:
    """Whether it was told that what the call does costs nothing; `free bags` says so of bags only."""
    own, others = _topics(matters)
    is_one = len(own.families) < 2
    unpaid = (detail for detail in matters if detail.kind in ("count", "flag") and detail.is_off)
    if is_one and any(_PAID & {*words_of(detail.name)} for detail in unpaid):
        return True
    if any(_CURRENCY.search(each.folded) for each in hearing.answer):
        return False
    is_priced = any(_CURRENCY.search(each.folded) for each in hearing.proposal)
    for sentence in (part for each in hearing.now for part in sentences(each.text)):
        if not _NO_COST.search(sentence) and not _FREE.search(sentence):
            continue
        is_about_it, is_about_other = own.stands_in(sentence), others.stands_in(sentence)
        # Free bags make no trip free.
        if not is_about_other and ((is_about_it and is_one) or (_NO_COST.search(sentence) and not is_priced)):
            return True
    return False


class _Topic:
    """Words for things that may have a price of their own."""

    def __init__(self, stems: Collection[str], families: Sequence[tuple[str, ...]]) -> None:
        self.families = families
        """Those of them that mostly have."""
        words = "|".join(sorted(map(re.escape, stems)))
        self._search = re.compile(rf"\b(?:{words})" if words else r"(?!)").search

    def stands_in(self, sentence: str) -> bool:
        """Whether a sentence speaks of any."""
        return self._search(sentence) is not None


def _topics(matters: Sequence[Detail]) -> tuple[_Topic, _Topic]:
    """What a call is about, and what else may have a price."""
    return _topics_of(frozenset(each.name for each in matters if each.kind != "means" and not each.is_target))


@lru_cache(maxsize=512)
def _topics_of(names: frozenset[str]) -> tuple[_Topic, _Topic]:
    stems = {stem for name in names for stem in objects(name)}
    own = [family for family in PRICED if stems.intersection(family)]
    others = [family for family in PRICED if family not in own]
    return _Topic(stems, own), _Topic({stem for family in others for stem in family}, others)


def _priced_part(hearing: Hearing, matters: Sequence[Detail]) -> str:
    """What the proposal says of the price: not other things' prices, what was paid before, or what is on a card."""
    own, others = _topics(matters)
    mine: list[str] = []
    is_old = False
    for part in (part for each in hearing.proposal for part in sentences(each.text)):
        if _OLD_PART.search(part):
            is_old = True
        elif is_old and _NEW_PART.search(part):
            is_old = False
        if not is_old and (own.stands_in(part) or not others.stands_in(part)):
            mine.append(part)
    return _ON_CARD.sub(" ", _NO_PRICE.sub(" ", fold(" ".join(mine))))


def _price_lack(hearing: Hearing, matters: Sequence[Detail]) -> Lack | None:
    """What is missing where the call charges or refunds a sum that only the system knows.

    A charge needs a price, be it a guess. Whether it is enough of a refund that there will be one, readers do not agree
    on.
    """
    if any(_CURRENCY.search(each.folded) for each in hearing.answer):
        return None
    mine = _priced_part(hearing, matters)
    put = " ".join(each.folded for each in hearing.proposal)
    if _CURRENCY.search(mine):
        # Where the sum is to be known only later, no more than a guess at it was told.
        is_open = _RAISES.search(mine) and not _LOWERS.search(put) and _LATER.search(mine) and not _GUESS.search(mine)
        return Lack("amount", "missing", "price_later") if is_open else None
    if _LOWERS.search(put) or (_REFUND.search(mine) and not _RAISES.search(mine)):
        return Lack("amount", "unclear", "price_vague")
    changed = _changed(hearing, matters)
    if changed and hearing.said_before(("price", changed), lambda each: _is_priced(each, changed), "agent"):
        return Lack("amount", "unclear", "price_before")
    return Lack("amount", "missing", "price_untold")


def _changed(hearing: Hearing, matters: Sequence[Detail]) -> tuple[str, ...]:
    """The things that the call puts where others were."""
    goals = [detail for detail in matters if detail.is_target]
    news = (each for each in matters if each.kind in ("id", "date") and each not in goals)
    return tuple(str(each.value) for each in news if not hearing.is_unchanged(each, goals))


def _is_priced(said: Utterance, things: Sequence[str]) -> bool:
    """Whether a price was told beside one of some things."""
    return _CURRENCY.search(_NO_PRICE.sub(" ", said.folded)) is not None and any(map(said.says, things))


def _means_lack(
    hearing: Hearing, detail: Detail, used: set[str], goals: Sequence[Detail], *, is_original: bool, has_sums: bool
) -> Lack | None:
    called = hearing.called(detail)
    if any(called.is_own_in(part) or _names(part, called.kind) for part in hearing.aside):
        return Lack(detail.name, "missing", "set_aside")
    spoken = " ".join(each.folded for each in hearing.answer)
    if any(called.is_own_in(each.folded) for each in hearing.now) or _is_own_before(hearing, called):
        if has_sums or not _is_split(hearing, called, used, goals):
            return None
        return Lack(detail.name, "missing", "another_beside")
    now = " ".join(each.folded for each in hearing.now)
    if is_original and _ORIGINAL.search(now):
        return None
    if _names(called.another.sub(" ", spoken), called.kind):
        return None
    if _names(now, called.others - used):
        return Lack(detail.name, "missing", "another_told")
    if is_original and hearing.said_before("original", lambda each: _ORIGINAL.search(each.folded) is not None):
        return None
    if called.outranked is not None and called.outranked.search(now):
        return Lack(detail.name, "missing", "another_told")
    if _is_named(hearing, called, called.kind):
        return None
    if _is_named(hearing, called, called.shared):
        return Lack(detail.name, "unclear", "one_of_several")
    if called.another.search(now):
        return Lack(detail.name, "missing" if called.is_recorded else "unclear", "another_told")
    if is_original and _REFUND.search(now):
        return Lack(detail.name, "unclear", "original_untold")
    return Lack(detail.name, "missing", "never_told")


def _is_split(hearing: Hearing, called: Called, used: set[str], goals: Sequence[Detail]) -> bool:
    """Whether others are to pay as well: by the answer, or, where that names none, by what the proposal takes from
    each. What several things are paid with, each with its own, is no split."""
    if any(_names_other_goal(hearing, goal) for goal in goals):
        return False
    others = called.others - used
    spoken = _usable(hearing.answer)
    kinds = {found[0].rstrip("s") for found in _KINDS.finditer(_NOT_BY.sub(" ", spoken))}
    if _names(spoken, others) or len(kinds) > 1:
        return not kinds or not all(any(kind in form for form in used) for kind in kinds)
    if kinds or called.is_own_in(spoken):
        return False
    text = _NO_PRICE.sub(" ", _usable(hearing.proposal))
    return _has_sum(text, called.own) and _has_sum(text, others)


def _usable(said: Sequence[Utterance]) -> str:
    """What was said, without what it says will not do."""
    return fold(" ".join(part for each in said for part in sentences(each.text) if not _NOT_USED.search(part)))


def _names_other_goal(hearing: Hearing, goal: Detail) -> bool:
    """Whether the proposal speaks of other things like the one that is acted on."""
    values = hearing.records.values(goal.name, hearing.before)
    return not goal.is_person and any(
        values.other_in(each, fold(str(goal.value)), hearing.before) for each in hearing.proposal
    )


def _has_sum(text: str, forms: set[str]) -> bool:
    """Whether a sum stands right beside a means of payment."""
    for form in forms:
        here = -1 if form[:1] in "$€£" else occurs(form, text)
        while here >= 0:
            end = here + len(form)
            if _CURRENCY.search(text[max(0, here - _BESIDE) : here]) or _CURRENCY.search(text[end : end + _BESIDE]):
                return True
            here = occurs(form, text, end)
    return False


def _is_own_before(hearing: Hearing, called: Called) -> bool:
    """Whether it was named before, and no other."""
    if hearing.named_before(called.own):
        return True
    ranked = called.ranked
    return ranked is not None and hearing.said_before(ranked, lambda each: ranked.search(each.folded) is not None)


def _is_named(hearing: Hearing, called: Called, forms: set[str]) -> bool:
    """Whether it was named, at any time, by its kind, and not as one of the kind by digits that are not its own."""

    def names(said: Utterance) -> bool:
        return _names(said.folded, forms) and _names(called.another.sub(" ", said.folded), forms)

    return any(map(names, hearing.now)) or hearing.said_before((called.another, frozenset(forms)), names)


def _names(text: str, forms: set[str]) -> bool:
    return any(occurs(form, text) >= 0 for form in forms)
