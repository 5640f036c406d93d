"""Whether a deed is only spoken of beside what the agent puts to the user.

The question's own verb says what a yes is for: "Shall I check whether R-1 can be cancelled?" asks for leave to check.
What hangs on that verb, or stands there as what is not proposed ("rather than cancel R-1, I could move it"), is no
deed that was put. Where this is so, a yes leaves it open whether the user agreed.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from bylaw.engine.consent.call.deed import Deed, any_deed
from bylaw.engine.consent.put.proposal import Proposal
from bylaw.engine.consent.put.question import ANYTHING, TALKING
from bylaw.facts.phrases import Phrases
from bylaw.policy.verb import VERBS

_SPEAKER = (
    r"\b(?:i|we)(?:'ll|'d| will| would| can| could|'m| am|'re| are)\b|\b(?:shall|should|may|can|could) (?:i|we)\b"
)
_UNTIL = rf"(?:(?!{_SPEAKER})[^,;:!?])*"
"""The rest of a clause: up to a stop, or to what the agent says of itself."""
_HANGING = Phrases(
    # What is found out, and about what somebody is asked.
    (
        "if|whether|what|how|why|when|that"
        "&check|see|find out|look|ask|verify|test|wonder|determine|learn|know|hear|understand",
        r"(?<!let me )\b(?:check|see|find out|look(?: up| into)?|ask|verify|test|wonder|determine|learn|know|hear|"
        r"understand)\w*(?: \w+){0,3} (?:if|whether|what|how|why|when|that)\b[^,;:!?]*",
    ),
    ("note", r"(?<!please )\bnotes?(?: \w+){0,2} that\b[^,;:!?]*"),
    # A person or a thing that could do it.
    (
        "who|where|that can|that could|that may|that might|that let|that allow|that handle|that deal|that explain|"
        "which can|which could|which may|which might|which let|which allow|which handle|which deal|which explain",
        r"\b(?:who|whom|whose|where|(?:that|which)"
        r"(?= (?:can|could|may|might|lets?|allows?|handles?|deals?|explains?)\b))\b[^,;:!?]*",
    ),
    (
        "rather than|instead of|in place of|in lieu of|as an alternative",
        rf"\b(?:rather than|instead of|in place of|in lieu of|as an alternative to)\b{_UNTIL}",
    ),
    (
        "before|after|until|unless|in case|while& you| they| some",
        rf"\b(?:before|after|until|unless|in case|while) (?:you|they|somebody|someone)\b"
        rf"(?! (?:confirm|agree|say)){_UNTIL}",
    ),
)
"""A clause that hangs on another, or says what is not proposed."""
_BEFORE_THAT = Phrases(("before|prior to|ahead of", rf"\b(?:before|prior to|ahead of)\b{_UNTIL}"))
_OF_A_THING = re.compile(
    r"\b(?:links?|forms?|pages?|numbers?|steps?|instructions?|options?|information|info|details|terms|rules|polic\w+|"
    r"e-?mails?|guides?|articles?|offers?|quotes?|colleagues?|someone|somebody|persons?|agents?|specialists?|teams?)"
    r" (?:to|for|on|about|of|how|with|from|explaining|in charge of)\b[^,;:!?]*"
    r"|\babout\b[^,;:!?]*|\b(?:so(?: that)?|in order that) (?:i|we)\b[^,;:!?]*"
)
"""In a question: what something is there for, or is about."""
_IS_IT = re.compile(
    r"\b(?:is|are|was|were)\b[^,;:!?]*\b(?:the|that|this|a|an|one|ones|which)\b(?: \w+){0,3} (?:that |which )?"
    r"you(?:'d| would|'re| are| have|'ve)?(?: still| currently)? "
    r"(?:wish|want|like|need|ask|plan|try|trying|hope|hoping|intend|mean|looking|planning)\w*\b"
)
"""Asks which thing the user means, or what they wish."""
_FORWARD = re.compile(r"\b(?:move|go|carry) (?:forward|on|ahead)\b")
_OWN_VERB = re.compile(
    r"\b(?:(?:shall|should|may|can|could|might) (?:i|we)|(?:want|like|wish|prefer|need|love|okay|ok|ready|happy|for)"
    r"(?: me| us)? to|(?:if|that) (?:i|we)|(?:want|like|need|with) me)"
    r"\s+(?:(?:now|then|also|please|just|still|instead|first|quickly|to|simply|go ahead and|proceed to|proceed with|"
    r"proceed and|start by|begin by|begin with)\s+)*([a-z]+)"
)
_OFFERED = re.compile(
    r"\b(?:i|we)(?:'ll|'d| will| would| can| could| may| might)(?: like to| love to| be happy to| be glad to)?"
    r"\s+(?:(?:now|then|also|just|instead|first|gladly|happily)\s+)*([a-z]+)"
)
_FINDING_OUT = frozenset(
    """check checking look looking see find verify search review examine investigate consult test determine calculate
    compare estimate quote email mail phone message text forward escalate route pass put transfer note pull fetch
    gather collect""".split()  # noqa: SIM905
)
_ANY_DEED = frozenset(
    """go proceed do continue process make complete finalize finalise submit confirm apply issue handle take use set get
    start have execute carry arrange help assist try request initiate attempt begin be place finish perform record
    charge bill pay debit refund""".split()  # noqa: SIM905
)
"""Verbs that may stand for any deed, or for how it is paid."""
_LOOKS_FIRST = re.compile(
    r"^(?!.*\b(?:once|after|when|if)\b).*\b(?:let me|i'll|i will|i need to|i'd need to|i have to)"
    r"(?: just| now| first| quickly)* (?:check|look|find|see|pull|verify|calculate)\b"
)
"""Says what is done before anything else; what comes once the user has agreed is no such thing."""


def is_beside(put: Proposal, deed: Deed, things: Sequence[str]) -> bool:
    """Whether it speaks of a deed, or of what it is done to, only beside what it proposes or asks for."""

    def names(text: str) -> bool:
        return deed.stands_in(text) or any(thing in text for thing in things)

    if not names(put.text):
        return False
    last = put.parts[-1]
    is_so = (
        not any(names(part) and ((main := _main(part, deed)) == part or names(main)) for part in put.parts)
        or (not last.endswith("?") and _LOOKS_FIRST.search(last) is not None)
        or (put.asks_leave and not any(_asks_for(part, deed, things) for part in put.leave()))
    )
    return is_so and not put.is_foreign


def asks_another(put: Proposal, deed: Deed) -> bool:
    """Whether all it asks leave for is to do something else: to find out, to talk, to send."""
    verbs = [verb for part in put.leave() for verb in own_verbs(part)]
    return bool(verbs) and all(_is_another(verb, deed) for verb in verbs)


def _main(part: str, deed: Deed) -> str:
    """A sentence without what hangs on something else in it."""
    main, rest, verbs = clauses(part)
    # "Before I cancel R-1, please confirm" tells it; "before I cancel R-1, I'd send an offer" tells the offer.
    return rest if any(_is_another(verb, deed) for verb in verbs) else main


@lru_cache(maxsize=2048)
def clauses(part: str) -> tuple[str, str, tuple[str, ...]]:
    """A sentence without what hangs on something else in it; without what comes later, too; and, where there is any
    such, the verbs that are left."""
    main = _HANGING.without(part)
    rest = _BEFORE_THAT.without(main)
    return main, rest, () if rest == main else tuple(_verbs(rest))


def _asks_for(part: str, deed: Deed, things: Sequence[str]) -> bool:
    """Whether a sentence that asks for a go-ahead may ask for a deed."""
    if _IS_IT.search(part) and deed.stands_in(part):
        return False
    main = _main(part, deed)
    if part.endswith("?"):
        main = _OF_A_THING.sub(" ", main)
    is_named = deed.stands_in(main) or any(thing in main for thing in things)
    asked = own_verbs(main)
    if asked and all(_is_another(verb, deed) for verb in asked):
        return any(thing in main for thing in things)
    return is_named or not deed.stands_in(part) or ANYTHING.search(main) is not None


@lru_cache(maxsize=2048)
def own_verbs(text: str) -> tuple[str, ...]:
    """The verbs of what a text asks leave for."""
    return tuple(found[1] for found in _OWN_VERB.finditer(_FORWARD.sub("proceed", text)))


def _verbs(text: str) -> Iterator[str]:
    for pattern in (_OWN_VERB, _OFFERED):
        yield from (found[1] for found in pattern.finditer(text))


def _is_another(verb: str, deed: Deed) -> bool:
    """Whether a verb says that something else is done: it is found out, talked about, sent."""
    if verb in _ANY_DEED or deed.stands_in(verb):
        return False
    return verb in TALKING or verb in _FINDING_OUT or VERBS.get(verb) == "read" or any_deed().stands_in(verb)
