"""Whether the sums, days and times of a call were told, and what it costs."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from itertools import combinations, islice, product

from bylaw.consent.argument import Argument
from bylaw.consent.hearing import NOUGHT, Hearing, Why
from bylaw.consent.passage import Passage, number_mark, passage_of
from bylaw.consent.spot import PLAIN, is_about, spot_of, word_set
from bylaw.policy.verb import words_of
from bylaw.text.day import days
from bylaw.text.number import figure

_VAGUE = re.compile(
    r"\b(?:exact|final|actual) (?:amount|cost|price|difference|total|charge)|(?:amount|cost|price|difference|"
    r"charge)s?\b"
    r".{0,25}\b(?:calculated|determined|computed|known)"
)
_PRICED = re.compile(r"\b(?:pay|paid|payment|charge|refund|cost|total|difference|fee|price|fare)")
_PAST = re.compile(r"\b(?:history|original|paid|balance|remaining|available|previous|current)")
_GRATIS = re.compile(
    r"\bfree\b|\bno (?:\w+ )?(?:charge|cost|fee|payment|additional|extra|difference|price)|\bwithout (?:charge|cost)|"
    r"\bnothing (?:to pay|more|extra)|[$\u20ac\u00a3]\s?0(?:\.00)?\b"
)
_YEAR, _HALF = 370, 184
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEKDAY = re.compile(r"\b(mon|tue|wed|thu|fri|sat|sun)(?:s|nes|rs?|ur)?(?:days?)?\b")
_ZONE = re.compile(r"(?<=\d)(?:Z|[+-]\d\d:?\d\d)$")
_IN_UTC = re.compile(r"\b(?:utc|gmt)\b(?! ?[+-])")
_EACH = re.compile(r"\b(?:each|per|a (?:piece|box|head|person|night|day|seat|ticket))\b|\d\s?[x\u00d7]|[x\u00d7]\s?\d")
_FEES = frozenset(("fee", "fees", "penalty", "surcharge", "difference"))
_PRICES = frozenset(("price", "cost", "monthly"))
"""Words in the names of fields that say what a deed costs beside what its arguments say, and what a thing costs."""
_PARTS, _OFTEN = 4, 20
OFF = re.compile(r"\b(?:no|not|none|without|0|zero|off|false|declin\w*|\w+n't)\b")
_SCALES = frozenset(
    (
        *("cent", "cents", "penny", "pence", "pennies", "minor", "micros", "hundredths", "percent", "pct", "bps"),
        *("delta", "change", "difference", "increase", "decrease", "adjustment", "offset", "increment", "by"),
        *("hundreds", "thousand", "thousands", "million", "millions", "k", "units", "points", "pips", "basis"),
    )
)
"""Words in the name of an argument that make its figures another sum than they are."""
VAGUE_NAMES = frozenset(("total", "number", "count", "quantity", "new", "nonfree", "amount", "num", "qty"))


def why_sum(heard: Hearing, each: Argument) -> Why | None:
    put = heard.put
    if not _SCALES.isdisjoint(word_set(each.name)):
        # "50.00" is not 50 cents, and nobody says five thousand of them.
        return "never"
    if not each.number:
        return "another" if put.sums - heard.numbers and not _GRATIS.search(heard.raw) else None
    is_told = spot_of(each, put) >= 0
    if is_told and heard.bracketed is not put and spot_of(each, heard.bracketed) < 0:
        # "50.00 (60.00)": what stands in brackets right after a sum is another reading of it.
        return "beside"
    is_sole = is_told and put.sums <= heard.numbers
    if is_sole and not heard.answer.numbers:
        return None
    sums = [other.number for other in heard.given if other.kind == "sum" and other.number is not None]
    known = heard.numbers
    if len(sums) > 1:
        known = known | {sum(some, NOUGHT) for count in (2, 3) for some in combinations(sums, count)}

    def others(passage: Passage) -> list[str]:
        left = passage.sums - known if passage.sums else passage.sums
        return [] if left and _add_up(left, each.number, passage) else [number_mark(other) for other in left]

    return _among(heard, each, others, is_sole=is_sole)


def _add_up(parts: frozenset[Decimal], total: Decimal | None, passage: Passage) -> bool:
    """Whether a sum is told with what it is made of: "92.00 plus a fee of 2.50, 94.50"; "3 at 18.00 each, 54.00"."""
    if total is None or len(parts) > _PARTS or any(part >= total for part in parts):
        return False
    several = [int(each) for each in passage.counts if 1 < each <= _OFTEN] if _EACH.search(passage.words) else []
    ways = [[part * times for times in (1, *several)] for part in parts]
    return any(sum(way) == total for way in product(*ways))


def why_day(heard: Hearing, each: Argument) -> Why | None:
    if each.at and (why := why_time(heard, each)):
        return why
    if _is_far(heard, each) or _is_zone_untold(heard, each):
        return "never"
    if _is_another_weekday(heard, each):
        return "another"
    if not each.at and _is_timed(heard, each):
        return "another"
    mine = [other.day for other in heard.given if other.day is not None]
    return _among(
        heard,
        each,
        lambda passage: [
            f"d:{day.month}-{day.day}" for day in passage.days if not any(day.may_be(other) for other in mine)
        ],
    )


def _is_another_weekday(heard: Hearing, each: Argument) -> bool:
    """Whether a sentence that tells a day names a weekday on which no day of the call is: then two days were told."""
    own = {_WEEKDAYS[other.day.weekday()] for other in heard.given if other.day is not None}
    told = (line for line in heard.raw.split("\n") if any(day.may_be(each.day) for day in days(line) if each.day))
    return any(found[1] not in own for line in told for found in _WEEKDAY.finditer(line))


def _is_far(heard: Hearing, each: Argument) -> bool:
    """Whether a day that was told without its year is neither the next one of its name nor one of the last half year:
    in November, "December 1" is that of this year."""
    told = [day for day in heard.bracketed.days if each.day is not None and day.may_be(each.day)]
    if heard.now is None or each.day is None or any(day.year for day in told):
        return False
    return not -_HALF < (each.day - datetime.fromtimestamp(heard.now, UTC).date()).days < _YEAR


def _is_zone_untold(heard: Hearing, each: Argument) -> bool:
    """Whether a time has an offset from UTC of which nobody spoke, and which no result showed with it."""
    zone = _ZONE.search(each.value)
    if zone is None or heard.records.of(each.key):
        return False
    return zone[0].lower() not in heard.raw and not (_IN_UTC.search(heard.raw) and not zone[0].strip("Z+-:0"))


def _is_timed(heard: Hearing, each: Argument) -> bool:
    """Whether a time of day was told beside a day that the call gives without one, and neither another argument nor a
    record of the call's things has it: the whole day, or midnight, is another time."""
    if any(other.at for other in heard.given) or (each.day is None):
        return False
    lines = [passage_of((line,)) for line in heard.put.lines]
    told = {at for line in lines if spot_of(each, line) >= 0 for at in line.times}
    return any(not heard.records.fields_with(f"t:{hour}:{minute:02}") for hour, minute in told - {(0, 0)})


def why_time(heard: Hearing, each: Argument) -> Why | None:
    """Whether a time of day stands in what is read first of all that tells one, with no other beside it."""
    mine = {at for other in heard.given for at in other.at}
    for passage in heard.regions(each):
        stands = all(at in passage.times for at in each.at)
        if passage.times - mine:
            return "beside" if stands else "another"
        if stands:
            return None
    return "never"


def _among(
    heard: Hearing, each: Argument, others: Callable[[Passage], list[str]], *, is_sole: bool = False
) -> Why | None:
    """Whether a sum or a day stands in what is read first of all that tells one, with no other beside it."""
    if spot_of(each, heard.put) < 0 and others(heard.put):
        return "another"
    for passage in heard.regions(each, is_sole=is_sole):
        stands, rivals = spot_of(each, passage) >= 0, others(passage)
        if rivals and not _are_elsewhere(heard, rivals, each):
            return "beside" if stands else "another"
        if stands:
            return None
    return "never"


def _are_elsewhere(heard: Hearing, rivals: Iterable[str], each: Argument) -> bool:
    """Whether records hold every rival under a name of its own: for a day one that the value does not have, for a
    sum one without a word of the argument's, where the value itself has none or one with such a word."""
    if each.day is not None:
        own = heard.records.fields_with(_day_mark(each))
        return all(heard.records.fields_with(rival) - own for rival in rivals)
    assert each.number is not None
    words = set(words_of(each.name))
    fields = heard.records.fields_with(number_mark(each.number))
    if fields and not any(words & set(words_of(name)) for name in fields):
        return False
    held = frozenset[str]() if fields else _things(heard)
    for rival in rivals:
        if rival in held:
            continue
        names = heard.records.fields_with(rival)
        if not names or any(words & set(words_of(name)) for name in names - fields):
            return False
    return True


def _things(heard: Hearing) -> frozenset[str]:
    """What the records of the call's own things hold: a card's balance, the price that was paid."""
    ids = [each for each in heard.given if each.kind == "id" and not each.is_person]
    return frozenset[str]().union(*(heard.records.marks_of(each.key) for each in ids))


def _day_mark(each: Argument) -> str:
    return f"d:{each.day.month}-{each.day.day}" if each.day is not None else ""


def tells_price(heard: Hearing) -> bool:
    """Whether it was told what money moves: a sum that is no record's own, or that there is none."""
    own = heard.deed.own if heard.deed is not None else ()
    if any(_GRATIS.search(line) for line in heard.raw.split("\n") if any(each in line for each in own)):
        return True
    if _VAGUE.search(heard.raw):
        return False
    if _GRATIS.search(heard.raw):
        return True
    means = [each for each in heard.given if each.is_means]
    for line in (passage_of((words,)) for words in heard.put.words.split("\n") if not _PAST.search(words)):
        if line.sums and (_PRICED.search(line.words) or any(heard.stands(each, line) for each in means)):
            return True
    return any(not heard.records.fields_with(number_mark(each)) for each in heard.put.sums)


def is_fee_untold(heard: Hearing, each: Argument) -> bool:
    """Whether the record of a thing holds a fee, or the price of what the call would take, that nobody told."""
    if each.is_person or each.is_means:
        return False
    entries = reversed(heard.records.of(each.key))
    shown = next((record for _, record in entries if record.is_shown), None)
    if shown is None or not (due := _due(shown.fields)) or (target := heard.target) is None:
        return False
    # What is part of the thing at hand was paid for before.
    is_paid = any(other.is_means for other in heard.given)
    is_had = bool(heard.steps(each.key) & heard.steps(target.key)) and not is_paid
    told = {abs(number.value) for number in (*heard.bracketed.numbers, *passage_of((heard.raw,)).numbers)}
    return not {value for value, is_fee in due if is_fee or not is_had} <= told


@lru_cache(maxsize=4096)
def _due(fields: frozenset[tuple[str, str]]) -> frozenset[tuple[Decimal, bool]]:
    """The fees and the prices in a record, and whether each is a fee."""
    return frozenset(
        (due, is_fee)
        for name, key in fields
        for is_fee, wanted in ((True, _FEES), (False, _PRICES))
        if not wanted.isdisjoint(word_set(name)) and (due := figure(key)) is not None and due > 0
    )


def why_count(heard: Hearing, each: Argument) -> Why | None:
    names = [word for word in words_of(each.name) if len(word) > 2 and word not in VAGUE_NAMES]
    if not each.number:
        # "No bags" is none of them; and where two bags were told, none of them need be said to cost anything.
        told = [line for line in heard.raw.split("\n") if any(is_about(line, name) for name in names)]
        is_part = any(other.kind == "count" and other.number and share(other, each) for other in heard.given)
        others = any(passage_of((line,)).counts - heard.numbers for line in told)
        if told and not others and (is_part or all(map(OFF.search, told))):
            return None
    for passage in islice(heard.regions(each), 1, None):
        lines = [line for line in passage.lines if any(is_about(line, name) for name in names)]
        for told in ([passage_of((line,)) for line in lines], [passage]):
            bare = {number for line in told for number in line.counts | _of_unit(line, names)}
            if each.number in bare:
                return "beside" if bare - heard.numbers else None
    return "never"


def share(one: Argument, other: Argument) -> bool:
    """Whether two arguments count the same: `total_baggages` and `nonfree_baggages`."""
    return bool(set(words_of(one.name)) & set(words_of(other.name)) - VAGUE_NAMES)


def _of_unit(line: Passage, names: Sequence[str]) -> set[Decimal]:
    """Numbers that stand before the name of what they count: 12 of "for 12 months", where the call has `months`."""
    return {
        number.value
        for number in line.numbers
        if (after := PLAIN.match(line.words, number.end + 1)) and any(is_about(after[0], name) for name in names)
    }
