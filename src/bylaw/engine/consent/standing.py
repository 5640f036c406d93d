"""A proposal that still stands: the user asked about it, or wanted to think, and the agent took nothing of it back.

"I would cancel R-1. OK?" - "Does it cost anything?" - "No. Shall I do it?" - "Yes." agrees to what was put before.
"""

import re
from collections.abc import Sequence

from bylaw.engine.consent.call.deed import Deed, plain_deed
from bylaw.engine.consent.exchange import Exchange
from bylaw.facts.sentence import sentences

_CHAIN = 4
"""So many exchanges may lie between a proposal and the answer to it."""
_TAKING = ("yes", "weak", "mixed", "other")
_UNDECIDED = ("asks", "held", "if", "mixed", "other")
_CLAUSE = re.compile(
    r"\b(?:would|do|did|are|is|shall|should|may|can|could|does|will|ok|okay|ready|happy|let me know|please|just say)\b"
)
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_EMPTY = frozenset(
    """
    would you like me to us i we shall should may can could will do does did is are am be it that this them those these
    so both all everything and or then now please just still go going ahead proceed proceeding continue carry on with
    make making made the change changes update request as described said proposed outlined discussed planned above
    agreed arranged happy ok okay alright right fine good great correct ready want wish prefer let know if when whether
    once your confirm confirmation go-ahead permission for my have has get a an yes no sound sounds work works you'd i'd
    i'll any of in through put place process complete finalize finalise finish submit today here sure either way what
    told mentioned suggested stated before from side forward move moving start arrange sort out done doing say reply
    tell give send word green light still agree approve comfortable else anyway
    """.split()  # noqa: SIM905
)
"""Words of a question that asks for a go-ahead to what was told before, and tells nothing of its own."""
_WITHDRAWN = re.compile(
    r"\b(?:won't|will not|not going to|left (?:it|that|this|everything|all|things)|withdr\w+|nothing (?:was|has been)|"
    r"(?:cannot|can't|unable|unfortunately|isn't possible|not possible))\b"
)
_ALTERNATIVE = re.compile(
    r"\b(?:instead|rather|another|different|(?:how|what) about|cheaper|earlier|later|fewer|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
)
"""In a remark: it may ask for something else than was put, as may a number that was not told."""
_NUMBER = re.compile(r"\d+")


class Standing:
    """An exchange with what was put before it and still stands."""

    def __init__(self, exchanges: Sequence[Exchange], place: int, deed: Deed) -> None:
        this = exchanges[place]
        self.exchange = this
        self.is_doubtful = False
        """Whether it may be that something else stands by now."""
        start = _begin(exchanges, place, deed)
        self.before = exchanges[start - 1] if start else None
        """The exchange before all of it."""
        if start < place:
            told = tuple(each for exchange in exchanges[start:place] for each in exchange.proposal)
            self.exchange = Exchange(this.start, (*told, *this.proposal), this.answer, end=this.end)
            self.is_doubtful = any(map(_may_change, exchanges[start:place]))


def _begin(exchanges: Sequence[Exchange], place: int, deed: Deed) -> int:
    """The place of the exchange that put what still stands at another; that place itself where there is none."""
    this = exchanges[place]
    if this.said.stance not in _TAKING or (this.said.stance in ("weak", "other") and not this.put.asks_leave):
        # "Great, thanks" takes note of what was said last.
        return place
    start = place
    while start and place - start < _CHAIN and leaves_open(exchanges[start], deed):
        if exchanges[start - 1].said.stance not in _UNDECIDED:
            break
        start -= 1
    while start < place and not exchanges[start].is_put:
        start += 1
    return start


def leaves_open(exchange: Exchange, deed: Deed) -> bool:
    """Whether the agent's message puts nothing of its own: it asks no more than for a go-ahead, or nothing at all."""
    put = exchange.put
    if not exchange.proposal or put.is_foreign:
        return False
    if put.asks_leave:
        asking = list(put.leave())
        return all(_is_bare(part, deed) for part in [each for each in asking if each.endswith("?")] or asking)
    return not put.offers and "?" not in put.text and not withdraws(exchange)


def withdraws(exchange: Exchange) -> bool:
    """Whether the agent's message says that something will not, or cannot, be done."""
    return _WITHDRAWN.search(exchange.put.text) is not None


def _is_bare(part: str, deed: Deed) -> bool:
    """Whether a sentence that asks for a go-ahead says no more than that, or names the deed and nothing else."""
    found = _CLAUSE.search(part)
    words = _WORD.findall(part[found.start() :] if found else part)
    return not any(map(str.isdigit, part)) and all(word in _EMPTY or deed.stands_in(word) for word in words)


def _may_change(exchange: Exchange) -> bool:
    """Whether what the user said meanwhile may ask for something else than was put."""
    told = {*_NUMBER.findall(exchange.put.text)}
    for each in exchange.answer:
        for part in sentences(each.text):
            is_other = _ALTERNATIVE.search(part) is not None or not told.issuperset(_NUMBER.findall(part))
            if is_other or (not part.endswith("?") and plain_deed().stands_in(part)):
                return True
    return exchange.said.objects
