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
_NOT_BY = re.compile(r"\b(?:instead of|rather than|not|without|don't)\b[^.!?,;]*")
_BALANCE = re.compile(
    rf"\b(?:balance|bal)\b(?: of| is| was|:)?\s*\(?{_MONEY}"
    rf"|{_MONEY}\s*(?:\w+ )?(?:balance|bal|available|left|remaining)\b"
    rf"|\b(?:payment history|original(?:ly)? pa(?:id|yment)|previously paid)\b[^.!?$]{{0,40}}{_MONEY}"
)
"""Says how much is on a card, or was paid before, not what something costs."""
_CHEAPER = re.compile(r"\b(?:downgrad\w*|cheaper|since the (?:price|fare)|lower fare)\b")
_SUM = r"(?:amounts?|prices?|costs?|total|charges?|fees?|refund|difference|calc\w*|figure)"
_KNOWN = r"(?:determined|calculated|computed|confirmed|known|finali[sz]ed|provided|shown)"
_LATER = re.compile(
    rf"\b(?:exact|final|actual|precise|specific) {_SUM}\b[^.!?$]{{0,40}}"
    rf"\b(?:will|once|after|upon|on|at|when|via|{_KNOWN})\b"
    rf"|\b(?:will|can|'ll|once i|before i|to) (?:then |only )?(?:confirm|determine|provide|tell you|know) "
    rf"the (?:exact|final|actual|precise) {_SUM}|\b(?:will|can|'ll) calculate the (?:exact|final|actual|precise) {_SUM}"
    rf"|\b{_SUM} (?:to be |will be |is |are |only )?{_KNOWN} (?:on|at|upon|after|once|when|during|by)\b"
    rf"|\b{_SUM} (?:to be|yet to be|still to be) {_KNOWN}\b|\b{_SUM}:? (?:tbd|to be advised)\b"
)
"""Says that the sum will be known only when it is done."""
_CHARGE = re.compile(r"\b(?:upgrad\w*|charged?|pay(?:ing|s)?|difference paid|due)\b")
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
            lack = _means_lack(hearing, each, used, is_original=is_same, has_sums=bool(amounts))
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
    if any(_CURRENCY.search(each.folded) for each in hearing.answer):
        return False
    own, others = _topics(matters)
    is_one = len(own.families) < 2
    unpaid = (detail for detail in matters if detail.kind in ("count", "flag") and detail.is_off)
    if is_one and any(_PAID & {*words_of(detail.name)} for detail in unpaid):
        return True
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
    """What the proposal says, without what it says of other things' prices and of how much is on a card."""
    own, others = _topics(matters)
    told = (part for each in hearing.proposal for part in sentences(each.text))
    mine = (part for part in told if own.stands_in(part) or not others.stands_in(part))
    return _BALANCE.sub(" ", fold(" ".join(mine)))


def _price_lack(hearing: Hearing, matters: Sequence[Detail]) -> Lack | None:
    """What is missing where the call charges or refunds a sum that only the system knows.

    A charge needs a price. Whether it is enough of a refund that there will be one, readers do not agree on.
    """
    put = " ".join(each.folded for each in hearing.proposal)
    is_later = _LATER.search(put) is not None
    if any(_CURRENCY.search(each.folded) for each in hearing.answer):
        return None
    if _CURRENCY.search(put) and _CURRENCY.search(_priced_part(hearing, matters)):
        is_charge = _CHARGE.search(put) is not None and not _REFUND.search(put)
        return Lack("amount", "missing" if is_charge else "unclear", "price_later") if is_later else None
    if _REFUND.search(put) or (_CHEAPER.search(put) and any(_REFUND.search(each.folded) for each in hearing.answer)):
        return Lack("amount", "unclear", "price_later" if is_later else "price_vague")
    if hearing.said_before("price", _is_priced, "agent"):
        return Lack("amount", "unclear", "price_before")
    return Lack("amount", "missing", "price_untold")


def _is_priced(said: Utterance) -> bool:
    return bool(_CURRENCY.search(said.folded) or _REFUND.search(said.folded))


def _means_lack(hearing: Hearing, detail: Detail, used: set[str], *, is_original: bool, has_sums: bool) -> Lack | None:
    called = hearing.called(detail)
    if any(called.is_own_in(part) or _names(part, called.kind) for part in hearing.aside):
        return Lack(detail.name, "missing", "set_aside")
    spoken = " ".join(each.folded for each in hearing.answer)
    if any(called.is_own_in(each.folded) for each in hearing.now) or _is_own_before(hearing, called):
        is_beside = _names(spoken, called.others - used) or _is_split(hearing, spoken, called, used, has_sums)
        return Lack(detail.name, "unclear", "another_beside") if is_beside else None
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


def _is_split(hearing: Hearing, spoken: str, called: Called, used: set[str], has_sums: bool) -> bool:
    """Whether others are to pay as well: by their kinds in the answer, or, where that names none and the call tells no
    sums, by what the proposal takes from each."""
    kinds = {found[0].rstrip("s") for found in _KINDS.finditer(_NOT_BY.sub(" ", spoken))}
    if len(kinds) > 1:
        return not all(any(kind in form for form in used) for kind in kinds)
    if kinds or has_sums or called.is_own_in(spoken):
        return False
    texts = [_BALANCE.sub(" ", each.folded) for each in hearing.proposal]
    return any(_has_sum(text, called.own) and _has_sum(text, called.others - used) for text in texts)


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
