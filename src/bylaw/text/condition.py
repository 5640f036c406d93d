"""Finds what a message clearly states: "it is broken", but not "it is not", "broken?" or "[ ] broken".

A sentence is used only if its form leaves no doubt about its meaning.
"""

import re
from functools import lru_cache

from bylaw.text.folding import fold
from bylaw.text.identifier import identifiers
from bylaw.text.spelling import spell

LONGEST = 1_000
_SENTENCES = 400
"""The maximum number of sentences to read in a message, which limits the cost."""
_END = re.compile(r"(?<=[.!?;])[\"')*]*\s+|\n+")
_PART_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_BREAK = re.compile(r"(?:[.!?;\u061f\uff1f]+[\"')\]]*(?=\s)|[\u3002\uff01\uff1f]|\n)\s*")
_LIST = re.compile(r"\A(?:[\s>#|\-\u2022+]|\(?\d{1,2}[.)](?=\s))+")
_ORDINAL = re.compile(r"(?:^|\s)(?:\d{1,2}|[a-z]|no|st|mr|mrs|ms|dr|vs|approx|e\.g|i\.e|[ap]\.m)\.$")
"""Matches words after which a full stop does not end the sentence."""
_PLAIN = str.maketrans(
    dict.fromkeys("\u2018\u2019\u02bc\u2032\u00b4\uff07", "'")
    | dict.fromkeys("\u201c\u201d", '"')
    | dict.fromkeys("\u2014\u2013\u2011", "-")
    | dict.fromkeys("*`\u00a0\u202f", " ")
)
_DENYING = (
    r"(?:no|not|none|nothing|nobody|nowhere|nor|neither|never|cannot|without|hardly|barely|"
    r"[a-z]+n[' ]t|"
    r"(?:do|does|did|wo|ca|is|are|was|were|should|must|could|would|have|has|had|need|ai|sha|might|ought)nt)"
)
_COURTESY = re.compile(
    r"\b(?:let|tell|inform|notify|remind)\s+(?:me|us)\s+(?:know\s+)?(?:right away\s+|please\s+)?"
    r"(?:if|whether|once|when)\b[^,;-]*"
)
"""Matches polite phrases with "if" that do not state a condition."""
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
"""Matches words that make the meaning of a phrase near them uncertain."""
_ASKED = re.compile(
    r"\W*(?:is|are|was|were|does|do|did|has|have|had|can|could|would|will|should|may|might|what|why|how|which|who)\b"
)
_IS = r"(?:am|is|are|was|were|be|been|do|does|did|has|have|had)"
_WHO = r"(?:i|we|you|he|she|they|it)"
_BARE = re.compile(rf"\W*(?:(?:{_DENYING}|{_IS}|{_WHO}|that|this|so|true|right|really|at all)\b\W*)+")
"""Matches a clause without a subject of its own. If it contains a denial, the denial refers to the text before it."""
_NOT_SO = re.compile(rf"\b(?:{_WHO}|that|this|true|so|right)\b|n't|\b{_IS}\b")
_WRONG = re.compile(r"\W*i (?:was wrong|lied)\W*")
_EMBEDS = re.compile(rf"\b{_WHO}\b(?:'\w+|\s+{_IS}\b)?+.*?(?:\b{_WHO}\b|\b(?:am|is|are|was|were)\b|\w'(?:s|re|m)\b)")
"""Matches a second subject or verb that introduces a statement, as in "I thought it was" or "he says the thing is"."""
_MARK = re.compile(r"[\[({<]\s*\S?\s*[\])}>]|[\"\t|=<>~^]|[^\w\s!-/:-@\[-`{-~\u20a0-\u20bf\u00a2-\u00a5\u2022]")
"""Matches form fields, check boxes, quotations and other text that does not form a sentence."""
_CLAUSE = re.compile(r"[,;:()\[\]{}]|\s-+\s|\b(?:but|and|so|because|since|as)\b")
_TAG = 2
"""The maximum number of words in an ending such as "isn't it?" or "right?", which turns a statement into a question."""


def is_meant(text: str, start: int, end: int) -> bool:
    """Whether a message states the phrase and contains nothing that could reverse its meaning."""
    plain = _lowered(text)
    begin = max((match.end() for match in _END.finditer(plain, max(0, start - LONGEST), start)), default=0)
    begin = max(begin, start - LONGEST)
    stop = match.start() if (match := _END.search(plain, end, end + LONGEST)) else min(len(plain), end + LONGEST)
    sentence = plain[begin:stop]
    lead = _CLAUSE.split(plain[begin:start])[-1]
    tail, *after = _CLAUSE.split(plain[end:stop])
    if _MARK.search(sentence) or plain[end + len(tail) : end + len(tail) + 1] == ":":
        return False
    if _DENIES.search(lead) or _DENIES.search(tail) or _EMBEDS.search(lead):
        return False
    if plain[start - 1 : start].isalnum() or _UNSURE.search(plain[begin:start]) or _OVER.search(plain, end):
        # The phrase is part of a longer word ("unbroken"), is uncertain, is a joke, or no longer applies.
        return False
    if sentence.rstrip().endswith("?") and (_ASKED.match(lead) or not after or len(after[-1].split()) <= _TAG):
        return False
    if any(map(_is_bare_denial, after)) or _is_denied_next(plain[stop:]):
        return False
    return not _CONDITION.search(_COURTESY.sub(" ", sentence))


def takes_back(text: str) -> bool:
    """Whether a later message may deny an earlier statement without repeating it, as in "No, it is not."

    A mere "no" answers the agent, so it does not deny the user's own statement.
    """
    return _takes_back(text) if len(text) <= LONGEST else _takes_back.__wrapped__(text)


@lru_cache(maxsize=8192)
def _takes_back(text: str) -> bool:
    clauses = [clause for each in _sentences(text) for clause in _CLAUSE.split(each)]
    return any(_WRONG.fullmatch(each) or (_is_bare_denial(each) and _NOT_SO.search(each)) for each in clauses)


def _is_denied_next(text: str) -> bool:
    first = next(iter(_sentences(text)), "")
    return _is_bare_denial(_CLAUSE.split(first)[0]) or takes_back(text)


def _is_bare_denial(clause: str) -> bool:
    return _BARE.fullmatch(clause) is not None and _DENIES.search(clause) is not None


def _lowered(text: str) -> str:
    """Return the text in lower case, with straight quotes and plain dashes. Every character keeps its position."""
    lower = text.translate(_PLAIN).lower()
    # In some languages, lower case changes the length of the text, which would shift positions.
    return lower if len(lower) == len(text) else text.translate(_PLAIN)


@lru_cache(maxsize=2048)
def _sentences(text: str) -> tuple[str, ...]:
    """Return the sentences and lines in lower case. Of a very long text, return only the first and last ones."""
    plain = _lowered(text)
    found: list[str] = []
    start = 0
    for match in _BREAK.finditer(plain):
        if plain[match.start()] == "." and _ORDINAL.search(plain, max(start, match.start() - 8), match.start() + 1):
            continue
        found.append(plain[start : match.end()])
        start = match.end()
    bare = (_LIST.sub("", each.rstrip()) for each in (*found, plain[start:]))
    found = [each[:LONGEST] for each in bare if each]
    return tuple(found if len(found) <= _SENTENCES else found[: _SENTENCES // 2] + found[-_SENTENCES // 2 :])


def passages_about(text: str, value: str | float) -> list[tuple[int, int]]:
    """Return the parts of a message that are about the entity named `value`, as ranges of positions.

    A range starts with a sentence that names the entity and ends before the next sentence that names another entity.
    """
    spelling = spell(value)
    found: list[tuple[int, int]] = []
    is_meant = False
    begin = 0
    for end in [*(match.start() for match in _PART_END.finditer(text)), len(text)]:
        sentence = text[begin:end]
        if spelling is not None and spelling.said_in(fold(sentence)):
            is_meant = True
        elif identifiers(sentence):
            is_meant = False
        if is_meant:
            found.append((begin, end))
        begin = end
    return found
