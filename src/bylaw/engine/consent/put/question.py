"""What the agent asks leave for, or offers: this deed, another, which of several, or only who the user is."""

import re
from collections.abc import Sequence
from itertools import chain

from bylaw.engine.consent.call.deed import Deed, any_deed, loose_deeds, plain_deed
from bylaw.engine.consent.put.proposal import Proposal
from bylaw.facts.folded_text import fold
from bylaw.policy.verb import VERBS, words_of

ANYTHING = re.compile(
    r"\b(?:proceed|go ahead|confirm\w*|continue|move forward|do (?:it|this|that|so|both|all)|correct|right|accurate|"
    r"agree\w*|ok|okay|good|works?|fine|acceptable|yes|approv\w*|authori[sz]e|finali[sz]e|changes?|ready|accept|happy|"
    r"permission|consent|green light|go-ahead|objections?|complete|process|these|those|everything|all of|"
    r"make (?:the|this|that) (?:swap|switch|move|update|arrangements?))\b"
)
"""Asks for a go-ahead to all that was told, not to one thing beside it."""
_LEAVE_TO = re.compile(
    r"\b(?:(?:shall|should|may|can|could) (?:i|we)|(?:want|like|wish|prefer)(?: me| us)? to)"
    r"\s+(?:(?:now|then|also|please|just|still|instead|go ahead and|proceed to|proceed with|help you)\s+)*"
    r"(?!leave an? )([a-z]+)"
)
_STOPPING = frozenset(
    """cancel stop refuse abort halt prevent block decline reject skip drop hold void undo reverse revoke withdraw
    delay postpone pause avoid deny""".split()  # noqa: SIM905
)
TALKING = frozenset(
    """explain describe show tell know hear see learn understand hang wait talk discuss repeat read think end leave
    ask remind call speak chat connect""".split()  # noqa: SIM905
)
"""Verbs after which what follows is spoken of, not done."""
_ALTERNATIVES = re.compile(r"\bwhich (?:one|of (?:them|these|those|the)|option)\b[^.!?]*\?")
_WHO = re.compile(
    r"\b(?:date of birth|birth ?date|birthday|(?:full |first |last )?name|e-?mail|zip(?: code)?|post(?:al )?code|phone|"
    r"identity|last (?:four|4)|verify (?:you|your)|speaking (?:to|with)|account holder)\b"
)
_OFFERS_TO = re.compile(
    r"\b(?:before i|i(?:'ll| will| can| could| would|'d|(?:'m| am) (?:going|about) to)|shall i|should i|let me|"
    r"(?:want|like) me to)\s+(?:now |then |also |please |just |go ahead and )*(\w+)"
)
_FILLERS = frozenset(
    """confirm make place apply start run submit put execute issue mark check look find get show verify""".split()  # noqa: SIM905
)
"""Verbs that may stand before any deed."""
_VAGUE = frozenset(
    """update modify change set record edit adjust add create put post write save apply issue make submit process mark
    place run execute""".split()  # noqa: SIM905
)
"""Verbs of tools that do what may be told by many a verb: a withdrawal is recorded."""


def asks_leave(put: Proposal, deed: Deed, things: Sequence[str]) -> bool:
    """Whether a go-ahead is asked for what a tool does: "Would you like to add insurance?" asks for another thing."""
    return any(
        ANYTHING.search(part)
        or deed.stands_in(part)
        or any(thing in part for thing in things)
        or not any_deed().stands_in(part)
        or put.is_foreign
        for part in put.leave()
    )


def asks_for_another(put: Proposal, said: str, deed: Deed, things: Sequence[str]) -> bool:
    """Whether leave is asked for another deed, and the answer speaks of one: "Yes to book it?" - "Yes, book it." """
    return all(
        plain_deed().stands_in(part) and not deed.stands_in(part) and not any(thing in part for thing in things)
        for part in chain((said,), put.leave())
    )


def asks_otherwise(put: Proposal, deed: Deed) -> bool:
    """Whether all it asks leave for is to stop a deed, or to speak of it: "Shall I stop the transfer?" """
    if put.asks_leave:
        return all(_is_otherwise(part, deed) for part in put.leave())
    asking = [part for part in put.parts if part.endswith("?")]
    return bool(asking) and all(_is_otherwise(part, deed) for part in asking)


def _is_otherwise(part: str, deed: Deed) -> bool:
    verbs = [found[1] for found in _LEAVE_TO.finditer(part)]
    return bool(verbs) and all(verb in TALKING or (verb in _STOPPING and not deed.stands_in(verb)) for verb in verbs)


def asks_which(put: Proposal) -> bool:
    """Whether it ends by asking which of several it shall be, to which a yes is no answer."""
    return bool(put.parts) and _ALTERNATIVES.search(put.parts[-1]) is not None and not put.asks_leave


def asks_who(put: Proposal, values: Sequence[str]) -> bool:
    """Whether all it asks is who the user is: a yes to that agrees to nothing. What the call would set is no such
    question."""
    asking = [part for part in put.parts if part.endswith("?")]
    return bool(asking) and all(
        _WHO.search(part) and not any(fold(value) in part for value in values) for part in asking
    )


def offered(text: str) -> list[str]:
    """The verbs for what the agent says that it will, or could, do."""
    return [found[1] for found in _OFFERS_TO.finditer(text) if found[1] not in _FILLERS]


def offers_to(text: str, deed: Deed) -> bool:
    """Whether the agent says that it will, or could, do such a deed."""
    return any(deed.stands_in(found[1]) for found in _OFFERS_TO.finditer(text))


def offers_another(text: str, tool: str) -> bool:
    """Whether the agent says that it will do something, and nothing it says so of is what the tool does."""
    verb = words_of(tool)[:1]
    if VERBS.get("".join(verb)) != "write" or verb[0] in _VAGUE:
        return False
    if loose_deeds(verb[0]).stands_in(text):
        return False
    offered = (found[1] for found in _OFFERS_TO.finditer(text))
    return any(each in VERBS and each not in _FILLERS for each in offered)
