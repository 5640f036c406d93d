"""Whether a number of things was told: in all, or for each head."""

import re
from collections.abc import Sequence
from itertools import combinations

from bylaw.engine.consent.call.detail import Detail
from bylaw.engine.consent.said.number import counts
from bylaw.engine.consent.said.utterance import Utterance
from bylaw.engine.consent.told.hearing import Hearing
from bylaw.engine.consent.told.lack import Lack
from bylaw.policy.verb import words_of

_LARGE = 13
"""Numbers from here on are told of nothing by chance."""
_COUNTED = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
_SEVERAL = re.compile(
    rf"(?<![\w.,:/$€£-])([2-9]|1\d|{'|'.join(_COUNTED)}) ?(?:[x×] ?|[*] ?)?(?:\w+ )?"
    r"(?!days\b|hours\b|minutes\b|weeks\b|months\b|years\b|points\b|stars\b)(?:people\b|[a-z]+s\b)"
)
"""Several things of one kind: 2 people, three mornings."""
_UNITS = frozenset(("minutes", "hours", "days", "nights", "weeks", "months", "years"))
_HOW_MANY = frozenset(("quantity", "qty", "count", "number", "num", "total", "units", "size", "copies"))


def count_lack(hearing: Hearing, detail: Detail) -> Lack | None:
    """A number is told by the agent, in all or for each head; what only the user spoke of was asked for, not told."""
    if detail.is_off:
        return None
    of = _stem(detail.name)
    counted = [each for each in hearing.matters if each.kind == "count" and _stem(each.name) == of and each.value]
    alike = [int(each.value) for each in counted]
    total = {str(plain(value)) for value in (alike if of else [float(detail.value)])}
    each_head = heads(hearing.matters)
    wanted = total | {str(value // each_head) for value in alike if each_head > 1 and value % each_head == 0}
    put = _numbers(hearing.proposal, of)
    if put & total or (put & wanted and ("0" not in put or not of)):
        return None
    if any(_is_number_told(each, detail.value) for each in hearing.proposal):
        return None
    if not of and _is_understood(hearing, plain(float(detail.value))):
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


def _is_understood(hearing: Hearing, number: float) -> bool:
    """Whether a mere quantity need not be said: one of what was named, where nothing was told of several; or so many
    for each of so many: 2 people, each of 2 mornings."""
    told = [each.folded for each in hearing.proposal]
    several = [found[1] for text in told for found in _SEVERAL.finditer(text)]
    if number == 1:
        return bool(told) and not several
    counted = [_COUNTED.get(word) or int(word) for word in several]
    return any(one * other == number for one, other in combinations(counted, 2))


def plain(number: float) -> int | float:
    """A number as it would be written."""
    number = round(number, 2)
    return int(number) if number == int(number) else number


def heads(matters: Sequence[Detail]) -> int:
    """For how many people or things a call is: the longest list of names in it."""
    names = [detail.name for detail in matters if detail.kind == "name" and detail.name != detail.top]
    return max((names.count(name) for name in names), default=1)


def _stem(name: str) -> str:
    """What a field is about, as it may begin a word: `bag` of `total_baggages`; empty for a mere `quantity`."""
    words = words_of(name)
    unit = next((word for word in words if word in _UNITS), None)
    return (unit or max((word for word in words if word not in _HOW_MANY), key=len, default=""))[:3]


def _is_number_told(said: Utterance, value: str | float) -> bool:
    """Whether a number was told that may count nothing: a limit of $2,000, on the 15th."""
    number = plain(float(value))
    return (number >= _LARGE and said.says(number)) or said.names(f"the {number}{_ordinal(number)}")


def _ordinal(number: float) -> str:
    return "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(int(number % 10), "th")


def _numbers(said: Sequence[Utterance], of: str) -> set[str]:
    return set[str]().union(*(counts(each.text, of) for each in said))
