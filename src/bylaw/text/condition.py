"""Whether a phrase plainly states what it says: "it is broken", and neither "it is not", "broken?" nor "[ ] broken".

What is certain is told by the shape of its sentence. Whatever else a sentence may mean, it states nothing here.
"""

import re
from functools import lru_cache

from bylaw.text.sentence import END, LONGEST, lowered, sentences

_DENYING = (
    r"(?:no|not|none|nothing|nobody|nowhere|nor|neither|never|cannot|without|hardly|barely|"
    r"[a-z]+n[' ]t|"
    r"(?:do|does|did|wo|ca|is|are|was|were|should|must|could|would|have|has|had|need|ai|sha|might|ought)nt)"
)
_COURTESY = re.compile(
    r"\b(?:let|tell|inform|notify|remind)\s+(?:me|us)\s+(?:know\s+)?(?:right away\s+|please\s+)?"
    r"(?:if|whether|once|when)\b[^,;-]*"
)
"""An `if` on which nothing depends that stands beside it."""
_CONDITION = re.compile(
    r"\b(?:in case|in the event|doubt\w*|wonder\w*|suppos\w+|pretend\w*|imagin\w+|whether|"
    r"if|unless|assuming|as long as|so long as|on condition|on the condition|depending on)\b"
    r"|\b(?:provided|providing) that\b|\bonly (?:when|once|after)\b"
    r"|^\W*(?:(?:yes|yeah|yep|ok|okay|sure|go ahead|do it|please do|please)\W+)+(?:but )?"
    r"(?:after|once|when|until) (?:i|i'm|i've|we|my|our|the|it|it's)\b"
)
_DENIES = re.compile(rf"\b{_DENYING}\b")
_UNSURE = re.compile(
    r"\b(?:maybe|perhaps|possibly|probably|presumably|apparently|might|could|may be|would be|to be|being|almost|nearly|"
    r"far from|anything but|opposite of|say|tell|according to|claims?)\b"
)
_OVER = re.compile(r"\b(?:kidding|joking|untrue|false|wrong|fixed|repaired|mended|solved|works? again)\b")
"""What leaves it open before a phrase, and after it."""
_ASKED = re.compile(
    r"\W*(?:is|are|was|were|does|do|did|has|have|had|can|could|would|will|should|may|might|what|why|how|which|who)\b"
)
"""How a clause begins that asks."""
_IS = r"(?:am|is|are|was|were|be|been|do|does|did|has|have|had)"
_WHO = r"(?:i|we|you|he|she|they|it)"
_BARE = re.compile(rf"\W*(?:(?:{_DENYING}|{_IS}|{_WHO}|that|this|so|true|right|really|at all)\b\W*)+")
"""A clause without a thing of its own, so that one that denies can only deny what stands before it."""
_NOT_SO = re.compile(rf"\b(?:{_WHO}|that|this|true|so|right)\b|n't|\b{_IS}\b")
_WRONG = re.compile(r"\W*i (?:was wrong|lied)\W*")
_EMBEDS = re.compile(rf"\b{_WHO}\b(?:'\w+|\s+{_IS}\b)?+.*?(?:\b{_WHO}\b|\b(?:am|is|are|was|were)\b|\w'(?:s|re|m)\b)")
"""Words with a second subject or verb: "I thought it was", "he says the thing is"."""
_MARK = re.compile(r"[\[({<]\s*\S?\s*[\])}>]|[\"\t|=<>~^]|[^\w\s!-/:-@\[-`{-~\u20a0-\u20bf\u00a2-\u00a5\u2022]")
"""What makes words a field, a box to tick, a quotation or something else that is no sentence."""
_CLAUSE = re.compile(r"[,;:()\[\]{}]|\s-+\s|\b(?:but|and|so|because|since|as)\b")
_TAG = 2
"""The most words of "isn't it?" and "right?", which ask of what stands before them."""


def is_meant(text: str, start: int, end: int) -> bool:
    """Whether a phrase found in a message states what it says, and nothing in its message may turn that."""
    plain = lowered(text)
    begin = max((match.end() for match in END.finditer(plain, max(0, start - LONGEST), start)), default=0)
    begin = max(begin, start - LONGEST)
    stop = match.start() if (match := END.search(plain, end, end + LONGEST)) else min(len(plain), end + LONGEST)
    sentence = plain[begin:stop]
    lead = _CLAUSE.split(plain[begin:start])[-1]
    tail, *after = _CLAUSE.split(plain[end:stop])
    if _MARK.search(sentence) or plain[end + len(tail) : end + len(tail) + 1] == ":":
        return False
    if _DENIES.search(lead) or _DENIES.search(tail) or _EMBEDS.search(lead):
        return False
    if plain[start - 1 : start].isalnum() or _UNSURE.search(plain[begin:start]) or _OVER.search(plain, end):
        # Within a longer word ("unbroken"), perhaps, in jest, or over by now.
        return False
    if sentence.rstrip().endswith("?") and (_ASKED.match(lead) or not after or len(after[-1].split()) <= _TAG):
        return False
    if any(map(_is_bare_denial, after)) or _is_denied_next(plain[stop:]):
        return False
    return not _CONDITION.search(_COURTESY.sub(" ", sentence))


def takes_back(text: str) -> bool:
    """Whether a later message may deny what was said without naming it: "No, it is not.". A mere "no" answers the
    agent, and not what the user said before."""
    return _takes_back(text) if len(text) <= LONGEST else _takes_back.__wrapped__(text)


@lru_cache(maxsize=8192)
def _takes_back(text: str) -> bool:
    clauses = [clause for each in sentences(text) for clause in _CLAUSE.split(each.words)]
    return any(_WRONG.fullmatch(each) or (_is_bare_denial(each) and _NOT_SO.search(each)) for each in clauses)


def _is_denied_next(text: str) -> bool:
    """Whether what follows in the same message begins by denying, or takes it back anywhere."""
    first = next((each.words for each in sentences(text)), "")
    return _is_bare_denial(_CLAUSE.split(first)[0]) or takes_back(text)


def _is_bare_denial(clause: str) -> bool:
    return _BARE.fullmatch(clause) is not None and _DENIES.search(clause) is not None
