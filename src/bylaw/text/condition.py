"""Whether a phrase states what it says, or is negated, or hangs on a condition: "I will not be in state"."""

import re

from bylaw.text.sentence import END, LONGEST, lowered, sentences
from bylaw.text.turning import DENYING

_NO_CONDITION = re.compile(
    r"\b(?:let|tell|inform|notify|remind)\s+(?:me|us)\s+(?:know\s+)?(?:right away\s+|please\s+)?"
    r"(?:if|whether|once|when)\b[^,;-]*"
    r"|\bif\s+(?:you|there)(?:'s|'d|\s+is|\s+are|'re)?\s*"
    r"(?:need|have|want|require|like|could|can|don't mind|wouldn't mind|anything|any)\b[^,;-]*"
    r"|\b(?:even|as)\s+if\b"
    r"|\bif\s+(?:possible|that's ok(?:ay)?|at all|any|applicable|needed|necessary|required|available)\b"
    r"|\bif (?:that|this|it)(?:'s| is) (?:really |truly |indeed )?(?:the only|the case|the best|all|how|what|so|"
    r"necessary|"
    r"needed|required|the way|not possible|impossible|not an option|not allowed)\b"
    r"|\bif (?:(?:it|that|this|they) (?:has|have|had|needs?|must)(?: really)?(?: to)? be(?: so| done)?"
    r"|(?:i|we|you) (?:must|have to|say so|think so|insist|really must)|need be|(?:there's|there is) no (?:other|"
    r"better|way)\b[^,;-]*|(?:that|this|it)(?:'s| is) (?:what it takes|how it (?:works|is|goes)|unavoidable))\b"
    r"|\bconfirm (?:once|when|after)\b"
    r"|^(?:since|because|although|though|even though|as) [^,]*,"
)
"""An `if` on which no yes depends: a courtesy, or what the agent has just said."""
_CONDITION = re.compile(
    r"\b(?:in case|in the event|doubt\w*|wonder\w*|suppos\w+|pretend\w*|imagin\w+|whether|"
    r"if|unless|assuming|as long as|so long as|on condition|on the condition|depending on)\b"
    r"|\b(?:provided|providing) that\b|\bonly (?:when|once|after)\b"
    r"|^\W*(?:(?:yes|yeah|yep|ok|okay|sure|go ahead|do it|please do|please)\W+)+(?:but )?"
    r"(?:after|once|when|until) (?:i|i'm|i've|we|my|our|the|it|it's)\b"
)
_DENIES = re.compile(rf"\b{DENYING}\b(?! (?:only|just|sure|to mention))")
_ASKED = re.compile(
    r"\W*(?:is|are|was|were|does|do|did|has|have|had|can|could|would|will|should|may|might|what|why|how|which|who)\b"
)
"""How a clause begins that asks."""
_NOT_SO = re.compile(
    r"\b(?:it|that|this|they)\b.{0,8}(?:n't|\bnot)(?: (?:true|so|right))?\W*$|\bi (?:was wrong|lied)\b"
)
_FEW = 6
_CLAUSE = re.compile(r"[,;:]|\b(?:but|and|so|because|since)\b")


def is_meant(text: str, start: int, end: int) -> bool:
    """Whether a phrase found in a message states what it says: neither negated nor made to depend on something."""
    plain = lowered(text)
    begin = max((match.end() for match in END.finditer(plain, max(0, start - LONGEST), start)), default=0)
    begin = max(begin, start - LONGEST)
    stop = match.start() if (match := END.search(plain, end, end + LONGEST)) else min(len(plain), end + LONGEST)
    lead = _CLAUSE.split(plain[begin:start])[-1]
    if _DENIES.search(lead) or (_ASKED.match(lead) and plain[begin : stop + 1].rstrip().endswith("?")):
        return False
    return not _CONDITION.search(_NO_CONDITION.sub(" ", plain[begin:stop]))


def takes_back(text: str) -> bool:
    """Whether a later message may deny what was said without naming it: "No, it is not."."""
    return any(len(each.words.split()) <= _FEW and _NOT_SO.search(each.words) for each in sentences(text))
