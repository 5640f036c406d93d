"""Whether the money of a call was told: the sum where the call names it, else some price."""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import combinations

from bylaw.engine.consent.call.deed import PRICED, objects
from bylaw.engine.consent.call.detail import Detail
from bylaw.engine.consent.said.utterance import Utterance
from bylaw.engine.consent.told.count import heads, plain
from bylaw.engine.consent.told.hearing import Hearing
from bylaw.engine.consent.told.lack import Lack
from bylaw.facts.folded_text import begins_word, fold
from bylaw.facts.phrases import Phrases
from bylaw.policy.verb import words_of

_CODES = (
    "usd|eur|gbp|chf|sek|nok|dkk|isk|jpy|cny|cad|aud|nzd|inr|pln|czk|huf|ron|bgn|zar|brl|mxn|sgd|hkd|krw|ils|aed|thb"
)
_NAMES = "dollar|euro|pound|franc|kron|yen|rupee|zloty|peso|rand|kr"
_IN_WORDS = (
    f"{_CODES}|{_NAMES}",
    rf"\b\d[\d,.]*\s?(?:{_CODES}|dollars|euros?|pounds|francs?|kron(?:or|er|a)|yen|rupees|zloty|pesos|rands?|kr)\b"
    rf"|\b(?:{_CODES}|kr)\s?\d[\d,.]*",
)
CURRENCY = Phrases(("$|€|£|¥|₹", r"[$€£¥₹]\s?\d"), _IN_WORDS)
"""Tells a sum."""
_BARE = re.compile(
    r"\b(?:costs?|costing|for|fee|fees|price|charge|charged|pay|extra|additional|total|difference|supplement|surcharge)\b"
    r"(?: (?:is|of|comes? to|an?|extra|additional|another|in|total|only|just|up|by|be|will|would|you|the|at|to))*:? "
    r"(\d[\d,]*\.\d\d)(?![\d.]|,\d)"
)
"""A sum without its currency, right after a word for what something costs."""
_DECIMALS = re.compile(r"(?<![\w.,:/-])\d[\d,]*\.\d\d(?![\w:/-]|[.,]\d)")
_FREE = Phrases(
    ("free|complimentary|waived|included|covered", r"\b(?:free|complimentary|waived|included|covered)\b"),
    ("$0", r"(?<!\w)\$0(?!\w)"),
)
_NO_COST = Phrases(
    (
        "cost|charge|fee|payment|difference",
        r"\b(?:no (?:extra |additional |further |added |net )?(?:cost|charge|fee|payment)s?|"
        r"without (?:any )?(?:extra |additional )?(?:cost|charge|fee)|no (?:price |fare )?difference|"
        r"not be charged|won't be charged|free of charge)\b",
    ),
    ("at no|same price|nothing to pay", r"\b(?:at no|same price|nothing to pay)\b"),
)
_PAID = frozenset(("nonfree", "paid", "chargeable", "billable", "charged"))
"""In the name of a number of things: those that cost something. Where there are none, no money moves."""
_OFFERS = re.compile(
    r"\b(?:i|we)(?:'ll|'d| will| would| can| could)(?! be able)\b|\b(?:shall|should|may) (?:i|we)\b"
    r"|\b(?:like|want) me to\b"
)
"""The agent says what it would do, or asks for leave."""
_TOLD_SUM = re.compile(r"[$€£]\s?(\d[\d,]*(?:\.\d+)?)")
_GUESSED = re.compile(r"(?:~|about |approximately |around |roughly |est\.? |estimated )\s?$")
"""Right before a sum: it is a guess."""
_SUMS = 12
_NOISE = 1e-6
"""So far a sum of floats may be from whole cents."""
_ABOUT = 0.02
"""How far a sum may be from a guess at it."""
_MONEY = r"[$€£]\s?\d[\d,.]*"
_SIGNED = r"[$€£¥₹]\s?\d[\d,.]*"
_SUM_BY_SIGN = re.compile(_SIGNED)
_SUM = re.compile(rf"{_SIGNED}|{_IN_WORDS[1]}")
_NEXT_TO_CODE = re.compile(
    rf"\d(?<!\d\d)(?:(?<=[a-z].)(?:(?<=(?:{_CODES}).)|(?<=kr.))|(?<=[a-z]\s.)(?:(?<=(?:{_CODES})\s.)|(?<=kr\s.))|"
    rf"[\d,.]*\s?(?=[a-z])(?:{_CODES}|{_NAMES}))"
)
"""A number beside the name of a currency, or what may be one; what begins with a figure is found much sooner."""
_OLD_PARTS = "original|current|previous|existing|old|payment history|paid"
_OLD = r"(?:original(?:ly)?|current(?:ly)?|previous(?:ly)?|existing|old|payment history|paid)"
_BEFORE = re.compile(rf"(?:\b(?:balance|bal)\b(?: of| is| was|:)?\s*\(?|\b{_OLD}\b[^.!?$;]{{0,40}})$")
_CARD_BEFORE = re.compile(r"\b(?:card|certificate|voucher)s?\b[ \w#*]{0,20}[(:]\s*$")
_AFTER = re.compile(r"\s*(?:\w+ )?(?:balance|bal|available|left|remaining)\b| (?:\w+ )?(?:was )?(?:paid|originally)\b")
"""Stand before or after a sum that is on a card, or was paid before: it is not what something costs."""
_TO_BE_PAID = re.compile(r" paid (?:with|by|from|via|using|on|through|to)\b")
"""After a sum and a comma: how it will be paid."""
_NEAR = 64
_GUESS = re.compile(rf"(?:~|\b(?:about|approx\w*|around|roughly|estimated|expect\w*)\b[^.!?]{{0,20}})\s?{_MONEY}")
_OLD_PART = Phrases(
    (_OLD_PARTS, rf"^\W*(?:your |the )?{_OLD}\b[^$]*(?::|details|summary|reservation|booking)\W*$"),
)
_NEW_PART = re.compile(
    r"\b(?:propos|new|chang|upgrad|downgrad|updat|refund|differen|cost|charge|fee|estimat|total|impact)\w*"
)
"""Begin a part of a message about how things are, and one about what they would become."""
_LATER = re.compile(
    r"\b(?:exact|final|actual|precise) (?:amount|price|cost|total|charge|fee|refund|difference|figure)s?\b"
    r"[^.!?$]{0,40}\b(?:will|once|after|upon|on|at|when|calculat\w*|determin\w*|confirm\w*)\b"
)
"""Says that the sum will be known only when it is done."""
_LOWERS = Phrases(
    (
        "downgrad|cheaper|since the |lower fare",
        r"\b(?:downgrad\w*|cheaper|since the (?:price|fare)|lower fare)\b",
    )
)
_RAISES = Phrases(("upgrad|charge|pay|due", r"\b(?:upgrad\w*|charged?|pay(?:ing|s)?|due)\b"))
REFUND = Phrases(
    (
        "refund|reimburs|credited|money back|saving|cheaper|lower",
        r"\b(?:refund|reimburs|credited|money back|saving|cheaper|lower)\w*",
    )
)
"""Says that money comes back."""
_OF_ANYTHING = ("upgrad", "downgrad")
_GIVEN = re.compile(r"\b(?:complimentary|on the house|on us|our treat|as a gift|waived?)\b")


def sums_in(text: str) -> Iterator[int]:
    """Where sums stand in a folded text, other than what is on a card or was paid before."""
    for found in (_SUM if _NEXT_TO_CODE.search(text) else _SUM_BY_SIGN).finditer(text):
        here, after = found.span()
        is_to_be_paid = text[after - 1] == "," and _TO_BE_PAID.match(text, after) is not None
        if not _BEFORE.search(text[max(0, here - _NEAR) : here]) and (is_to_be_paid or not _AFTER.match(text, after)):
            yield here


def _tells_price(text: str) -> bool:
    """Whether a folded text tells what something costs."""
    if CURRENCY.may_be_in(text):
        # A sum in brackets after a card is mostly what is on it.
        for here in sums_in(text):
            if not _CARD_BEFORE.search(text[max(0, here - _NEAR) : here]):
                return True
    return "." in text and _BARE.search(text) is not None


def is_summed(hearing: Hearing, amounts: Sequence[Detail]) -> bool:
    """Whether the sum was told, or the sum for each head, or every single amount; or the system demanded it."""
    total = sum(float(detail.value) for detail in amounts)
    if abs(total - round(total, 2)) > _NOISE:
        # No such sum is rounded to one that was told.
        return all(hearing.is_agents(float(detail.value)) for detail in amounts)
    if any(hearing.is_agents(plain(share)) for share in {total, total / heads(hearing.matters)}):
        return True
    if hearing.is_forced(plain(total)) or any(_adds_up(each.folded, total) for each in hearing.proposal):
        return True
    return all(hearing.is_agents(plain(float(detail.value))) for detail in amounts)


def is_offered_otherwise(hearing: Hearing, amounts: Sequence[Detail]) -> bool:
    """Whether what the agent offered to do was told with other sums than the call's, which stands elsewhere: "You owe
    88.40 in all. I can take 44.20 today." """
    total = sum(float(detail.value) for detail in amounts)
    parts = hearing.put.parts if _TOLD_SUM.search(hearing.put.text) else ()
    offered = [part for part in parts if _TOLD_SUM.search(part) and _OFFERS.search(part)]
    if not offered or any(_adds_up(part, total) or _says(part, total, hearing) for part in offered):
        return False
    return not hearing.is_forced(plain(total)) and not any(each.says(plain(total)) for each in hearing.answer)


def _says(part: str, total: float, hearing: Hearing) -> bool:
    """Whether a sentence tells a sum, in all or for each head."""
    shares = (total, total / heads(hearing.matters))
    return any(abs(each - share) < 0.005 for each in _told_sums(part) for share in shares)


def _told_sums(text: str) -> dict[float, bool]:
    """The sums that a text tells, and whether each, where it stands last, is a guess."""
    return {
        float(found[1].replace(",", "")): _GUESSED.search(text, max(0, (at := found.start()) - _NEAR), at) is not None
        for found in _TOLD_SUM.finditer(text)
    }


def _adds_up(text: str, total: float) -> bool:
    """Whether a sum is made up of sums that a text tells, or is about one that it tells as a guess."""
    sums = _told_sums(text)
    told = sorted(sums)[:_SUMS]
    if any(sums[each] and abs(each - total) <= total * _ABOUT for each in told):
        return True
    return any(abs(sum(some) - total) < 0.005 for size in (2, 3) for some in combinations(told, size))


def is_free(hearing: Hearing) -> bool:
    """Whether it was told that what the call does costs nothing; `free bags` says so of bags only."""
    own, others = _topics(hearing.matters)
    is_one = len(own.families) < 2
    unpaid = (detail for detail in hearing.matters if detail.kind in ("count", "flag") and detail.is_off)
    if is_one and any(_PAID & {*words_of(detail.name)} for detail in unpaid):
        return True
    if any(CURRENCY.found_in(each.folded) for each in hearing.answer):
        return False
    is_priced = any(CURRENCY.found_in(each.folded) for each in hearing.proposal)
    for parts in (hearing.said, hearing.put.parts if hearing.proposal else ()):
        text = " ".join(parts)
        costless = _NO_COST.among(parts, text)
        if not is_priced and any(not others.stands_in(part) for part in costless):
            return True
        if is_one:
            # Free bags make no trip free.
            free = (part for part in (*costless, *_FREE.among(parts, text)) if own.stands_in(part))
            if any(not others.stands_in(part) for part in free):
                return True
    return False


def is_perhaps_free(hearing: Hearing) -> bool:
    """Whether something is given for nothing, perhaps what the call does, where that has no price of its own kind."""
    return not _topics(hearing.matters)[0].families and any(_GIVEN.search(each.folded) for each in hearing.proposal)


class _Topic:
    """Words for things that may have a price of their own."""

    def __init__(self, stems: Collection[str], families: Sequence[tuple[str, ...]]) -> None:
        self.families = families
        """Those of them that mostly have."""
        self._stems = tuple(sorted(stems))

    def stands_in(self, sentence: str) -> bool:
        """Whether a sentence speaks of any."""
        return any(begins_word(stem, sentence) for stem in self._stems if stem in sentence)


def _topics(matters: Sequence[Detail]) -> tuple[_Topic, _Topic]:
    """What a call is about, and what else may have a price."""
    return _topics_of(frozenset(each.name for each in matters if each.kind != "means" and not each.is_target))


@lru_cache(maxsize=512)
def _topics_of(names: frozenset[str]) -> tuple[_Topic, _Topic]:
    stems = {stem for name in names for stem in objects(name)}
    own = [family for family in PRICED if stems.intersection(family)]
    others = [family for family in PRICED if family not in own]
    if not own:
        # Rooms and plans are upgraded, too.
        others = [tuple(stem for stem in family if stem not in _OF_ANYTHING) for family in others]
    return _Topic(stems, own), _Topic({stem for family in others for stem in family}, others)


def _priced_part(hearing: Hearing) -> str:
    """What the proposal says of the price: not other things' prices, or how things are before it."""
    own, others = _topics(hearing.matters)
    put = hearing.put
    if not _OLD_PART.may_be_in(put.text) and not others.stands_in(put.text):
        return put.folded
    mine: list[str] = []
    chosen = [fold(str(each.value)) for each in hearing.matters if each.kind == "choice"]
    is_old = False
    old = {*_OLD_PART.among(put.parts, put.text)}
    for part in put.parts:
        if part in old:
            is_old = True
        elif is_old and _NEW_PART.search(part):
            is_old = False
        is_own = not others.stands_in(part) or own.stands_in(part) or any(word in part for word in chosen)
        if not is_old and is_own:
            mine.append(part)
    return fold(" ".join(mine))


def price_lack(hearing: Hearing) -> Lack | None:
    """What is missing where the call charges or refunds a sum that only the system knows.

    A charge needs a price, be it a guess. Whether it is enough of a refund that there will be one, readers do not agree
    on.
    """
    if any(CURRENCY.found_in(each.folded) for each in hearing.answer):
        return None
    mine = _priced_part(hearing)
    is_lower = any(_LOWERS.found_in(each.folded) for each in hearing.proposal)
    if _tells_price(mine):
        # Where the sum is to be known only later, no more than a guess at it was told.
        is_open = not is_lower and _RAISES.found_in(mine) and _LATER.search(mine) and not _GUESS.search(mine)
        return Lack("amount", "missing", "price_later") if is_open else None
    if is_lower or (REFUND.found_in(mine) and not _RAISES.found_in(mine)):
        return Lack("amount", "unclear", "price_vague")
    if _DECIMALS.search(_SUM.sub(" ", mine)):
        return Lack("amount", "unclear", "price_vague")
    changed = _changed(hearing)
    if changed and hearing.said_before(("price", changed), lambda each: _is_priced(each, changed), "agent"):
        return Lack("amount", "unclear", "price_before")
    return Lack("amount", "missing", "price_untold")


def _changed(hearing: Hearing) -> tuple[str, ...]:
    """The things that the call puts where others were."""
    news = (each for each in hearing.matters if each.kind in ("id", "date") and not each.is_target)
    return tuple(str(each.value) for each in news if not hearing.is_unchanged(each))


def _is_priced(said: Utterance, things: Sequence[str]) -> bool:
    """Whether a price was told beside one of some things."""
    return _tells_price(said.folded) and any(map(said.says, things))
