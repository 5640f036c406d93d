"""A question that gives two things to choose from: to "Shall I cancel it or move it?" a bare yes says nothing."""

import re

from bylaw.engine.consent.call.deed import Deed, any_deed
from bylaw.engine.consent.put.proposal import Proposal

_VALUE = r"[$€£]?[a-z]{0,4}-?\d[\w.,:-]*"
_VALUES = re.compile(rf"\b(?:{_VALUE}) or (?:{_VALUE})|(?<!\w)[$€£]\d[\d.,]* or [$€£]?\d")
"""Two sums, days, times or ids; "a day or two" and "in 3 or 4 days" say how many."""
_ABOUT = re.compile(r"\b\d+ or \d+ (?:[a-z]+ )?(?:days?|hours?|weeks?|months?|minutes?|working|business)\b")
_OR = re.compile(
    r",? or (?:(?:to|just|rather|instead|simply|else|should i|should we|shall i|shall we|do you want(?: me)? to|"
    r"would you (?:like|prefer|rather)(?: me)?(?: to)?) )*([a-z]+)\b(?! (?:anything|something|any|more|first|other)\b)"
)
_STAYING = frozenset(("keep", "leave", "stay", "retain", "wait", "remain", "continue", "nothing"))
_ANY_GO_AHEAD = re.compile(r"\b(?:go ahead|proceed|confirm|do (?:it|that|this|so)|ok|okay|yes|no|not)\b")
"""Before an `or`: what stands after it is no other deed, but whether to go ahead at all."""


def asks_either(put: Proposal, deed: Deed) -> bool:
    """Whether all that it asks for is one of two deeds, this one and another, or one of two values."""
    asking = [part for part in put.parts if part.endswith("?")]
    return bool(asking) and all(_is_either(part, deed) for part in asking)


def _is_either(part: str, deed: Deed) -> bool:
    if " or " not in part:
        return False
    if _VALUES.search(part) and not _ABOUT.search(part):
        return True
    for found in _OR.finditer(part):
        before, verb = part[: found.start()], found[1]
        is_two = any_deed().stands_in(verb) or verb in _STAYING
        if is_two and not _ANY_GO_AHEAD.search(before) and (deed.stands_in(before) or deed.stands_in(verb)):
            return any_deed().stands_in(before) or any(word in before.split() for word in _STAYING)
    return False
